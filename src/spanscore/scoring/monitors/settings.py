"""The section `monitors`: which runs a monitor counts, and how often they may fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from annotated_types import Ge, Gt, Le, MaxLen

from spanscore.contracts.settings import Duration, Example, Share, Text

MOST_MONITORS: Final = 50

_HOUR_S: Final = 3_600.0
_TEN_YEARS_S: Final = 3_650 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoredRuns:
    """The runs that a monitor is about, by one of `evaluator`, `score`, `verdict` and `tool`."""

    evaluator: Text | None = None
    """The name of an evaluator: runs that it passed or failed count, and those that it failed are bad."""
    score: Text | None = None
    """The name of an evaluator: runs with its score count, and those with a score below `below` are bad."""
    below: Annotated[float | None, Gt(0), Le(1)] = None
    """The score from which on a run is not bad."""
    verdict: Literal["fail"] | None = None
    """Runs with the verdict pass or fail count, and those with `fail` are bad."""
    tool: Text | None = None
    """The name of a tool: runs that called it count, and those in which a call of it failed are bad."""
    fails: Literal[True] | None = None
    """Reads well behind `evaluator` and `tool`, and may be left out."""

    def __post_init__(self) -> None:
        """Check that one thing is named."""
        named = [name for name in ("evaluator", "score", "verdict", "tool") if getattr(self, name) is not None]
        if len(named) != 1:
            raise ValueError("must have one of evaluator, score, verdict and tool")
        if (named == ["score"]) != (self.below is not None):
            raise ValueError("below: goes with score: {score: health, below: 0.8}")
        if self.fails is not None and named[0] not in {"evaluator", "tool"}:
            raise ValueError("fails: goes with evaluator or tool")


def _wrong_keys(*kinds: Mapping[str, bool]) -> str:
    """Return which keys of a kind of monitor are missing, or of which kinds there are some; empty if all is well."""
    given = [[key for key, is_given in kind.items() if is_given] for kind in kinds]
    if all(given):
        return f"; {given[0][0]} does not go with {given[1][0]}"
    missing = [key for kind in kinds for key, is_given in kind.items() if any(kind.values()) and not is_given]
    if missing:
        return f"; {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    return "" if any(given) else "; it has none of them"


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorSettings:
    """A monitor: an alarm if runs fail more often than they may, or more often than those of another version."""

    of: Annotated[MonitoredRuns, Example({"evaluator": "health", "fails": True})]
    """The runs that count, and those of them that are bad: of the runs that an evaluator passed or failed those that
    it failed, `{evaluator: NAME, fails: true}`; of those with its score those with a lower one,
    `{score: NAME, below: 0.8}`; of those with a verdict the failing ones, `{verdict: fail}`; of those that called a
    tool those in which a call of it failed, `{tool: NAME, fails: true}`."""
    at_most: Annotated[Annotated[Share, Ge(0.001), Le(0.5)] | None, Example("5%")] = None
    """The share of the counted runs that may be bad, in a bad hour too: from 0.1% to 50%."""
    by: Annotated[tuple[Text, ...], MaxLen(3), Example(["service.name", "gen_ai.agent.name"])] = ()
    """None to three resource or root-span attributes, or `span.name`: each combination of their values is a series with
    an alarm of its own."""
    one_false_alarm_per_s: Annotated[Annotated[Duration, Ge(_HOUR_S), Le(_TEN_YEARS_S)] | None, Example("30d")] = None
    """The mean time between false alarms of the whole monitor, at least, whatever the traffic and however many series:
    from 1h to 3650d."""
    new: Annotated[Mapping[Text, str], Example({"service.version": "2.*"})] = field(default_factory=dict)
    """Instead of an objective, two versions may be compared, which run at the same time: the runs of the new one, as
    `match` of an evaluator selects them. A run in both, or in neither, does not count."""
    stable: Annotated[Mapping[Text, str], Example({"service.version": "1.*"})] = field(default_factory=dict)
    """The runs of the version with which the new one is compared."""
    false_alarm: Annotated[Annotated[Share, Ge(0.0001), Le(0.2)] | None, Example("1%")] = None
    """The chance of a false alarm in this comparison, ever, however often one looks: from 0.01% to 20%."""

    def __post_init__(self) -> None:
        """Check that it has an objective, or two versions."""
        objective = {"at_most": self.at_most is not None, "one_false_alarm_per": self.one_false_alarm_per_s is not None}
        versions = {"new": bool(self.new), "stable": bool(self.stable), "false_alarm": self.false_alarm is not None}
        if wrong := _wrong_keys(objective, versions):
            raise ValueError(f"must have either at_most and one_false_alarm_per, or new, stable and false_alarm{wrong}")
        if self.compares and self.new == self.stable:
            raise ValueError("new and stable: must not be equal")
        if twice := [key for key, count in Counter(self.by).items() if count > 1]:
            raise ValueError(f"by: has {twice[0]!r} more than once")
        if self.by and self.compares:
            raise ValueError("by: cannot be given with new and stable, which are the series")

    @property
    def compares(self) -> bool:
        """Whether it compares two versions."""
        return self.false_alarm is not None

    @property
    def minutes(self) -> float:
        """The minutes between two false alarms."""
        return (self.one_false_alarm_per_s or 0) / 60
