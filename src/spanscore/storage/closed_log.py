"""The ids of the traces that are scored, in files of their own: they are needed longer than the requests."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from spanscore.storage.log_file import Disk, LogFile
from spanscore.storage.records import FILE_HEADER_SIZE, RECORD_HEADER_SIZE, Kind

CLOSED: Final = ".closed"
ENDED: Final = ".ended"
"""The end of the name of an empty file that says: after the file of closed traces with this number, the process ended
as it should. It had answered every request, so that none of them comes again, and its traces need not be remembered."""

_TRACE_ID_SIZE: Final = 16
RECORD_SIZE: Final = RECORD_HEADER_SIZE + _TRACE_ID_SIZE

_FILES: Final = 8
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

    @property
    def ids(self) -> int:
        """How many ids are in it."""
        return (self.size - FILE_HEADER_SIZE) // RECORD_SIZE


class ClosedLog:
    """Appends the ids of closed traces. The oldest are deleted when there are so many newer ones to remember."""

    def __init__(self, disk: Disk, remember: int) -> None:
        self.files: Final[list[ClosedFile]] = []
        """From old to new."""
        self.size = 0
        self._disk: Final = disk
        self._remember: Final = remember
        self._current: tuple[ClosedFile, LogFile] | None = None
        self.ended = 0
        """The number of the last file before the last end of a process that was no crash."""
        self._number = 0
        self._unwritten: Final[deque[tuple[Kind, bytes, int]]] = deque(maxlen=remember)

    def adopt(self, file: ClosedFile) -> None:
        """Take over a file of an earlier process."""
        self.files.append(file)
        self.size += file.size
        self._number = max(self._number, file.number)

    def note_end(self, number: int) -> None:
        """Note that a process ended as it should, after it had written the file with this number."""
        self.ended = number
        self._number = max(self._number, number)

    def append(self, kind: Kind, trace_id: bytes, sequence: int) -> None:
        """Write that a trace is closed, or scored, with the number of its last request.

        Raises:
            OSError: it could not be written yet, and is written later.
        """
        self._unwritten.append((kind, trace_id, sequence))
        self.catch_up()

    def catch_up(self) -> None:
        """Write what could not be written before.

        Raises:
            OSError: it still cannot.
        """
        while self._unwritten:
            kind, trace_id, sequence = self._unwritten[0]
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
            if closed.ids >= self._remember // _FILES:
                self._retire()

    def not_synced(self, files: Collection[int]) -> None:
        """Write no more to a file that could not be synced."""
        if self._current is not None and self._current[1].file in files:
            self._retire()

    def forget(self, first_needed: int) -> list[str]:
        """Forget the files that may be deleted, where requests are kept from this number on, and return them."""
        gone: list[str] = []
        newer = sum(file.ids for file in self.files)
        while self.files and (self._current is None or self.files[0] is not self._current[0]):
            oldest = self.files[0]
            newer -= oldest.ids
            remembered = oldest.number > self.ended and newer < self._remember and len(self.files) < _MOST_FILES
            if remembered or oldest.last_sequence >= first_needed:
                break
            self.size -= oldest.size
            gone.append(self.files.pop(0).name)
        return gone

    def forget_missing(self, there: Collection[str]) -> None:
        """Forget the files that somebody removed: all but those that are there."""
        for closed in [closed for closed in self.files if closed.name not in there]:
            if self._current is not None and self._current[0] is closed:
                self._retire()
            self.files.remove(closed)
            self.size -= closed.size

    def end(self, *, is_crash: bool = False) -> None:
        """Write no more, and note that this is no crash, unless it is to look like one.

        Raises:
            OSError: it could not be noted.
        """
        self._retire()
        self.catch_up()
        self._retire()
        if not is_crash:
            self._disk.files.close(self._disk.files.create(f"{self._number:016x}{ENDED}"))

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
