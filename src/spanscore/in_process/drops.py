"""Counts dropped items without a lock on the threads that drop them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from threading import Lock
from typing import Final


class Drops(Mapping[str, int]):
    """Exact numbers of drops by reason.

    Adding is one step of the interpreter, so that it may happen anywhere: on many threads, in a signal handler, in a
    destructor. Only readers wait for each other.

    Args:
        reasons: all there are.
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
