"""The dialects' readings of the spans of one trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Final

from spanscore.contracts import Dialect, ModelReading, Reading
from spanscore.model import LOG_RECORD, AttributeValue, Span, changed
from spanscore.trajectories.normalised import may_be_renamed
from spanscore.trajectories.reader import DialectReader, Failures

NONE: Final = -1
"""Stands for "no span" among positions."""
CUT_NS: Final = 1_000_000
"""Start times of JavaScript are cut to the millisecond, ends are not."""
NO_READING: Final = Reading()
"""The reading of a span that no dialect recognises."""
_MOST_OF_ONE_ID: Final = 8


class Readings:
    """The readings of the spans of a trace, by their positions, and their parents.

    Call `read` first, to its end: a single span can take longer than other work in an event loop may wait.
    """

    def __init__(self, spans: Sequence[Span], reader: DialectReader) -> None:
        self.reader: Final = reader
        self.spans = spans
        """The spans, with the attributes that were moved into log records."""
        by_id = {span.span_id: index for index, span in enumerate(spans)}
        self.superseded: frozenset[int] = frozenset()
        """The spans of which a later version came."""
        if len(by_id) < len(spans):
            by_id = _latest(spans)
            self.superseded = _superseded(spans)
        self.parents: Final = [by_id.get(span.parent_span_id, NONE) if span.parent_span_id else NONE for span in spans]
        self.uppermost: Final = [index for index, above in enumerate(self.parents) if above == NONE]
        """The spans whose parent is not among the spans, or that have none."""
        self.of_spans: Final[list[Reading]] = []
        self.of_models: Final[dict[int, ModelReading]] = {}
        """The requests of each model span, and the results that it was sent, as they are recorded in it."""
        self.has_logs = False
        """Whether any of the spans that count is a log record."""
        self.failures: Final[Failures] = Counter()
        """The failures of dialects on these spans."""
        self._by_id: Final = by_id
        self._models: Final[dict[int, tuple[Span, Sequence[Dialect]]]] = {}
        """The model spans as their dialects are given them."""

    @classmethod
    def of(cls, spans: Sequence[Span], reader: DialectReader) -> Readings:
        """Return the readings of spans, all of them read."""
        readings = cls(spans, reader)
        for _ in readings.read():
            pass
        return readings

    def read(self) -> Iterator[None]:
        """Read the spans, one in a step. In between, the reader may read other spans."""
        logged: dict[int, Reading] = {}
        for index, span in enumerate(self.spans):
            if span.kind == LOG_RECORD and index not in self.superseded:
                logged[index] = self._read(span)
                yield
        if logged:
            self.has_logs = True
            self.spans = yield from _restored(self.spans, self._by_id, logged, self._read)
        yield from self._read_spans(logged)
        yield from self._read_tops()
        for index, each in enumerate(self.of_spans):
            if each.is_model:
                offered = self._models.get(index) or self.reader.offer(self.spans[index])
                self.of_models[index] = self.reader.read_model_offered(*offered, self.failures)
                yield

    def _read_spans(self, logged: Mapping[int, Reading]) -> Iterator[None]:
        reader, readings, superseded = self.reader, self.of_spans, self.superseded
        for index, span in enumerate(self.spans):
            reading = logged.get(index)
            if reading is None and index not in superseded:
                offered = reader.offer(span)
                if offered[1]:
                    reading = reader.read_offered(*offered, self.failures)
                    if reading is not None and reading.is_model:
                        self._models[index] = offered
            readings.append(reading or NO_READING)
            if reading is not None:
                yield

    def _read(self, span: Span) -> Reading:
        return self.reader.read(span, self.failures) or NO_READING

    def _read_tops(self) -> Iterator[None]:
        """Read each span as a root that has only spans of an application, or another process, above it.

        Dialects tell by the missing parent which span is a whole run of their framework. A trace on which a dialect has
        failed is not scored.
        """
        spans = self.spans
        if self.failures or not any(
            spans[index].parent_is_remote or says_nothing(self.of_spans[index]) for index in self.uppermost
        ):
            return
        below: dict[int, list[int]] = {}
        for index, above in enumerate(self.parents):
            below.setdefault(above, []).append(index)
        tops = [each for each in self.uppermost if not spans[each].parent_span_id or spans[each].parent_is_remote]
        while tops:
            node = tops.pop()
            span, reading = spans[node], self.of_spans[node]
            if span.parent_span_id and reading is not NO_READING and not may_be_renamed(span):
                top = span._replace(parent_span_id=b"")
                reading = self.of_spans[node] = self._read(top)
                yield
            if says_nothing(reading):
                tops += below.get(node, ())


def _latest(spans: Sequence[Span]) -> dict[bytes, int]:
    """Return by its id the position of the span that ended last: of several the first."""
    by_id: dict[bytes, int] = {}
    for index, span in enumerate(spans):
        known = by_id.get(span.span_id)
        if known is None or span.end_ns > spans[known].end_ns:
            by_id[span.span_id] = index
    return by_id


def _superseded(spans: Sequence[Span]) -> frozenset[int]:
    """Return the spans of which another version counts: that which ended last, of several the first.

    Some exporters send a span while it runs and again when it ended. A span with the same id that started at another
    time is another span; some exporters cut starts to milliseconds, or leave them out.
    """
    found: set[int] = set()
    kept: dict[bytes, list[int]] = {}
    for index in sorted(range(len(spans)), key=lambda index: -spans[index].end_ns):
        span = spans[index]
        of_id = kept.setdefault(span.span_id, [])
        starts = (spans[each].start_ns for each in of_id[:_MOST_OF_ONE_ID])
        if any(not span.start_ns or not start or abs(span.start_ns - start) < CUT_NS for start in starts):
            found.add(index)
        else:
            of_id.append(index)
    return frozenset(found)


def _restored(
    spans: Sequence[Span],
    by_id: Mapping[bytes, int],
    logged: dict[int, Reading],
    read: Callable[[Span], Reading],
) -> Generator[None, None, Sequence[Span]]:
    """Return the spans with the attributes that were moved into log records; a span's own attributes win.

    A record of a model's messages is restored only to the span of a model, and is then no request of its own. Lists of
    messages are joined, as some emitters write a record for each message. Reading a span is one step.
    """
    moved: dict[int, dict[str, AttributeValue]] = {}
    models: dict[int, bool] = {}
    for index in sorted(logged, key=lambda index: spans[index].start_ns):
        reading, above = logged[index], by_id.get(spans[index].parent_span_id)
        if not reading.of_span or above is None:
            continue
        if reading.is_model:
            if above not in models:
                models[above] = above not in logged and read(spans[above]).is_model
                yield
            if not models[above]:
                continue
            logged[index] = Reading(of_span=reading.of_span)
        found = moved.setdefault(above, {})
        for key, value in reading.of_span.items():
            if key not in found:
                found[key] = [*value] if isinstance(value, list) else value
            elif isinstance(known := found[key], list) and isinstance(value, list):
                known += value
    if not moved:
        return spans
    return [
        span._replace(attributes={**moved[index], **span.attributes}) if index in moved else span
        for index, span in enumerate(spans)
    ]


def says_nothing(reading: Reading) -> bool:
    """Return whether a reading has nothing but the id of a conversation."""
    return reading == NO_READING or (
        reading.conversation_id is not None and changed(reading, conversation_id=None) == NO_READING
    )


def topmost(owner: Mapping[int, int]) -> dict[int, int]:
    """Follow each owner to the one that owns itself. Linear; a cycle ends where it was entered."""
    tops: dict[int, int] = {}
    for start in owner:
        path = [start]
        seen = {start}
        while path[-1] not in tops and owner[path[-1]] not in seen:
            path.append(owner[path[-1]])
            seen.add(path[-1])
        top = tops.get(path[-1], path[-1])
        tops.update(dict.fromkeys(path, top))
    return tops
