"""Measures monitors: how soon they find a change, how rarely they raise a false alarm, and what is not promised.

    PYTHONPATH=src python tests/campaigns/monitors.py             20 streams for each figure
    PYTHONPATH=src python tests/campaigns/monitors.py --streams 200

The objective is 5 %. A stream is a simulated service: for each minute its runs, and how many of them fail.

- Delays: the runs fail at 5 % for 1,000 minutes, then at 10, 15 or 30 %; the median of the minutes from then on to the
  alarm, with `one_false_alarm_per: 30d` and 1, 10 or 100 runs a minute, of a monitor with one series or with 20.
- False alarms: the runs fail at 5 % for good, independently or in clusters of 2 to 20 runs of one minute; the mean time
  to the first alarm, where 5,000 minutes are promised (1,000 with 20 and 100 series).
- Two versions of which none is worse, at 1 %: how many of the comparisons of a week raise an alarm, with independent
  runs and with rates that jump together; and the median minutes to the alarm if the new one goes from 5 to 15 %.
- Not promised: all runs fail in bursts of ten minutes, 5 % of the time; the rate rises and falls by half with the hour,
  and is 5 % on average.

The exit status is 1 if a mean time is below the promised one by more than three standard errors, if more comparisons
are false alarms than promised, by as much, or if a median delay is above one and a half times that of the
specification.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import accumulate, count
from typing import Final, NamedTuple

from spanscore.scoring.monitors.e_detector import Evidence, Objective
from spanscore.scoring.monitors.versions import VersionComparison

OBJECTIVE: Final = 0.05
BEFORE: Final = 1_000
"""The minutes at the objective before a change."""
A_MONTH: Final = 30 * 24 * 60
PROMISED: Final = 5_000
PROMISED_OF_MANY: Final = 1_000
RUNS: Final = (1, 10, 100)
LATER: Final = (0.1, 0.15, 0.3)
MANY: Final = 20
EXPECTED: Final = {
    (0.1, 1, 1): 320,
    (0.1, 10, 1): 46,
    (0.1, 100, 1): 19,
    (0.1, 1, MANY): 501,
    (0.1, 100, MANY): 24,
    (0.15, 1, 1): 113,
    (0.15, 10, 1): 20,
    (0.15, 100, 1): 12,
    (0.15, 1, MANY): 171,
    (0.15, 100, MANY): 15,
    (0.3, 1, 1): 31,
    (0.3, 10, 1): 8,
    (0.3, 100, 1): 7,
    (0.3, 1, MANY): 42,
    (0.3, 100, MANY): 9,
}
"""The median minutes to the alarm, by the later rate, the runs a minute, and the series."""
OF_VERSIONS: Final = {(20, 20): 85, (1, 20): 172, (1, 1): 255}
"""The median minutes to the alarm of a comparison, by the runs a minute of the new version and of the stable one."""
FALSE_ALARM: Final = 0.01
WEEK: Final = 7 * 24 * 60
TOLERANCE: Final = 1.5
CLUSTERS: Final = (2, 5, 10, 20)
BURST: Final = 10
DAY: Final = 24 * 60
LONGEST: Final = 200_000
"""The minutes after which a stream without an alarm ends."""

Minute = tuple[int, int]
"""The runs that fail, and the runs."""


class MeanTime(NamedTuple):
    """The mean time to the first alarm."""

    minutes: float
    error: float
    """The standard error."""

    def keeps(self, promised: int) -> bool:
        """Return whether the mean may be as long as promised."""
        return self.minutes + 3 * self.error >= promised


@cache
def _cumulated(runs: int, rate: float) -> Sequence[float]:
    return list(accumulate(math.comb(runs, k) * rate**k * (1 - rate) ** (runs - k) for k in range(runs + 1)))


def failing(chance: random.Random, runs: int, rate: float) -> int:
    """Return how many of so many runs fail."""
    return min(bisect(_cumulated(runs, rate), chance.random()), runs)


def steady(chance: random.Random, runs: int, rate: float = OBJECTIVE, cluster: int = 1) -> Iterator[Minute]:
    """Yield minutes whose runs fail at a rate, so many of a minute together."""
    while True:
        yield cluster * failing(chance, runs // cluster, rate), runs


def bursts(chance: random.Random, runs: int) -> Iterator[Minute]:
    """Yield minutes of which 5 % are in bursts of ten minutes, in which all runs fail."""
    begin = OBJECTIVE / BURST / (1 - OBJECTIVE)
    while True:
        yield 0, runs
        if chance.random() < begin:
            for _ in range(BURST):
                yield runs, runs


def days(chance: random.Random, runs: int) -> Iterator[Minute]:
    """Yield minutes whose rate rises and falls by half of the objective in a day; it begins at a random hour."""
    phase = chance.random()
    for minute in count():
        rate = round(OBJECTIVE * (1 + 0.5 * math.sin(2 * math.pi * (minute / DAY + phase))), 4)
        yield failing(chance, runs, rate), runs


def first_alarm(streams: Sequence[Iterator[Minute]], minutes: float, at_most: int = LONGEST) -> int:
    """Return the minute of the first alarm of a monitor whose series are these streams; `at_most` if none comes."""
    objective, threshold = Objective(OBJECTIVE), minutes * len(streams)
    series = [Evidence()] * len(streams)
    for minute in range(1, at_most):
        for place, stream in enumerate(streams):
            series[place] = objective.after(series[place], minute, *next(stream), threshold)
            if series[place].is_alarm:
                return minute
    return at_most


def delay(chance: random.Random, runs: int, later: float, of: int) -> int:
    """Return the minutes from a change to the alarm of the series that changed; a stream has no alarm before it."""
    objective, threshold = Objective(OBJECTIVE), A_MONTH * of
    while True:
        found, stream = Evidence(), steady(chance, runs)
        for minute in range(BEFORE):
            found = objective.after(found, minute, *next(stream), threshold)
        if not found.is_alarm:
            break
    stream = steady(chance, runs, later)
    for minute in count(1):
        found = objective.after(found, BEFORE + minute, *next(stream), threshold)
        if found.is_alarm:
            return minute
    raise AssertionError


def mean_time(
    streams: int, new: Callable[[random.Random], Sequence[Iterator[Minute]]], minutes: int, seed: int
) -> MeanTime:
    """Return the mean time to the first alarm of so many monitors."""
    found = [first_alarm(new(random.Random(f"{seed} {number}")), minutes) for number in range(streams)]
    return MeanTime(statistics.fmean(found), statistics.stdev(found) / math.sqrt(streams))


def delays(streams: int, seed: int) -> dict[tuple[float, int, int], float]:
    """Return the median delays, by the later rate, the runs a minute, and the series of the monitor."""
    return {
        case: statistics.median(
            delay(random.Random(f"{seed} {case} {number}"), case[1], case[0], case[2]) for number in range(streams)
        )
        for case in EXPECTED
    }


def false_alarms(streams: int, seed: int) -> dict[str, tuple[MeanTime, int]]:
    """Return the mean times to a false alarm, with the promised ones."""
    found = {
        f"{runs} runs a minute": (
            mean_time(streams, lambda chance, runs=runs: [steady(chance, runs)], PROMISED, seed),
            PROMISED,
        )
        for runs in RUNS
    }
    for size in CLUSTERS:
        times = mean_time(streams, lambda chance, size=size: [steady(chance, 100, cluster=size)], PROMISED, seed)
        found[f"100 runs a minute, in clusters of {size}"] = times, PROMISED
    for series in (MANY, 5 * MANY):
        few = max(2, streams // 10)
        times = mean_time(
            few, lambda chance, series=series: [steady(chance, 1) for _ in range(series)], PROMISED_OF_MANY, seed
        )
        found[f"1 run a minute in each of {series} series"] = times, PROMISED_OF_MANY
    return found


def compared(chance: random.Random, runs: tuple[int, int], later: float, *, jumps: bool, most: int) -> int | None:
    """Return the minute in which a comparison raises an alarm; None if it does not in so many minutes.

    Args:
        chance: the random numbers.
        runs: the runs a minute of the new version, and of the stable one.
        later: the rate at which the new version fails; the stable one is at the objective.
        jumps: whether both fail at five times their rates in one of ten minutes.
        most: the minutes.
    """
    found = VersionComparison()
    for minute in range(1, most + 1):
        factor = 5 if jumps and chance.random() < 0.1 else 1
        bad = [failing(chance, each, rate * factor) for each, rate in zip(runs, (later, OBJECTIVE), strict=True)]
        found = found._replace(
            block_new_bad=bad[0], block_new=runs[0], block_stable_bad=bad[1], block_stable=runs[1]
        ).after_minute(1 / FALSE_ALARM)
        if found.is_alarm:
            return minute
    return None


def comparison_delays(comparisons: int, seed: int) -> dict[tuple[int, int], float]:
    """Return the median minutes to the alarm if the new version fails at 15 %, by the runs a minute."""
    return {
        runs: statistics.median(
            compared(random.Random(f"{seed} {runs} {number}"), runs, 0.15, jumps=False, most=WEEK) or WEEK
            for number in range(comparisons)
        )
        for runs in OF_VERSIONS
    }


def false_comparisons(comparisons: int, seed: int) -> dict[str, float]:
    """Return the shares of comparisons that raise an alarm in a week, although the versions are equal."""
    return {
        f"{runs[0]} and {runs[1]} runs a minute{', rates that jump together' if jumps else ''}": statistics.fmean(
            compared(random.Random(f"{seed} {runs} {number}"), runs, OBJECTIVE, jumps=jumps, most=WEEK) is not None
            for number in range(comparisons)
        )
        for runs in OF_VERSIONS
        for jumps in (False, True)
    }


def not_promised(streams: int, seed: int) -> dict[str, MeanTime]:
    """Return the mean times to an alarm of streams that meet the objective on average only."""
    kinds = {"bursts of ten minutes": bursts, "day and night, by half": days}
    return {
        f"{name}, {runs} runs a minute": mean_time(
            streams, lambda chance, new=new, runs=runs: [new(chance, runs)], PROMISED, seed
        )
        for name, new in kinds.items()
        for runs in (1, 100)
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=20, help="for each figure (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    is_met = True
    print("Median minutes from a change from 5 % to the alarm, one false alarm per 30 days:")
    for (later, runs, series), minutes in delays(asked.streams, asked.seed).items():
        expected = EXPECTED[later, runs, series]
        is_met = is_met and minutes <= TOLERANCE * expected
        print(f"  to {later:4.0%}, {runs:3} runs a minute, {series:2} series: {minutes:5g} (specified: {expected})")
    print("Mean minutes to a false alarm, with its standard error:")
    for name, (times, promised) in false_alarms(asked.streams, asked.seed).items():
        is_met = is_met and times.keeps(promised)
        print(f"  {name}: {times.minutes:,.0f} ± {times.error:,.0f} (promised: {promised:,})")
    print("Median minutes to the alarm if a new version fails at 15 %, the stable one at 5 %, with false_alarm: 1%:")
    for runs, minutes in comparison_delays(asked.streams, asked.seed).items():
        is_met = is_met and minutes <= TOLERANCE * OF_VERSIONS[runs]
        print(f"  {runs[0]} and {runs[1]} runs a minute: {minutes:g} (specified: {OF_VERSIONS[runs]})")
    print("Comparisons of equal versions with an alarm in a week:")
    error = math.sqrt(FALSE_ALARM * (1 - FALSE_ALARM) / asked.streams)
    for name, share in false_comparisons(asked.streams, asked.seed).items():
        is_met = is_met and share <= FALSE_ALARM + 3 * error
        print(f"  {name}: {share:.1%} (promised: {FALSE_ALARM:.0%})")
    print("Mean minutes to an alarm where the objective is met on average only (5,000 are not promised):")
    for name, times in not_promised(asked.streams, asked.seed).items():
        print(f"  {name}: {times.minutes:,.0f} ± {times.error:,.0f}")
    print("met" if is_met else "MISSED")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
