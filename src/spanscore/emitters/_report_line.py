"""A report as one line of text."""

from __future__ import annotations

import time
from typing import Final, assert_never

from spanscore.messages.printable import printable
from spanscore.model import CloseReason, Evaluation, Failed, Report, Score, Skipped
from spanscore.reports.cases import conversation_name
from spanscore.reports.evaluation_event import failure_text

_MARKS: Final = {"pass": "✓", "fail": "✗", "not_evaluated": "-"}
_FULL: Final = frozenset({CloseReason.SPAN_LIMIT, CloseReason.SIZE_LIMIT})
_SENTENCE_WIDTH: Final = 300


def line(report: Report, time_s: float) -> str:
    """Return a report as one line: time, verdict, trace, agent, scores, and the reason of a failure.

    One that takes the place of an earlier report, because spans or logs came late, says which revision it is.
    """
    trajectory = report.trajectory
    words = [
        time.strftime("%H:%M:%S", time.localtime(time_s)),
        _MARKS[report.label],
        trajectory.trace_id.hex() or "-",
        *([printable(name)] if (name := conversation_name(report)) else []),
        printable(trajectory.agent or trajectory.service or "-"),
        *(f"{printable(evaluation.name)}={_verdict(evaluation)}" for evaluation in report.evaluations),
    ]
    if not report.complete:
        rest = ": later calls were not scored" if report.close_reason in _FULL else ""
        seen = "passes in part" if report.label == "pass" else "incomplete"
        words.append(f"{seen} ({printable(report.incomplete or '')}{rest})")
    if report.revision and report.conversation is None:
        words.append(f"revision {report.revision}")
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
    """Return why it did not pass, or, if no evaluator has a score, why this one has none."""
    match evaluation.outcome:
        case Score(_, False) as score if not evaluation.informational:
            told = report.told(score)
        case Failed() as failed:
            told = failure_text(report, failed)
        case Skipped(reason) if report.label == "not_evaluated":
            told = reason
        case _:
            return ""
    return f"{printable(evaluation.name)}: {printable(told.rstrip('.'), _SENTENCE_WIDTH)}"
