"""Counts of dropped items, without a lock on the threads that drop them, and the log message about them."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from threading import Lock
from typing import Final

from spanscore.messages.throttle import Throttle

QUEUE_FULL: Final = "queue_full"
"""The reason of drops that are logged."""

_LOGGER: Final = logging.getLogger(__name__)


class Drops(Mapping[str, int]):
    """Exact numbers of drops by reason.

    Adding is one step of the interpreter, so that it may happen anywhere: on many threads, in a signal handler, in a
    destructor. Only readers wait for each other.
    """

    def __init__(self, reasons: Iterable[str]) -> None:
        self._counts: Final = {reason: count() for reason in reasons}
        self._looks: Final[Counter[str]] = Counter()
        self._lock: Final = Lock()  # guards the looks

    def add(self, reason: str) -> None:
        """Count one."""
        next(self._counts[reason])

    def __getitem__(self, reason: str) -> int:
        with self._lock:
            number = next(self._counts[reason]) - self._looks[reason]
            self._looks[reason] += 1  # looking at a count has made it count on
            return number

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)


class DropLog:
    """Logs how many items were dropped because the queue is full. Belongs to one thread, as it takes a lock."""

    def __init__(self, drops: Drops) -> None:
        self._drops: Final = drops
        self._told = 0
        self._throttle: Final = Throttle(_tell_drops, time.monotonic)

    def tell_new(self) -> None:
        """Log the drops since the last call, at most every ten seconds."""
        drops = self._drops[QUEUE_FULL]
        if drops > self._told:
            self._throttle.note(QUEUE_FULL, drops - self._told)
            self._told = drops
        self._throttle.tell_due()

    def close(self) -> None:
        """Log the drops that were held back."""
        self._throttle.close()


def _tell_drops(_reason: str, count: int) -> None:
    _LOGGER.warning(
        "spanscore: spans were dropped, as they end faster than they are scored and the queue is full: %d; their runs "
        "are not complete",
        count,
    )
