"""The section `keep`: which traces are sent on, and with what probability."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from annotated_types import Ge, Gt, Le, MaxLen

from spanscore.contracts.settings import PERCENT, Duration, Example, Size, Text, Written, share

DEFAULT_RULE: Final = "default"
"""The name of the rule for traces that no other rule matches."""
MOST_SAMPLING_RULES: Final = 8
"""Each of them remembers the traces that it has decided."""

_LEAST: Final = 1e-6


def _kept_share(text: str) -> float:
    return 1.0 if text == "all" else share(text)


def _written(kept: float) -> str:
    return "all" if kept == 1 else f"{kept * 100:g}%"


KeptShare = Annotated[
    float,
    Written(_kept_share, rf"(?:all|{PERCENT})", "not_a_kept_share", "5%", _written, or_number=True),
]
"""A share above 0, written as `5%`, `0.05` or `all`."""


def _check_share(key: str, kept: float) -> None:
    if kept < _LEAST:
        raise ValueError(f"{key}: must be at least {_written(_LEAST)}: a rule cannot drop everything")
    if kept > 1:
        hint = f"; did you mean {kept:g}%?" if kept in range(2, 101) else ""
        raise ValueError(f"{key}: must be at most 100%, not {kept * 100:g}%{hint}")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepWhen:
    """The conditions of a rule, of which a trace has to meet all. Without any, every trace matches."""

    verdict: Literal["pass", "fail", "none"] | None = None
    """The verdict of the trace: `fail` if one of its runs failed, `pass` if one passed and none failed, else `none`."""
    score: Annotated[Text | None, Example("health")] = None
    """With `below`: the name of the evaluator whose score counts, the lowest one if the trace has several runs."""
    below: Annotated[float, Gt(0), Le(1)] | None = None
    """The score is below this."""
    incomplete: bool | None = None
    """Whether a run was not seen whole. A part of a run that pauses does not count as incomplete."""
    recognised: bool | None = None
    """Whether a span of the trace is of a known instrumentation."""
    longer_than_s: Annotated[Duration, Ge(0)] | None = None
    """From the start of the first span to the end of the last one the trace took longer than this."""
    match: Annotated[Mapping[Text, str], Example({"service.name": "shop-*"})] = field(default_factory=dict)
    """Each of these resource or root-span attributes, or `span.name`, matches its glob, in one of the runs."""

    def __post_init__(self) -> None:
        if (self.score is None) != (self.below is None):
            raise ValueError("must have 'score' and 'below' together: {score: health, below: 0.8}")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepRule:
    """A rule: the traces that it is about, and the share of them to keep."""

    name: Text
    """The name of the rule in metrics and attributes."""
    when: KeepWhen = field(default_factory=KeepWhen)
    """The conditions, of which a trace has to meet all."""
    keep: KeptShare = 1.0
    """The share of these traces to keep: `all`, `5%` or `0.05`."""

    def __post_init__(self) -> None:
        _check_share("keep", self.keep)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepSettings:
    """Sampling by verdict, of the spans that `serve` sends on by `exporters.otlp`. Off when left out."""

    mode: Literal["observe", "on"] = "observe"
    """`on` sends on the traces that the rules keep; `observe` sends all on, and adds to each root span what the rules
    would do."""
    rules: Annotated[tuple[KeepRule, ...], MaxLen(50)] = ()
    """The rules, of which the first that matches decides; at most eight may keep less than all."""
    default: KeptShare = 1.0
    """The share to keep of the traces that no rule matches."""
    max_bytes: Annotated[Size, Gt(0)] = 512 * 2**20
    """The most memory of spans that wait for their decision; above it, the oldest trace is kept without one."""

    def __post_init__(self) -> None:
        _check_share("default", self.default)
        names = [rule.name for rule in self.rules]
        for name in names:
            if name == DEFAULT_RULE or names.count(name) > 1:
                message = f"rules must have names of their own, and not {DEFAULT_RULE!r}, but there is {name!r}"
                raise ValueError(message + ("" if name == DEFAULT_RULE else " twice"))
        sampling = [kept for kept in (*(rule.keep for rule in self.rules), self.default) if kept < 1]
        if len(sampling) > MOST_SAMPLING_RULES:
            message = (
                f"at most {MOST_SAMPLING_RULES} rules, with the default, may keep less than all, not {len(sampling)}"
            )
            raise ValueError(message)

    @property
    def all_rules(self) -> tuple[KeepRule, ...]:
        """The rules, and at the end the default, which every trace matches."""
        return (*self.rules, KeepRule(name=DEFAULT_RULE, keep=self.default))

    @property
    def reads(self) -> frozenset[str]:
        """The keys of the attributes that the rules look at."""
        return frozenset(key for rule in self.rules for key in rule.when.match)


def values_of(rule: KeepRule) -> dict[str, Any]:
    """Return the conditions of a rule that are given, by their names."""
    names = ("verdict", "score", "incomplete", "recognised", "longer_than_s", "match")
    return {name: value for name in names if (value := getattr(rule.when, name)) not in (None, {})}
