"""How room is shared where it gets short: what keeps the most gives way, and who sends much before who sends little."""

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
"""Open traces may keep this share where room is short: with what lies between them, at most five eighths."""
_OPEN_SHARE_AGAIN: Final = 0.4
_LEFT_SHARE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Room:
    """What there is room for."""

    max_size: int
    """So many bytes there may be."""

    @property
    def largest(self) -> int:
        """How large a request may be at most: one that is larger does not fit where nothing else is either."""
        return int(self.max_size * _SHORT)

    def is_crowded(self, size: int) -> bool:
        """Whether what lies between what is needed is to be removed at once."""
        return size > self.max_size * _CROWDED

    def is_short(self, size: int) -> bool:
        """Whether open traces may have to give way."""
        return size > self.max_size * _SHORT

    def is_left(self, size: int) -> bool:
        """Whether there is enough for most requests."""
        return size <= self.max_size * _ROOM_AGAIN

    def most_needed(self, size: int) -> float:
        """Return the share of a segment that may be needed where it is written anew."""
        return _WORTHWHILE_WHEN_SHORT if self.is_short(size) else _WORTHWHILE

    def fits(self, size: int, more: int) -> bool:
        """Return whether a request may be written. Of the last quarter, each may take half of what is left."""
        left = self.max_size - size
        return more <= left and (more <= left * _LEFT_SHARE or not self.is_short(size + more))

    def giving_way(self, log: RequestLog) -> list[bytes]:
        """Choose the open traces to close where room is short, and have the log take them for scored.

        Those that keep the most come first; among those that keep about as much, down to half, those that began to
        earlier.
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
