"""Statistics of repeated runs of one case: pass rate, its interval, and the probability that several in a row pass."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from spanscore.model import Report

_Z: Final = 1.959963984540054
"""The 97.5 % quantile of the normal distribution: two of these tails leave 95 %."""


def wilson_interval(passed: int, runs: int, z: float = _Z) -> tuple[float, float]:
    """Return the interval of a pass rate, of 95 % by default, by Wilson's score method without a continuity correction.

    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927. Its ends stay from 0
    to 1, also for few runs; `runs` is at least 1. A library would be many times the size of these lines.
    """
    rate, square = passed / runs, z * z
    middle = rate + square / (2 * runs)
    spread = z * math.sqrt(rate * (1 - rate) / runs + square / (4 * runs * runs))
    lower, upper = ((middle + sign * spread) / (1 + square / runs) for sign in (-1, 1))
    return (lower if passed else 0.0), (upper if passed < runs else 1.0)  # exact, which rounding is not


@dataclass(slots=True)
class Repeats:
    """The runs of one case so far; its size does not grow with their number."""

    passed: int = 0
    failed: int = 0
    none: int = 0
    """Runs without a verdict: they were not measured, and are in no rate."""

    def add(self, report: Report) -> None:
        """Count a run in."""
        self.passed += report.verdict == "pass"
        self.failed += report.verdict == "fail"
        self.none += report.verdict == "none"

    @property
    def runs(self) -> int:
        """The number of runs."""
        return self.decided + self.none

    @property
    def decided(self) -> int:
        """The number of runs with a verdict."""
        return self.passed + self.failed

    @property
    def pass_rate(self) -> float | None:
        """The share of runs with a verdict that passed; None if no run has a verdict."""
        return self.passed / self.decided if self.decided else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the rate; None where there is none."""
        return wilson_interval(self.passed, self.decided) if self.decided else None

    def pass_hat(self, k: int) -> float | None:
        """Return the estimate of pass^k: that `k` of the runs with a verdict, drawn without putting one back, all pass.

        C(passed, k) / C(decided, k) is unbiased for the probability that `k` independent runs pass. None where fewer
        than `k` runs have a verdict.
        """
        if not 1 <= k <= self.decided:
            return None
        drawn = range(min(k, self.passed + 1))
        return math.prod((self.passed - each) / (self.decided - each) for each in drawn)

    def why_below(self, bound: float) -> str:
        """Return why the case fails a gate on its pass rate; nothing where it holds."""
        if self.interval is None:
            return "no run has a verdict, which is no pass"
        lower, upper = self.interval
        if self.none:
            return f"{self.none} of {self.runs} runs without a verdict, which is no pass"
        if lower >= bound:
            return ""
        told = f"{self.passed} of {self.decided} runs passed, 95 % interval {lower:.3f} to {upper:.3f}"
        return f"{told}: its lower end is below {bound:g}"
