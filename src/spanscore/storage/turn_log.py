"""The turns of open conversations, and the notes of finished ones, in files of their own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import Final

from spanscore.storage.id_log import FINISHED, IdLog
from spanscore.storage.log_file import Disk, LogFile
from spanscore.storage.records import Kind

TURNS: Final = ".turns"

_KEY: Final = 16
_ID: Final = 17
"""Bytes for a trace id; that of a session of log records is longer than others, which have a zero behind them."""
_SPARE: Final = 4 * 2**20
"""Bytes that turns may take on disk beside twice the size of the turns that are needed."""
_FILES: Final = 8
_NO_REQUEST: Final = 1
"""Every number of a request is at least this: no note waits for one."""


class TurnLog:
    """Appends turns, and notes of finished conversations; both are read back at the next start.

    Turns that are no longer needed go when all others are written anew.

    Args:
        disk: writes the files.
        remember: the ids of finished conversations, and of their turns, to know after a restart.
        most: the most of these ids on disk.
    """

    def __init__(self, disk: Disk, remember: int, most: int) -> None:
        self.notes: Final = IdLog(disk, FINISHED, remember, most)
        self._disk: Final = disk
        self._number = 0
        self._sizes: Final[dict[str, int]] = {}
        """Bytes of each file of turns, by its name, from old to new."""
        self._current: LogFile | None = None
        self._is_behind = False
        self._needed: Callable[[], Iterable[bytes]] | None = None
        """Known from the first turn of this process on: until then, nothing is written anew."""

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(self._sizes.values()) + self.notes.size

    def adopt(self, name: str, number: int, size: int) -> None:
        """Take over a file of turns of an earlier process, from old to new."""
        self._sizes[name] = size
        self._number = max(self._number, number)

    def add(self, turn: bytes, needed: Callable[[], Iterable[bytes]], needed_size: int) -> None:
        """Write a turn.

        Args:
            turn: the turn.
            needed: returns all turns that are needed, this one too: called if they are written anew.
            needed_size: their size in bytes, about.
        """
        self._needed = needed
        try:
            if not self._is_behind:
                self._append(turn)
            is_wasteful = sum(self._sizes.values()) > _SPARE + 2 * needed_size or len(self._sizes) > _FILES
            self._is_behind = self._is_behind or is_wasteful
        except OSError:
            self._is_behind = True
        self.catch_up()

    def finish(self, key: bytes, trace_ids: Collection[bytes]) -> None:
        """Write that a conversation is finished.

        Raises:
            OSError: it is not written yet, and is written later.
        """
        ids = 1 + len(trace_ids)
        note = key + b"".join(each.ljust(_ID, b"\0") for each in trace_ids)
        self.notes.append(Kind.FINISHED, note, ids=ids, new=ids)

    def catch_up(self) -> None:
        """Write what could not be written before, and delete old notes. Call it about every second."""
        try:
            if self._is_behind and self._needed is not None:
                self._write_anew(self._needed())
        except OSError:
            self._retire()
        with suppress(OSError):
            self.notes.catch_up()
        self._disk.syncer.delete(*self.notes.forget(_NO_REQUEST))

    def not_synced(self, files: Collection[int]) -> None:
        """Write no more to files that could not be synced."""
        if self._current is not None and self._current.file in files:
            self._is_behind = True
            self._retire()
        self.notes.not_synced(files)

    def forget_missing(self, there: Collection[str]) -> int:
        """Forget the files that were removed, as `IdLog` does. Return how many records were in them, at least.

        Turns that are still needed are in memory. `catch_up` writes them anew, or the first `add`.
        """
        gone = self._sizes.keys() - there
        for name in gone:
            del self._sizes[name]
        self._is_behind = self._is_behind or bool(gone)
        if self._current is not None and self._current.name in gone:
            self._retire()
        return len(gone) + self.notes.forget_missing(there)

    def clear(self) -> None:
        """Delete everything."""
        self._disk.syncer.delete(*self._sizes, *self.notes.clear())
        self._sizes.clear()

    def end(self) -> None:
        """Write no more."""
        self._retire()
        with suppress(OSError):  # a conversation may be counted again after the next start
            self.notes.end()

    def _retire(self) -> None:
        if self._current is not None:
            self._current.close()
            self._current = None

    def _append(self, turn: bytes) -> None:
        if self._current is None:
            self._number += 1
            self._current = LogFile(self._disk, f"{self._number:016x}{TURNS}", has_gaps=True)
        self._sizes[self._current.name] = self._current.size
        self._current.append(Kind.TURN, 0, turn)
        self._sizes[self._current.name] = self._current.size

    def _write_anew(self, turns: Iterable[bytes]) -> None:
        old = tuple(self._sizes)
        self._retire()
        for turn in turns:
            self._append(turn)
        self._disk.syncer.delete(*old)
        for name in old:
            del self._sizes[name]
        self._is_behind = False


def ids_of(note: bytes) -> tuple[bytes, list[bytes]]:
    """Return the key and the trace ids in the note of a finished conversation."""
    ids = [note[start : start + _ID] for start in range(_KEY, len(note), _ID)]
    return note[:_KEY], [each[:-1] if each.endswith(b"\0") else each for each in ids]


def count_in(note: bytes) -> int:
    """Return the number of ids in a note, the key of the conversation among them."""
    return 1 + len(note) // _ID
