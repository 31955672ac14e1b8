"""The attributes of spans that say why their trace is kept."""

from __future__ import annotations

from typing import Any, Final

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from spanscore.contracts.instruments.instrument import KEEP_RULE
from spanscore.emitters.otlp._encoded_values import encoded_pairs
from spanscore.emitters.otlp.keep_counts import decision_word
from spanscore.model import KeepDecision

WOULD: Final = "spanscore.keep.would"


def root_tags(decision: KeepDecision) -> bytes:
    """Return the attributes of a root span, as fields of it."""
    pairs: dict[str, Any] = {WOULD: decision_word(decision)} if decision.observed else {}
    if decision.rule:
        pairs[KEEP_RULE] = decision.rule
    return encoded_pairs(Span.ATTRIBUTES_FIELD_NUMBER, pairs)
