"""Tests and intervals of the difference between two versions: new minus base.

Every test is one-sided and exact, or a permutation within each case: runs of a case are exchanged with each other only.
With one run a case and version that is McNemar's test, or a paired permutation test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from scipy import special, stats

from spanscore.runs.diff.samples import Sample, Stratum
from spanscore.runs.repeats import wilson_interval

_MOST_FOR_BOSCHLOO: Final = 10_000
"""Beyond so many combinations of both sides its advantage over Fisher's test is gone, and its time is not."""
_RESAMPLES: Final = 9_999
_AT_ONCE: Final = 2_000_000
"""The most numbers in memory at a time."""
_SEED: Final = 20_261_123
"""Fixed, so that the same runs give the same text."""
_FEW_CASES: Final = 5
_SOME: Final = 2
"""The fewest numbers for which a spread is computed."""


class Chances(NamedTuple):
    """The probability that a difference at least as large arises by chance, in each direction."""

    worse: float
    better: float


class Interval(NamedTuple):
    """A difference with its confidence interval."""

    difference: float
    low: float
    high: float


def pass_test(strata: Sequence[Stratum], *, is_quick: bool = False) -> Chances:
    """Compare the passed runs: exactly, given how many passed of each case; with no cases by Boschloo's test.

    R. D. Boschloo, "Raised conditional level of significance for the 2x2-table", 1970; Q. McNemar, 1947; for several
    runs a case, the exact test of Cochran, Mantel and Haenszel.
    """
    tables = [(_passed(each.new), len(each.new), _passed(each.base), len(each.base)) for each in strata]
    if len(tables) == 1:
        new, new_runs, base, base_runs = tables[0]
        return Chances(
            _lower(new, new_runs, base, base_runs, is_quick=is_quick),
            _lower(base, base_runs, new, new_runs, is_quick=is_quick),
        )
    low, probabilities = 0, np.ones(1)
    for new, new_runs, base, base_runs in tables:
        passed, runs = new + base, new_runs + base_runs
        least, most = max(0, passed - base_runs), min(passed, new_runs)
        probabilities = np.convolve(probabilities, _hypergeometric(least, most, runs, passed, new_runs))
        low += least
    at = sum(table[0] for table in tables) - low
    return Chances(min(1.0, float(probabilities[: at + 1].sum())), min(1.0, float(probabilities[at:].sum())))


def score_test(strata: Sequence[Stratum]) -> Chances:
    """Compare the mean scores by exchanging the runs of each case at random."""
    random = np.random.default_rng(_SEED)
    seen, drawn = 0.0, np.zeros(_RESAMPLES)
    for each in strata:
        values = np.array([sample.value for sample in (*each.new, *each.base)])
        count = len(each.new)
        seen += _difference(values[:count].sum(), values.sum(), count, len(values))
        drawn += _difference(_sums(values, count, random), values.sum(), count, len(values))
    tiny = 1e-12 * max(1.0, abs(seen))
    lower, higher = (drawn <= seen + tiny).sum(), (drawn >= seen - tiny).sum()
    return Chances((1 + int(lower)) / (1 + _RESAMPLES), (1 + int(higher)) / (1 + _RESAMPLES))


def pass_interval(strata: Sequence[Stratum], confidence: float) -> Interval:
    """Return the difference of the pass rates, with its interval.

    R. G. Newcombe, "Interval estimation for the difference between independent proportions" and "Improved confidence
    intervals for the difference between binomial proportions based on paired data", 1998: method 10 of each. Several
    runs a case are those of Student's t over the cases.
    """
    if len(strata) > 1:
        if all(len(each.base) == len(each.new) == 1 for each in strata):
            return _paired_newcombe(strata, confidence)
        differences = [pass_rate(each.new) - pass_rate(each.base) for each in strata]
        if len(strata) >= _FEW_CASES and np.ptp(differences):
            return _over_cases(differences, confidence)
    base = [sample for each in strata for sample in each.base]
    new = [sample for each in strata for sample in each.new]
    one, two = _wilson(_passed(new), len(new), confidence), _wilson(_passed(base), len(base), confidence)
    return _newcombe(one, two, 0.0)


def score_interval(strata: Sequence[Stratum], confidence: float) -> Interval:
    """Return the difference of the mean scores, with its interval by Student's t, over cases where there are some."""
    if len(strata) >= _FEW_CASES:
        return _over_cases([mean_score(each.new) - mean_score(each.base) for each in strata], confidence)
    sides = (
        [sample.value for each in strata for sample in each.new],
        [sample.value for each in strata for sample in each.base],
    )
    if {0.0, 1.0}.issuperset(sides[0] + sides[1]):
        new, base = (_wilson(round(sum(values)), len(values), confidence) for values in sides)
        return _newcombe(new, base, 0.0)
    difference = float(np.mean(sides[0]) - np.mean(sides[1]))
    if min(map(len, sides)) < _SOME:
        return Interval(difference, -1.0, 1.0)
    errors = [float(np.var(values, ddof=1)) / len(values) for values in sides]
    if not sum(errors):
        return Interval(difference, difference, difference)
    # B. L. Welch, "The generalization of Student's problem when several different population variances are involved".
    freedom = sum(errors) ** 2 / sum(error**2 / (len(values) - 1) for error, values in zip(errors, sides, strict=True))
    reach = float(stats.t.ppf((1 + confidence) / 2, freedom)) * math.sqrt(sum(errors))
    return Interval(difference, max(-1.0, difference - reach), min(1.0, difference + reach))


