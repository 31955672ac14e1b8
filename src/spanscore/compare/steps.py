"""The steps of an expected trajectory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from spanscore.compare.matchers import Matcher
from spanscore.compare.tool_patterns import ToolPattern

Together: TypeAlias = Literal["parallel", "turn"]
"""What the calls of a group have in common: `parallel` asked in one model turn or overlapping in time, `turn` asked in
one model turn, which is over when the next step begins."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Leaf:
    """One call that is expected. Two that say the same are still two."""

    path: str
    """Where it stands: `steps[1].any_order[0]`."""
    meaning: Hashable
    """The same of two that the same calls fit."""
    tool: ToolPattern
    agent: ToolPattern | None = None
    """Which agent makes the call; None is any."""
    arguments: Matcher | None = None
    """What the arguments have to match."""
    result: Matcher | None = None
    """What the result has to match."""
    fails: bool | None = None
    """Whether the call has to have failed; None where that does not matter."""

    @property
    def has_conditions(self) -> bool:
        """Whether more than its name has to be right."""
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
class OneOf:
    """Branches of which one is made."""

    branches: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A step that is made again and again."""

    path: str
    body: Step
    least: int
    most: int | None


Step: TypeAlias = Leaf | Row | Interleaved | OneOf | Repeat


@dataclass(frozen=True, slots=True)
class AgentBlock:
    """What holds for the calls of an agent."""

    agent: ToolPattern
    allows: Callable[[str], bool]
    """Whether a tool may be called that no step expects."""


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
        case OneOf(branches):
            return min(map(required, branches))
        case Repeat(body=body, least=least):
            return least * required(body)


def leaves(step: Step, together: Together | None = None) -> Iterator[Leaf]:
    """Yield the calls that a step names, in order; all, or those only that have to be made together in some way."""
    match step:
        case Leaf():
            if together is None:
                yield step
        case Row(steps) | OneOf(steps):
            for each in steps:
                yield from leaves(each, together)
        case Interleaved(members=steps):
            for each in steps:
                yield from leaves(each, None if step.together == together else together)
        case Repeat(body=body):
            yield from leaves(body, together)


def groups(step: Step, around: Interleaved | None = None) -> Iterator[tuple[Leaf, Interleaved]]:
    """Yield each call that has to be made together with others, and the innermost group that says so."""
    match step:
        case Leaf():
            if around is not None:
                yield step, around
        case Row(steps) | OneOf(steps):
            for each in steps:
                yield from groups(each, around)
        case Interleaved(members=steps):
            for each in steps:
                yield from groups(each, step if step.together is not None else around)
        case Repeat(body=body):
            yield from groups(body, around)


def is_plain(step: Step) -> bool:
    """Return whether every call that a step names has to be made."""
    match step:
        case Leaf():
            return True
        case Row(steps) | Interleaved(members=steps):
            return all(map(is_plain, steps))
        case _:
            return False
