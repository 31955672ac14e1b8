"""The verdict on a new version: better, the same, worse, or inconclusive because of too few runs."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, TypeVar

from spanscore.model import Report
from spanscore.runs.diff.samples import Coverage, Pairing, Stratum, coverage, strata
from spanscore.runs.diff.significance import (
    Chances,
    Interval,
    holm,
    mean_score,
    pass_interval,
    pass_rate,
    pass_test,
    score_interval,
    score_test,
)

_MOST_COUNTED: Final = 20_000
_MOST_CASES: Final = 2_000
"""The most runs, and cases, that are tried: more would take long to compute, and longer to run."""
_FAR_FEWER: Final = 0.5
"""A version of which an evaluator scored less than this part of the other version's share is not called as good."""
_BOTH_VALUES: Final = frozenset({0.0, 1.0})

_T = TypeVar("_T")


class Verdict(StrEnum):
    """The possible verdicts on a new version."""

    WORSE = "worse"
    INCONCLUSIVE = "inconclusive"
    BETTER = "better"
    SAME = "same"


class Measure(StrEnum):
    """The quantity of an evaluator that is compared."""

    PASS_RATE = "pass rate"  # noqa: S105 - no secret
    SCORE = "score"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One measure of one evaluator in both versions."""

    evaluator: str
    measure: Measure
    base: float | None
    """The pass rate, or the mean score; None where nothing was scored."""
    new: float | None
    base_runs: int
    """The runs of the base that are compared."""
    new_runs: int
    base_coverage: Coverage
    new_coverage: Coverage
    interval: Interval | None = None
    """Of the difference, new minus base, with confidence 1 - 2 alpha."""
    chances: Chances | None = None
    """Adjusted for the number of measures that are compared."""
    verdict: Verdict = Verdict.INCONCLUSIVE
    reason: str = ""
    """The reason of the verdict, if the numbers do not show it."""
    decided_by: int | None = None
    """The runs per side that would decide it if the rates stay the same; None if it is decided, if none would, or if
    the new version has not run all cases of the base."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The comparison's question."""

    margin: float = 0.05
    """A difference within it does not matter."""
    alpha: float = 0.05
    """The allowed rate of false verdicts `worse`."""


def compared(
    base: Sequence[Report], new: Sequence[Report], evaluators: Sequence[str], paired: Pairing, settings: Settings
) -> list[Compared]:
    """Return each measure of each evaluator with its verdict.

    Pass rates of all evaluators that are not informational, and mean scores where they are not just 0 and 1.
    """
    found: list[tuple[Compared, Sequence[Stratum]]] = []
    for name in evaluators:
        its = strata(base, new, name, paired)
        covered = coverage(base, name), coverage(new, name)
        samples = [sample for each in its for sample in (*each.base, *each.new)]
        if not samples:
            found.append((_unscored(name, *covered), its))
            continue
        informational = any(
            each.informational for report in (*base, *new) for each in report.evaluations if each.name == name
        )
        if not informational:
            found.append((_measured(name, Measure.PASS_RATE, its, *covered), its))
        if informational or {sample.value for sample in samples} - _BOTH_VALUES:
            found.append((_measured(name, Measure.SCORE, its, *covered), its))
    same_runs = {each.trajectory.trace_id for each in base} == {each.trajectory.trace_id for each in new}
    measures = _decided(found, settings, by_itself=paired.key is not None or same_runs)
    # No number of runs of the other cases decides for those that the new version has not run.
    return [replace(each, decided_by=None) for each in measures] if paired.missing else measures


def overall(measures: Sequence[Compared]) -> Verdict:
    """Return the verdict on the version: worse where one is, then inconclusive, then better, else the same."""
    verdicts = {each.verdict for each in measures}
    return next((verdict for verdict in Verdict if verdict in verdicts), Verdict.INCONCLUSIVE)


def _measured(
    name: str, measure: Measure, its: Sequence[Stratum], base_coverage: Coverage, new_coverage: Coverage
) -> Compared:
    base = [sample for each in its for sample in each.base]
    new = [sample for each in its for sample in each.new]
    mean = pass_rate if measure is Measure.PASS_RATE else mean_score
    return Compared(
        evaluator=name,
        measure=measure,
        base=mean(base),
        new=mean(new),
        base_runs=len(base),
        new_runs=len(new),
        base_coverage=base_coverage,
        new_coverage=new_coverage,
    )


def _unscored(name: str, base: Coverage, new: Coverage) -> Compared:
    reason = f"scored {base.scored} runs of the base and {new.scored} of the new version"
    if base.scored and new.scored:
        reason = "scored no case in both versions"
    return Compared(
        evaluator=name,
        measure=Measure.PASS_RATE,
        base=None,
        new=None,
        base_runs=base.scored,
        new_runs=new.scored,
        base_coverage=base,
        new_coverage=new,
        reason=reason,
    )


