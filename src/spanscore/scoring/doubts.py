"""Outcomes of a run of which some earlier calls are in doubt: an evaluator counts only where they make no difference.

The first model of a trace that continues a run is sent the run's earlier calls. Of some, nothing shows whether they
were made; others were refused by a person.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias

from spanscore.model import Failed, Outcome, Score, Skipped, ToolCall, Trajectory, named

OUTCOMES: Final = (Score, Skipped, Failed)


class PendingOutcome(Protocol):
    """The future outcome of an evaluator that runs elsewhere; a `concurrent.futures.Future` is one."""

    def done(self) -> bool:
        """Return whether the outcome is available."""

    def result(self, timeout: float | None = None, /) -> Outcome:
        """Wait for the outcome. Raises TimeoutError after the timeout."""

    def add_done_callback(self, callback: Callable[[Any], object], /) -> None:
        """Have something called when the answer is here, on any thread."""


Answer: TypeAlias = Outcome | PendingOutcome


def with_doubts(trajectory: Trajectory, evaluate: Callable[[Trajectory], Answer]) -> Answer:
    """Return the outcome of a run, or the reason why its earlier calls do not allow one.

    Args:
        trajectory: the run.
        evaluate: evaluates a trajectory, here or elsewhere.
    """
    certain = evaluate(trajectory)
    if not (trajectory.uncertain or trajectory.refused):
        return certain
    uncertain = evaluate(trajectory.having_made(trajectory.uncertain)) if trajectory.uncertain else certain
    refused = evaluate(trajectory.having_made(trajectory.refused)) if trajectory.refused else certain
    answers = _Doubtful(trajectory, (certain, uncertain, refused))
    return answers.result() if answers.done() else answers


class _Doubtful:
    """The outcome of a run that was evaluated three times: as it is, with uncertain calls, and with refused ones."""

    def __init__(self, trajectory: Trajectory, answers: Sequence[Answer]) -> None:
        self._trajectory: Final = trajectory
        self._answers: Final = answers
        self._pending: Final = [
            answer for answer in {id(answer): answer for answer in answers}.values() if not isinstance(answer, OUTCOMES)
        ]

    def done(self) -> bool:
        return all(answer.done() for answer in self._pending)

    def result(self, timeout: float | None = None, /) -> Outcome:
        certain, uncertain, refused = (
            answer if isinstance(answer, OUTCOMES) else answer.result(timeout) for answer in self._answers
        )
        if _label(certain) != _label(uncertain):
            return Skipped(f"whether {_tools(self._trajectory.uncertain)} was made before the pause cannot be told")
        if (_label(certain), _label(refused)) == (False, True):
            return Skipped(f"{_tools(self._trajectory.refused)} was refused")
        return certain

    def add_done_callback(self, callback: Callable[[Any], object], /) -> None:
        for answer in self._pending:
            answer.add_done_callback(callback)


def _label(outcome: Outcome) -> bool | None:
    return outcome.passed if isinstance(outcome, Score) else None


def _tools(calls: Sequence[ToolCall]) -> str:
    return named(call.name for call in calls)
