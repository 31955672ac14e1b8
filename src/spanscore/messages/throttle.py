"""Messages about events that repeat: the first is logged at once, and then one every ten seconds with a count."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeAlias, TypeVar

_EVERY_S: Final = 10.0

_Kind = TypeVar("_Kind", bound=Hashable)

CallLater: TypeAlias = Callable[[float, Callable[[], None]], object]
"""Calls a function after so many seconds, as `call_later` of an event loop does."""


class Throttle(Generic[_Kind]):
    """Reports each kind of event when it happens, but at most every ten seconds; later events are counted until then.

    Args:
        tell: takes a kind, and the number of its events since its last report.
        clock: seconds that never run backwards.
        call_later: has the counted events reported when they are due. Without it the owner calls `tell_due`.
    """

    def __init__(
        self, tell: Callable[[_Kind, int], None], clock: Callable[[], float], call_later: CallLater | None = None
    ) -> None:
        self._tell: Final = tell
        self._clock: Final = clock
        self._call_later: Final = call_later
        self._untold: Final[Counter[_Kind]] = Counter()
        self._told_at: Final[dict[_Kind, float]] = {}
        self._has_timer = False

    def note(self, kind: _Kind, count: int = 1) -> None:
        """Count events of a kind, and report them if they are due."""
        self._untold[kind] += count
        self.tell_due()

    def tell_due(self) -> None:
        """Report the counted events of each kind whose last report is ten seconds old."""
        if not self._untold:
            return
        now = self._clock()
        for kind in [*self._untold]:
            if now >= self._due_at(kind):
                self._told_at[kind] = now
                self._tell(kind, self._untold.pop(kind))
        if self._untold and self._call_later is not None and not self._has_timer:
            self._has_timer = True
            self._call_later(min(map(self._due_at, self._untold)) - now, self._on_timer)

    def close(self) -> None:
        """Report all counted events."""
        for kind in [*self._untold]:
            self._tell(kind, self._untold.pop(kind))

    def _due_at(self, kind: _Kind) -> float:
        return self._told_at.get(kind, -math.inf) + _EVERY_S

    def _on_timer(self) -> None:
        self._has_timer = False
        self.tell_due()
