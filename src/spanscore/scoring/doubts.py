"""Outcomes of a run of which some calls are in doubt: an evaluator counts only where they make no difference.

The first model of a trace that continues a run is sent the run's earlier calls. Of some, nothing shows whether they
were made; others were refused by a person. A call of this trace may have been refused if content, which would show
that, is not recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any, Final, Protocol, TypeAlias

from spanscore.model import Failed, Outcome, Score, Skipped, ToolCall, Trajectory, named

OUTCOMES: Final = (Score, Skipped, Failed)

_MAX_DOUBTED: Final = 3
"""So many calls that may have been refused are left out in each combination; of more, all, each, and all but each."""
_MAX_UNCERTAIN: Final = 8
"""So many uncertain calls are added one by one, as the last ones may have been refused; more are added only together:
a specialist may have been handed thousands."""


class PendingOutcome(Protocol):
    """The future outcome of an evaluator that runs elsewhere; a `concurrent.futures.Future` is one."""

    def done(self) -> bool:
        """Return whether the outcome is available."""

    def result(self, timeout: float | None = None, /) -> Outcome:
        """Wait for the outcome. Raises TimeoutError after the timeout."""

    def add_done_callback(self, callback: Callable[[Any], object], /) -> None:
        """Have something called when the answer is here, on any thread."""


Answer: TypeAlias = Outcome | PendingOutcome


def is_doubtful(trajectory: Trajectory) -> bool:
    """Return whether some calls of a run are in doubt."""
    if trajectory.uncertain or trajectory.refused or trajectory.reordered:
        return True
    return any(call.may_be_refused or call.may_have_failed for call in trajectory.calls)


def with_doubts(trajectory: Trajectory, evaluate: Callable[[Trajectory], Answer]) -> Answer:
    """Return the outcome of a doubtful run, or the reason why its earlier calls do not allow one.

    Args:
        trajectory: the run.
        evaluate: evaluates a trajectory, here or elsewhere.
    """
    certain = evaluate(trajectory)
    doubted = [index for index, call in enumerate(trajectory.calls) if call.may_be_refused]
    may_have_failed = any(call.may_have_failed for call in trajectory.calls)
    refused = evaluate(trajectory.having_made(trajectory.refused)) if trajectory.refused else certain
    count = len(trajectory.uncertain)
    made = range(1, count + 1) if count <= _MAX_UNCERTAIN else (count,)
    uncertain = [evaluate(trajectory.having_made(trajectory.uncertain[:each])) for each in made]
    without = [
        evaluate(trajectory.keeping(index for index in range(len(trajectory.calls)) if index not in left_out))
        for left_out in _left_out(doubted)
    ]
    failed = evaluate(trajectory.having_failed()) if may_have_failed else certain
    waited = evaluate(trajectory.having_waited()) if trajectory.reordered else certain
    answers = _Doubtful(trajectory, (certain, refused, failed, waited), uncertain, without)
    return answers.result() if answers.done() else answers


def _left_out(doubted: Sequence[int]) -> Iterator[frozenset[int]]:
    """Yield the calls that were refused, for each possibility that is looked at."""
    if len(doubted) <= _MAX_DOUBTED:
        for count in range(1, len(doubted) + 1):
            yield from map(frozenset, combinations(doubted, count))
        return
    every = frozenset(doubted)
    yield every
    for index in doubted:
        yield from (frozenset({index}), every - {index})


class _Doubtful:
    """The outcome of a run that was evaluated several times.

    As it is, with refused calls, with failures that may have been, in another order; with uncertain calls, and without
    calls that may have been refused.
    """

    def __init__(
        self, trajectory: Trajectory, known: Sequence[Answer], uncertain: Sequence[Answer], without: Sequence[Answer]
    ) -> None:
        self._trajectory: Final = trajectory
        self._known: Final = known
        self._uncertain: Final = uncertain
        self._without: Final = without
        answers = (*known, *uncertain, *without)
        self._pending: Final = [
            answer for answer in {id(answer): answer for answer in answers}.values() if not isinstance(answer, OUTCOMES)
        ]

    def done(self) -> bool:
        return all(answer.done() for answer in self._pending)

    def result(self, timeout: float | None = None, /) -> Outcome:
        certain, refused, failed, waited = _outcomes(self._known, timeout)
        if any(_label(certain) != _label(each) for each in _outcomes(self._uncertain, timeout)):
            return Skipped(f"whether {_tools(self._trajectory.uncertain)} was made before the pause cannot be told")
        if _label(certain) != _label(waited):
            calls = self._trajectory.calls
            moved = [calls[index] for place, index in enumerate(self._trajectory.reordered) if place != index]
            return Skipped(f"the order of {_tools(moved)} before the pause cannot be told")
        if any(_label(certain) != _label(each) for each in _outcomes(self._without, timeout)):
            doubted = [call for call in self._trajectory.calls if call.may_be_refused]
            return Skipped(f"whether {_tools(doubted)} was made cannot be told")
        if _label(certain) != _label(failed):
            doubted = [call for call in self._trajectory.calls if call.may_have_failed]
            return Skipped(f"whether {_tools(doubted)} failed cannot be told")
        if (_label(certain), _label(refused)) == (False, True):
            return Skipped(f"{_tools(self._trajectory.refused)} was refused")
        return certain

    def add_done_callback(self, callback: Callable[[Any], object], /) -> None:
        for answer in self._pending:
            answer.add_done_callback(callback)


def _outcomes(answers: Sequence[Answer], timeout: float | None) -> list[Outcome]:
    return [answer if isinstance(answer, OUTCOMES) else answer.result(timeout) for answer in answers]


def _label(outcome: Outcome) -> bool | None:
    return outcome.passed if isinstance(outcome, Score) else None


def _tools(calls: Sequence[ToolCall]) -> str:
    return named(call.name for call in calls)
