"""Scores as lines of text, one for each trajectory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final, TextIO, assert_never

from spanscore.model import Evaluation, Failed, Report, Score, Skipped
from spanscore.reports.evaluation_event import failure_text
from spanscore.sending.outbox import Outbox
from spanscore.wording.printable import printable

CAPACITY: Final = 10_000

_MARKS: Final = {"pass": "✓", "fail": "✗", "not_evaluated": "-"}
_SENTENCE_WIDTH: Final = 300


class Lines:
    """Prints a line for each trajectory, on a thread of its own: whoever reads them may be slow, or stop reading.

    Args:
        out: where to.
        clock: the time in seconds since the Unix epoch.
        capacity: lines that may wait; more are left out and counted.
    """

    def __init__(self, out: TextIO, clock: Callable[[], float], capacity: int = CAPACITY) -> None:
        self.outbox: Final = Outbox(capacity)
        self._out: Final = out
        self._clock: Final = clock
        self._queue: Final[SimpleQueue[str | threading.Event | None]] = SimpleQueue()
        self._thread: Final = threading.Thread(target=self._print, name="spanscore-console", daemon=True)
        self._thread.start()

    def emit(self, report: Report) -> None:
        """Queue a line."""
        if report.trajectory.recognised and self.outbox.put():
            self._queue.put(line(report, self._clock()))

    def flush(self, timeout_s: float) -> bool:
        """Wait until all lines are printed."""
        failures = self.outbox.failures
        printed = threading.Event()
        self._queue.put(printed)
        return printed.wait(timeout_s) and failures == self.outbox.failures

    def close(self, timeout_s: float) -> bool:
        """Wait until all lines are printed, and stop."""
        flushed = self.flush(timeout_s)
        self._queue.put(None)
        return flushed

    def _print(self) -> None:
        while (item := self._queue.get()) is not None:
            if isinstance(item, threading.Event):
                item.set()
                continue
            try:
                self._out.write(_encodable(item, self._out.encoding))
                self._out.flush()
            except (OSError, ValueError) as error:  # nobody reads any more, or the file is closed
                self.outbox.fail(type(error).__name__)
            finally:
                self.outbox.take()


def line(report: Report, time_s: float) -> str:
    """Return a report as one line: when, whether it passed, which trace, whose, the scores, and why not."""
    trajectory = report.trajectory
    words = [
        time.strftime("%H:%M:%S", time.localtime(time_s)),
        _MARKS[report.label],
        trajectory.trace_id.hex() or "-",
        printable(trajectory.agent or trajectory.service or "-"),
        *(f"{printable(evaluation.name)}={_verdict(evaluation)}" for evaluation in report.evaluations),
    ]
    if not report.complete:
        words.append(f"incomplete ({report.close_reason})")
    why = "; ".join(filter(None, (_why(report, each) for each in report.evaluations)))
    if not report.evaluations:
        why = "no evaluator matches it"
    return " ".join(words) + (f"  {why}\n" if why else "\n")


def _verdict(evaluation: Evaluation) -> str:
    match evaluation.outcome:
        case Score(value):
            return f"{value:.4g}"
        case Skipped():
            return "skipped"
        case Failed():
            return "failed"
        case _:
            assert_never(evaluation.outcome)


def _why(report: Report, evaluation: Evaluation) -> str:
    """Return why it did not pass, or, where no evaluator has a score, why this one has none."""
    match evaluation.outcome:
        case Score(_, False) as score:
            told = report.told(score)
        case Failed() as failed:
            told = failure_text(report, failed)
        case Skipped(reason) if report.label == "not_evaluated":
            told = reason
        case _:
            return ""
    return f"{printable(evaluation.name)}: {printable(told.rstrip('.'), _SENTENCE_WIDTH)}"


def _encodable(text: str, encoding: str | None) -> str:
    """Replace what the terminal's encoding does not have."""
    known = encoding or "utf-8"
    return text.encode(known, "backslashreplace").decode(known)
