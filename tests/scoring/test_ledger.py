"""Which traces are needed, and who is told."""

from __future__ import annotations

from spanscore.model import Report
from spanscore.scoring.ledger import Ledger

TRACE = bytes(16)


class Queue:
    """An emitter that counts what it was given; `settled` is how much of it is sent."""

    def __init__(self) -> None:
        self.queued = self.settled = 0

    @property
    def progress(self) -> tuple[int, int]:
        """How much was queued, and how much of it is sent."""
        return self.queued, self.settled

    def emit(self, report: Report) -> None:
        """Take a report."""
        self.queued += 1

    def flush(self, timeout_s: float) -> bool:
        """Send nothing."""
        return True

    def close(self, timeout_s: float) -> bool:
        """Send nothing."""
        return True


class Told:
    """Notes what it is told."""

    def __init__(self, *, keeps_pauses: bool = False) -> None:
        self.told: list[str] = []
        self.keeps_pauses = keeps_pauses

    def scored(self, trace_id: bytes) -> None:
        """Note it."""
        self.told.append("scored")

    def done(self, trace_id: bytes) -> None:
        """Note it."""
        self.told.append("done")


def test_a_trace_is_done_with_when_its_last_revision_is_sent() -> None:
    """Late spans have it scored again while its first report waits: what it keeps is needed for the second, too."""
    queue, told = Queue(), Told()
    ledger = Ledger([queue], lambda _: False)
    ledger.subscribe(told)
    for _ in range(2):
        queue.queued += 1
        ledger.scored(TRACE)

    for settled, is_needed in ((1, True), (2, False)):
        queue.settled = settled
        ledger.settle()
        assert is_needed == ledger.is_needed(TRACE)
    assert ["scored", "scored", "done"] == told.told


def test_a_trace_that_is_open_again_is_not_done_with() -> None:
    """Neither when it is scored, nor when its reports are sent: its next revision is."""
    queue, told, open_traces = Queue(), Told(), {TRACE}
    ledger = Ledger([queue], open_traces.__contains__)
    ledger.subscribe(told)
    ledger.scored(TRACE)
    queue.queued = 1
    ledger.scored(TRACE)
    queue.settled = 1
    ledger.settle()
    assert (["scored", "scored"], True) == (told.told, ledger.is_needed(TRACE))
    open_traces.clear()
    ledger.scored(TRACE)

    assert (["scored", "scored", "done"], False) == (told.told, ledger.is_needed(TRACE))


def test_what_was_not_sent_at_the_end_stays_needed() -> None:
    """An emitter that is closed gives up what it holds: nobody takes that for sent."""
    queue, told = Queue(), Told()
    ledger = Ledger([queue], lambda _: False)
    ledger.subscribe(told)
    queue.queued = 1
    ledger.scored(TRACE)
    ledger.keep_unsent()
    queue.settled = 1
    ledger.settle()

    assert (["scored"], True) == (told.told, ledger.is_needed(TRACE))


def test_without_a_queue_a_trace_is_done_with_at_once() -> None:
    """All who keep something are told, in whatever order they came."""
    subscribers = [Told(), Told()]
    ledger = Ledger([], lambda _: False)
    for subscriber in subscribers:
        ledger.subscribe(subscriber)
    ledger.scored(TRACE)

    assert [["done"], ["done"]] == [subscriber.told for subscriber in subscribers]


def test_a_pause_is_noted_before_its_reports_are_sent() -> None:
    """Once, and by those who keep pauses: after a kill between the two, the continuation is a further revision."""
    storage, offsets = Told(keeps_pauses=True), Told()
    ledger = Ledger([], lambda _: False, lambda _: True)
    for subscriber in (storage, offsets):
        ledger.subscribe(subscriber)
    ledger.paused(TRACE)
    assert (["scored"], []) == (storage.told, offsets.told)
    ledger.scored(TRACE)
    assert (["scored"], ["done"]) == (storage.told, offsets.told)
    ledger.scored(TRACE)
    assert ["scored", "scored"] == storage.told


class Broken(Queue):
    """An emitter that cannot say how far it is."""

    @property
    def progress(self) -> tuple[int, int]:
        """Raise, but for the one who asks whether it is there."""
        if self.queued:
            raise ZeroDivisionError
        return 0, 0


def test_one_that_cannot_tell_keeps_nothing_for_ever() -> None:
    """A fault of a plug-in costs neither the scores of others nor the room on the disk."""
    broken, told = Broken(), Told()
    ledger = Ledger([broken], lambda _: False)
    ledger.subscribe(told)
    broken.queued = 1
    ledger.scored(TRACE)
    ledger.settle()

    assert (["scored", "done"], False) == (told.told, ledger.is_needed(TRACE))
