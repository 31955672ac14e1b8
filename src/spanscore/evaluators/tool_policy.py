"""Whether a run kept the rules about which tools may, must and must not be called."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Annotated, ClassVar, Final, NamedTuple, TypeAlias

from annotated_types import Ge

from spanscore.compare.alignment import LIMIT
from spanscore.compare.deviations import Deviation, scored
from spanscore.compare.expected import cut_off
from spanscore.compare.globs import glob_matcher, is_glob
from spanscore.compare.matching import positions
from spanscore.compare.names import NameParameters, Normalise, called_names, short
from spanscore.model import Outcome, ToolCall, Trajectory

_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPolicy(NameParameters):
    """Checks rules about which tools may, must and must not be called.

    The value is the number of rules kept, divided by the number of rules. A rule is each entry of `required`,
    `forbidden`, `must_precede` and `max_calls_per_tool`, the whole list `allowed`, and `max_calls`. Tools are named or
    given as a glob: `*` stands for any characters, `?` for one; a glob is compared with normalised names as it is.
    Failed calls count. Skipped where the trace was truncated and a required tool is missing.
    """

    expectation: ClassVar[str | None] = None

    required: tuple[str, ...] = ()
    """Each of these tools is called."""
    allowed: tuple[str, ...] | None = None
    """No other tools are called; with an empty list, none at all."""
    forbidden: tuple[str, ...] = ()
    """None of these tools is called: `[delete_*]`."""
    must_precede: tuple[tuple[str, str], ...] = ()
    """Pairs `[first, then]`: every call of the second tool comes after a call of the first."""
    max_calls: Annotated[int, Ge(0)] | None = None
    """There are at most so many calls."""
    max_calls_per_tool: Mapping[str, Annotated[int, Ge(0)]] = field(default_factory=dict)
    """There are at most so many calls of a tool; of all tools together that a glob matches."""
    _rules: tuple[_Rule, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        NameParameters.__post_init__(self)
        rules = tuple(self._all_rules(partial(_matcher, self._normalise)))
        if not rules:
            message = "at least one rule is needed: required, allowed, forbidden, must_precede, max_calls or "
            message += "max_calls_per_tool"
            raise ValueError(message)
        object.__setattr__(self, "_rules", rules)

    def evaluate(self, trajectory: Trajectory) -> Outcome:
        """Check each rule."""
        called = positions(called_names(trajectory, self._normalise))
        broken = [(rule, calls) for rule in self._rules if (calls := rule.broken_by(called)) is not None]
        if skipped := cut_off(trajectory, sum(rule.is_requirement for rule, _ in broken)):
            return skipped
        kept, total = len(self._rules) - len(broken), len(self._rules)
        value = kept / total
        explanation = f"{kept} of {total} rules were kept"
        explanation += f"; broken: {_told(broken, trajectory.calls)}." if broken else "."
        details = {
            "rules": {"kept": kept, "total": total},
            "broken": [_broken(rule.text, calls, trajectory.calls) for rule, calls in broken],
        }
        told = [_deviation(rule.text, calls, trajectory.calls) for rule, calls in broken]
        return scored(value, value >= self.threshold, explanation, details, told=told)

    def named_tools(self) -> Iterator[str]:
        """Yield the tools that rules other than `allowed` name: most are kept for ever where a name is mistyped."""
        yield from (*self.required, *self.forbidden, *self.max_calls_per_tool)
        for pair in self.must_precede:
            yield from pair

    def _all_rules(self, matcher: Callable[[str], _Matches]) -> Iterator[_Rule]:
        for tool in self.required:
            yield _Rule(f"required: {tool}", partial(_absent, matcher(tool)), is_requirement=True)
        if self.allowed is not None:
            allowed = [matcher(tool) for tool in self.allowed]
            yield _Rule(f"allowed: {', '.join(self.allowed) or 'none'}", partial(_other, allowed))
        for tool in self.forbidden:
            yield _Rule(f"forbidden: {tool}", partial(_beyond, matcher(tool), 0))
        for first, then in self.must_precede:
            yield _Rule(f"must_precede: {first}, {then}", partial(_too_early, matcher(first), matcher(then)))
        if self.max_calls is not None:
            _limit("max_calls", self.max_calls)
            yield _Rule(f"max_calls: {self.max_calls}", partial(_beyond, lambda _: True, self.max_calls))
        for tool, limit in self.max_calls_per_tool.items():
            _limit(f"max_calls_per_tool.{tool}", limit)
            yield _Rule(f"max_calls_per_tool: {tool}: {limit}", partial(_beyond, matcher(tool), limit))


_Matches: TypeAlias = Callable[[str], bool]


_Called: TypeAlias = Mapping[str, Sequence[int]]
"""Where each tool was called, by normalised name."""


class _Rule(NamedTuple):
    text: str
    broken_by: Callable[[_Called], list[int] | None]
    """Returns the positions of the calls that break the rule; None when it is kept."""
    is_requirement: bool = False
    """Only a call that is not there can break it."""


def _matcher(normalise: Normalise, tool: str) -> _Matches:
    return glob_matcher(tool) if is_glob(tool) else normalise(tool).__eq__


def _limit(parameter: str, limit: int) -> None:
    if type(limit) is not int or limit < 0:
        message = f"{parameter}: must be a whole number of at least 0, not {limit!r}"
        raise ValueError(message)


def _where(matches: _Matches, called: _Called) -> list[int]:
    found = [places for name, places in called.items() if matches(name)]
    return sorted(chain.from_iterable(found)) if found else []


def _absent(matches: _Matches, called: _Called) -> list[int] | None:
    return None if any(map(matches, called)) else []


def _other(allowed: Sequence[_Matches], called: _Called) -> list[int] | None:
    return _where(lambda name: not any(matches(name) for matches in allowed), called) or None


def _beyond(matches: _Matches, limit: int, called: _Called) -> list[int] | None:
    return _where(matches, called)[limit:] or None


def _too_early(first: _Matches, then: _Matches, called: _Called) -> list[int] | None:
    later = _where(then, called)
    earliest = min(_where(first, called), default=math.inf) if later else 0
    return [index for index in later if index <= earliest] or None


def _told(broken: Sequence[tuple[_Rule, Sequence[int]]], calls: Sequence[ToolCall]) -> str:
    """Name the first rules that were broken, each with the call that broke it first."""
    words = []
    for rule, indexes in broken[:_SHOWN]:
        by = f" by {short(calls[indexes[0]].name)} (call {indexes[0] + 1})" if indexes else ""
        more = f" and {len(indexes) - 1} more" if len(indexes) > 1 else ""
        words.append(f"{short(rule.text)!r}{by}{more}")
    return ", ".join(words) + (f" and {len(broken) - _SHOWN} more rules" if len(broken) > _SHOWN else "")


def _deviation(rule: str, indexes: Sequence[int], calls: Sequence[ToolCall]) -> Deviation:
    if indexes:
        return Deviation.at("rule", indexes[0], calls, expected=rule)
    return Deviation(kind="rule", tool=rule.partition(": ")[2], expected=rule)


def _broken(rule: str, indexes: Sequence[int], calls: Sequence[ToolCall]) -> dict[str, object]:
    shown = indexes[:LIMIT]
    spans = [span_id.hex() for index in shown if (span_id := calls[index].span_id) is not None]
    return {"rule": rule, "calls": list(shown), "span_ids": spans}
