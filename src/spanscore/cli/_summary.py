"""What all reports of a run come to, evaluator by evaluator. Its size does not grow with their number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from spanscore.cli._matched import Matched
from spanscore.config import ByCase
from spanscore.model import Report, Skipped
from spanscore.pipeline import EvaluatorEntry
from spanscore.printable import printable
from spanscore.tally import Tally

_ROUNDING: Final = 1e-12
_REASONS_KEPT: Final = 1_000
_REASONS_TOLD: Final = 3
_CASES_TOLD: Final = 20
_LINE_WIDTH: Final = 1_000


class Summary:
    """Counts reports.

    Args:
        entries: every evaluator that runs.
        is_part: whether only a part of what there is was asked for.
    """

    def __init__(self, entries: Iterable[EvaluatorEntry], *, is_part: bool = False) -> None:
        self._is_part: Final = is_part
        entries = tuple(entries)
        self.tallies: Final = {entry.name: Tally(entry.type) for entry in entries}
        self.trajectories = 0
        self.failing = 0
        self.tool_calls = 0
        self.problems: list[str] = []
        """What could not be read, or was asked for and not found: set when all reports are in."""
        self._recognised = 0
        self._matched: Final = {entry.name: Matched(entry) for entry in entries}
        self._datasets: Final = {entry.name: entry.resolve for entry in entries if isinstance(entry.resolve, ByCase)}
        self._reasons: Final = {entry.name: Counter[str]() for entry in entries}

    def add(self, report: Report) -> None:
        """Count one report."""
        self.trajectories += 1
        self.tool_calls += len(report.trajectory.calls)
        self._recognised += report.trajectory.recognised
        self.failing += report.label == "fail"
        for evaluation in report.evaluations:
            self.tallies[evaluation.name].add(evaluation.outcome)
            if isinstance(evaluation.outcome, Skipped):
                reasons = self._reasons[evaluation.name]
                if len(reasons) < _REASONS_KEPT or evaluation.outcome.reason in reasons:
                    reasons[evaluation.outcome.reason] += 1
        for matched in self._matched.values():
            matched.add(report.trajectory)

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

    def unscored(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each evaluator that scored no trajectory, and why: it has checked nothing."""
        for name, tally in self.tallies.items() if self.trajectories else ():
            if tally.scored or tally.failed:
                continue
            yield name, f"skipped all {tally.skipped}" if tally.skipped else self._matched[name].why_none()

    def unchecked_cases(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each evaluator with a dataset and each of its cases that could not be checked, and why.

        A run may be of a case that has no row, and a row of a case that no run was of. The latter says nothing where
        only a part of the recording was asked for.
        """
        for name, dataset in self._datasets.items():
            yield from ((name, why) for why in dataset.missed())
            yield from ((name, why) for why in (() if self._is_part else dataset.unused()))

    def unchecked(self) -> list[str]:
        """Return a line for each case and each evaluator that was not checked; of many cases the first are named."""
        cases = [f"{name} did not check a case: {why}" for name, why in self.unchecked_cases()]
        if len(cases) > _CASES_TOLD:
            more = len(cases) - _CASES_TOLD
            cases[_CASES_TOLD:] = [f"... and {more} more case{'s' if more > 1 else ''}"]
        lines = [*cases, *(f"{name} checked nothing: {why}" for name, why in self.unscored())]
        return [printable(line, _LINE_WIDTH) for line in lines]

    def remarks(self) -> list[str]:
        """Return what is no failure, and yet may be a mistake."""
        if self.tool_calls or not self._recognised:
            return []
        what = "no tool call was found: if these agents call tools, no dialect knows how their spans tell it"
        return [f"{what}; 'spanscore list dialects' has those that are known"]

    def skipped(self) -> Iterator[tuple[str, int, str]]:
        """Yield the name of each evaluator that skipped trajectories, how many, and why, most common reasons first."""
        for name, reasons in self._reasons.items():
            if reasons:
                told = [f"{reason} ({count}x)" for reason, count in reasons.most_common(_REASONS_TOLD)]
                more = len(reasons) - _REASONS_TOLD
                yield name, self.tallies[name].skipped, "; ".join(told) + (f"; {more} more reasons" if more > 0 else "")
