"""Which traces have reports on their way."""

from __future__ import annotations

from spanscore.model import Report
from spanscore.service.unsent import Unsent

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


def test_a_trace_is_sent_when_its_last_revision_is() -> None:
    """Late spans have it scored again while its first report waits: what it keeps is needed for the second, too."""
    queue = Queue()
    unsent = Unsent([queue])
    for _ in range(2):
        queue.queued += 1
        assert unsent.add(TRACE)

    queue.settled = 1
    assert ([], True) == (unsent.sent(), TRACE in unsent)
    queue.settled = 2
    assert ([TRACE], False) == (unsent.sent(), TRACE in unsent)
