"""Rules about which tools may, must and must not be called, and which calls break them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, pairwise
from typing import Annotated, Any, ClassVar, Final, NamedTuple, TypeAlias

from annotated_types import Ge, MinLen

from spanscore.compare.globs import glob_matcher, is_glob
from spanscore.compare.matching import positions
from spanscore.compare.names import Normalise, called_names
from spanscore.model import Trajectory

Limit: TypeAlias = Annotated[int, Ge(0)]

_SHORTEST_SEQUENCE: Final = 2


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules. Tools are named or given as a glob: `*` stands for any characters, `?` for one."""

    __pydantic_config__: ClassVar[Mapping[str, str]] = {"extra": "forbid"}

    required: tuple[str, ...] = ()
    """Each of these tools is called."""
    allowed: tuple[str, ...] | None = None
    """No other tools are called; with an empty list, none at all."""
    forbidden: tuple[str, ...] = ()
    """None of these tools is called: `[delete_*]`."""
    forbidden_sequences: tuple[Annotated[tuple[str, ...], MinLen(_SHORTEST_SEQUENCE)], ...] = ()
    """Tools that are never called one right after the other: `[[delete_*, create_*]]`."""
    must_precede: tuple[tuple[str, str], ...] = ()
    """Pairs `[first, then]`: every call of the second tool comes after a call of the first."""
    must_follow: tuple[tuple[str, str], ...] = ()
    """Pairs `[first, then]`: after every call of the first tool comes a call of the second: `[[open_*, close_*]]`."""
    never_after: tuple[tuple[str, str], ...] = ()
    """Pairs `[first, then]`: after a call of the first tool the second is not called: `[[finalize, "*"]]`."""
    max_calls: Limit | None = None
    """There are at most so many calls."""
    max_calls_per_tool: Mapping[str, Limit] = field(default_factory=dict)
    """There are at most so many calls of a tool; of all tools together that a glob matches."""
    max_retries_per_tool: Mapping[str, Limit] = field(default_factory=dict)
    """A tool is retried at most so often; each tool that a glob matches. A retry is the next call of a tool after one
    that failed, whatever stands between."""
    declared_tools_only: bool = False
    """Only tools are called that the trace itself declares."""

    def each(self, normalise: Normalise) -> Iterator[Rule]:
        """Yield the rules.

        Raises:
            ValueError: one of them means nothing.
        """
        matcher = partial(_matcher, normalise)
        for tool in self.required:
            yield Rule(f"required: {tool}", partial(_absent, matcher(tool)), is_requirement=True)
        if self.allowed is not None:
            allowed = [matcher(tool) for tool in self.allowed]
            yield Rule(f"allowed: {', '.join(self.allowed) or 'none'}", partial(_other, allowed))
        for tool in self.forbidden:
            yield Rule(f"forbidden: {tool}", partial(_beyond, matcher(tool), 0))
        for sequence in self.forbidden_sequences:
            if len(sequence) < _SHORTEST_SEQUENCE:
                message = f"forbidden_sequences: a sequence must have at least 2 tools, not {list(sequence)!r}"
                raise ValueError(message)
            yield Rule(f"forbidden_sequences: {', '.join(sequence)}", partial(_in_a_row, [*map(matcher, sequence)]))
        for first, then in self.must_precede:
            yield Rule(f"must_precede: {first}, {then}", partial(_too_early, matcher(first), matcher(then)))
        for first, then in self.must_follow:
            broken_by = partial(_not_followed, matcher(first), matcher(then))
            yield Rule(f"must_follow: {first}, {then}", broken_by, is_requirement=True)
        for first, then in self.never_after:
            yield Rule(f"never_after: {first}, {then}", partial(_too_late, matcher(first), matcher(then)))
        yield from self._limits(matcher)
        if self.declared_tools_only:
            yield Rule("declared_tools_only", _undeclared, needs_declarations=True)

    def named_tools(self) -> Iterator[str]:
        """Yield the tools that rules other than `allowed` name: most are kept for ever where a name is mistyped."""
        yield from (*self.required, *self.forbidden, *self.max_calls_per_tool, *self.max_retries_per_tool)
        pairs: Sequence[Sequence[str]] = (*self.must_precede, *self.must_follow, *self.never_after)
        yield from chain.from_iterable((*pairs, *self.forbidden_sequences))

    def _limits(self, matcher: Callable[[str], _Matches]) -> Iterator[Rule]:
        if self.max_calls is not None:
            _check_limit("max_calls", self.max_calls)
            yield Rule(f"max_calls: {self.max_calls}", partial(_beyond, lambda _: True, self.max_calls))
        for tool, limit in self.max_calls_per_tool.items():
            _check_limit(f"max_calls_per_tool.{tool}", limit)
            yield Rule(f"max_calls_per_tool: {tool}: {limit}", partial(_beyond, matcher(tool), limit))
        for tool, limit in self.max_retries_per_tool.items():
            _check_limit(f"max_retries_per_tool.{tool}", limit)
            yield Rule(f"max_retries_per_tool: {tool}: {limit}", partial(_retried, matcher(tool), limit))


