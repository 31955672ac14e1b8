"""The readings of the spans of a trace: with what log records hold for spans, and of spans at the top."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from spanscore.contracts import Reading
from spanscore.model import LOG_RECORD, AttributeValue, Span
from spanscore.trajectories.normalised import may_be_renamed
from spanscore.trajectories.reader import DialectReader

NO_READING: Final = Reading()
"""The reading of a span that no dialect recognises."""


def readings_of(
    spans: Sequence[Span], latest: Mapping[bytes, int], reader: DialectReader
) -> tuple[Sequence[Span], list[Reading], bool]:
    """Return the spans with the attributes that were moved into log records, their readings, and if there are logs.

    `latest` has the position of the last version of each span by its id; earlier versions are not read.
    """
    is_latest = frozenset(latest.values())
    logged = {
        index: reader.read(span) for index, span in enumerate(spans) if span.kind == LOG_RECORD and index in is_latest
    }
    if not logged and len(is_latest) == len(spans):
        return spans, [reader.read(span) or NO_READING for span in spans], False
    spans = _restored(spans, latest, logged, reader.read) if logged else spans
    readings = [
        (logged[index] if index in logged else reader.read(span) if index in is_latest else None) or NO_READING
        for index, span in enumerate(spans)
    ]
    return spans, readings, bool(logged)


def read_tops(spans: Sequence[Span], parents: Sequence[int], readings: list[Reading], reader: DialectReader) -> None:
    """Read each span as a root that has only spans of an application, or another process, above it.

    Dialects tell by the missing parent which span is a whole run of their framework.

    Args:
        spans: the spans.
        parents: the position of the parent of each; negative if there is none.
        readings: their readings, which change.
        reader: reads spans.
    """
    uppermost = [index for index, above in enumerate(parents) if above < 0]
    if not any(_says_nothing(readings[index]) or spans[index].parent_is_remote for index in uppermost):
        return
    silent: dict[int, bool] = {}
    for start in range(len(spans)):
        path = []
        node = start
        while node >= 0 and node not in silent:
            path.append(node)
            silent[node] = False
            node = parents[node]
        for node in reversed(path):
            span, above = spans[node], parents[node]
            is_top = silent[above] if above >= 0 else not span.parent_span_id or span.parent_is_remote
            is_read = readings[node] is not NO_READING and not may_be_renamed(span)
            if is_top and span.parent_span_id and is_read:
                readings[node] = reader.read(span._replace(parent_span_id=b"")) or NO_READING
            silent[node] = is_top and _says_nothing(readings[node])


def _restored(
    spans: Sequence[Span],
    by_id: Mapping[bytes, int],
    logged: dict[int, Reading | None],
    read: Callable[[Span], Reading | None],
) -> Sequence[Span]:
    """Return the spans with the attributes that were moved into log records; a span's own attributes win.

    A record of a model's messages is restored only to the span of a model, and is then no request of its own. Lists of
    messages are joined, as some emitters write a record for each message.
    """
    moved: dict[int, dict[str, AttributeValue]] = {}
    models: dict[int, bool] = {}
    for index in sorted(logged, key=lambda index: spans[index].start_ns):
        reading, above = logged[index], by_id.get(spans[index].parent_span_id)
        if reading is None or not reading.of_span or above is None:
            continue
        if reading.is_model:
            if above not in models:
                models[above] = above not in logged and (read(spans[above]) or NO_READING).is_model
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


def _says_nothing(reading: Reading) -> bool:
    if reading.is_agent or reading.is_model or reading.call is not None:
        return False
    return reading is NO_READING or reading == Reading(conversation_id=reading.conversation_id)
