"""How often `spanscore diff` is wrong, and how often it finds what is there: simulated pairs of versions.

    python tests/campaigns/versions.py [--pairs 1000]

Where nothing changed, a new version may be called worse in as many of the pairs as alpha says, and better as well; the
bound allows for chance, at 99.9 %. Where something changed, it prints how often that is found, beside what a plain
comparison of pass rates says, and how often that is wrong.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from scipy import stats

from spanscore.model import CloseReason, Evaluation, Report, Score, Trajectory
from spanscore.runs.diff import Settings, Verdict, compared, overall, pairing

ALPHA = 0.05
Draw = Callable[[random.Random, int, int], Sequence[float]]
"""Draws the scores of a run, one for each evaluator, of a case, in the base (0) or the new version (1)."""


class Kind(NamedTuple):
    """A kind of pair."""

    name: str
    runs: int
    cases: int
    """How many different ones; 0 where runs belong to none."""
    evaluators: int
    draw: Draw
    changed: bool


def constant(rate: float, new_rate: float | None = None) -> Draw:
    """Every run passes as likely."""
    return lambda chance, _case, is_new: [
        float(chance.random() < (rate if new_rate is None or not is_new else new_rate))
    ]


def by_case(low: float, fall: float = 0.0) -> Draw:
    """Cases differ in how hard they are: the first passes with the chance `low`, the last always."""

    def draw(chance: random.Random, case: int, is_new: int) -> Sequence[float]:
        rate = low + (1 - low) * case / 19
        return [float(chance.random() < (max(0.0, rate - fall) if is_new else rate))]

    return draw


def several(rate: float, count: int) -> Draw:
    """Several evaluators that know nothing of each other."""
    return lambda chance, _case, _is_new: [float(chance.random() < rate) for _ in range(count)]


def graded(fall: float = 0.0) -> Draw:
    """Scores between 0 and 1, most of them high; a run passes from 0.6 on."""
    return lambda chance, _case, is_new: [max(0.0, min(1.0, 1 - abs(chance.gauss(0, 0.2)) - fall * is_new))]


KINDS = [
    Kind("20 runs a side, 95 %", 20, 0, 1, constant(0.95), changed=False),
    Kind("20 runs a side, 80 %", 20, 0, 1, constant(0.8), changed=False),
    Kind("20 runs a side, 50 %", 20, 0, 1, constant(0.5), changed=False),
    Kind("100 runs a side, 80 %", 100, 0, 1, constant(0.8), changed=False),
    Kind("20 runs a side, five evaluators, 80 %", 20, 0, 5, several(0.8, 5), changed=False),
    Kind("20 runs a side, twenty evaluators, 95 %", 20, 0, 20, several(0.95, 20), changed=False),
    Kind("20 runs a side, graded scores", 20, 0, 1, graded(), changed=False),
    Kind("20 cases, as hard as each other, 80 %", 20, 20, 1, constant(0.8), changed=False),
    Kind("20 cases, some harder", 20, 20, 1, by_case(0.4), changed=False),
    Kind("20 cases, five runs of each, some harder", 100, 20, 1, by_case(0.4), changed=False),
    Kind("20 cases, some harder, graded scores", 20, 20, 1, graded(), changed=False),
    Kind("20 runs a side, 95 % to 70 %", 20, 0, 1, constant(0.95, 0.7), changed=True),
    Kind("20 cases, 95 % to 70 %", 20, 20, 1, constant(0.95, 0.7), changed=True),
    Kind("20 cases, five runs of each, 95 % to 70 %", 100, 20, 1, constant(0.95, 0.7), changed=True),
    Kind("20 runs a side, graded scores that fall by 0.15", 20, 0, 1, graded(0.15), changed=True),
    Kind("50 runs a side, 95 % to 70 %", 50, 0, 1, constant(0.95, 0.7), changed=True),
]


class Outcome(NamedTuple):
    """What came of the pairs of a kind."""

    verdicts: Counter[Verdict]
    plainly_worse: int
    """In how many fewer runs of the new version passed."""


def simulated(kind: Kind, pairs: int, seed: int = 1) -> Outcome:
    """Compare so many pairs."""
    chance = random.Random(f"{kind.name} {seed}")
    names = [f"e{number}" for number in range(kind.evaluators)]
    verdicts: Counter[Verdict] = Counter()
    plainly_worse = 0
    for _ in range(pairs):
        base, new = ([_report(kind, run, chance, is_new) for run in range(kind.runs)] for is_new in (0, 1))
        paired = pairing(base, new)
        assert bool(paired.key) == bool(kind.cases)
        verdicts[overall(compared(base, new, names, paired, Settings(alpha=ALPHA)))] += 1
        plainly_worse += sum(map(_passed, new)) < sum(map(_passed, base))
    return Outcome(verdicts, plainly_worse)


def allowed(pairs: int, alpha: float = ALPHA) -> int:
    """How many of the pairs may be wrong, where a share of alpha is on average."""
    return int(stats.binom.ppf(0.999, pairs, alpha))


def main() -> int:
    """Simulate every kind, print what came of it, and return 1 where too many were wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1000)
    pairs = parser.parse_args().pairs
    print(f"{pairs} pairs of each kind, alpha {ALPHA}: wrong in {allowed(pairs)} at most where nothing changed")
    print(f"{'':46} {'worse':>6} {'same':>6} {'better':>6} {'unsaid':>6} {'plainly fewer passed':>22}")
    too_many = 0
    for kind in KINDS:
        verdicts, plainly = simulated(kind, pairs)
        counts = [verdicts[each] for each in (Verdict.WORSE, Verdict.SAME, Verdict.BETTER, Verdict.INCONCLUSIVE)]
        wrong = not kind.changed and max(counts[0], counts[2]) > allowed(pairs)
        too_many += wrong
        shown = " ".join(f"{100 * count / pairs:>5.1f}%" for count in counts)
        print(f"{kind.name:46} {shown} {100 * plainly / pairs:>20.1f}%{'  TOO MANY' if wrong else ''}")
    return 1 if too_many else 0


def _report(kind: Kind, run: int, chance: random.Random, is_new: int) -> Report:
    case = run % kind.cases if kind.cases else 0
    evaluations = tuple(
        Evaluation(name=f"e{number}", type="simulated", outcome=Score(value, value >= 0.6, ""))
        for number, value in enumerate(kind.draw(chance, case, is_new))
    )
    trajectory = Trajectory(
        calls=(),
        trace_id=chance.getrandbits(128).to_bytes(16, "big"),
        attributes={"test.case.id": f"c{case}"} if kind.cases else {},
    )
    return Report(trajectory=trajectory, evaluations=evaluations, close_reason=CloseReason.ROOT_ENDED)


def _passed(report: Report) -> bool:
    return all(isinstance(each.outcome, Score) and each.outcome.passed for each in report.evaluations)


if __name__ == "__main__":
    sys.exit(main())
