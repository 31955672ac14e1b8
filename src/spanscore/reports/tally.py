"""What one evaluator has found so far. Its size does not grow with the number of trajectories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from spanscore.model import Failed, Outcome, Score, Skipped


@dataclass(slots=True)
class Tally:
    """Counts what one evaluator says of trajectories."""

    type: str
    passed: int = 0
    not_passed: int = 0
    skipped: int = 0
    failed: int = 0
    total: float = 0.0

    def add(self, outcome: Outcome) -> None:
        """Count one outcome."""
        match outcome:
            case Score(value, passed):
                self.total += value
                self.passed += passed
                self.not_passed += not passed
            case Skipped():
                self.skipped += 1
            case Failed():
                self.failed += 1
            case _:
                assert_never(outcome)

    @property
    def scored(self) -> int:
        """How many trajectories have a score."""
        return self.passed + self.not_passed

    @property
    def mean(self) -> float | None:
        """The mean score; None when nothing was scored."""
        return self.total / self.scored if self.scored else None
