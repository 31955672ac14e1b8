"""Readers of the rows of a table: a row that cannot be read is refused, and costs only itself."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from spanscore.model import Attributes, Span
from spanscore.otlp.findings import Decoded, Findings, Refusal, SpanRefused
from spanscore.otlp.kept_size import attributes_size
from spanscore.otlp.resources import shared
from spanscore.recordings import arrow_values as values
from spanscore.recordings.arrow_attributes import attributes_in
from spanscore.recordings.arrow_columns import check_unit, find_columns

TRACE_ID_LENGTH: Final = 16
SPAN_ID_LENGTH: Final = 8
_UNREADABLE: Final = (UnicodeDecodeError, pa.ArrowInvalid)
"""Errors of a column that has a text which is not UTF-8, or a time beyond the 64 bits of nanoseconds."""

ReadRow = Callable[[int, Findings], Span | None]


class RowReader:
    """Reads the rows of one table, and refuses the rows that it cannot read."""

    def __init__(self, schema: Any, wanted: Mapping[str, str]) -> None:
        self.names: Final = find_columns(schema, wanted)
        """The name of each column that is read, by its name in ClickHouse."""
        self._row = 0

    def decoded(self, batch: Any) -> Decoded:
        """Decode some rows.

        Raises:
            MalformedRequest: they are the first, and their times are not in nanoseconds.
        """
        if not self._row:
            check_unit(self._column(batch, "Timestamp"))
        findings = Findings(is_bounded=False)
        spans: list[Span] = []
        unread = self._read_rows(batch, findings, spans)
        found = findings.decoded(spans, [])
        return replace(found, unread=unread) if unread else found

    @abstractmethod
    def _reading(self, batch: Any) -> ReadRow:
        """Return a function that reads a row of a batch: None for a log record that is not read."""

    def _column(self, batch: Any, name: str) -> Any:
        return batch.column(self.names[name])

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
                self._refuse(batch, Refusal.INVALID_TIME, "a time cannot be read, or is out of range", findings)
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
            (trace_id,), is_sound = values.ids(self._column(row, "TraceId"), TRACE_ID_LENGTH)
            if is_sound:
                findings.lose(reason, trace_id, str(self._row).encode())

    def _resources(self, batch: Any) -> Callable[[int, Findings], Attributes]:
        """Return a function that reads the resource of a row: one object for all rows that repeat it."""
        places, rows = values.different(self._column(batch, "ResourceAttributes"))
        column = attributes_in(rows, "ResourceAttributes")
        known: dict[int, Attributes] = {}

        def read(row: int, findings: Findings) -> Attributes:
            found = known.get(places[row])
            if found is None:
                found = column.read(places[row], findings)
                found = known[places[row]] = shared(found, attributes_size(found))
                findings.begin_span()
            return found

        return read
