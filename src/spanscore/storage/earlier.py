"""The data of earlier processes: the requests of traces that were open, the traces that were closed, conversations."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from spanscore.storage.directory import Files
from spanscore.storage.id_log import IdFile, IdLog
from spanscore.storage.records import Kind, Record, scan
from spanscore.storage.recovery import Ages, Found, closed_in, damaged_in, number_of, read_all
from spanscore.storage.request_log import RequestLocation, RequestLog, Segment
from spanscore.storage.turn_log import TurnLog, count_in

_AT_ONCE_BYTES: Final = 2**18
"""About so many bytes of requests are handed over at a time."""

_log = logging.getLogger(__name__)


class ClosedTrace(NamedTuple):
    """A trace that an earlier process closed."""

    trace_id: bytes
    sequence: int
    """The number of the last request before it was closed."""
    is_sent: bool
    """Whether its reports were sent; if not, they may have to be made again."""


class StoredRequest(NamedTuple):
    """A request that an earlier process kept."""

    kind: int
    sequence: int
    body: bytes
    age_s: float
    """Seconds between this request and the last one. The time in which no process ran does not count: senders had to
    wait during all of it."""
    place: RequestLocation
    run: int
    """The random number of the process that received it."""


class Earlier:
    """Iterates over the data found at the start: `closed_traces`, then `requests`, both to their end.

    Conversations, finished ones and then turns, may be read at any time before the first turn is written. The logs take
    over the found files.
    """

    def __init__(self, files: Files, found: Found, log: RequestLog, closed: IdLog, turns: TurnLog) -> None:
        self.lost = found.unreadable
        """Records that were damaged, or cannot be read any more; of a file that cannot be opened, one."""
        self._files: Final = files
        self._found: Final = found
        self._log: Final = log
        self._closed: Final = closed
        self._turns: Final = turns

    @property
    def first_request(self) -> int:
        """The number that the requests of earlier processes begin with."""
        return number_of(self._found.requests[0]) if self._found.requests else self._log.sequence + 1

    def closed_traces(self) -> Iterator[ClosedTrace]:
        """Go through the traces that earlier processes closed, from old to new."""
        for name in self._found.closed:
            file, trace_ids = closed_in(name, *self._read(name))
            self._log.sequence = max(self._log.sequence, file.last_sequence)
            self._closed.adopt(file)
            for kind, trace_id, sequence in trace_ids:
                yield ClosedTrace(trace_id, sequence, kind == Kind.CLOSED)

    def note_replayed(self, sequence: int | None) -> None:
        """Note the last request that was replayed, or None after all: a trace that is scored now has no later spans."""
        self._log.replayed = sequence

    def turns(self) -> Iterator[bytes]:
        """Yield the turns of conversations that earlier processes wrote, from old to new."""
        for name in self._found.turns:
            content, bodies = self._bodies(name, Kind.TURN)
            self._turns.adopt(name, number_of(name), len(content))
            yield from bodies

    def finished_conversations(self) -> Iterator[bytes]:
        """Yield the notes of conversations that earlier processes finished, from old to new."""
        for name in self._found.finished:
            content, bodies = self._bodies(name, Kind.FINISHED)
            ids = sum(map(count_in, bodies))
            self._turns.notes.adopt(IdFile(name, number_of(name), len(content), ids=ids, new=ids))
            yield from bodies

    def _bodies(self, name: str, kind: Kind) -> tuple[bytes, Sequence[bytes]]:
        """Return a file of turns or notes, and the turns or notes in it. Damaged records are left out."""
        content, records = self._read(name)
        return content, [content[record.start : record.end] for record in records if record.entry.kind == kind]

    def _read(self, name: str) -> tuple[bytes, Sequence[Record]]:
        """Return a file without requests, and its records; damaged ones are counted."""
        content = read_all(self._files, name)
        found = scan(content)
        if found.damaged:
            self.lost += found.damaged
            _log.error("storage: %s is damaged; records lost: %d", name, found.damaged)
        return content, found.records

    def requests(self) -> Iterator[Sequence[StoredRequest]]:
        """Yield the requests that an earlier process stored, some at a time, in the order of their arrival.

        For all of them, call `RequestLog.hold` before the next ones.
        """
        ages = Ages(self._files, self._found.requests)
        for name in self._found.requests:
            content = read_all(self._files, name)
            found = scan(content, number_of(name))
            later = [number_of(other) for other in self._found.requests if other > name]
            lost = damaged_in(found, number_of(name), min(later, default=self._log.sequence + 1))
            if lost:
                self.lost += lost
                _log.error("storage: %s is damaged; requests lost: %d", name, lost)
            if found.torn:
                _log.info("storage: %s ends in an incomplete request that was never acknowledged; it is left out", name)
            segment = Segment(name, number_of(name), self._log.disk.monotonic_ns() / 1e9, len(content))
            self._log.adopt(segment)
            some: list[StoredRequest] = []
            size = 0
            for record in found.records:
                self._log.sequence = max(self._log.sequence, record.entry.sequence)
                if found.header is not None and record.entry.kind in {Kind.PROTOBUF, Kind.JSON, Kind.LOGS}:
                    body = content[record.start : record.end]
                    run = found.header.run
                    age_s = ages.of(run, record.entry.monotonic_ns)
                    place = RequestLocation(
                        segment, record.offset, record.end - record.offset, sequence=record.entry.sequence
                    )
                    some.append(StoredRequest(record.entry.kind, record.entry.sequence, body, age_s, place, run))
                    size += place.size
                    if size >= _AT_ONCE_BYTES:
                        yield some
                        some, size = [], 0
            yield some
            self._log.sequence = max(self._log.sequence, segment.number)
            self._log.read_through(segment)
