"""Content of the GenAI conventions in the events of a span, which is read as if the span itself had it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from spanscore.dialects import _content as content
from spanscore.dialects import gen_ai
from spanscore.dialects._literals import plain
from spanscore.model import AttributeValue, Span

_MESSAGES: Final = frozenset({gen_ai.INPUT, gen_ai.OUTPUT})
_KEYS: Final = _MESSAGES | {gen_ai.ARGUMENTS, gen_ai.RESULT, gen_ai.DEFINITIONS, gen_ai.INSTRUCTIONS}


def as_attributes(span: Span) -> Span:
    """Return a span with the content of its events in its attributes, and with structured attributes as JSON text.

    The span's own attributes win. If several events have messages, these are one list.
    """
    span = content.with_texts(span)
    if not span.events or all(_KEYS.isdisjoint(event.attributes) for event in span.events):
        return span
    held: dict[str, list[AttributeValue]] = {}
    for event in span.events:
        for key in _KEYS.intersection(event.attributes).difference(span.attributes):
            held.setdefault(key, []).append(event.attributes[key])
    moved = {
        key: values[0] if len(values) == 1 or key not in _MESSAGES else _joined(values) for key, values in held.items()
    }
    return span._replace(attributes={**span.attributes, **moved}) if moved else span


def _joined(values: Sequence[AttributeValue]) -> str:
    lists = (content.decoded(value) for value in values)
    return json.dumps([plain(each) for found in lists if isinstance(found, list) for each in found])
