"""Judges "since when": finds planted changes and their times, and finds none in sets of runs that are steady.

    python tests/campaigns/growth.py                      50 sets with a change, 200 steady ones
    python tests/campaigns/growth.py --sets 1000 --seed 7

A set has 2,000 runs of three agents in four hours, 13 or 14 reasons and five evaluators; one of these scores two of the
agents, and one a quarter of the runs. Each reason has a rate for each agent, from 0.2 to 10 %.

- Planted: from a random time on at least 50 more runs fail for one reason, in ten ways. The reason is first or second
  by its evidence in at least 96 % of the sets, and the interval contains the time in at least 90 %.
- Steady: the rates stay. Traffic doubles at a random time, or the share of an agent rises from 20 to 35 %, or both, or
  neither, with as many sets each as there are planted ones. At most 1 % of the sets show any growth.

The exit status is 1 if one of these is missed. Limits are only printed: changes that add 15 to 49 runs, changes in the
first quarter of the time, changes that end again, and failures in clusters of 2 to 10 runs of an agent.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final, NamedTuple

from spanscore.reports.since import Growth, TimedRun, since

RUNS: Final = 2_000
BEGIN_NS: Final = 1_790_000_000 * 10**9
LENGTH_NS: Final = 4 * 3_600 * 10**9
MINUTE_NS: Final = 60 * 10**9
AGENTS: Final = ("billing", "refunds", "search")
SHARES: Final = (0.2, 0.5, 0.3)
LATER_SHARES: Final = (0.35, 0.4, 0.25)
ALWAYS: Final = ("order", "arguments", "budget")
OF_TWO_AGENTS: Final = "policy"
SELDOM: Final = "golden"
CLUSTER: Final = (2, 10)
SEVERAL: Final = (50, 200)
FEW: Final = (15, 49)
PLANTED: Final = "planted"
SECOND: Final = "second"

FOUND_AT_LEAST: Final = 0.96
TIMED_AT_LEAST: Final = 0.9
STEADY_AT_MOST: Final = 0.01


@dataclass(slots=True)
class Draft:
    """A run that is being made."""

    start_ns: int
    agent: str
    evaluators: set[str]
    reasons: set[str] = field(default_factory=set)


class Kind(NamedTuple):
    """How the planted reason changes."""

    name: str
    agents: Sequence[str] = AGENTS
    rate: float = 0.004
    """The rate before the change."""
    evaluator: str = ALWAYS[0]
    between: tuple[float, float] = (0.3, 0.8)
    """When it changes, as parts of the whole time."""
    traffic: bool = False
    share: bool = False
    second: float = 0.0
    """The share of added failures that have a second reason, too."""
    alone: bool = False
    """Whether the runs that it adds have no other reason."""
    ends: bool = False
    """Whether it ends after half of the remaining time."""


KINDS: Final = (
    Kind("new, all agents", rate=0),
    Kind("new, one agent", agents=AGENTS[:1], rate=0),
    Kind("more, all agents", rate=0.01),
    Kind("more, one agent", agents=AGENTS[1:2], rate=0.01),
    Kind("while traffic doubles", traffic=True),
    Kind("while its agent gets more", agents=AGENTS[:1], share=True),
    Kind("late", between=(0.85, 0.9)),
    Kind("with a second reason", second=0.9),
    Kind("hides other reasons", alone=True),
    Kind("seldom scored", evaluator=SELDOM),
)
EARLY: Final = Kind("early", between=(0.1, 0.25))
ENDING: Final = Kind("ends again", ends=True)


class Sample(NamedTuple):
    """A set of runs, its reasons with their evaluators, and when one of them changed."""

    runs: list[TimedRun]
    reasons: dict[str, str]
    changed_ns: int = 0


class Finding(NamedTuple):
    """The growth that was found in a sample."""

    changed_ns: int
    grown: list[tuple[str, Growth]]
    """The reasons that grew, by falling evidence."""

    @property
    def planted(self) -> Growth | None:
        """The growth of the planted reason, if it is the first or the second."""
        return dict(self.grown[:2]).get(PLANTED)

    @property
    def is_timed(self) -> bool:
        """Whether the interval of the planted reason contains the time of its change."""
        found = self.planted
        return found is not None and found.begin_ns <= self.changed_ns <= found.end_ns


def steady(chance: random.Random, *, traffic: bool = False, share: bool = False, clustered: bool = False) -> Sample:
    """Return runs whose reasons keep their rates."""
    drafts = _passed(chance, chance.uniform(0.2, 0.8), traffic=traffic, share=share)
    reasons = _background(chance, drafts, clustered=clustered)
    return _sample(drafts, reasons)


def planted(chance: random.Random, kind: Kind, added: tuple[int, int], *, clustered: bool = False) -> Sample:
    """Return runs of which so many more fail for one reason from a random time on."""
    while True:
        at = chance.uniform(*kind.between)
        drafts = _passed(chance, at, traffic=kind.traffic, share=kind.share)
        reasons = _background(chance, drafts, clustered=clustered) | {PLANTED: kind.evaluator}
        _fail(chance, _scored(drafts, kind.evaluator), PLANTED, lambda _: kind.rate, clustered=clustered)
        end = (1 + at) / 2 if kind.ends else 1
        concerned = [
            run
            for run in _scored(drafts, kind.evaluator)
            if _time(at) <= run.start_ns < _time(end) and run.agent in kind.agents and PLANTED not in run.reasons
        ]
        rate = chance.uniform(*added) / max(len(concerned), 1)
        failed = _fail(chance, concerned, PLANTED, lambda _, rate=rate: rate, clustered=clustered)
        if kind.second:
            reasons[SECOND] = ALWAYS[1]
            _fail(chance, failed, SECOND, lambda _: kind.second, clustered=False)
        for run in failed if kind.alone else ():
            run.reasons = {PLANTED}
        if added[0] <= len(failed) <= added[1]:
            return _sample(drafts, reasons, _time(at))


def found(sample: Sample) -> Finding:
    """Return what grew."""
    grown = [(text, growth) for text, growth in since(sample.runs, sample.reasons).items() if growth]
    return Finding(sample.changed_ns, sorted(grown, key=lambda each: -each[1].evidence))


def _time(place: float) -> int:
    return BEGIN_NS + round(place * LENGTH_NS)


def _passed(chance: random.Random, at: float, *, traffic: bool, share: bool) -> list[Draft]:
    """Return runs that passed, in their order; something may change at a part of the time."""
    places = [chance.random() * (2 - at if traffic else 1) for _ in range(RUNS)]
    drafts = []
    for place in sorted(at + (each - at) / 2 if traffic and each > at else each for each in places):
        agent = chance.choices(AGENTS, LATER_SHARES if share and place >= at else SHARES)[0]
        evaluators = set(ALWAYS)
        evaluators |= {OF_TWO_AGENTS} if agent != AGENTS[0] else set()
        evaluators |= {SELDOM} if chance.random() < 0.25 else set()
        drafts.append(Draft(_time(place), agent, evaluators))
    return drafts


def _background(chance: random.Random, drafts: Sequence[Draft], *, clustered: bool) -> dict[str, str]:
    """Let runs fail for twelve reasons with steady rates, and return these."""
    evaluators = (*ALWAYS, *ALWAYS, OF_TWO_AGENTS, SELDOM)
    reasons = {f"steady {number}": chance.choice(evaluators) for number in range(12)}
    for text, evaluator in reasons.items():
        rates = {agent: 0.002 * 50 ** chance.random() for agent in AGENTS}
        _fail(chance, _scored(drafts, evaluator), text, rates.__getitem__, clustered=clustered)
    return reasons


def _scored(drafts: Iterable[Draft], evaluator: str) -> list[Draft]:
    return [run for run in drafts if evaluator in run.evaluators]


def _fail(
    chance: random.Random, runs: Iterable[Draft], text: str, rate: Callable[[str], float], *, clustered: bool
) -> list[Draft]:
    """Let runs fail for a reason with the rate of their agent, one by one or in clusters, and return these."""
    left: Counter[str] = Counter()
    failed = []
    for run in runs:
        if left[run.agent]:
            left[run.agent] -= 1
        elif chance.random() < rate(run.agent) / (sum(CLUSTER) / 2 if clustered else 1):
            left[run.agent] = chance.randint(*CLUSTER) - 1 if clustered else 0
        else:
            continue
        run.reasons.add(text)
        failed.append(run)
    return failed


def _sample(drafts: Iterable[Draft], reasons: dict[str, str], changed_ns: int = 0) -> Sample:
    runs = [TimedRun(run.start_ns, run.agent, run.reasons, run.evaluators) for run in drafts]
    return Sample(runs, reasons, changed_ns)


def _line(name: str, findings: Sequence[Finding]) -> str:
    minutes = [(each.end_ns - each.begin_ns) / MINUTE_NS for finding in findings if (each := finding.planted)]
    width = f"{statistics.median(minutes):.0f} min" if minutes else "-"
    in_time = sum(finding.is_timed for finding in findings)
    return f"{name:<28}{len(findings):>5} sets  {len(minutes):>5} found  {in_time:>5} in the interval, median {width}"


def changes(
    seed: int, sets: int, added: tuple[int, int], kinds: Sequence[Kind] = KINDS, *, clustered: bool = False
) -> Iterator[list[Finding]]:
    """Yield the findings of each kind, in an equal part of the sets each."""
    for kind in kinds:
        chances = [random.Random(f"{seed} {kind.name} {number}") for number in range(sets // len(kinds))]
        yield [found(planted(chance, kind, added, clustered=clustered)) for chance in chances]


def shown_by_chance(seed: int, sets: int, *, clustered: bool = False) -> Iterator[tuple[str, int]]:
    """Yield how many of the steady sets show growth, for each of the ways in which their runs change."""
    for traffic, share in product((False, True), repeat=2):
        name = " and ".join(["traffic doubles"] * traffic + ["a share rises"] * share) or "nothing changes"
        chances = [random.Random(f"{seed} {name} {number}") for number in range(sets)]
        samples = (steady(chance, traffic=traffic, share=share, clustered=clustered) for chance in chances)
        yield name, sum(bool(found(sample).grown) for sample in samples)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was found, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--sets", type=int, default=50, metavar="N", help="sets with a change, from 10 on (default: 50)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="other runs (default: 1)")
    parser.add_argument("--limits", type=int, metavar="N", help="sets without a bar (default: as --sets)")
    asked = parser.parse_args(arguments)
    sets = asked.sets
    all_found: list[Finding] = []
    for kind, findings in zip(KINDS, changes(asked.seed, sets, SEVERAL), strict=True):
        print(_line(kind.name, findings), flush=True)
        all_found += findings
    print(_line("PLANTED", all_found))
    by_chance = 0
    for name, shown in shown_by_chance(asked.seed, sets):
        print(f"{name:<32}{sets:>5} sets  {shown:>5} show growth", flush=True)
        by_chance += shown
    print(f"{'STEADY':<32}{4 * sets:>5} sets  {by_chance:>5} show growth")
    print("Limits, without a bar:")
    beyond = asked.limits or sets
    for name, limits in (
        ("15 to 49 more runs", changes(asked.seed, beyond, FEW)),
        *((kind.name, changes(asked.seed, beyond, SEVERAL, [kind])) for kind in (EARLY, ENDING)),
        ("in clusters", changes(asked.seed, beyond, SEVERAL, clustered=True)),
    ):
        print(_line(name, [finding for findings in limits for finding in findings]), flush=True)
    clustered = sum(shown for _, shown in shown_by_chance(asked.seed, beyond, clustered=True))
    print(f"{'steady, in clusters':<32}{4 * beyond:>5} sets  {clustered:>5} show growth")
    is_reached = (
        sum(each.planted is not None for each in all_found) >= FOUND_AT_LEAST * len(all_found)
        and sum(each.is_timed for each in all_found) >= TIMED_AT_LEAST * len(all_found)
        and by_chance <= STEADY_AT_MOST * 4 * sets
    )
    print(f"The bar is {'reached' if is_reached else 'MISSED'}")
    return 0 if is_reached else 1


if __name__ == "__main__":
    sys.exit(main())
