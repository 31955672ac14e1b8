"""Since when runs fail for a reason more often: at most one change for each reason, in the runs of a page.

A description of these runs, no alarm. For each time of a possible change, its gain is the logarithm of the likelihood
ratio of failures with one rate before and another one after it (Poisson), relative to the share of each agent's runs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from math import log
from typing import Final, NamedTuple

_LEAST_RUNS: Final = 100
"""In fewer runs no reason grew."""
_LEAST_FAILURES: Final = 10
"""A reason of fewer runs is not tested."""
_LEAST_DURATION_NS: Final = 60 * 10**9
"""In runs that all start within this time no reason grew."""
_PARTS: Final = 24
"""The number of bars, and of the parts whose failures show how far they spread."""
_CHANCE: Final = 0.01
"""At most about this share of pages shows growth by chance; each reason has an equal part of it."""
_MARGIN: Final = 1.5
"""The gain that the choice of the best time adds by itself."""
_NEAR_BEST: Final = 3.0
"""Times with a gain so far below the best one are in the interval."""


class TimedRun(NamedTuple):
    """A run, and which evaluators it failed for which reasons."""

    start_ns: int | None
    """The start of the evaluated span, ns since the epoch; None if it is unknown: the run is left out."""
    agent: str | None
    reasons: AbstractSet[str]
    """The texts of the reasons that it failed for."""
    evaluators: AbstractSet[str]
    """The names of the evaluators that scored it or went wrong, without those that skipped it."""


class Growth(NamedTuple):
    """A reason that is more frequent after a change than before it."""

    ratio: float | None
    """How many times as frequent, each agent compared with itself; None if no run before has the reason: it is new."""
    begin_ns: int
    end_ns: int
    """The change is between these times, ns since the epoch: those of two runs, the second one with the reason."""
    evidence: float
    """The gain of the best time, divided by how far failures spread: ranks reasons that grew."""


class Bar(NamedTuple):
    """A part of the runs that the evaluator of a reason scored."""

    begin_ns: int
    end_ns: int
    """The starts of its first and of its last run, ns since the epoch."""
    runs: int
    failed: int
    """The number of these runs that have the reason."""

    @property
    def share(self) -> float:
        """The share of the runs that have the reason, 0 to 1."""
        return self.failed / self.runs


def since(runs: Iterable[TimedRun], reasons: Mapping[str, str]) -> dict[str, Growth | None]:
    """Return since when each reason is more frequent, None if it did not grow, by its text.

    The runs are in any order; `reasons` has the name of each reason's evaluator by its text.
    """
    ordered = _in_order(runs)
    grown: dict[str, Growth | None] = dict.fromkeys(reasons)
    if len(ordered) < _LEAST_RUNS or ordered[-1][0] - ordered[0][0] <= _LEAST_DURATION_NS:
        return grown
    tested = {
        text: tried for text, tried in _trials(ordered, reasons).items() if len(tried.failures) >= _LEAST_FAILURES
    }
    enough = log(max(len(tested), 1) / _CHANCE) + _MARGIN
    return grown | {text: _growth(each, enough) for text, each in tested.items()}


def bars(runs: Iterable[TimedRun], reasons: Mapping[str, str]) -> dict[str, tuple[Bar, ...]]:
    """Return the shares of runs with each reason over time, by its text: 24 parts of equal numbers of runs.

    Fewer runs have a bar each; the arguments are those of `since`.
    """
    return {text: tuple(_bars(each)) for text, each in _trials(_in_order(runs), reasons).items()}


@dataclass(slots=True)
class _Scored:
    """The runs that one evaluator scored, in their order."""

    times: list[int] = field(default_factory=list)
    agents: list[str | None] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)
    """For each run the index of the first one with the same time: no change is between these two."""
    sizes: Counter[str | None] = field(default_factory=Counter)
    """The number of runs of each agent."""

    def add(self, time: int, agent: str | None) -> None:
        is_same = self.times and self.times[-1] == time
        self.firsts.append(self.firsts[-1] if is_same else len(self.times))
        self.times.append(time)
        self.agents.append(agent)
        self.sizes[agent] += 1


class _Trial(NamedTuple):
    """A reason to test."""

    scored: _Scored
    failures: Sequence[int]
    """The indexes of the runs with the reason, in their order."""

    def expected(self) -> list[float]:
        """Return the number of failures that are expected among the first k runs, for each k from 0 on."""
        failed = Counter(map(self.scored.agents.__getitem__, self.failures))
        shares = defaultdict(float, {agent: count / self.scored.sizes[agent] for agent, count in failed.items()})
        return list(accumulate(map(shares.__getitem__, self.scored.agents), initial=0.0))


def _in_order(runs: Iterable[TimedRun]) -> list[tuple[int, TimedRun]]:
    """Return the runs that have a time, in an order that does not depend on the order of the input."""
    timed = [(run.start_ns, run) for run in runs if run.start_ns is not None]
    return sorted(
        timed, key=lambda each: (each[0], each[1].agent is None, each[1].agent or "", sorted(each[1].reasons))
    )


def _trials(ordered: Iterable[tuple[int, TimedRun]], reasons: Mapping[str, str]) -> dict[str, _Trial]:
    scored = {evaluator: _Scored() for evaluator in reasons.values()}
    failures: dict[str, list[int]] = {text: [] for text in reasons}
    for time, run in ordered:
        for text in run.reasons:
            if text in reasons and reasons[text] in run.evaluators:
                failures[text].append(len(scored[reasons[text]].times))
        for evaluator in run.evaluators:
            if evaluator in scored:
                scored[evaluator].add(time, run.agent)
    return {text: _Trial(scored[evaluator], failures[text]) for text, evaluator in reasons.items()}


def _growth(trial: _Trial, enough: float) -> Growth | None:
    """Return the growth of a reason if its evidence is above `enough`."""
    scored, failures = trial
    expected = trial.expected()

    def gain(k: int, before: int) -> float:
        """Return the gain of a change after the first k runs, of which `before` failed."""
        after, expected_after = len(failures) - before, expected[-1] - expected[k]
        if after <= expected_after:
            return 0.0
        return (before * log(before / expected[k]) if before else 0.0) + after * log(after / expected_after)

    places: dict[int, int] = {}  # each k directly before a failure, or before all failures of its time, and `before`
    for before, index in enumerate(failures):
        places.setdefault(scored.firsts[index], before)
    gains = list(map(gain, places.keys(), places.values()))
    best, (at, before) = max(zip(gains, places.items(), strict=True))
    if best <= enough or (evidence := best / _spread(trial, expected, at, before)) <= enough:
        return None
    least = best - _NEAR_BEST
    near = [place for each, place in zip(gains, places.items(), strict=True) if each >= least]
    (first, passed), (last, _) = near[0], near[-1]
    # From one failure to the next the gain rises with k: all other k near the best one are just before the first.
    after_failure = failures[passed - 1] + 1 if passed else 1
    earliest = bisect_left(range(first), least, lo=after_failure, key=lambda k: gain(k, passed))
    before_rate, after_rate = _rates(failures, expected, at, before)
    ratio = after_rate / before_rate if before else None
    return Growth(ratio, scored.times[earliest - 1], scored.times[last], evidence)


def _rates(failures: Sequence[int], expected: Sequence[float], at: int, before: int) -> tuple[float, float]:
    """Return how many failures there are for each expected one, before and after a change."""
    after_rate = (len(failures) - before) / (expected[-1] - expected[at])
    return before / expected[at] if before else 0.0, after_rate


def _spread(trial: _Trial, expected: Sequence[float], at: int, before: int) -> float:
    """Return how many times the variance of the failures is that of Poisson, at least 1.

    The runs are cut into parts with equal expected numbers of failures, before and after the change with its rates.
    """
    firsts, failures = trial.scored.firsts, trial.failures
    before_rate, after_rate = _rates(failures, expected, at, before)

    def rated(k: int) -> float:
        return before_rate * expected[min(k, at)] + after_rate * (expected[max(k, at)] - expected[at])

    totals = (len(failures) * part / _PARTS for part in range(_PARTS))
    cuts = [firsts[bisect_left(range(len(firsts) - 1), total, key=rated)] for total in totals]
    squares = 0.0
    for begin, end in pairwise([*cuts, len(firsts)]):
        if rate := rated(end) - rated(begin):
            squares += (bisect_left(failures, end) - bisect_left(failures, begin) - rate) ** 2 / rate
    return max(1.0, squares / (_PARTS - 2))


def _bars(trial: _Trial) -> Iterator[Bar]:
    times, failures = trial.scored.times, trial.failures
    parts = min(_PARTS, len(times))
    for begin, end in pairwise(len(times) * part // parts for part in range(parts + 1) if parts):
        failed = bisect_left(failures, end) - bisect_left(failures, begin)
        yield Bar(times[begin], times[end - 1], end - begin, failed)
