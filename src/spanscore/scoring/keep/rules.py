"""The rule that a closed trace matches. Pure: the decision depends on the trace, its reports and its randomness."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias

from spanscore.compare.globs import attributes_matcher
from spanscore.model import Report, Score, Trace
from spanscore.scoring.keep.sampling import threshold_of
from spanscore.scoring.keep.settings import KeepRule, KeepSettings, values_of

_START: Final = attrgetter("start_ns")
_END: Final = attrgetter("end_ns")

Condition: TypeAlias = Callable[[Trace, Sequence[Report]], bool]


class SamplingRule(NamedTuple):
    """A rule of the configuration, ready to be applied."""

    name: str
    conditions: tuple[Condition, ...]
    threshold: int
    """The least randomness of a trace that is kept; 0 keeps all."""

    def matches(self, trace: Trace, reports: Sequence[Report]) -> bool:
        """Return whether a trace meets all conditions; these are all of its reports."""
        return all(condition(trace, reports) for condition in self.conditions)


def sampling_rules(settings: KeepSettings) -> tuple[SamplingRule, ...]:
    """Return the rules in their order; every trace matches the last one."""
    return tuple(
        SamplingRule(rule.name, tuple(_conditions(rule)), threshold_of(rule.keep)) for rule in settings.all_rules
    )


def verdict_of(reports: Sequence[Report]) -> str:
    """Return the verdict of a trace: `fail` if a run failed, `pass` if one passed and none failed, else `none`."""
    verdicts = {report.verdict for report in reports}
    return next((verdict for verdict in ("fail", "pass") if verdict in verdicts), "none")


def _conditions(rule: KeepRule) -> list[Condition]:
    return [_CONDITIONS[name](value, rule) for name, value in values_of(rule).items()]


def _has_verdict(wanted: str, _: KeepRule) -> Condition:
    return lambda _, reports: verdict_of(reports) == wanted


def _scores_below(name: str, rule: KeepRule) -> Condition:
    bound = rule.when.below or 0.0

    def condition(_: Trace, reports: Sequence[Report]) -> bool:
        return any(
            each.name == name and isinstance(each.outcome, Score) and each.outcome.value < bound
            for report in reports
            for each in report.evaluations
        )

    return condition


def _is_incomplete(wanted: bool, _: KeepRule) -> Condition:  # noqa: FBT001 - one of the kinds of value
    return lambda _, reports: (
        wanted is any(not report.complete and not report.trajectory.completeness.is_part for report in reports)
    )


def _is_recognised(wanted: bool, _: KeepRule) -> Condition:  # noqa: FBT001 - as above
    return lambda _, reports: any(report.trajectory.recognised for report in reports) is wanted


def _is_longer(seconds: float, _: KeepRule) -> Condition:
    most_ns = seconds * 1e9

    def condition(trace: Trace, _: Sequence[Report]) -> bool:
        first_ns = min(map(_START, trace.spans), default=0)
        if not first_ns:  # a stand-in for a refused span has no times
            first_ns = min(filter(None, map(_START, trace.spans)), default=0)
        last_ns = max(map(_END, trace.spans), default=0)
        return first_ns > 0 and last_ns - first_ns > most_ns

    return condition


def _matches_globs(globs: Mapping[str, str], _: KeepRule) -> Condition:
    matches = attributes_matcher(globs)
    return lambda _, reports: any(matches(report.trajectory.attributes) for report in reports)


_CONDITIONS: Final[Mapping[str, Callable[[Any, KeepRule], Condition]]] = {
    "verdict": _has_verdict,
    "score": _scores_below,
    "incomplete": _is_incomplete,
    "recognised": _is_recognised,
    "longer_than_s": _is_longer,
    "match": _matches_globs,
}
