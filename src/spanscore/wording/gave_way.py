"""Tells the log that open traces gave way to a limit: their scores say so one by one, the log says which limit."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Final

_EVERY_S: Final = 60.0
_log = logging.getLogger(__name__)


class GaveWay:
    """Writes a line for each limit, but no two for one within a minute."""

    def __init__(self) -> None:
        self._untold: Final[Counter[str]] = Counter()
        self._told_at: Final[dict[str, float]] = {}

    def note(self, by_limit: Counter[str], now: float) -> None:
        """Take note of traces that gave way, and empty what they are counted in."""
        self._untold.update(by_limit)
        by_limit.clear()
        for limit in [limit for limit in self._untold if now - self._told_at.get(limit, -_EVERY_S) >= _EVERY_S]:
            self._told_at[limit] = now
            self._tell(limit)

    def close(self) -> None:
        """Write what was not written yet."""
        for limit in [*self._untold]:
            self._tell(limit)

    def _tell(self, limit: str) -> None:
        count = self._untold.pop(limit)
        _log.warning("open traces closed and scored as incomplete, as traces.%s is reached: %d", limit, count)
