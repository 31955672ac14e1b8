"""The traces that must be kept: open ones, and scored ones whose reports are not sent yet."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from spanscore.contracts import Emitter, SendsInOrder


class LedgerSubscriber(Protocol):
    """Keeps the data of traces until they are done: the storage, and the offsets of Kafka."""

    @property
    def keeps_pauses(self) -> bool:
        """Whether a trace that is held because its run pauses is not done for it."""

    def scored(self, trace_id: bytes) -> None:
        """Called when a trace is scored but still needed: its reports are not sent yet, or late spans opened it."""

    def done(self, trace_id: bytes) -> None:
        """Called when the data of a trace so far is no longer needed."""


class Ledger:
    """The state of each trace (open, scored but not sent, paused, or done). It notifies the subscribers of changes.

    A trace is needed from its first span on until it is scored, and every emitter that sends in order has sent or
    dropped the items that it had queued by then. Late spans make it needed again. Belongs to the owner of the engine.

    Args:
        emitters: the emitters of reports.
        is_open: returns whether a trace is open, or waits for its scores.
        is_paused: returns whether a closed trace is held, because its run pauses.
    """

    def __init__(
        self,
        emitters: Iterable[Emitter],
        is_open: Callable[[bytes], bool],
        is_paused: Callable[[bytes], bool] = lambda _: False,
    ) -> None:
        self._senders: Final = [emitter for emitter in emitters if isinstance(emitter, SendsInOrder)]
        self._is_open: Final = is_open
        self._is_paused: Final = is_paused
        self._subscribers: Final[list[LedgerSubscriber]] = []
        self._on_their_way: Final[deque[tuple[bytes, list[float]]]] = deque()
        """Traces, with the number of items that each emitter had queued when they were scored."""
        self._unsent: Final[Counter[bytes]] = Counter()  # a trace may wait with each of its revisions
        self._noted: Final[set[bytes]] = set()
        """Traces in which a run pauses, noted before their reports are emitted."""
        self._is_sending = True

    def subscribe(self, subscriber: LedgerSubscriber) -> None:
        """Notify a subscriber from now on of scored and of done traces."""
        self._subscribers.append(subscriber)

    def is_needed(self, trace_id: bytes) -> bool:
        """Return whether a trace is not done yet; one whose run pauses is."""
        return trace_id in self._unsent or self._is_open(trace_id)

    def is_paused(self, trace_id: bytes) -> bool:
        """Return whether the data of a trace is only kept because its run pauses."""
        return self._is_paused(trace_id) and not self.is_needed(trace_id)

    def is_kept(self, trace_id: bytes) -> bool:
        """Return whether the data of a trace must be kept: it is not done yet, or its run pauses."""
        return self._is_paused(trace_id) or self.is_needed(trace_id)

    def paused(self, trace_id: bytes) -> None:
        """Note that the run of a trace pauses, before its reports are emitted.

        If the process is killed between the two, the next one makes these reports again, and the continuation is a
        further revision, as it would have been here. Noted later, the continuation could become a part of them.
        """
        self._noted.add(trace_id)
        for subscriber in self._subscribers:
            if subscriber.keeps_pauses:
                subscriber.scored(trace_id)

    def scored(self, trace_id: bytes) -> None:
        """Note that a trace was scored. It may be open again: a span that arrived since then is not in these scores."""
        progress = [_progress(sender) for sender in self._senders]
        if any(queued != settled for queued, settled in progress):
            self._on_their_way.append((trace_id, [queued for queued, _ in progress]))
            self._unsent[trace_id] += 1
        is_noted = trace_id in self._noted
        self._noted.discard(trace_id)
        self._notify(trace_id, is_noted=is_noted)

    def gave_up(self, trace_id: bytes) -> None:
        """Note that a trace is no longer held for the case that its run continues."""
        if not self.is_needed(trace_id):
            self._notify(trace_id)

    def settle(self) -> None:
        """Check what emitters have sent, and notify subscribers of done traces. Call it about every second."""
        settled = [_progress(sender)[1] for sender in self._senders]
        while self._is_sending and self._on_their_way:
            trace_id, marks = self._on_their_way[0]
            if not all(mark <= so_far for mark, so_far in zip(marks, settled, strict=True)):
                break
            self._on_their_way.popleft()
            self._unsent[trace_id] -= 1
            if self._unsent[trace_id]:
                continue
            del self._unsent[trace_id]
            if not self._is_open(trace_id):
                self._notify(trace_id)

    def _notify(self, trace_id: bytes, *, is_noted: bool = False) -> None:
        is_needed, is_paused = self.is_needed(trace_id), self._is_paused(trace_id)
        for subscriber in self._subscribers:
            if not is_needed and not (is_paused and subscriber.keeps_pauses):
                subscriber.done(trace_id)
            elif not (is_noted and subscriber.keeps_pauses):
                subscriber.scored(trace_id)

    def keep_unsent(self) -> None:
        """Take nothing for sent from now on: emitters were closed before they had sent all."""
        self._is_sending = False


def _progress(sender: SendsInOrder) -> tuple[float, float]:
    try:
        queued, settled = sender.progress
    except Exception:  # noqa: BLE001 - the border to plug-ins: for one that cannot report it, nothing is kept
        return 0, math.inf
    return queued, settled
