"""The progress of a reading, and the place in the recording where each trace ends."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable
from itertools import accumulate
from typing import Final

_TRACE_ID_LENGTH: Final = 16
_PROGRESS_STEP: Final = 1024 * 1024


class TraceEnds:
    """The place in the recording where each trace ends; 24 bytes a trace."""

    def __init__(self, last_mentions: dict[bytes, int]) -> None:
        in_order = sorted(last_mentions, key=last_mentions.__getitem__)
        self._trace_ids = b"".join(in_order)
        self._places = array("Q", map(last_mentions.__getitem__, in_order))
        self._next = 0

    def before(self, place: int) -> list[bytes]:
        """Return the traces whose last mention is before that place, and was not before the place asked for last."""
        first = self._next
        self._next = bisect_left(self._places, place, first)
        return [
            self._trace_ids[index * _TRACE_ID_LENGTH : (index + 1) * _TRACE_ID_LENGTH]
            for index in range(first, self._next)
        ]


class ReadProgress:
    """Reports how much of the files is read."""

    def __init__(self, progress: Callable[[int, int], None] | None, sizes: list[int]) -> None:
        self._progress = progress
        self._total = sum(sizes)
        self._ends = accumulate(sizes)
        self._start = 0
        self._shown = 0

    def reach(self, position: int) -> None:
        """Note how far the current file is read."""
        done = self._start + position
        if self._progress and done - self._shown >= _PROGRESS_STEP:
            self._shown = done
            self._progress(done, self._total)

    def finish_file(self) -> None:
        """Go on to the next file."""
        self._start = self._shown = next(self._ends)
        if self._progress:
            self._progress(self._start, self._total)