def _decided(
    found: Sequence[tuple[Compared, Sequence[Stratum]]], settings: Settings, *, by_itself: bool
) -> list[Compared]:
    tests = [_test(each, its) for each, its in found]
    # What came out the same in every run can be no sign of a difference, and is none of those that are looked for.
    sought = [index for index, raw in enumerate(tests) if min(raw) < 1]
    worse, better = (holm([tests[index][direction] for index in sought]) for direction in (0, 1))
    adjusted = dict.fromkeys(range(len(found)), Chances(1.0, 1.0))
    adjusted |= zip(sought, map(Chances, worse, better), strict=True)
    return [
        each
        if each.base is None
        else _judged(each, its, (tests[index], adjusted[index]), settings, by_itself=by_itself)
        for index, (each, its) in enumerate(found)
    ]


def _test(each: Compared, its: Sequence[Stratum]) -> Chances:
    values = {(sample.passed, sample.value) for stratum in its for sample in (*stratum.base, *stratum.new)}
    if each.base is None or len(values) == 1:
        return Chances(1.0, 1.0)
    return (pass_test if each.measure is Measure.PASS_RATE else score_test)(its)


def _judged(
    each: Compared, its: Sequence[Stratum], tests: tuple[Chances, Chances], settings: Settings, *, by_itself: bool
) -> Compared:
    """Return the measure with its verdict.

    The tests are raw, and adjusted for the number of measures. `by_itself` says whether equal samples are of the same
    case or run, so that equality means no difference.
    """
    raw, adjusted = tests
    is_rate = each.measure is Measure.PASS_RATE
    interval = (pass_interval if is_rate else score_interval)(its, 1 - 2 * settings.alpha)
    differs = not by_itself or any(Counter(stratum.base) != Counter(stratum.new) for stratum in its)
    if not differs and not _are_unlike(each):
        return replace(each, interval=interval, chances=adjusted, verdict=Verdict.SAME, reason="no run differs")
    verdict = _verdict(interval, adjusted, settings)
    found = replace(each, interval=interval, chances=adjusted, verdict=verdict)
    if verdict is not Verdict.WORSE and _are_unlike(each):
        (base, all_base), (new, all_new) = each.base_coverage, each.new_coverage
        reason = f"scored only {base} of {all_base} runs of the base, {new} of {all_new} of the new version"
        return replace(found, verdict=Verdict.INCONCLUSIVE, reason=reason)
    if verdict is Verdict.INCONCLUSIVE:
        return replace(found, decided_by=_runs_that_decide(found, its, interval, raw, settings))
    return found


def _are_unlike(each: Compared) -> bool:
    """Return whether far fewer runs were scored of one version: they may be unlike the others."""
    low, high = sorted([each.base_coverage.share, each.new_coverage.share])
    return low < _FAR_FEWER * high


def _verdict(interval: Interval, chances: Chances, settings: Settings) -> Verdict:
    if interval.low >= -settings.margin and interval.high <= settings.margin:
        return Verdict.SAME
    if chances.better <= settings.alpha:
        return Verdict.BETTER
    if interval.low >= -settings.margin:
        return Verdict.SAME
    return Verdict.WORSE if chances.worse <= settings.alpha else Verdict.INCONCLUSIVE


def _runs_that_decide(
    each: Compared, its: Sequence[Stratum], interval: Interval, raw: Chances, settings: Settings
) -> int | None:
    """Return how many runs a side would decide, about, if what is measured stays as it is.

    Where the new version is below by more than the margin, a test has to say that it is no chance, adjusted as it is
    here. Else the interval has to end above the margin.
    """
    is_rate = each.measure is Measure.PASS_RATE
    if interval.difference <= -settings.margin:
        adjusted = settings.alpha * raw.worse / each.chances.worse if each.chances is not None else settings.alpha

        def is_decided(count: int) -> bool:
            resized = _resized(its, count)
            if is_rate:
                return pass_test(resized, is_quick=True).worse <= adjusted
            return score_interval(resized, 1 - 2 * adjusted).high < 0

    else:
        of = pass_interval if is_rate else score_interval

        def is_decided(count: int) -> bool:
            return of(_resized(its, count), 1 - 2 * settings.alpha).low >= -settings.margin

    most = _MOST_COUNTED if len(its) == 1 else _MOST_CASES
    enough = bisect_left(range(most + 1), x=True, lo=2, key=is_decided)
    if enough > most:
        return None
    return enough if len(its) == 1 else math.ceil(enough * each.new_runs / len(its))


def _resized(its: Sequence[Stratum], count: int) -> Sequence[Stratum]:
    """Return so many runs a side, or cases where there are several, of the kinds that there are and in their shares."""
    if len(its) > 1:
        return _spread(sorted(its, key=lambda each: [sorted(each.new), sorted(each.base)]), count)
    return [Stratum(_spread(sorted(its[0].base), count), _spread(sorted(its[0].new), count))]


def _spread(values: Sequence[_T], count: int) -> list[_T]:
    return [values[(2 * index + 1) * len(values) // (2 * count)] for index in range(count)]
