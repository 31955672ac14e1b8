"""The queue of an emitter that sends in the background."""

from __future__ import annotations

from collections import Counter
from threading import Lock
from typing import Final

QUEUE_FULL: Final = "queue_full"


class Outbox:
    """Counts of items that an emitter has queued, and of items that could not be sent. It does not keep the items.

    Args:
        capacity: items that may be on their way; more are refused and counted.
        capacity_bytes: the most bytes of these items, if their sizes are passed; a single item may be larger.
    """

    def __init__(self, capacity: int, capacity_bytes: int = 0) -> None:
        self.capacity: Final = capacity
        self._capacity_bytes: Final = capacity_bytes
        self._size = self._bytes = 0
        self._failures: Final[Counter[str]] = Counter()
        self._lock: Final = Lock()  # guards the numbers: items come in on one thread and go out on another

    @property
    def size(self) -> int:
        """Items queued or being sent."""
        return self._size

    @property
    def failures(self) -> dict[str, int]:
        """Items and requests that were not sent, by why."""
        return dict(self._failures)

    def put(self, items: int = 1, *, size: int = 0) -> bool:
        """Count items in, with their bytes; False when there is no room for them, which is a failure."""
        with self._lock:
            is_too_much = self._bytes and self._bytes + size > self._capacity_bytes
            if self._size + items > self.capacity or is_too_much:
                self._failures[QUEUE_FULL] += items
                return False
            self._size += items
            self._bytes += size
            return True

    def take(self, items: int = 1, *, size: int = 0) -> None:
        """Count items out that were sent, or given up."""
        with self._lock:
            self._size -= items
            self._bytes -= size

    def fail(self, reason: str, items: int = 1) -> None:
        """Count items that could not be sent."""
        with self._lock:
            self._failures[reason] += items
