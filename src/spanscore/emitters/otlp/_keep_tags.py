"""The attributes and the trace state of spans by which their trace is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from spanscore.contracts import Roots
from spanscore.contracts.instruments.instrument import KEEP_RULE
from spanscore.emitters.otlp._encoded_values import encoded_pairs
from spanscore.emitters.otlp.keep_counts import decision_word
from spanscore.model import KeepDecision
from spanscore.otlp.by_trace import TRACE_STATE, span_prefix, trace_state, within
from spanscore.otlp.raw_requests import Envelope, RootSpan, Split, has_parent, root_of
from spanscore.otlp.wire import length_delimited
from spanscore.scoring.keep.sampling import Restated, adjusted_count, read_state, restated

ADJUSTED_COUNT: Final = "spanscore.keep.adjusted_count"
WOULD: Final = "spanscore.keep.would"

_REQUEST_SIZE: Final = 2**20
"""Requests of a trace are not larger, if its spans are not: every receiver takes them."""
_ATTRIBUTES: Final = Span.ATTRIBUTES_FIELD_NUMBER


def observed_tags(decision: KeepDecision) -> bytes:
    """Return the attributes of a root span that say what would be done, as fields of it."""
    if not decision.observed:
        return b""
    rule = {KEEP_RULE: decision.rule} if decision.rule else {}
    return encoded_pairs(_ATTRIBUTES, {WOULD: decision_word(decision), **rule})


class Tagging:
    """Puts tags on the spans of a kept trace, and gets them ready to be sent.

    Args:
        decision: the decision; if no rule has made it, there are no tags.
        randomness: the randomness of the trace.
        roots: the spans that are roots.
        differs: whether the spans of the trace differ in their randomness.
        is_sampled: whether a trace state of them may have the member of OpenTelemetry.
    """

    def __init__(
        self, decision: KeepDecision, randomness: int, roots: Roots, *, differs: bool = False, is_sampled: bool = True
    ) -> None:
        self._rule: Final = encoded_pairs(_ATTRIBUTES, {KEEP_RULE: decision.rule}) if decision.rule else b""
        self._threshold: Final = decision.threshold
        self._randomness: Final = randomness
        self._roots: Final[Roots] = roots
        self._differs: Final = differs
        self._may_have_state: Final = is_sampled or differs or decision.threshold > 0
        self._root: Final = b"" if self._may_have_state or not self._rule else _encoded_count(0)

    def restated(self, text: str) -> Restated:
        """Return the trace state of a span that has this one."""
        return restated(read_state(text), self._threshold, self._randomness, differs=self._differs)

    def requests(self, parts: Iterable[tuple[Envelope, Sequence[bytes]]]) -> Iterator[Split]:
        """Yield the spans in requests that every receiver takes, and the root spans, which are not in these.

        Args:
            parts: the spans, by their envelope.
        """
        request: list[bytes] = []
        roots: list[RootSpan] = []
        count = size = 0
        may_be_remote, tags = self._roots == "remote_parent", self._rule
        needs_more = self._may_have_state and bool(tags)
        for envelope, spans in parts:
            content: list[bytes] = []
            began = size
            for span in spans:
                if needs_more:
                    tags = self._rule + self._more_tags(span)
                if (may_be_remote or not has_parent(span)) and (root := root_of(span, self._roots, envelope)):
                    roots.append(root._replace(content=span + tags + self._root_tags(span)))
                    continue
                length = len(span) + len(tags)
                if size and size + length > _REQUEST_SIZE:
                    request += within(envelope, content, size - began) if content else ()
                    yield Split(b"".join(request), count, [])
                    request, content, count, size, began = [], [], 0, 0, 0
                prefix = span_prefix(length)
                content += (prefix, span, tags)
                count += 1
                size += len(prefix) + length
            if content:
                request += within(envelope, content, size - began)
        yield Split(b"".join(request), count, roots)

    def _more_tags(self, span: bytes) -> bytes:
        """Return the trace state of a span, if it changes."""
        text = self.restated(trace_state(span)).text
        return b"" if text is None else length_delimited(TRACE_STATE, text.encode())

    def _root_tags(self, span: bytes) -> bytes:
        if not self._may_have_state or not self._rule:
            return self._root
        found = self.restated(trace_state(span))
        return b"" if found.inconsistent else _encoded_count(found.threshold or 0)


def _encoded_count(threshold: int) -> bytes:
    return encoded_pairs(_ATTRIBUTES, {ADJUSTED_COUNT: adjusted_count(threshold)})
