"""What earlier processes kept: the requests of traces that were open, and the traces that were closed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final, NamedTuple

from spanscore.storage.closed_log import ClosedLog
from spanscore.storage.files import Files
from spanscore.storage.records import Kind, scan
from spanscore.storage.recovery import Ages, Found, damaged_in, number_of, read_all, read_closed
from spanscore.storage.request_log import Place, RequestLog, Segment

_log = logging.getLogger(__name__)


class ClosedTrace(NamedTuple):
    """A trace that an earlier process closed."""

    trace_id: bytes
    sequence: int
    """The number of the last request before it was closed."""
    is_sent: bool
    """Its reports are where they were to go; if not, they may have to be made again."""
    may_come_again: bool
    """The process crashed later on: senders may not know that it had their spans."""


class StoredRequest(NamedTuple):
    """A request that an earlier process kept."""

    kind: int
    sequence: int
    body: bytes
    age_s: float
    """How long before the last request it came. The time in which no process ran does not count: senders had to wait
    all of it."""
    place: Place


class Earlier:
    """Goes through what is there at the start: `closed_traces`, then `requests`, both to their end.

    The log of requests, and that of closed traces, take the files over that were found.
    """

    def __init__(self, files: Files, found: Found, log: RequestLog, closed: ClosedLog) -> None:
        self.lost = 0
        """Requests that were damaged."""
        self._files: Final = files
        self._found: Final = found
        self._log: Final = log
        self._closed: Final = closed

    @property
    def first_request(self) -> int:
        """The number that the requests of earlier processes begin with."""
        return number_of(self._found.requests[0]) if self._found.requests else self._log.sequence + 1

    def closed_traces(self) -> Iterator[ClosedTrace]:
        """Go through the traces that earlier processes closed, from old to new."""
        if self._found.ended:
            self._closed.note_end(number_of(self._found.ended[-1]))
            self._log.disk.syncer.delete(*self._found.ended[:-1])
        for name in self._found.closed:
            file, trace_ids = read_closed(self._files, name)
            self._log.sequence = max(self._log.sequence, file.last_sequence)
            self._closed.adopt(file)
            may_come_again = file.number > self._closed.ended
            for kind, trace_id, sequence in trace_ids:
                yield ClosedTrace(trace_id, sequence, kind == Kind.CLOSED, may_come_again)

    def requests(self) -> Iterator[StoredRequest]:
        """Go through the requests that an earlier process kept, in the order in which they came.

        For each, call `RequestLog.hold` before the next.
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
                _log.info("storage: %s ends in a request that nobody was told was kept; it is left out", name)
            segment = Segment(name, number_of(name), self._log.disk.monotonic_ns() / 1e9, len(content))
            self._log.adopt(segment)
            for record in found.records:
                self._log.sequence = max(self._log.sequence, record.entry.sequence)
                if found.header is not None and record.entry.kind in {Kind.PROTOBUF, Kind.JSON, Kind.LOGS}:
                    body = content[record.start : record.end]
                    age_s = ages.of(found.header.run, record.entry.monotonic_ns)
                    place = Place(segment, record.offset, record.end - record.offset, sequence=record.entry.sequence)
                    yield StoredRequest(record.entry.kind, record.entry.sequence, body, age_s, place)
            self._log.sequence = max(self._log.sequence, segment.number)
            self._log.read_through(segment)
