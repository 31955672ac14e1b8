"""What all reports of a run come to, evaluator by evaluator. Its size does not grow with their number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from spanscore.model import Report
from spanscore.tally import Tally

_ROUNDING: Final = 1e-12


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
            self.tallies[evaluation.name].add(evaluation.outcome)

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
