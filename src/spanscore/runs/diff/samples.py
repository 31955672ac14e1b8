"""The scores of two versions side by side: by case if both ran the same cases, else all runs together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from spanscore.model import Report, Score
from spanscore.reports.cases import CASE_KEYS, CONVERSATION, Cases, case_of

_ENOUGH_PAIRED: Final = 0.5
"""Versions are compared by case where at least this share of the cases of each is one of the other's, and of its runs
is of such a case."""


class Sample(NamedTuple):
    """One run as an evaluator scored it."""

    value: float
    passed: bool


class Coverage(NamedTuple):
    """The runs of one version that an evaluator was to score, and those that it did."""

    scored: int
    asked: int

    @property
    def share(self) -> float:
        """The share that it scored; 1 if there was none."""
        return self.scored / self.asked if self.asked else 1.0


class Stratum(NamedTuple):
    """The runs of one case in both versions; all runs if there are no cases."""

    base: Sequence[Sample]
    new: Sequence[Sample]


class Pairing(NamedTuple):
    """The pairing of the runs of both versions."""

    key: str | None
    """The attribute that names the cases; None if all runs are compared together."""
    common: Sequence[str]
    """The cases of both versions, even if they are too few to compare by case."""
    only_base: Sequence[str]
    only_new: Sequence[str]
    several_turns: int = 0
    """The number of conversations with several turns in one version; such a conversation names no case."""
    is_by_conversation: bool = False
    """The attribute of the cases is that of conversations, and was not named by the user."""
    base_left_out: int = 0
    """The number of runs of no case, or of a case that the other version has not run."""
    new_left_out: int = 0

    @property
    def missing(self) -> Sequence[str]:
        """The cases of the base that the new version has not run. Other conversations are no missing ones."""
        return self.only_base if self.key or not self.is_by_conversation else ()


def pairing(base: Iterable[Report], new: Iterable[Report], key: str | None = None) -> Pairing:
    """Return the cases that both versions have run, by the attribute `key`, else by the first that both have.

    Without `key`, conversations are no cases if one has several turns.
    """
    base, new = list(base), list(new)
    found: Pairing | None = None
    together = Pairing(None, [], [], [])
    for each in CASE_KEYS if key is None else (key,):
        if key is None and each == CONVERSATION and (several := _several_turns(base) | _several_turns(new)):
            return (found or together)._replace(several_turns=len(several))
        cases, others = (Counter(case_of(report.trajectory, each) for report in side) for side in (base, new))
        common = [case for case in cases if case is not None and case in others]
        paired = Pairing(
            each,
            common,
            [case for case in cases if case is not None and case not in others],
            [case for case in others if case is not None and case not in cases],
            is_by_conversation=key is None and each == CONVERSATION,
            base_left_out=len(base) - sum(cases[case] for case in common),
            new_left_out=len(new) - sum(others[case] for case in common),
        )
        if common and _are_enough(paired, len(base), len(new)):
            return paired
        if common:
            found = found or paired._replace(key=None)
    return found or together


def compared_runs(reports: Sequence[Report], paired: Pairing) -> Sequence[Report]:
    """Return the runs of one version that are compared: by case those of the cases of both versions, else all."""
    if paired.key is None:
        return reports
    common = frozenset(paired.common)
    return [report for report in reports if case_of(report.trajectory, paired.key) in common]


def strata(base: Iterable[Report], new: Iterable[Report], evaluator: str, paired: Pairing) -> list[Stratum]:
    """Return the scores of an evaluator, case by case, without skipped runs."""
    sides = [_by_case(reports, evaluator, paired) for reports in (base, new)]
    return [
        Stratum(before, after)
        for case in (paired.common if paired.key else [""])
        if (before := sides[0].get(case, [])) and (after := sides[1].get(case, []))
    ]


def coverage(reports: Iterable[Report], evaluator: str) -> Coverage:
    """Return how many runs of a version an evaluator scored; it skipped the others, or had an error."""
    outcomes = [each.outcome for report in reports for each in report.evaluations if each.name == evaluator]
    return Coverage(sum(isinstance(each, Score) for each in outcomes), len(outcomes))


def _several_turns(reports: Iterable[Report]) -> set[str]:
    """Return the conversations of a version that have several turns."""
    return Cases(runs=(report.trajectory for report in reports)).several


def _are_enough(paired: Pairing, base: int, new: int) -> bool:
    cases = len(paired.common) + max(len(paired.only_base), len(paired.only_new))
    shares = (len(paired.common) / cases, 1 - paired.base_left_out / base, 1 - paired.new_left_out / new)
    return min(shares) >= _ENOUGH_PAIRED


def _by_case(reports: Iterable[Report], evaluator: str, paired: Pairing) -> Mapping[str, list[Sample]]:
    found: dict[str, list[Sample]] = defaultdict(list)
    for report in reports:
        case = case_of(report.trajectory, paired.key) if paired.key else ""
        for each in report.evaluations:
            if each.name == evaluator and isinstance(each.outcome, Score) and case is not None:
                found[case].append(Sample(each.outcome.value, each.outcome.passed))
    return found
