"""Tells the log that requests are refused: a sender may hear of it and say nothing."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from spanscore.intake.requests import Busy, Wrong

_EVERY_S: Final = 60.0
_TOLD_ELSEWHERE: Final = frozenset({Busy.STARTING, Busy.SHUTTING_DOWN, Busy.FAULT})
"""The log has a line of its own about each."""

_log = logging.getLogger(__name__)


class RefusalLog:
    """Writes a line for each reason, but no two for one within a minute. It says nothing of what was sent.

    Args:
        clock: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock: Final = clock
        self._untold: Final[Counter[tuple[str, Wrong | Busy]]] = Counter()
        self._told_at: Final[dict[tuple[str, Wrong | Busy], float]] = {}

    def refused(self, door: str, reason: Wrong | Busy) -> None:
        """Take note of a refused request.

        Args:
            door: where it came in.
            reason: why it was refused.
        """
        if reason in _TOLD_ELSEWHERE:
            return
        kind = (door, reason)
        self._untold[kind] += 1
        now = self._clock()
        if now - self._told_at.get(kind, -_EVERY_S) >= _EVERY_S:
            self._told_at[kind] = now
            _tell(*kind, self._untold.pop(kind))

    def close(self) -> None:
        """Write what was not written yet."""
        for kind, count in self._untold.items():
            _tell(*kind, count)
        self._untold.clear()


def _tell(door: str, reason: Wrong | Busy, count: int) -> None:
    _log.warning("%s: requests refused (%s): %d", door, reason, count)
