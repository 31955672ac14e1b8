"""What all reports of a run come to, evaluator by evaluator. Its size does not grow with their number."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, assert_never

from spanscore.model import Failed, Report, Score, Skipped

_ROUNDING: Final = 1e-12


@dataclass(slots=True)
class Tally:
    """What one evaluator said of all trajectories."""

    type: str
    passed: int = 0
    not_passed: int = 0
    skipped: int = 0
    failed: int = 0
    total: float = 0.0

    @property
    def scored(self) -> int:
        """How many trajectories have a score."""
        return self.passed + self.not_passed

    @property
    def mean(self) -> float | None:
        """The mean score; None when nothing was scored."""
        return self.total / self.scored if self.scored else None


class Summary:
    """Counts reports.

    Args:
        evaluators: name and type of every evaluator that runs.
    """

    def __init__(self, evaluators: Iterable[tuple[str, str]]) -> None:
        self.tallies: Final = {name: Tally(kind) for name, kind in evaluators}
        self.trajectories = 0
        self.failing = 0
        self.tool_calls = 0

    def add(self, report: Report) -> None:
        """Count one report."""
        self.trajectories += 1
        self.tool_calls += len(report.trajectory.calls)
        self.failing += report.label == "fail"
        for evaluation in report.evaluations:
            tally = self.tallies[evaluation.name]
            match evaluation.outcome:
                case Score(value, passed):
                    tally.total += value
                    tally.passed += passed
                    tally.not_passed += not passed
                case Skipped():
                    tally.skipped += 1
                case Failed():
                    tally.failed += 1
                case _:
                    assert_never(evaluation.outcome)

    @property
    def passed(self) -> bool:
        """Whether every trajectory passed every evaluator that scored it, and none went wrong."""
        return not self.failing

    def reaches(self, mean: float) -> bool:
        """Whether the mean score of every evaluator is at least this, and none went wrong."""
        return not any(
            tally.failed or (tally.mean is not None and tally.mean < mean - _ROUNDING)
            for tally in self.tallies.values()
        )
