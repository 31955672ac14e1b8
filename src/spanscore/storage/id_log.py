"""The ids of scored traces and of finished conversations, in files of their own: they are needed longer than others."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from spanscore.storage.log_file import Disk, LogFile
from spanscore.storage.records import Kind

CLOSED: Final = ".closed"
FINISHED: Final = ".finished"

_FILES: Final = 8
_LEAST: Final = 1_024
"""So many ids a file gets at least, if there is room."""
_MOST_FILES: Final = 1_000
"""Each start begins a file, however little is written to it."""


@dataclass(slots=True, eq=False)
class IdFile:
    """A file of ids."""

    name: str
    number: int
    size: int
    ids: int = 0
    """The number of ids in it."""
    new: int = 0
    """The number of those that are in no earlier file; a trace may be closed several times."""
    last_sequence: int = 0
    """The number of the last request that was there when the last of its traces was closed."""


class IdLog:
    """Appends ids. The oldest files are deleted when newer ones have `remember` of them.

    Args:
        disk: writes the files.
        ending: the end of the names of the files.
        remember: the number of ids to know after a restart.
        most: the most ids in all files. As one may be there several times, fewer may then be known.
    """

    def __init__(self, disk: Disk, ending: str, remember: int, most: int) -> None:
        self.files: Final[list[IdFile]] = []
        """From old to new."""
        self.size = 0
        self._disk: Final = disk
        self._ending: Final = ending
        self._remember: Final = remember
        self._most: Final = most
        self._full: Final = max(1, min(most // _FILES, max(remember // _FILES, _LEAST)))
        self._current: tuple[IdFile, LogFile] | None = None
        self._number = 0
        self._unwritten: Final[deque[tuple[Kind, bytes, int, int, int]]] = deque(maxlen=remember)

    def adopt(self, file: IdFile) -> None:
        """Take over a file of an earlier process."""
        self.files.append(file)
        self.size += file.size
        self._number = max(self._number, file.number)

    def append(self, kind: Kind, body: bytes, sequence: int = 0, *, ids: int = 1, new: int) -> None:
        """Write a record with ids.

        Args:
            kind: of the record.
            body: the ids.
            sequence: the number of the last request of a trace.
            ids: how many there are.
            new: how many of them were not known before.

        Raises:
            OSError: it could not be written yet, and is written later.
        """
        self._unwritten.append((kind, body, sequence, ids, new))
        self.catch_up()

    def catch_up(self) -> None:
        """Write the records that could not be written before.

        Raises:
            OSError: they still cannot be written.
        """
        while self._unwritten:
            kind, body, sequence, ids, new = self._unwritten[0]
            written, file = self._current or self._begin()
            try:
                file.append(kind, sequence, body)
            except OSError:
                self._retire()
                raise
            self._unwritten.popleft()
            written.last_sequence = max(written.last_sequence, sequence)
            self.size += file.size - written.size
            written.size = file.size
            written.ids += ids
            written.new += new
            if written.ids >= self._full:
                self._retire()

    def not_synced(self, files: Collection[int]) -> None:
        """Write no more to a file that could not be synced."""
        if self._current is not None and self._current[1].file in files:
            self._retire()

    def forget(self, first_needed: int) -> list[str]:
        """Forget the files that may be deleted, where requests are kept from this number on, and return them."""
        gone: list[str] = []
        ids = sum(file.ids for file in self.files)
        new = sum(file.new for file in self.files)
        while self.files and (self._current is None or self.files[0] is not self._current[0]):
            oldest = self.files[0]
            ids -= oldest.ids
            new -= oldest.new
            is_room = ids < self._most and len(self.files) < _MOST_FILES
            if (new < self._remember and is_room) or oldest.last_sequence >= first_needed:
                break
            self.size -= oldest.size
            gone.append(self.files.pop(0).name)
        return gone

    def is_held_up(self, first_needed: int) -> bool:
        """Return whether its oldest file is kept for old requests alone, when newer ones have `remember` ids."""
        held_up = bool(self.files) and self.files[0].last_sequence >= first_needed
        return held_up and sum(file.new for file in self.files[2:]) > self._remember

    def forget_missing(self, there: Collection[str]) -> int:
        """Forget the files that were removed: all that are not in `there`. Return how many ids were in them."""
        gone = [file for file in self.files if file.name not in there]
        for missing in gone:
            if self._current is not None and self._current[0] is missing:
                self._retire()
            self.files.remove(missing)
            self.size -= missing.size
        return sum(file.ids for file in gone)

    def clear(self) -> list[str]:
        """Forget all files, and return them."""
        self._retire()
        gone = [file.name for file in self.files]
        self.files.clear()
        self.size = 0
        return gone

    def end(self) -> None:
        """Write the records that could not be written before, and close the log.

        Raises:
            OSError: they still cannot be written.
        """
        self.catch_up()
        self._retire()

    def _begin(self) -> tuple[IdFile, LogFile]:
        self._number += 1
        file = LogFile(self._disk, f"{self._number:016x}{self._ending}", has_gaps=True)
        begun = IdFile(file.name, self._number, file.size)
        self.files.append(begun)
        self.size += begun.size
        self._current = begun, file
        return self._current

    def _retire(self) -> None:
        if self._current is not None:
            self._current[1].close()
            self._current = None
