"""The sharing of scarce storage: traces with the most bytes are closed first, and large requests are refused first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from spanscore.storage.request_log import RequestLog

_CROWDED: Final = 0.5
_SHORT: Final = 0.75
_ROOM_AGAIN: Final = 0.9

_WORTHWHILE: Final = 0.5
"""A segment is written anew when at most this share of it is still needed."""
_WORTHWHILE_WHEN_SHORT: Final = 0.8

_OPEN_SHARE: Final = 0.5
"""The share that open traces may keep if room is short; with data between them, at most five eighths."""
_OPEN_SHARE_AGAIN: Final = 0.4
_LEFT_SHARE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Room:
    """The room of the storage."""

    max_size: int
    """The most bytes in all files."""

    @property
    def largest(self) -> int:
        """The largest request in bytes: a larger one does not fit into an empty storage either."""
        return int(self.max_size * _SHORT)

    def is_crowded(self, size: int) -> bool:
        """Return whether unneeded data between needed requests must be removed at once."""
        return size > self.max_size * _CROWDED

    def is_short(self, size: int) -> bool:
        """Return whether open traces may have to be closed early."""
        return size > self.max_size * _SHORT

    def is_left(self, size: int) -> bool:
        """Return whether there is room for most requests."""
        return size <= self.max_size * _ROOM_AGAIN

    def most_needed(self, size: int) -> float:
        """Return the largest needed share of a segment at which it is compacted."""
        return _WORTHWHILE_WHEN_SHORT if self.is_short(size) else _WORTHWHILE

    def fits(self, size: int, more: int) -> bool:
        """Return whether a request may be written. In the last quarter, each may take half of the remaining room."""
        left = self.max_size - size
        return more <= left and (more <= left * _LEFT_SHARE or not self.is_short(size + more))

    def make_room(self, log: RequestLog) -> list[bytes]:
        """Choose the open traces to close if room is short, and mark them as scored in the log.

        Traces with the most stored bytes come first; among traces of about the same size (within a factor of two), the
        ones that began earlier.
        """
        if log.open_size <= self.max_size * _OPEN_SHARE:
            return []
        chosen: list[bytes] = []
        for trace_id in sorted(log.open, key=lambda trace_id: -log.open[trace_id].bit_length()):
            if log.open_size <= self.max_size * _OPEN_SHARE_AGAIN:
                break
            log.scored(trace_id)
            chosen.append(trace_id)
        return chosen
