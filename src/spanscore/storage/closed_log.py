"""The ids of the traces that are scored, in files of their own: they are needed longer than the requests."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from spanscore.storage.log_file import Disk, LogFile
from spanscore.storage.records import FILE_HEADER_SIZE, RECORD_HEADER_SIZE, Kind

CLOSED: Final = ".closed"

_TRACE_ID_SIZE: Final = 16
RECORD_SIZE: Final = RECORD_HEADER_SIZE + _TRACE_ID_SIZE

_FILES: Final = 8
_LEAST: Final = 1_024
"""So many records a file gets at least, if there is room."""
_MOST_FILES: Final = 1_000
"""Each start begins a file, however little is written to it."""


@dataclass(slots=True, eq=False)
class ClosedFile:
    """A file of ids."""

    name: str
    number: int
    size: int
    last_sequence: int
    """The number of the last request that was there when the last of its traces was closed."""
    closings: int = 0
    """The number of its records that close a trace for the first time."""

    @property
    def records(self) -> int:
        """The number of records in it."""
        return (self.size - FILE_HEADER_SIZE) // RECORD_SIZE


class ClosedLog:
    """Appends the ids of closed traces. The oldest files are deleted when newer ones have `remember` traces.

    Args:
        disk: writes the files.
        remember: the number of closed traces to know after a restart.
        most: the most records in all files. As a trace may have several, fewer traces may then be known.
    """

    def __init__(self, disk: Disk, remember: int, most: int) -> None:
        self.files: Final[list[ClosedFile]] = []
        """From old to new."""
        self.size = 0
        self._disk: Final = disk
        self._remember: Final = remember
        self._most: Final = most
        self._full: Final = max(1, min(most // _FILES, max(remember // _FILES, _LEAST)))
        self._current: tuple[ClosedFile, LogFile] | None = None
        self._number = 0
        self._unwritten: Final[deque[tuple[Kind, bytes, int, bool]]] = deque(maxlen=remember)

    def adopt(self, file: ClosedFile) -> None:
        """Take over a file of an earlier process."""
        self.files.append(file)
        self.size += file.size
        self._number = max(self._number, file.number)

    def append(self, kind: Kind, trace_id: bytes, sequence: int, *, is_closing: bool) -> None:
        """Write that a trace is closed, or scored, with the number of its last request.

        Args:
            kind: which of both.
            trace_id: the trace.
            sequence: the number.
            is_closing: whether the trace is closed now, and was not known to be closed before.

        Raises:
            OSError: it could not be written yet, and is written later.
        """
        self._unwritten.append((kind, trace_id, sequence, is_closing))
        self.catch_up()

    def catch_up(self) -> None:
        """Write the records that could not be written before.

        Raises:
            OSError: they still cannot be written.
        """
        while self._unwritten:
            kind, trace_id, sequence, is_closing = self._unwritten[0]
            closed, file = self._current or self._begin()
            try:
                file.append(kind, sequence, trace_id)
            except OSError:
                self._retire()
                raise
            self._unwritten.popleft()
            closed.last_sequence = max(closed.last_sequence, sequence)
            self.size += file.size - closed.size
            closed.size = file.size
            closed.closings += is_closing
            if closed.records >= self._full:
                self._retire()

    def not_synced(self, files: Collection[int]) -> None:
        """Write no more to a file that could not be synced."""
        if self._current is not None and self._current[1].file in files:
            self._retire()

    def forget(self, first_needed: int) -> list[str]:
        """Forget the files that may be deleted, where requests are kept from this number on, and return them."""
        gone: list[str] = []
        closings = sum(file.closings for file in self.files)
        records = sum(file.records for file in self.files)
        while self.files and (self._current is None or self.files[0] is not self._current[0]):
            oldest = self.files[0]
            closings -= oldest.closings
            records -= oldest.records
            is_room = records < self._most and len(self.files) < _MOST_FILES
            if (closings < self._remember and is_room) or oldest.last_sequence >= first_needed:
                break
            self.size -= oldest.size
            gone.append(self.files.pop(0).name)
        return gone

    def is_held_up(self, first_needed: int) -> bool:
        """Return whether its oldest file is kept for old requests alone, when newer ones have `remember` traces."""
        held_up = bool(self.files) and self.files[0].last_sequence >= first_needed
        return held_up and sum(file.closings for file in self.files[2:]) > self._remember

    def forget_missing(self, there: Collection[str]) -> None:
        """Forget the files that were removed: all files that are not in `there`."""
        for closed in [closed for closed in self.files if closed.name not in there]:
            if self._current is not None and self._current[0] is closed:
                self._retire()
            self.files.remove(closed)
            self.size -= closed.size

    def end(self) -> None:
        """Write the records that could not be written before, and close the log.

        Raises:
            OSError: they still cannot be written.
        """
        self.catch_up()
        self._retire()

    def _begin(self) -> tuple[ClosedFile, LogFile]:
        self._number += 1
        file = LogFile(self._disk, f"{self._number:016x}{CLOSED}", has_gaps=True)
        closed = ClosedFile(name=file.name, number=self._number, size=file.size, last_sequence=0)
        self.files.append(closed)
        self.size += closed.size
        self._current = closed, file
        return self._current

    def _retire(self) -> None:
        if self._current is not None:
            self._current[1].close()
            self._current = None
