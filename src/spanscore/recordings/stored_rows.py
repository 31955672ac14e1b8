"""Rows of Arrow batches into spans and log records, by the rules and limits of OTLP."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import Any, Final

from msgspec import DecodeError
from msgspec.json import decode

from spanscore.model import LOG_RECORD, NO_SPAN, AttributeValue, Span, SpanEvent
from spanscore.otlp.findings import UNNAMED, Caveat, Decoded, Findings, Refusal, SpanRefused, is_trace_id
from spanscore.otlp.ids import check_ids, told_of_id
from spanscore.otlp.limits import EVENTS_PER_SPAN
from spanscore.recordings import arrow_values as values
from spanscore.recordings.arrow_attributes import attributes_in
from spanscore.recordings.arrow_columns import LOG_COLUMNS, SPAN_COLUMNS, has_logs
from spanscore.recordings.row_reader import SPAN_ID_LENGTH, TRACE_ID_LENGTH, ReadRow, RowReader
from spanscore.trajectories.log_records import BODY, EVENT_NAMES, event_name, run_id, with_body

ROWS_AT_ONCE: Final = 1_024
"""As objects of Python, rows take ten times as much memory as in Arrow."""
_IDS: Final = (
    (Refusal.INVALID_TRACE_ID, TRACE_ID_LENGTH),
    (Refusal.INVALID_SPAN_ID, SPAN_ID_LENGTH),
    (Refusal.INVALID_PARENT_SPAN_ID, SPAN_ID_LENGTH),
)
_KIND: Final = "SpanKind"
_STATUS_CODE: Final = "StatusCode"
_KINDS: Final = ("unspecified", "internal", "server", "client", "producer", "consumer")
_STATUS_CODES: Final = ("unset", "ok", "error")
_LAST_NS: Final = 2**64 - 1

_Wanted = Mapping[str, str | None] | None


def decoded_rows(batches: Iterable[Any], log_names: Sequence[str], wanted: _Wanted = None) -> Iterator[Decoded]:
    """Decode the rows of a sorted table in their order, `ROWS_AT_ONCE` at a time at most.

    Log records without a trace id are left out and counted: their runs are not sorted.

    Raises:
        MalformedRequest: as `reader`, or times are not in nanoseconds.
    """
    rows: RowReader | None = None
    schema = None
    for batch in batches:
        if rows is None or not batch.schema.equals(schema):
            schema = batch.schema
            rows = reader(schema, log_names, wanted, sessions=False)
        for first in range(0, batch.num_rows, ROWS_AT_ONCE):
            yield rows.decoded(batch.slice(first, ROWS_AT_ONCE))


def reader(schema: Any, log_names: Sequence[str], wanted: _Wanted = None, *, sessions: bool = True) -> RowReader:
    """Return the reader of a table.

    Args:
        schema: of the table, which has spans or log records.
        log_names: the prefixes of the names of log records that are read; the others are counted.
        wanted: `wanted[key]` is None for attributes of spans that may be left out; by default all are read.
        sessions: whether log records without a trace id are read: they belong to the run of a session.

    Raises:
        MalformedRequest: a column is missing or cannot be read.
    """
    return _LogRows(schema, log_names, sessions=sessions) if has_logs(schema) else _SpanRows(schema, wanted)


class _SpanRows(RowReader):
    """Reads spans."""

    def __init__(self, schema: Any, wanted: _Wanted) -> None:
        super().__init__(schema, SPAN_COLUMNS)
        self._wanted: Final = wanted

    def _reading(self, batch: Any) -> ReadRow:
        trace_ids, are_traces = values.ids(self._column(batch, "TraceId"), TRACE_ID_LENGTH)
        span_ids, are_spans = values.ids(self._column(batch, "SpanId"), SPAN_ID_LENGTH)
        parents, are_parents = values.ids(self._column(batch, "ParentSpanId"), SPAN_ID_LENGTH, 0)
        are_ids = are_traces and are_spans and are_parents
        names = values.repeated_texts(self._column(batch, "SpanName"))
        starts = values.times(self._column(batch, "Timestamp"), values.NO_TIME)
        durations = values.times(self._column(batch, "Duration"))
        kinds = values.numbers(self._column(batch, _KIND), _KINDS)
        codes = values.numbers(self._column(batch, _STATUS_CODE), _STATUS_CODES)
        messages = values.texts(self._column(batch, "StatusMessage"))
        scopes = values.repeated_texts(self._column(batch, "ScopeName"))
        resource_of = self._resources(batch)
        attributes = attributes_in(self._column(batch, "SpanAttributes"), "SpanAttributes", self._wanted)
        read_events = self._events(batch)
        new_span = partial(tuple.__new__, Span)  # takes less time than the class itself

        def read(row: int, findings: Findings) -> Span:
            trace_id, span_id, parent, kind, code = trace_ids[row], span_ids[row], parents[row], kinds[row], codes[row]
            if not are_ids:
                parent = _checked_ids(trace_id, span_id, parent, findings)
            # Each class is looked at in place: calls that check one value would take a tenth of the time.
            if kind.__class__ is str:
                raise _unknown(_KIND, _KINDS)
            if code.__class__ is str:
                raise _unknown(_STATUS_CODE, _STATUS_CODES)
            if (start := starts[row]) < 0:
                raise _wrong_time(start)
            resource = resource_of(row, findings)
            end = (start + durations[row]) & _LAST_NS  # the exporter lets it overflow for a span without an end
            name, text, scope = names[row] or UNNAMED, messages[row], scopes[row]
            before = findings.attributes_left_out
            own = attributes.read(row, findings)
            events = read_events(row, findings) if read_events is not None else ()
            lost = findings.attributes_left_out - before
            return new_span(
                (trace_id, span_id, parent, name, start, end, kind, code, text, own, events, scope, resource, 0, lost)
            )

        return read

    def _events(self, batch: Any) -> Callable[[int, Findings], tuple[SpanEvent, ...]] | None:
        """Return a function that reads the events of a row; None if no row has any."""
        names = ("Events.Timestamp", "Events.Name", "Events.Attributes")
        ends, items = zip(*(values.lists(self._column(batch, name)) for name in names), strict=True)
        if not any(map(len, items)):
            return None
        times, titles = values.times(items[0]), values.repeated_texts(items[1])
        attributes = attributes_in(items[2], names[2])

        def read(row: int, findings: Findings) -> tuple[SpanEvent, ...]:
            firsts = [each[row] for each in ends]
            count, *others = (each[row + 1] - first for each, first in zip(ends, firsts, strict=True))
            if others != [count, count]:
                raise SpanRefused(Refusal.MALFORMED, "its lists of events differ in length")
            if count > EVENTS_PER_SPAN:
                findings.caveats[Caveat.EVENT_LIMIT] += count - EVENTS_PER_SPAN
            events = []
            for time, title, own in zip(
                *(range(first, first + min(count, EVENTS_PER_SPAN)) for first in firsts), strict=True
            ):
                if times[time] < 0:
                    raise _wrong_time(times[time])
                events.append(SpanEvent(titles[title], times[time], attributes.read(own, findings)))
            return tuple(events)

        return read


class _LogRows(RowReader):
    """Reads log records."""

    def __init__(self, schema: Any, names: Sequence[str], *, sessions: bool) -> None:
        super().__init__(schema, LOG_COLUMNS)
        self._names: Final = tuple(names)
        self._sessions: Final = sessions

    def _reading(self, batch: Any) -> ReadRow:
        trace_ids, _ = values.ids(self._column(batch, "TraceId"), TRACE_ID_LENGTH)
        span_ids, _ = values.ids(self._column(batch, "SpanId"), SPAN_ID_LENGTH)
        times = values.times(self._column(batch, "Timestamp"), values.NO_TIME)
        bodies = values.texts(self._column(batch, "Body"))
        events = values.texts(self._column(batch, "EventName")) if "EventName" in self.names else None
        scopes = values.texts(self._column(batch, "ScopeName"))
        resource_of = self._resources(batch)
        attributes = attributes_in(self._column(batch, "LogAttributes"), "LogAttributes")

        def read(row: int, findings: Findings) -> Span | None:
            own = attributes.read(row, findings)
            told = (events[row] if events else None, bodies[row], *map(own.get, EVENT_NAMES))
            name = event_name(told, self._names)
            if name is None:
                return None
            if times[row] < 0:
                raise _wrong_time(times[row])
            resource = resource_of(row, findings)
            found = with_body(own, _body(bodies[row]))
            trace_id: Any = trace_ids[row]
            if not isinstance(trace_id, bytes) or not is_trace_id(trace_id):
                trace_id = run_id(found, resource) if self._sessions else None
            if trace_id is None:
                findings.caveats[Caveat.NO_RUN] += 1
                return None
            span_id: Any = span_ids[row]
            content = repr((trace_id, span_id, times[row], name, scopes[row], found, resource))
            return Span(
                trace_id,
                blake2b(content.encode("utf-8", "surrogatepass"), digest_size=SPAN_ID_LENGTH).digest(),
                span_id if isinstance(span_id, bytes) and len(span_id) == SPAN_ID_LENGTH else NO_SPAN,
                name,
                times[row],
                times[row],
                LOG_RECORD,
                attributes=found,
                scope=scopes[row],
                resource=resource,
            )

        return read


def _body(text: str) -> AttributeValue:
    """Return the body of a record. The exporter writes a mapping as JSON: its entries are attributes, as in OTLP."""
    if text.startswith("{"):
        with suppress(DecodeError, RecursionError):
            found = decode(text)
            if isinstance(found, dict):
                return {BODY: text, **found}
    return text or None


def _wrong_time(time: int) -> SpanRefused:
    return SpanRefused(Refusal.INVALID_TIME, "Timestamp is null" if time == values.NO_TIME else "a time is before 1970")


def _checked_ids(trace_id: Any, span_id: Any, parent: Any, findings: Findings) -> bytes:
    """Return the parent's id, empty for a root, or refuse the span."""
    for raw, (reason, length) in zip((trace_id, span_id, parent), _IDS, strict=True):
        if isinstance(raw, str):
            raise SpanRefused(reason, told_of_id(reason.removeprefix("invalid_"), raw, length))
    return check_ids(trace_id, span_id, parent, findings)


def _unknown(name: str, known: Sequence[str]) -> SpanRefused:
    names = ", ".join(each.capitalize() for each in known)
    return SpanRefused(Refusal.INVALID_ENUM, f"{name} must be a number or one of {names}")
