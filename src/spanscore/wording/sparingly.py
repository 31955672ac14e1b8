"""Tells of what happens again and again: at once, and then once in a while, with how often it did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

_EVERY_S: Final = 60.0

_Kind = TypeVar("_Kind", bound=Hashable)


class Sparingly(Generic[_Kind]):
    """Tells of each kind when it happens, but not twice within a minute; what is left then goes with the next one.

    Args:
        tell: takes a kind, and how often it has happened since that was told last.
        clock: seconds that never run backwards.
    """

    def __init__(self, tell: Callable[[_Kind, int], None], clock: Callable[[], float]) -> None:
        self._tell: Final = tell
        self._clock: Final = clock
        self._untold: Final[Counter[_Kind]] = Counter()
        self._told_at: Final[dict[_Kind, float]] = {}

    def note(self, kind: _Kind, count: int = 1) -> None:
        """Take note that something has happened so many times."""
        self._untold[kind] += count
        now = self._clock()
        if now - self._told_at.get(kind, -_EVERY_S) >= _EVERY_S:
            self._told_at[kind] = now
            self._tell(kind, self._untold.pop(kind))

    def close(self) -> None:
        """Tell what was not told yet."""
        for kind in [*self._untold]:
            self._tell(kind, self._untold.pop(kind))
