"""The thread that sends queued items, in order, one request at a time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from spanscore.emitters.sending.backlog import REJECTED, Backlog, QueueItem, QueueLimits
from spanscore.emitters.sending.client import Accepted, Client, Delivery, Refused, Retries, TryAgain
from spanscore.emitters.sending.outbox import QUEUE_FULL
from spanscore.otlp.raw_requests import joined
from spanscore.sdk.identity import stop_tracing

SHUT_DOWN: Final = "shut_down"

_IDLE_S: Final = 1.0
_LAST_TRIES_EVERY_S: Final = 0.5
_ABORTING_S: Final = 0.05

_log = logging.getLogger(__name__)


class Sent(NamedTuple):
    """Counts of spans in a queue. Invariant: `put == sent + queued + sum(dropped.values())`."""

    sent: int
    queued: int
    dropped: Mapping[str, int]


class Timing(NamedTuple):
    """The clock and the way to wait."""

    clock: Callable[[], float] = time.monotonic
    """Seconds that never run backwards."""
    wait: Callable[[threading.Event, float], bool] = threading.Event.wait
    """Waits between two attempts to send: so many seconds, but no longer than until the event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendSettings:
    """The name of a queue, its limits, and its retries."""

    name: str
    """The name of the emitter, of its thread, and at the start of its log lines."""
    queue: QueueLimits = field(default_factory=QueueLimits)
    """Limits of the queue."""
    retries: Retries = field(default_factory=Retries)
    """The rules for retrying and dropping a request."""
    failure: str | None = None
    """The reason under which a refused item is counted; by default the receiver's."""


