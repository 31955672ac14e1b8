"""The turns of open conversations, in files of their own, and the notes of finished ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

from spanscore.storage.log_file import Disk, LogFile
from spanscore.storage.records import Kind

TURNS: Final = ".turns"

_KEY: Final = 16
_ID: Final = 17
"""Bytes for a trace id; that of a session of log records is longer than others, which have a zero behind them."""
_SPARE: Final = 4 * 2**20
"""Bytes that turns may take on disk beside twice the size of the turns that are needed."""
_FILES: Final = 8


class TurnLog:
    """Appends turns, which are read back at the next start. Those not needed go when all others are written anew."""

    def __init__(self, disk: Disk) -> None:
        self.size = 0
        """Bytes on disk."""
        self._disk: Final = disk
        self._number = 0
        self._files: list[str] = []
        self._current: LogFile | None = None
        self._is_behind = False
        self._needed: Callable[[], Iterable[bytes]] = tuple

    def adopt(self, name: str, number: int, size: int) -> None:
        """Take over a file of an earlier process, from old to new."""
        self._files.append(name)
        self.size += size
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
            is_wasteful = self.size > _SPARE + 2 * needed_size or len(self._files) > _FILES
            if is_wasteful and not self._is_behind:
                self._write_anew()
        except OSError:
            self._is_behind = True
        self.catch_up()

    def catch_up(self) -> None:
        """Write the turns that could not be written before. Call it about every second."""
        try:
            if self._is_behind:
                self._write_anew()
        except OSError:
            self.end()

    def not_synced(self, files: Collection[int]) -> None:
        """Write no more to a file that could not be synced."""
        if self._current is not None and self._current.file in files:
            self._is_behind = True
            self.end()

    def clear(self) -> None:
        """Delete everything."""
        self._disk.syncer.delete(*self._files)
        self._files, self.size = [], 0

    def end(self) -> None:
        """Write no more to the file."""
        if self._current is not None:
            self._current.close()
            self._current = None

    def _append(self, turn: bytes) -> None:
        if self._current is None:
            self._number += 1
            self._current = LogFile(self._disk, f"{self._number:016x}{TURNS}", has_gaps=True)
            self._files.append(self._current.name)
            self.size += self._current.size
        before = self._current.size
        self._current.append(Kind.TURN, 0, turn)
        self.size += self._current.size - before

    def _write_anew(self) -> None:
        old, old_size = len(self._files), self.size
        self.end()
        for turn in self._needed():
            self._append(turn)
        self._disk.syncer.delete(*self._files[:old])
        del self._files[:old]
        self.size -= old_size
        self._is_behind = False


def note_of(key: bytes, trace_ids: Collection[bytes]) -> bytes:
    """Return the note of a finished conversation."""
    return key + b"".join(each.ljust(_ID, b"\0") for each in trace_ids)


def ids_of(note: bytes) -> tuple[bytes, list[bytes]]:
    """Return the key and the trace ids in the note of a finished conversation."""
    ids = [note[start : start + _ID] for start in range(_KEY, len(note), _ID)]
    return note[:_KEY], [each[:-1] if each.endswith(b"\0") else each for each in ids]


def count_in(note: bytes) -> int:
    """Return the number of ids in a note, the key of the conversation among them."""
    return 1 + len(note) // _ID
