"""How often evaluators and people agree on which runs fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal, NamedTuple, TypeAlias

from spanscore.messages.plural import plural
from spanscore.messages.printable import printable
from spanscore.model import Evaluation, Score, Skipped
from spanscore.runs.repeats import wilson_interval

PersonsVerdict: TypeAlias = Literal["pass", "fail"]
Ruling: TypeAlias = Literal["fail", "error", "pass", "skipped"]
"""The result of an evaluator for a run."""

RULINGS: Final[tuple[Ruling, ...]] = ("fail", "error", "pass", "skipped")
"""The worst first."""
_RUNS_NAMED: Final = 10
"""So many runs of each kind of disagreement are named."""
_HALF: Final = 0.5
_NARROW: Final = 0.2
_MOST_NEEDED: Final = 1_000
"""More fails than that would not help: good runs are missing."""


class Worth(StrEnum):
    """The judgement of an evaluator by the labels of people: the first of these whose condition holds.

    The bar for precision is 0.5, or the share of failures among the labelled runs, if that is larger: below it, a fail
    says less than chance.

    KEEP: the interval of precision lies above the bar.
    FAILS_GOOD_RUNS: a good run failed, and the interval of precision lies below the bar, or is at most 0.2 wide.
    MISSES_FAILURES: the interval of recall lies below 0.5.
    UNKNOWN: none of these.
    """

    KEEP = "worth keeping"
    FAILS_GOOD_RUNS = "fails good runs"
    MISSES_FAILURES = "misses failures"
    UNKNOWN = "too few labels"


class Share(NamedTuple):
    """A share with its 95 % Wilson interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, part: int, whole: int) -> Share:
        """Return the share of a part in a whole that is not empty."""
        return cls(part / whole, *wilson_interval(part, whole))

    def is_poor(self, bar: float) -> bool:
        """Return whether it lies below a bar, or is known well enough and is not above it."""
        return self.high < bar or self.high - self.low <= _NARROW

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(slots=True)
class Agreement:
    """The labelled runs of one evaluator, counted by label and ruling; both precision and recall are of its *fail*."""

    name: str
    counts: Counter[tuple[PersonsVerdict, Ruling]] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)
    """The first trace ids of runs that passed, and that people saw fail."""
    good: list[str] = field(default_factory=list)
    """The first trace ids of runs that failed, and that people saw pass."""
    failed: set[str] = field(default_factory=set)
    """The trace ids of labelled runs that failed."""
    same_as: str | None = None
    """The first evaluator that failed the very same labelled runs."""

    def add(self, trace_id: str, label: PersonsVerdict, ruling: Ruling) -> None:
        """Count a labelled run."""
        self.counts[label, ruling] += 1
        if ruling == "fail":
            self.failed.add(trace_id)
        named = {("fail", "pass"): self.missed, ("pass", "fail"): self.good}.get((label, ruling))
        if named is not None and len(named) < _RUNS_NAMED:
            named.append(trace_id)

    def of(self, ruling: Ruling) -> int:
        """Return the number of labelled runs with this ruling."""
        return self.counts["fail", ruling] + self.counts["pass", ruling]

    @property
    def scored(self) -> int:
        """The number of labelled runs that passed or failed; skipped ones and errors count neither way."""
        return self.of("fail") + self.of("pass")

    @property
    def precision(self) -> Share | None:
        """The share of failures that people saw among the runs that failed; None if no run failed."""
        return _share(self.counts["fail", "fail"], self.of("fail"))

    @property
    def recall(self) -> Share | None:
        """The share of runs that failed among the failures that people saw; None if they saw none."""
        return _share(self.counts["fail", "fail"], self._failures)

    @property
    def worth(self) -> Worth:
        """The judgement."""
        if (precision := self.precision) is not None:
            bar = _bar(self._failures, self.scored)
            if precision.low > bar:
                return Worth.KEEP
            if self.counts["pass", "fail"] and precision.is_poor(bar):
                return Worth.FAILS_GOOD_RUNS
        return Worth.MISSES_FAILURES if self._misses_most else Worth.UNKNOWN

    @property
    def told(self) -> str:
        """The judgement in words, with its counts."""
        missed = f"misses {self.counts['fail', 'pass']:,} of {self._failures:,} failures that people saw"
        match self.worth:
            case Worth.KEEP if not self.name:  # the verdict is no rule that one could drop
                told = missed if self._misses_most else "-"
            case Worth.KEEP:
                told = f"{Worth.KEEP}, but {missed}" if self._misses_most else str(Worth.KEEP)
            case Worth.FAILS_GOOD_RUNS:
                told = f"{self.counts['pass', 'fail']:,} of {self.of('fail'):,} fails were good runs"
            case Worth.MISSES_FAILURES:
                told = missed
            case _:
                told = f"{Worth.UNKNOWN}: {self._needed}"
        return told if self.same_as is None else f"{told}; fails the same runs as {printable(self.same_as)}"

    @property
    def _needed(self) -> str:
        """Which labels are missing for a judgement, if further fails are right as often as those there were."""
        if (precision := self.precision) is None:
            return "none of a run that it failed" if self.scored else "none of a run that it scored"
        right, failed = self.counts["fail", "fail"], self.of("fail")
        for more in range(1, _MOST_NEEDED):
            added = round(precision.value * more)
            share = Share.of(right + added, failed + more)
            bar = _bar(self._failures + added, self.scored + more)
            if share.low > bar or (right < failed and share.is_poor(bar)):
                return f"about {plural(more, 'more fail')} needed"
        return "more good runs needed"

    @property
    def _failures(self) -> int:
        return self.counts["fail", "fail"] + self.counts["fail", "pass"]

    @property
    def _misses_most(self) -> bool:
        return (recall := self.recall) is not None and recall.high < _HALF


def agreements(
    names: Iterable[str], labels: Mapping[tuple[str, str], PersonsVerdict], rulings: Mapping[str, Mapping[str, Ruling]]
) -> list[Agreement]:
    """Return the agreement of each evaluator.

    Args:
        names: of evaluators; an empty one is the verdict of the run.
        labels: by trace id and evaluator, which is empty if the label is of the whole run. An evaluator is compared
            with its own label of a run, or, if it has none, with that of the whole run.
        rulings: by trace id and evaluator.
    """
    found = [Agreement(name) for name in names]
    for trace_id, by_name in rulings.items():
        for each in found:
            label = labels.get((trace_id, each.name)) or labels.get((trace_id, ""))
            if label is not None and (ruling := by_name.get(each.name)) is not None:
                each.add(trace_id, label, ruling)
    first: dict[frozenset[str], str] = {}
    for each in found:
        if each.name and each.failed:
            name = first.setdefault(frozenset(each.failed), each.name)
            each.same_as = None if name == each.name else name
    return found


def ruling_of(evaluation: Evaluation) -> Ruling:
    """Return the ruling; an informational evaluator has one, too."""
    if isinstance(evaluation.outcome, Score):
        return "pass" if evaluation.outcome.passed else "fail"
    return "skipped" if isinstance(evaluation.outcome, Skipped) else "error"


def joint(one: Ruling | None, other: Ruling) -> Ruling:
    """Return the ruling on a trace of several runs: it fails if one of them does."""
    return other if one is None else min(one, other, key=RULINGS.index)


def _share(part: int, whole: int) -> Share | None:
    return Share.of(part, whole) if whole else None


def _bar(failures: int, runs: int) -> float:
    return max(_HALF, failures / runs)