def holm(chances: Sequence[float]) -> list[float]:
    """Return chances adjusted for their number, so that one of them is below a bound by chance as rarely as one alone.

    S. Holm, "A simple sequentially rejective multiple test procedure", 1979.
    """
    order = sorted(range(len(chances)), key=lambda index: chances[index])
    adjusted = [1.0] * len(chances)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(chances) - rank) * chances[index]))
        adjusted[index] = highest
    return adjusted


def _lower(passed: int, runs: int, other: int, other_runs: int, *, is_quick: bool) -> float:
    """Return how likely it is by chance that so few pass, against others; quickly by Fisher's test."""
    if passed * other_runs >= other * runs:
        return 1.0
    table = [[passed, other], [runs - passed, other_runs - other]]
    if not is_quick and runs * other_runs <= _MOST_FOR_BOSCHLOO:
        return float(stats.boschloo_exact(table, alternative="less").pvalue)
    return float(stats.fisher_exact(table, alternative="less").pvalue)


@lru_cache(maxsize=4_096)
def _hypergeometric(least: int, most: int, runs: int, passed: int, new_runs: int) -> Any:
    """Return the probability of each number of passed runs of the new version; many cases have the same."""
    return stats.hypergeom.pmf(np.arange(least, most + 1), runs, passed, new_runs)


def _paired_newcombe(strata: Sequence[Stratum], confidence: float) -> Interval:
    pairs = [(each.new[0].passed, each.base[0].passed) for each in strata]
    both, only_new = pairs.count((True, True)), pairs.count((True, False))
    only_base, neither = pairs.count((False, True)), pairs.count((False, False))
    one = _wilson(both + only_new, len(pairs), confidence)
    two = _wilson(both + only_base, len(pairs), confidence)
    margins = (both + only_new) * (only_base + neither) * (both + only_base) * (only_new + neither)
    cross = float(both * neither - only_new * only_base)
    if cross > 0:
        cross = max(0.0, cross - len(pairs) / 2)
    return _newcombe(one, two, cross / math.sqrt(margins) if margins else 0.0)


def _newcombe(new: Interval, base: Interval, correlation: float) -> Interval:
    difference = new.difference - base.difference

    def reach(near: float, far: float) -> float:
        return math.sqrt(max(0.0, near * near - 2 * correlation * near * far + far * far))

    low = reach(new.difference - new.low, base.high - base.difference)
    high = reach(base.difference - base.low, new.high - new.difference)
    return Interval(difference, difference - low, difference + high)


def _wilson(passed: int, runs: int, confidence: float) -> Interval:
    return Interval(passed / runs, *wilson_interval(passed, runs, float(special.ndtri((1 + confidence) / 2))))


def _over_cases(differences: Sequence[float], confidence: float) -> Interval:
    mean, spread = float(np.mean(differences)), float(np.std(differences, ddof=1)) / math.sqrt(len(differences))
    reach = float(stats.t.ppf((1 + confidence) / 2, len(differences) - 1)) * spread
    return Interval(mean, max(-1.0, mean - reach), min(1.0, mean + reach))


def _sums(values: Any, count: int, random: np.random.Generator) -> Any:
    """Return the sums of so many of the values, chosen at random, again and again."""
    rows = max(1, _AT_ONCE // len(values))
    pending, sums = _RESAMPLES, []
    while pending > 0:
        drawn = random.permuted(np.tile(values, (min(rows, pending), 1)), axis=1)
        sums.append(drawn[:, :count].sum(axis=1))
        pending -= rows
    return np.concatenate(sums)


def _difference(of_new: Any, of_all: Any, new: int, runs: int) -> Any:
    """Return the difference of the means of both sides, from the sums of one and of all."""
    return of_new / new - (of_all - of_new) / (runs - new)


def _passed(samples: Sequence[Sample]) -> int:
    return sum(sample.passed for sample in samples)


def pass_rate(samples: Sequence[Sample]) -> float:
    """Return the share of runs that passed."""
    return _passed(samples) / len(samples)


def mean_score(samples: Sequence[Sample]) -> float:
    """Return the mean of the scores."""
    return sum(sample.value for sample in samples) / len(samples)