class Run(NamedTuple):
    """The calls that rules look at, by their indexes in the trajectory."""

    order: Sequence[int]
    """The calls that count, in order."""
    names: Sequence[str]
    """The normalised name of every call, also of those that do not count."""
    called: Mapping[str, Sequence[int]]
    """Where each tool was called, by normalised name."""
    failed: Collection[int]
    declared: Callable[[], Collection[str]]
    """Returns the normalised names of the tools that the trace declares, which takes long to find out."""

    @classmethod
    def of(cls, trajectory: Trajectory, normalise: Normalise, *, ignore_failed: bool = False) -> Run:
        """Return what rules look at of a trajectory; with `ignore_failed` only retries still count failed calls."""
        names = called_names(trajectory, normalise)
        failed = frozenset(index for index, call in enumerate(trajectory.calls) if call.error is not None)
        called = positions(names)
        order: Sequence[int] = range(len(names))
        if ignore_failed and failed:
            order = [index for index in order if index not in failed]
            kept = {name: [index for index in places if index not in failed] for name, places in called.items()}
            called = {name: places for name, places in kept.items() if places}
        return cls(order, names, called, failed, lambda: frozenset(map(normalise, trajectory.tool_definitions)))


class Rule(NamedTuple):
    """One rule."""

    text: str
    broken_by: Callable[[Run], list[int] | None]
    """Returns the indexes of the calls that break the rule; None when it is kept."""
    is_requirement: bool = False
    """Only a call that is not there can break it."""
    needs_declarations: bool = False
    """It asks which tools the trace declares."""


_Matches: TypeAlias = Callable[[str], bool]


def _matcher(normalise: Normalise, tool: str) -> _Matches:
    return glob_matcher(tool) if is_glob(tool) else normalise(tool).__eq__


def _check_limit(parameter: str, limit: Any) -> None:
    if type(limit) is not int or limit < 0:
        message = f"{parameter}: must be a whole number of at least 0, not {limit!r}"
        raise ValueError(message)


def _where(matches: _Matches, run: Run) -> list[int]:
    found = [places for name, places in run.called.items() if matches(name)]
    return sorted(chain.from_iterable(found)) if found else []


def _absent(matches: _Matches, run: Run) -> list[int] | None:
    return None if any(map(matches, run.called)) else []


def _other(allowed: Sequence[_Matches], run: Run) -> list[int] | None:
    return _where(lambda name: not any(matches(name) for matches in allowed), run) or None


def _beyond(matches: _Matches, limit: int, run: Run) -> list[int] | None:
    return _where(matches, run)[limit:] or None


def _in_a_row(sequence: Sequence[_Matches], run: Run) -> list[int] | None:
    """Return the calls that complete the sequence."""
    fits = [{name for name in run.called if matches(name)} for matches in sequence]
    starts = range(len(run.order) - len(fits) + 1)
    found = (
        run.order[start + len(fits) - 1]
        for start in starts
        if all(run.names[run.order[start + place]] in names for place, names in enumerate(fits))
    )
    return list(found) or None


def _too_early(first: _Matches, then: _Matches, run: Run) -> list[int] | None:
    later = _where(then, run)
    earliest = min(_where(first, run), default=math.inf) if later else 0
    return [index for index in later if index <= earliest] or None


def _not_followed(first: _Matches, then: _Matches, run: Run) -> list[int] | None:
    earlier = _where(first, run)
    latest = max(_where(then, run), default=-1) if earlier else 0
    return [index for index in earlier if index >= latest] or None


def _too_late(first: _Matches, then: _Matches, run: Run) -> list[int] | None:
    later = _where(then, run)
    earliest = min(_where(first, run), default=math.inf) if later else 0
    return [index for index in later if index > earliest] or None


def _retried(matches: _Matches, limit: int, run: Run) -> list[int] | None:
    found: list[int] = []
    for name, places in positions(run.names).items():
        if matches(name):
            found += [again for before, again in pairwise(places) if before in run.failed][limit:]
    return sorted(found) or None


def _undeclared(run: Run) -> list[int] | None:
    declared = run.declared()
    return _where(lambda name: name not in declared, run) or None
