"""Batches of spans with the traces that are finished: of requests in memory, and of tables sorted by trace id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from spanscore.errors import InputError
from spanscore.model import Span
from spanscore.otlp.findings import Decoded
from spanscore.otlp.from_logs import decode_logs
from spanscore.otlp.from_protobuf import decode_protobuf
from spanscore.recordings.writer import ProtobufRequest

_BEGINNING: Final = b""
_END: Final = b"\xff" * 17  # behind the last trace id
_ORDER: Final = "the spans of a trace must follow one another, by ascending trace id: add ORDER BY TraceId"


class SpanBatch(NamedTuple):
    """The spans of one document of a recording."""

    spans: list[Span]
    finished: list[bytes]
    """The traces that have no span in what is left of the recording, and maybe ids of traces that have none at all."""
    lost: Sequence[Span] = ()
    """Stand-ins for refused spans and log records, of kind `REFUSED`."""
    is_flagless: bool = False
    """Whether the source keeps no flags of spans, so that it cannot tell whether a parent is remote."""


class RequestsInMemory:
    """A recording that is in memory: requests in the order in which they came."""

    def __init__(self, requests: Sequence[ProtobufRequest], log_names: Sequence[str] = ()) -> None:
        self._requests: Final = requests
        self._log_names: Final = log_names

    def read(self) -> Iterator[SpanBatch]:
        """Yield the spans; all traces end with the last."""
        for signal, body in self._requests:
            if signal == "logs":
                decoded = decode_logs(body, self._log_names, max_records=None)
            else:
                decoded = decode_protobuf(body, max_spans=None)
            yield SpanBatch(list(decoded.spans), [], decoded.lost)


class SortedSpans:
    """A recording of tables that are each sorted by trace id. A trace is finished when all tables are behind it.

    `tables` maps the name of each table, for messages, to its decoded rows.
    """

    def __init__(self, tables: Mapping[str, Iterable[Decoded]]) -> None:
        self._names: Final = [*tables]
        self._tables: Final = [*tables.values()]

    def read(self) -> Iterator[SpanBatch]:
        """Yield the spans, and with them which traces are finished.

        Raises:
            InputError: a table is not sorted.
        """
        tables = [iter(table) for table in self._tables]
        reached = [_BEGINNING] * len(tables)
        unfinished: set[bytes] = set()
        while (behind := min(reached)) != _END:
            index = reached.index(behind)
            decoded = next(tables[index], None)
            if decoded is None:
                reached[index] = _END
                decoded = Decoded(spans=[])
            else:
                name = self._names[index]
                found = [*_ascending(decoded.spans, behind, name), *_ascending(decoded.lost, behind, name)]
                unfinished.update(found)
                reached[index] = max([behind, *found])
            first = min(reached)
            finished = sorted(each for each in unfinished if each < first)
            unfinished.difference_update(finished)
            yield SpanBatch(decoded.spans, finished, decoded.lost, is_flagless=True)


def _ascending(spans: Iterable[Span], last: bytes, name: str) -> Iterator[bytes]:
    """Yield the trace ids of spans, each once."""
    for span in spans:
        trace_id = span.trace_id
        if trace_id == last:
            continue
        if trace_id < last:
            raise InputError(f"{name}: not sorted: trace {trace_id.hex()} comes after trace {last.hex()}; {_ORDER}")
        yield trace_id
        last = trace_id