class SendQueue:
    """Sends requests on its own thread, and keeps a bounded number of them until the receiver has accepted them.

    If a request that was joined from several is refused for its content, they are sent one by one: a bad one costs
    only itself.

    Args:
        client: sends; the thread's alone, and closed at its end.
        settings: the rules.
        refill: called on the thread at least once a second, and may put something in.
        timing: the clock.
    """

    def __init__(
        self,
        client: Client,
        settings: SendSettings,
        refill: Callable[[], None] = lambda: None,
        timing: Timing | None = None,
    ) -> None:
        timing = timing or Timing()
        self.capacity: Final = settings.queue.capacity
        self._name: Final = settings.name
        self._client: Final = client
        self._refill: Final = refill
        self._timing: Final = timing
        self._delivery: Final = Delivery(client, self._pause, settings.retries, timing.clock)
        self._backlog: Final = Backlog(settings.queue, settings.failure)
        self._hurried = 0  # items up to this one do not linger
        self._told: set[str] = set()
        self._away: tuple[float, str] | None = None
        """The time since which the receiver takes nothing, and the reason of the last attempt."""
        self._closing: Final = threading.Event()
        self._abandoned: Final = threading.Event()
        self._changed: Final = threading.Condition()  # guards the backlog: one thread fills it, the other empties it
        self._thread: Final = threading.Thread(target=self._run, name=f"spanscore-{settings.name}", daemon=True)
        self._thread.start()

    @property
    def size(self) -> int:
        """Items waiting or being sent."""
        return len(self._backlog)

    @property
    def progress(self) -> tuple[int, int]:
        """The number of items that came in, and the number sent or given up."""
        return self._backlog.arrived, self._backlog.settled

    @property
    def fullness(self) -> float:
        """The share of the room that is taken, in items or in bytes, whichever is larger; from 0 to 1."""
        return self._backlog.fullness

    @property
    def is_sending(self) -> bool:
        """Whether the sending thread runs."""
        return self._thread.is_alive()

    @property
    def delay(self) -> tuple[float, str]:
        """The seconds for which the receiver has taken nothing, and why; `(0, "")` while it takes requests."""
        away = self._away
        return (0.0, "") if away is None else (self._timing.clock() - away[0], away[1])

    def shares(self, items: int, size: int, reserved_items: int, reserved_bytes: int) -> bool:
        """Return whether a sender may put so many items more, with so many bytes, beside others that are reserved."""
        return self._backlog.shares(items, size, reserved_items, reserved_bytes)

    @property
    def failures(self) -> dict[str, int]:
        """Items that were not sent, and spans that the receiver rejected, by why."""
        with self._changed:
            return dict(+self._backlog.failures)  # without reasons that count 0

    def spans(self) -> Sent:
        """Return the counts of the spans."""
        with self._changed:
            return Sent(self._backlog.sent_spans, self._backlog.queued_spans, +self._backlog.dropped_spans)

    def put(self, *items: QueueItem) -> None:
        """Queue items. Those for which there is no room, and all after `close`, are dropped and counted."""
        with self._changed:
            if self._closing.is_set():
                for item in items:
                    self._backlog.refuse(item, SHUT_DOWN)
                return
            due, now = self._backlog.due(), self._timing.clock()
            for item in items:
                if not self._backlog.put(item, now):
                    self._tell(QUEUE_FULL, "the queue is full: new items are dropped; is the receiver slow or gone?")
            if due != self._backlog.due():  # waking the thread for every item would cost more than sending it
                self._changed.notify_all()

    def flush(self, timeout_s: float) -> bool:
        """Send what is queued, and return whether all of it was sent within the timeout."""
        with self._changed:
            lost = self._backlog.failures.total()
            self._hurried = last = self._backlog.arrived
            self._changed.notify_all()
            in_time = self._changed.wait_for(lambda: self._backlog.settled >= last, timeout_s)
            return in_time and lost == self._backlog.failures.total()

    def close(self, timeout_s: float) -> bool:
        """Send what is queued within the timeout, drop the rest, and stop; True when nothing was dropped."""
        with self._changed:
            lost = self._backlog.failures.total()
            self._closing.set()
            self._changed.notify_all()
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            with self._changed:
                self._abandoned.set()
                self._backlog.give_up(SHUT_DOWN)
                self._changed.notify_all()
            self._client.abort()
            self._thread.join(_ABORTING_S)
        with self._changed:
            return lost == self._backlog.failures.total()

    def _run(self) -> None:
        stop_tracing()
        try:
            while batch := self._next_batch():
                self._send(batch)
        finally:
            self._client.close()

    def _next_batch(self) -> Sequence[QueueItem]:
        """Wait for something to send; empty when there will be nothing more."""
        while True:
            try:
                self._refill()
            except Exception:  # noqa: BLE001 - a fault in new items: queued items are still sent
                _log.exception("%s: new items cannot be prepared for sending", self._name)
            with self._changed:
                wait_s = self._wait_s()
                if wait_s <= 0:
                    return self._backlog.take()
                if self._closing.is_set():
                    return ()
                self._changed.wait(wait_s)

    def _wait_s(self) -> float:
        due = self._backlog.due()
        if due is None:
            return _IDLE_S
        if self._closing.is_set() or self._backlog.settled < self._hurried:
            return 0.0
        return min(_IDLE_S, due - self._timing.clock())

    def _send(self, batch: Sequence[QueueItem]) -> None:
        answer = self._answer(batch)
        if isinstance(answer, Refused) and answer.about_content and len(batch) > 1:
            for item in batch:
                self._settle([item], self._answer([item]))
        else:
            self._settle(batch, answer)

    def _answer(self, batch: Sequence[QueueItem]) -> Accepted | Refused:
        requests = [item.body for item in batch if item.envelope is None]
        spans = [(item.envelope, item.body) for item in batch if item.envelope is not None]
        try:
            return self._delivery.send(batch[0].signal, joined(requests, spans))
        except Exception as error:  # noqa: BLE001 - a fault of ours costs this request, but not the thread
            _log.exception("%s: a request could not be sent", self._name)
            return Refused(reason=type(error).__name__, by_receiver=False)

    def _settle(self, items: Sequence[QueueItem], answer: Accepted | Refused) -> None:
        with self._changed:
            self._backlog.settle(items, answer)
            self._changed.notify_all()
        if isinstance(answer, Refused):
            refused = "the receiver refused it " if answer.by_receiver else ""
            self._tell(answer.reason, f"not sent: {refused}(%s) %s", answer.reason, answer.message)
        if self._away is not None and (isinstance(answer, Accepted) or answer.by_receiver):
            self._away = None
            _log.info("%s: sending again", self._name)
        if isinstance(answer, Refused):
            return
        if answer.rejected:
            self._tell(REJECTED, "the receiver rejected %d items: %s", answer.rejected, answer.message)
        elif answer.message:
            self._tell(answer.message, "the receiver took the items with a warning: %s", answer.message)

    def _pause(self, seconds: float, answer: TryAgain) -> bool:
        if self._away is None:
            why = f"{answer.reason}: {answer.problem}" if answer.problem else answer.reason
            _log.warning("%s: cannot send now (%s): trying again until it can", self._name, why)
        self._away = (self._timing.clock() if self._away is None else self._away[0], answer.reason)
        if self._closing.is_set():
            self._timing.wait(self._abandoned, min(seconds, _LAST_TRIES_EVERY_S))
        else:
            self._timing.wait(self._closing, seconds)
        return self._abandoned.is_set()

    def _tell(self, kind: str, message: str, *values: object) -> None:
        """Log a warning the first time, and repeats at the level debug."""
        _log.log(logging.DEBUG if kind in self._told else logging.WARNING, f"%s: {message}", self._name, *values)
        self._told.add(kind)
