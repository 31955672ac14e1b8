"""A queue of items to send, with the counts of sent and dropped ones. Pure: the caller passes the time."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

from annotated_types import Ge, Gt

from spanscore.emitters.sending.client import Accepted, Refused, Signal
from spanscore.emitters.sending.outbox import QUEUE_FULL
from spanscore.otlp.raw_requests import Envelope

EXPORT_FAILED: Final = "export_failed"
"""The receiver refused."""
REJECTED: Final = "rejected"
"""The receiver accepted the request, and rejected some of its items."""
ITEM_SIZE: Final = 128
"""Bytes of memory that an item takes besides its content, about."""
_UNSHARED: Final = 0.75
_SHARE: Final = 0.5


class QueueItem(NamedTuple):
    """Something to send."""

    signal: Signal
    body: bytes
    """A request; with an envelope, a span, a metric or a log record."""
    spans: int = 0
    envelope: Envelope | None = None

    @property
    def size(self) -> int:
        """Bytes that it takes up at most."""
        return len(self.body) + sum(map(len, self.envelope or ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLimits:
    """Limits of a queue: items, bytes, and seconds that an item waits for others to be sent with it."""

    capacity: Annotated[int, Gt(0)] = 100_000
    """Requests, and spans that are sent by themselves."""
    capacity_bytes: Annotated[int, Gt(0)] = 128 * 2**20
    batch_bytes: Annotated[int, Ge(0)] = 2**20
    """Requests are joined up to this size, which every receiver takes; a larger one goes by itself."""
    linger_s: Annotated[float, Ge(0)] = 0.1
    """Wait this long for more to send with the first: many small requests cost more than a few."""


class Backlog:
    """Items in the order of their arrival, and items that are being sent.

    Always, of the spans put: `put == sent + queued + sum(dropped)`.

    Args:
        limits: the most that may wait.
        failure: the reason under which a refused item is counted; by default the receiver's.
    """

    def __init__(self, limits: QueueLimits, failure: str | None = None) -> None:
        self.arrived = 0
        """Items taken in."""
        self.settled = 0
        """The number of these items that were sent or dropped."""
        self.size = 0
        """Bytes waiting or being sent."""
        self.queued_spans = 0
        self.sent_spans = 0
        self.dropped_spans: Final[Counter[str]] = Counter()
        self.failures: Final[Counter[str]] = Counter()
        """Items that were not sent, and spans that were rejected, by why."""
        self._limits: Final = limits
        self._failure: Final = failure
        self._waiting: deque[QueueItem] = deque()
        self._waiting_size = 0
        self._in_flight: deque[QueueItem] = deque()
        self._since = 0.0

    def __len__(self) -> int:
        return self.arrived - self.settled

    def shares(self, items: int, size: int, reserved_items: int, reserved_bytes: int) -> bool:
        """Return whether a sender may put so many items more, beside others that are reserved.

        The reserved bytes include the memory of the reserved items besides their content.

        In the last quarter, each request may take half of the room that is left: large ones do not keep out small ones.
        """
        limits = self._limits
        return _shares(items, len(self) + reserved_items, limits.capacity) and _shares(
            size + items * ITEM_SIZE, self.size + reserved_bytes, limits.capacity_bytes
        )

    @property
    def fullness(self) -> float:
        """The share of the room that is taken, from 0 to 1."""
        return max(len(self) / self._limits.capacity, self.size / self._limits.capacity_bytes)

    def put(self, item: QueueItem, now: float) -> bool:
        """Add an item; False if there is no room and it is dropped."""
        size = item.size
        if len(self) >= self._limits.capacity or self.size + size + ITEM_SIZE > self._limits.capacity_bytes:
            self.refuse(item, QUEUE_FULL)
            return False
        if not self._waiting:
            self._since = now
        self._waiting.append(item)
        self._waiting_size += size
        self.arrived += 1
        self.size += size + ITEM_SIZE
        self.queued_spans += item.spans
        return True

    def refuse(self, item: QueueItem, reason: str) -> None:
        """Count an item as dropped."""
        self.failures[reason] += 1
        self.dropped_spans[reason] += item.spans

    def due(self) -> float | None:
        """Return when to send; None while nothing waits."""
        if not self._waiting:
            return None
        return -math.inf if self._waiting_size >= self._limits.batch_bytes else self._since + self._limits.linger_s

    def take(self) -> Sequence[QueueItem]:
        """Return the items of the next request, which must be settled in that order."""
        size = 0
        signal = self._waiting[0].signal
        while self._waiting and self._waiting[0].signal == signal:
            item_size = self._waiting[0].size
            size += item_size
            if self._in_flight and size > self._limits.batch_bytes:
                break
            self._waiting_size -= item_size
            self._in_flight.append(self._waiting.popleft())
        return tuple(self._in_flight)

    def settle(self, items: Sequence[QueueItem], answer: Accepted | Refused) -> None:
        """Count the outcome of the next items that are being sent."""
        if not self._in_flight:  # given up meanwhile
            return
        for item in items:
            self._in_flight.popleft()
            self._release(item)
            if isinstance(answer, Refused):
                self.refuse(item, self._failure or answer.reason)
        if isinstance(answer, Accepted):
            spans = sum(item.spans for item in items)
            rejected = min(answer.rejected, spans)
            self.sent_spans += spans - rejected
            self.dropped_spans[REJECTED] += rejected
            # How many records are in items of other signals is not known: fewer than bytes, whatever the receiver says.
            most = rejected if items[0].signal == "traces" else sum(item.size for item in items)
            self.failures[REJECTED] += min(answer.rejected, most)

    def give_up(self, reason: str) -> None:
        """Drop all."""
        for item in (*self._in_flight, *self._waiting):
            self._release(item)
            self.refuse(item, reason)
        self._in_flight.clear()
        self._waiting.clear()
        self._waiting_size = 0

    def _release(self, item: QueueItem) -> None:
        self.settled += 1
        self.size -= item.size + ITEM_SIZE
        self.queued_spans -= item.spans


def _shares(more: int, taken: int, capacity: int) -> bool:
    left = capacity - taken
    return more <= left and (more <= left * _SHARE or taken + more <= capacity * _UNSHARED)
