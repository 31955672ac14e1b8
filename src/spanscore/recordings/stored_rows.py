"""Rows of Arrow batches into spans and log records, by the rules and limits of OTLP."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Final

import pyarrow as pa
from msgspec import DecodeError
from msgspec.json import decode

from spanscore.model import LOG_RECORD, NO_SPAN, Attributes, AttributeValue, Span, SpanEvent
from spanscore.otlp.findings import (
    UNNAMED,
    Caveat,
    Decoded,
    Findings,
    Refusal,
    SpanRefused,
    is_trace_id,
)
from spanscore.otlp.ids import check_ids
from spanscore.otlp.kept_size import attributes_size
from spanscore.otlp.limits import EVENTS_PER_SPAN
from spanscore.otlp.resources import shared
from spanscore.recordings import arrow_columns as columns
from spanscore.recordings.arrow_columns import LOG_COLUMNS, SPAN_COLUMNS, AttributeColumn
from spanscore.trajectories.log_records import BODY, EVENT_NAMES, event_name, run_id, with_body

ROWS_AT_ONCE: Final = 1_024
"""As objects of Python, rows take ten times as much memory as in Arrow."""
_TRACE_ID_LENGTH: Final = 16
_SPAN_ID_LENGTH: Final = 8
_KIND: Final = "SpanKind"
_STATUS_CODE: Final = "StatusCode"
_KINDS: Final = {"": 0, "unspecified": 0, "internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
_STATUS_CODES: Final = {"": 0, "unset": 0, "ok": 1, "error": 2}
_LAST_NS: Final = 2**64 - 1
_MOST_RESOURCES: Final = 1_024
_UNREADABLE: Final = (UnicodeDecodeError, pa.ArrowInvalid)
"""Errors of a column that has a text which is not UTF-8, or a time beyond the 64 bits of nanoseconds."""

_ReadRow = Callable[[int, Findings], Span | None]


def decoded_rows(batches: Iterable[Any], log_names: Sequence[str]) -> Iterator[Decoded]:
    """Decode the rows of a sorted table in their order, `ROWS_AT_ONCE` at a time at most.

    Log records without a trace id are left out and counted: their runs are not sorted.

    Args:
        batches: the table, as `pyarrow.RecordBatch`.
        log_names: as `reader`.

    Raises:
        MalformedRequest: as `reader`, or times are not in nanoseconds.
    """
    rows: StoredRows | None = None
    schema = None
    for batch in batches:
        if rows is None or not batch.schema.equals(schema):
            schema = batch.schema
            rows = reader(schema, log_names, sessions=False)
        for first in range(0, batch.num_rows, ROWS_AT_ONCE):
            yield rows.decoded(batch.slice(first, ROWS_AT_ONCE))


def reader(schema: Any, log_names: Sequence[str], *, sessions: bool = True) -> StoredRows:
    """Return the reader of a table.

    Args:
        schema: of the table, which has spans or log records.
        log_names: the prefixes of the names of log records that are read; the others are counted.
        sessions: whether log records without a trace id are read: they belong to the run of a session.

    Raises:
        MalformedRequest: a column is missing or cannot be read.
    """
    return _LogRows(schema, log_names, sessions=sessions) if columns.has_logs(schema) else _SpanRows(schema)


class StoredRows:
    """Reads the rows of one table."""

    def __init__(self, schema: Any, wanted: Mapping[str, str]) -> None:
        self._places: Final = columns.find_columns(schema, wanted)
        self._row = 0
        self._resources: Final[dict[Hashable, Attributes]] = {}

    def decoded(self, batch: Any) -> Decoded:
        """Decode some rows.

        Raises:
            MalformedRequest: they are the first, and their times are not in nanoseconds.
        """
        if not self._row:
            columns.check_unit(self._column(batch, "Timestamp"))
        findings = Findings(is_bounded=False)
        spans: list[Span] = []
        unread = self._read_rows(batch, findings, spans)
        found = findings.decoded(spans, [])
        return replace(found, unread=unread) if unread else found

    @abstractmethod
    def _reading(self, batch: Any) -> _ReadRow:
        """Return a function that reads a row of a batch: None for a log record that is not read."""

    def _column(self, batch: Any, name: str) -> Any:
        return batch.column(self._places[name])

    def _read_rows(self, batch: Any, findings: Findings, spans: list[Span]) -> int:
        """Read rows, and return how many are not read because no dialect knows events of their names."""
        try:
            read = self._reading(batch)
        except _UNREADABLE as error:
            if (half := batch.num_rows // 2) > 0:  # so that a row costs only itself
                parts = (batch.slice(0, half), batch.slice(half))
                return sum(self._read_rows(part, findings, spans) for part in parts)
            self._row += 1
            if isinstance(error, pa.ArrowInvalid) and "UTF8" not in str(error):
                self._refuse(batch, Refusal.INVALID_TIME, "a time is out of range", findings)
            else:
                self._refuse(batch, Refusal.INVALID_UTF8, "a text is not valid UTF-8", findings)
            return 0
        unread = 0
        for row in range(batch.num_rows):
            self._row += 1
            findings.begin_span()
            try:
                span = read(row, findings)
            except SpanRefused as refused:
                self._refuse(batch.slice(row, 1), refused.reason, str(refused), findings)
                continue
            if span is None:
                unread += 1
            else:
                spans.append(span)
        return unread

    def _refuse(self, row: Any, reason: Refusal, what: str, findings: Findings) -> None:
        findings.refuse(reason, f"row {self._row}: {what}")
        with suppress(*_UNREADABLE):
            for trace_id in columns.ids(self._column(row, "TraceId"), _TRACE_ID_LENGTH):
                if isinstance(trace_id, bytes):
                    findings.lose(trace_id, str(self._row).encode())

    def _resource(self, column: AttributeColumn, row: int, findings: Findings) -> Attributes:
        """Return the attributes of a resource: one object for all rows that repeat them."""
        identity = column.identity(row)
        known = self._resources.get(identity)
        if known is None:
            if len(self._resources) >= _MOST_RESOURCES:
                self._resources.clear()
            read = column.read(row, findings)
            known = self._resources[identity] = shared(read, attributes_size(read))
            findings.begin_span()
        return known


class _SpanRows(StoredRows):
    """Reads spans."""

    def __init__(self, schema: Any) -> None:
        super().__init__(schema, SPAN_COLUMNS)

    def _reading(self, batch: Any) -> _ReadRow:
        trace_ids = columns.ids(self._column(batch, "TraceId"), _TRACE_ID_LENGTH)
        span_ids = columns.ids(self._column(batch, "SpanId"), _SPAN_ID_LENGTH)
        parents = columns.ids(self._column(batch, "ParentSpanId"), _SPAN_ID_LENGTH)
        names = columns.texts(self._column(batch, "SpanName"))
        starts = columns.times(self._column(batch, "Timestamp"))
        durations = columns.times(self._column(batch, "Duration"))
        kinds = columns.numbers(self._column(batch, _KIND), _KINDS)
        codes = columns.numbers(self._column(batch, _STATUS_CODE), _STATUS_CODES)
        messages = columns.texts(self._column(batch, "StatusMessage"))
        scopes = columns.texts(self._column(batch, "ScopeName"))
        resources = columns.attributes(self._column(batch, "ResourceAttributes"), "ResourceAttributes")
        attributes = columns.attributes(self._column(batch, "SpanAttributes"), "SpanAttributes")
        events = self._events(batch)

        def read(row: int, findings: Findings) -> Span:
            trace_id, span_id, parent = trace_ids[row], span_ids[row], parents[row]
            start, kind, code = starts[row], kinds[row], codes[row]
            # Each class is looked at in place: calls that check one value would take a tenth of the time.
            if trace_id.__class__ is str:
                raise columns.wrong_id(Refusal.INVALID_TRACE_ID, "trace_id", trace_id, _TRACE_ID_LENGTH)
            if span_id.__class__ is str:
                raise columns.wrong_id(Refusal.INVALID_SPAN_ID, "span_id", span_id, _SPAN_ID_LENGTH)
            if parent.__class__ is str:
                raise columns.wrong_id(Refusal.INVALID_PARENT_SPAN_ID, "parent_span_id", parent, _SPAN_ID_LENGTH)
            if kind.__class__ is str:
                raise _unknown(_KIND, _KINDS)
            if code.__class__ is str:
                raise _unknown(_STATUS_CODE, _STATUS_CODES)
            if start < 0:
                raise _too_early()
            parent = check_ids(trace_id, span_id, parent, findings)
            resource = self._resource(resources, row, findings)
            before = findings.attributes_left_out
            return Span(
                trace_id,
                span_id,
                parent,
                names[row] or UNNAMED,
                start,
                (start + durations[row]) & _LAST_NS,  # the exporter lets it overflow for a span without an end
                kind,
                code,
                messages[row],
                attributes.read(row, findings),
                events(row, findings),
                scopes[row],
                resource,
                0,
                findings.attributes_left_out - before,
            )

        return read

    def _events(self, batch: Any) -> Callable[[int, Findings], tuple[SpanEvent, ...]]:
        """Return a function that reads the events of a row."""
        places, times = columns.lists(self._column(batch, "Events.Timestamp"), columns.times)
        same, names = columns.lists(self._column(batch, "Events.Name"), columns.texts)
        too, attributes = columns.lists(
            self._column(batch, "Events.Attributes"), lambda array: columns.attributes(array, "Events.Attributes")
        )

        def read(row: int, findings: Findings) -> tuple[SpanEvent, ...]:
            first, last = places[row], places[row + 1]
            if first == last == same[row + 1]:
                return ()
            if (first, last) != (same[row], same[row + 1]) or (first, last) != (too[row], too[row + 1]):
                raise SpanRefused(Refusal.MALFORMED, "its lists of events differ in length")
            if min(times[first:last]) < 0:
                raise _too_early()
            if last - first > EVENTS_PER_SPAN:
                findings.caveats[Caveat.EVENT_LIMIT] += last - first - EVENTS_PER_SPAN
                last = first + EVENTS_PER_SPAN
            return tuple(
                SpanEvent(names[each], times[each], attributes.read(each, findings)) for each in range(first, last)
            )

        return read


class _LogRows(StoredRows):
    """Reads log records."""

    def __init__(self, schema: Any, names: Sequence[str], *, sessions: bool) -> None:
        super().__init__(schema, LOG_COLUMNS)
        self._names: Final = tuple(names)
        self._sessions: Final = sessions

    def _reading(self, batch: Any) -> _ReadRow:
        trace_ids = columns.ids(self._column(batch, "TraceId"), _TRACE_ID_LENGTH)
        span_ids = columns.ids(self._column(batch, "SpanId"), _SPAN_ID_LENGTH)
        times = columns.times(self._column(batch, "Timestamp"))
        bodies = columns.texts(self._column(batch, "Body"))
        events = columns.texts(self._column(batch, "EventName")) if "EventName" in self._places else None
        scopes = columns.texts(self._column(batch, "ScopeName"))
        resources = columns.attributes(self._column(batch, "ResourceAttributes"), "ResourceAttributes")
        attributes = columns.attributes(self._column(batch, "LogAttributes"), "LogAttributes")

        def read(row: int, findings: Findings) -> Span | None:
            if times[row] < 0:
                raise _too_early()
            own = attributes.read(row, findings)
            told = (events[row] if events else None, bodies[row], *map(own.get, EVENT_NAMES))
            name = event_name(told, self._names)
            if name is None:
                return None
            resource = self._resource(resources, row, findings)
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
                blake2b(content.encode("utf-8", "surrogatepass"), digest_size=_SPAN_ID_LENGTH).digest(),
                span_id if isinstance(span_id, bytes) and len(span_id) == _SPAN_ID_LENGTH else NO_SPAN,
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


def _too_early() -> SpanRefused:
    return SpanRefused(Refusal.INVALID_TIME, "a time is before 1970")


def _unknown(name: str, known: Mapping[str, int]) -> SpanRefused:
    names = ", ".join(each.capitalize() for each in known if each)
    return SpanRefused(Refusal.INVALID_ENUM, f"{name} must be a number or one of {names}")
