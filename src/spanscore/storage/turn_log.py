"""The turns of open conversations, and which conversations are finished, in files of their own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple

from spanscore.storage.log_file import Disk, LogFile
from spanscore.storage.records import Kind

TURNS: Final = ".turns"
FINISHED: Final = ".finished"

_KEY: Final = 16
_ID: Final = 17
"""Bytes for a trace id; that of a session of log records is longer than others, which have a zero behind them."""
_SPARE: Final = 4 * 2**20
"""Bytes that turns may take on disk beside twice the size of the turns that are needed."""
_FILES: Final = 8
_MOST_NOTES: Final = 100
"""Files of notes: each start begins one, however little is written to it."""
_LEAST: Final = 1_024
"""So many ids a file of finished conversations gets at least."""


class _FinishedFile(NamedTuple):
    name: str
    size: int
    ids: int


class TurnLog:
    """Appends turns, and notes of finished conversations; both are read back at the next start.

    Turns that are no longer needed go when all others are written anew. The oldest notes are deleted when newer ones
    have `remember` ids.

    Args:
        disk: writes the files.
        remember: the ids of finished conversations, and of their turns, to know after a restart.
    """

    def __init__(self, disk: Disk, remember: int) -> None:
        self.size = 0
        """Bytes on disk."""
        self._disk: Final = disk
        self._remember: Final = remember
        self._full: Final = max(remember // _FILES, _LEAST)
        self._number = 0
        self._turn_files: list[str] = []
        self._turn_size = 0
        self._turns: LogFile | None = None
        self._is_behind = False
        self._needed: Callable[[], Iterable[bytes]] = tuple
        self._notes: Final[deque[_FinishedFile]] = deque()
        self._current: tuple[LogFile, int] | None = None

    def adopt(self, name: str, number: int, size: int) -> None:
        """Take over a file of an earlier process, from old to new."""
        if name.endswith(TURNS):
            self._turn_files.append(name)
            self._turn_size += size
        else:
            self._notes.append(_FinishedFile(name, size, size // _ID))
        self._number = max(self._number, number)
        self._count()

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
            is_wasteful = self._turn_size > _SPARE + 2 * needed_size or len(self._turn_files) > _FILES
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
            self._retire()
        self._count()

    def finish(self, key: bytes, trace_ids: Collection[bytes]) -> None:
        """Write that a conversation is finished.

        Raises:
            OSError: it is not written.
        """
        if self._current is None:
            self._current = self._new(FINISHED), 0
        file, ids = self._current
        try:
            file.append(Kind.FINISHED, 0, key + b"".join(each.ljust(_ID, b"\0") for each in trace_ids))
        except OSError:
            self._end_notes()
            raise
        self._current = file, ids + 1 + len(trace_ids)
        if self._current[1] >= self._full:
            self._end_notes()
        self._count()

    def not_synced(self, files: Collection[int]) -> None:
        """Write no more to files that could not be synced."""
        if self._turns is not None and self._turns.file in files:
            self._is_behind = True
            self._retire()
        if self._current is not None and self._current[0].file in files:
            self._end_notes()

    def clear(self) -> None:
        """Delete everything."""
        self._disk.syncer.delete(*self._turn_files, *(note.name for note in self._notes))
        self._turn_files, self._turn_size = [], 0
        self._notes.clear()
        self._count()

    def end(self) -> None:
        """Write no more."""
        self._retire()
        self._end_notes()

    def _append(self, turn: bytes) -> None:
        if self._turns is None:
            self._turns = self._new(TURNS)
            self._turn_files.append(self._turns.name)
            self._turn_size += self._turns.size
        before = self._turns.size
        self._turns.append(Kind.TURN, 0, turn)
        self._turn_size += self._turns.size - before

    def _write_anew(self) -> None:
        old, old_size = len(self._turn_files), self._turn_size
        self._retire()
        for turn in self._needed():
            self._append(turn)
        self._disk.syncer.delete(*self._turn_files[:old])
        del self._turn_files[:old]
        self._turn_size -= old_size
        self._is_behind = False

    def _new(self, kind: str) -> LogFile:
        self._number += 1
        return LogFile(self._disk, f"{self._number:016x}{kind}", has_gaps=True)

    def _retire(self) -> None:
        if self._turns is not None:
            self._turns.close()
            self._turns = None

    def _end_notes(self) -> None:
        """Close the file of notes, and delete the oldest files where newer ones have enough."""
        if self._current is not None:
            file, ids = self._current
            file.close()
            self._notes.append(_FinishedFile(file.name, file.size, ids))
            self._current = None
        ids = sum(note.ids for note in self._notes)
        while self._notes and (ids - self._notes[0].ids >= self._remember or len(self._notes) > _MOST_NOTES):
            oldest = self._notes.popleft()
            ids -= oldest.ids
            self._disk.syncer.delete(oldest.name)

    def _count(self) -> None:
        current = 0 if self._current is None else self._current[0].size
        self.size = self._turn_size + current + sum(note.size for note in self._notes)


def ids_of(note: bytes) -> tuple[bytes, list[bytes]]:
    """Return the key and the trace ids in the note of a finished conversation."""
    ids = [note[start : start + _ID] for start in range(_KEY, len(note), _ID)]
    return note[:_KEY], [each[:-1] if each.endswith(b"\0") else each for each in ids]
