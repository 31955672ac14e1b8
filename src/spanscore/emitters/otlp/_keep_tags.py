"""The attributes and the trace state of spans by which their trace is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from spanscore.contracts import Roots
from spanscore.contracts.instruments.instrument import KEEP_RULE
from spanscore.emitters.otlp._encoded_values import encoded_pairs
from spanscore.emitters.otlp.keep_counts import decision_word
from spanscore.keep.sampling import Restated, adjusted_count, read_state, restated
from spanscore.model import KeepDecision
from spanscore.otlp.by_trace import TRACE_STATE, trace_state, within
from spanscore.otlp.field_numbers import SPANS
from spanscore.otlp.raw_requests import Envelope, RootSpan, Split, has_parent, root_at
from spanscore.otlp.wire import field_at, length_delimited, length_prefix

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

    def restated(self, text: str) -> Restated:
        """Return the trace state of a span that has this one."""
        return restated(read_state(text), self._threshold, self._randomness, differs=self._differs)

    def requests(self, parts: Mapping[Envelope, Sequence[bytes]]) -> Iterator[Split]:
        """Yield the spans in requests that every receiver takes, and the root spans, which are not in these.

        Args:
            parts: the fields of spans, by their envelope.
        """
        request: list[bytes | memoryview] = []
        roots: list[RootSpan] = []
        spans = size = 0
        may_be_remote = self._roots == "remote_parent"
        for envelope, runs in parts.items():
            content: list[bytes | memoryview] = []
            for run in runs:
                view = memoryview(run)
                behind, whole = 0, len(run)
                while behind < whole:
                    _, first, behind = field_at(run, behind, whole)
                    root = None
                    if may_be_remote or not has_parent(run, first, behind):
                        root = root_at(run, first, behind, self._roots, envelope)
                    tags = self._rule
                    if tags and (self._may_have_state or root is not None):
                        tags += self._more_tags(run, first, behind, is_root=root is not None)
                    if root is not None:
                        roots.append(root._replace(content=root.content + tags))
                        continue
                    length = behind - first + len(tags)
                    if size and size + length > _REQUEST_SIZE:
                        yield Split(b"".join([*request, *within(envelope, content)]), spans, [])
                        request, content, spans, size = [], [], 0, 0
                    content += (length_prefix(SPANS, length), view[first:behind], tags)
                    spans += 1
                    size += length
            request += within(envelope, content)
        yield Split(b"".join(request), spans, roots)

    def _more_tags(self, run: bytes, first: int, end: int, *, is_root: bool) -> bytes:
        """Return the tags of a span besides the rule."""
        found = self.restated(trace_state(run, first, end) if self._may_have_state else "")
        tags = b"" if found.text is None else length_delimited(TRACE_STATE, found.text.encode())
        if is_root and not found.inconsistent:
            tags += encoded_pairs(_ATTRIBUTES, {ADJUSTED_COUNT: adjusted_count(found.threshold or 0)})
        return tags
