"""How long those who are sent away should wait before they come again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final

_SHORTEST_DELAY_S: Final = 1.0
_LONGEST_DELAY_S: Final = 30.0
_HALF_LIFE_S: Final = 10.0
_REFUSALS_PER_SECOND: Final = 20.0


class RetryDelay:
    """How long a sender should wait: the longer the more were sent away lately, and not all equally long.

    Args:
        clock: seconds that never run backwards.
        jitter: a random number from 0 to 1.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, jitter: Callable[[], float] = random.random
    ) -> None:
        self._clock = clock
        self._jitter = jitter
        self._refusals = 0.0
        self._refused_at = clock()

    def next(self) -> float:
        """Count a sender that is sent away, and return its delay in seconds."""
        self._refusals = self._lately() + 1
        self._refused_at = self._clock()
        return self.current()

    def current(self) -> float:
        """Return a delay in seconds without counting anybody."""
        delay_s = _SHORTEST_DELAY_S + self._lately() / _REFUSALS_PER_SECOND
        return min(_LONGEST_DELAY_S, delay_s * (1 + self._jitter() / 2))

    def _lately(self) -> float:
        return self._refusals * float(0.5 ** ((self._clock() - self._refused_at) / _HALF_LIFE_S))
