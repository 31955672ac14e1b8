"""The steps of an expected trajectory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from spanscore.compare.globs import glob_matcher, is_glob
from spanscore.compare.matchers.base import Matcher

Together: TypeAlias = Literal["parallel", "turn"]
"""The relation of the calls of a group: `parallel` is requested in one model turn or overlapping in time, `turn` is
requested in one model turn, which ends before the next step begins."""
_OTHERS: Final = "!"


@dataclass(frozen=True, slots=True)
class ToolPattern:
    """A name of a tool or an agent, a glob, or all other names."""

    text: str
    """As it was given."""
    literal: str | None
    """The only name that matches, normalised; None where several may."""
    matches: Callable[[str], bool] = field(compare=False, repr=False)
    """Returns whether a normalised name matches."""

    def may_share(self, other: ToolPattern) -> bool:
        """Return whether one name may match both; of two globs that is not found out."""
        if self.literal is not None:
            return other.matches(self.literal)
        return other.literal is None or self.matches(other.literal)


def tool_pattern(text: str, normalise: Callable[[str], str]) -> ToolPattern:
    """Return which names a text means. A glob is compared with normalised names as it is."""
    name = text.removeprefix(_OTHERS)
    is_plain = not is_glob(name)
    match = glob_matcher(normalise(name) if is_plain else name)
    if text.startswith(_OTHERS):
        return ToolPattern(text, None, lambda called: not match(called))
    return ToolPattern(text, normalise(name) if is_plain else None, match)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Leaf:
    """One expected call. Two equal ones are still two calls."""

    path: str
    """Its place: `steps[1].any_order[0]`."""
    meaning: Hashable
    """Equal for leaves that the same calls fit."""
    tool: ToolPattern
    agent: ToolPattern | None = None
    """The agent that makes the call; None for any."""
    arguments: Matcher | None = None
    """The matcher of the arguments; None for any."""
    result: Matcher | None = None
    """The matcher of the result; None for any."""
    fails: bool | None = None
    """Whether the call must have failed; None if that does not matter."""

    @property
    def has_conditions(self) -> bool:
        """Whether it has conditions besides the name."""
        return self.arguments is not None or self.result is not None or self.fails is not None


@dataclass(frozen=True, slots=True)
class Row:
    """Steps in order."""

    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Interleaved:
    """Members that are all made, in any order, or one between the calls of another."""

    path: str
    members: tuple[Step, ...]
    together: Together | None = None


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Branches of which one is made."""

    branches: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A step that is made again and again."""

    path: str
    body: Step
    least: int
    most: int | None


Step: TypeAlias = Leaf | Row | Interleaved | Alternatives | Repeat


@dataclass(frozen=True, slots=True)
class AgentBlock:
    """The rules for the calls of an agent."""

    agent: ToolPattern
    allows: Callable[[str], bool]
    """Returns whether a tool may be called that no step expects."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """An expected trajectory."""

    row: Row
    blocks: tuple[AgentBlock, ...]


def required(step: Step) -> int:
    """Return the least number of calls that a step takes."""
    match step:
        case Leaf():
            return 1
        case Row(steps):
            return sum(map(required, steps))
        case Interleaved(members=members):
            return sum(map(required, members))
        case Alternatives(branches):
            return min(map(required, branches))
        case Repeat(body=body, least=least):
            return least * required(body)


def leaves(step: Step, together: Together | None = None) -> Iterator[Leaf]:
    """Yield the calls that a step names, in order: all, or only calls inside a group of the kind `together`."""
    for leaf, around in _within_groups(step, ()):
        if together is None or any(group.together == together for group in around):
            yield leaf


def groups(step: Step) -> Iterator[tuple[Leaf, Interleaved]]:
    """Yield each call of a group, and its innermost group."""
    for leaf, around in _within_groups(step, ()):
        if around:
            yield leaf, around[-1]


def _within_groups(step: Step, around: tuple[Interleaved, ...]) -> Iterator[tuple[Leaf, tuple[Interleaved, ...]]]:
    """Yield the calls that a step names, each with the groups around it whose calls are made together."""
    match step:
        case Leaf():
            yield step, around
        case Row(steps) | Alternatives(steps):
            for each in steps:
                yield from _within_groups(each, around)
        case Interleaved(members=members):
            for each in members:
                yield from _within_groups(each, around if step.together is None else (*around, step))
        case Repeat(body=body):
            yield from _within_groups(body, around)


def is_plain(step: Step) -> bool:
    """Return whether every call that a step names has to be made."""
    match step:
        case Leaf():
            return True
        case Row(steps) | Interleaved(members=steps):
            return all(map(is_plain, steps))
        case _:
            return False
