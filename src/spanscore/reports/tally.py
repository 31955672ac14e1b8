"""The counts of one evaluator so far. Its size does not grow with the number of trajectories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from spanscore.model import Failed, Outcome, Score, Skipped

COLUMNS: Final = ("passed", "failed", "skipped", "errors", "mean")
"""The headings of `Tally.cells` in tables for people."""


@dataclass(slots=True)
class Tally:
    """The counts of one evaluator's outcomes."""

    type: str
    informational: bool = False
    """Whether it is only measured, and never passes or fails a run."""
    passed: int = 0
    not_passed: int = 0
    skipped: int = 0
    failed: int = 0
    measured: int = 0
    """Scores of an informational evaluator."""
    total: float = 0.0

    def add(self, outcome: Outcome) -> None:
        """Count one outcome."""
        if isinstance(outcome, Score):
            self.total += outcome.value
            self.measured += self.informational
            self.passed += outcome.passed and not self.informational
            self.not_passed += not (outcome.passed or self.informational)
        self.skipped += isinstance(outcome, Skipped)
        self.failed += isinstance(outcome, Failed)

    @property
    def scored(self) -> int:
        """The number of trajectories with a score."""
        return self.passed + self.not_passed + self.measured

    @property
    def mean(self) -> float | None:
        """The mean score; None when nothing was scored."""
        return self.total / self.scored if self.scored else None

    @property
    def cells(self) -> tuple[str, ...]:
        """The counts and the mean as text."""
        mean = "-" if self.mean is None else f"{self.mean:.3f}"
        decided = ("-", "-") if self.informational else (str(self.passed), str(self.not_passed))
        return *decided, str(self.skipped), str(self.failed), mean

    @property
    def style(self) -> str:
        """The colour of its row: red if a trajectory did not pass or the evaluator had an error."""
        return "red" if self.not_passed or self.failed else ""
