"""Why a run failed: short texts without content, equal for equal failures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from spanscore.messages.printable import error_type_or_error, label_apart
from spanscore.model import Evaluation, Failed, Report, Score, ToolCall, Trajectory
from spanscore.reports.once import once_a_report

MOST_REASONS: Final = 20
"""An evaluation has no more reasons."""


class Reason(NamedTuple):
    """A reason for which a run failed."""

    evaluator: str
    text: str
    """The evaluator and what is wrong: `refund_order: check_policy was not called`; at most 128 characters."""
    call: int | None = None
    """The index of the first call concerned, in `Trajectory.calls`; None if it is of no call."""
    turn: int | None = None
    """The index of its turn in a conversation, in `ConversationOutline.turns`; None for a run, or without a call."""
    kind: str | None = None
    """The kind of the deviation: `error` if a call failed; None if there is no deviation."""


@once_a_report
def reasons(report: Report) -> tuple[Reason, ...]:
    """Return the reasons for which a run failed, each once: in the order of the evaluations and their deviations.

    Evaluations that passed, were skipped or are informational have none.
    """
    return tuple(each for evaluation in report.evaluations for each in reasons_of(evaluation, report))


def reasons_of(evaluation: Evaluation, report: Report) -> Iterator[Reason]:
    """Yield the reasons of one evaluation of a report, at most 20."""
    if not evaluation.failing:
        return
    if isinstance(evaluation.outcome, Failed):
        yield _reason(evaluation, f"went wrong: {error_type_or_error(evaluation.outcome.error_type)}")
        return
    rows: dict[str, Mapping[str, Any]] = {}
    for row in _deviations(evaluation):
        rows.setdefault(row["reason"], row)
    if not rows:
        yield _reason(evaluation, "failed")
    for text, row in islice(rows.items(), MOST_REASONS):
        call = _call(row, report.trajectory)
        turn = None if call is None or report.conversation is None else report.conversation.turn_of(call)[0]
        yield _reason(evaluation, text, call, turn, row.get("kind"))


def first_reason(evaluation: Evaluation, report: Report) -> str | None:
    """Return the text of the first reason of an evaluation; None if it has none."""
    return next((each.text for each in reasons_of(evaluation, report)), None)


def _reason(
    evaluation: Evaluation, text: str, call: int | None = None, turn: int | None = None, kind: str | None = None
) -> Reason:
    return Reason(evaluation.name, label_apart(f"{evaluation.name}: {text}"), call, turn, kind)


def _deviations(evaluation: Evaluation) -> Iterator[Mapping[str, Any]]:
    """Yield the deviations that have a reason. A plug-in's details may be anything."""
    if isinstance(evaluation.outcome, Score):
        rows = evaluation.outcome.details.get("deviations")
        for row in rows if isinstance(rows, (list, tuple)) else ():
            if isinstance(row, Mapping) and isinstance(row.get("reason"), str):
                yield row


def _call(row: Mapping[str, Any], trajectory: Trajectory) -> int | None:
    """Return the index of the call of a deviation; a plug-in may number the calls that are left for it."""
    index, tool, span_id = row.get("call"), row.get("tool"), row.get("span_id")
    if index is None:
        return None

    def is_it(call: ToolCall) -> bool:
        return call.name == tool and (call.span_id and call.span_id.hex()) == span_id

    calls = trajectory.calls
    if isinstance(index, int) and 0 <= index < len(calls) and is_it(calls[index]):
        return index
    return None if span_id is None else next((place for place, call in enumerate(calls) if is_it(call)), None)
