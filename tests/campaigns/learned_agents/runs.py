"""Agents by what is true of their runs: which calls they make, in which order, with which arguments.

One description both draws runs and says whether a run is one of the agent's, so that a fault is one for certain.
"""

# ruff: noqa: D102 - the protocol documents the methods
from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import permutations, product
from typing import Any, Final, NamedTuple, Protocol

from campaigns.learned_agents.values import TOOLS, Members, Memory, Value

Counts = dict[str, frozenset[int]]
"""How often each tool may be called; one that is not there is called never."""

_MOST_ATTEMPTS: Final = 3


class Call(NamedTuple):
    """A call of a tool."""

    tool: str
    arguments: dict[str, Any]
    agent: str
    error: str | None = None


Turn = tuple[Call, ...]
"""Calls that a model asked for at once; several run side by side."""


class Run(NamedTuple):
    """What an agent did from its start to its end."""

    turns: tuple[Turn, ...]

    @property
    def calls(self) -> list[Call]:
        """All calls in their order."""
        return [call for turn in self.turns for call in turn]


@dataclass(frozen=True)
class Tool:
    """A tool of an agent."""

    name: str
    arguments: Members = field(default_factory=Members)
    result: Members = field(default_factory=Members)
    takes_ms: float = 200
    agent: str = ""
    """The agent under the first one that calls it; empty for the first one."""
    is_delegation: bool = False
    """Whether the calls of another agent that follow are made inside of it."""
    fails: float = 0.0
    """How probable it is that an attempt fails in passing; it is made again at once, until it is good."""
    fails_until_last: bool = False
    """Whether all calls but the last fail, as tests do that are mended."""


class Steps(Protocol):
    """What is done, in which order."""

    def draw(self, chance: random.Random) -> list[tuple[str, ...]]:
        """Return the names of the tools, by turns."""
        ...

    def ends(self, names: Sequence[str], begin: int) -> set[int]:
        """Return where these steps can end when they begin there."""
        ...

    def counts(self) -> Counts: ...


@dataclass(frozen=True)
class Once:
    """One call."""

    name: str

    def draw(self, chance: random.Random) -> list[tuple[str, ...]]:
        return [(self.name,)]

    def ends(self, names: Sequence[str], begin: int) -> set[int]:
        return {begin + 1} if begin < len(names) and names[begin] == self.name else set()

    def counts(self) -> Counts:
        return {self.name: frozenset({1})}


class InOrder:
    """One after the other."""

    def __init__(self, *steps: Steps | str) -> None:
        self.steps: Final = tuple(map(_step, steps))

    def draw(self, chance: random.Random) -> list[tuple[str, ...]]:
        return [turn for step in self.steps for turn in step.draw(chance)]

    def ends(self, names: Sequence[str], begin: int) -> set[int]:
        found = {begin}
        for step in self.steps:
            found = {end for each in found for end in step.ends(names, each)}
        return found

    def counts(self) -> Counts:
        total: Counts = {}
        for step in self.steps:
            total = _added(total, step.counts())
        return total


class AnyOrder(InOrder):
    """All of them, in an order that varies."""

    def draw(self, chance: random.Random) -> list[tuple[str, ...]]:
        return [turn for step in chance.sample(self.steps, len(self.steps)) for turn in step.draw(chance)]

    def ends(self, names: Sequence[str], begin: int) -> set[int]:
        return {end for each in permutations(self.steps) for end in InOrder(*each).ends(names, begin)}


class Parallel(AnyOrder):
    """Calls that are asked for at once."""

    def draw(self, chance: random.Random) -> list[tuple[str, ...]]:
        return [tuple(name for turn in super().draw(chance) for name in turn)]


class Either:
    """One of several ways."""

    def __init__(self, *ways: Steps | str) -> None:
        self.ways: Final = tuple(map(_step, ways))

    def draw(self, chance: random.Random) -> list[tuple[str, ...]]:
        return chance.choice(self.ways).draw(chance)

    def ends(self, names: Sequence[str], begin: int) -> set[int]:
        return {end for way in self.ways for end in way.ends(names, begin)}

    def counts(self) -> Counts:
        each = [way.counts() for way in self.ways]
        never: frozenset[int] = frozenset({0})
        return {
            name: frozenset().union(*(counts.get(name, never) for counts in each))
            for name in {name for counts in each for name in counts}
        }


@dataclass(frozen=True)
class Repeated:
    """Steps that are done again."""

    step: Steps
    fewest: int
    most: int
    share: float | None = None
    """Of runs that do it at all, where it may be left out; else each number is as probable as another."""

    def draw(self, chance: random.Random) -> list[tuple[str, ...]]:
        times = chance.randint(self.fewest, self.most) if self.share is None else int(chance.random() < self.share)
        return [turn for _ in range(times) for turn in self.step.draw(chance)]

    def ends(self, names: Sequence[str], begin: int) -> set[int]:
        return {end for times in self._times() for end in InOrder(*[self.step] * times).ends(names, begin)}

    def counts(self) -> Counts:
        return Either(*(InOrder(*[self.step] * times) for times in self._times())).counts()

    def _times(self) -> range:
        return range(self.fewest, self.most + 1)


def optional(*steps: Steps | str, share: float = 0.5) -> Repeated:
    """Return steps that a share of the runs do."""
    return Repeated(InOrder(*steps), 0, 1, share)


def repeated(*steps: Steps | str, fewest: int = 1, most: int) -> Repeated:
    """Return steps that are done from so often to so often."""
    return Repeated(InOrder(*steps), fewest, most)


def _step(step: Steps | str) -> Steps:
    return Once(step) if isinstance(step, str) else step


def _added(one: Counts, other: Counts) -> Counts:
    zero: frozenset[int] = frozenset({0})
    return {
        name: frozenset(map(sum, product(one.get(name, zero), other.get(name, zero))))
        for name in one.keys() | other.keys()
    }


@dataclass(frozen=True)
class Agent:
    """A kind of agent."""

    name: str
    tools: Mapping[str, Tool]
    steps: Steps

    @cached_property
    def counts(self) -> Counts:
        """How often each tool is called, attempts that failed in passing not counted."""
        return self.steps.counts()

    def draw(self, chance: random.Random) -> Run:
        """Return a good run."""
        steps = self.steps.draw(chance)
        memory: Memory = {TOOLS: {name for names in steps for name in names}}
        turns: list[Turn] = []
        for names in steps:
            left = tuple(self.call(name, chance, memory) for name in names)
            for attempt in range(1, _MOST_ATTEMPTS + 1):
                failing = [attempt < _MOST_ATTEMPTS and chance.random() < self.tools[call.tool].fails for call in left]
                tried = zip(left, failing, strict=True)
                turns.append(tuple(call._replace(error="TimeoutError") if fails else call for call, fails in tried))
                left = tuple(call for call, fails in zip(left, failing, strict=True) if fails)
                if not left:
                    break
        return Run(self._with_failures_until_last(turns))

    def call(self, name: str, chance: random.Random, memory: Memory) -> Call:
        """Return a call as a good run would make it."""
        tool = self.tools[name]
        return Call(name, tool.arguments.draw(chance, memory), tool.agent or self.name)

    def accepts(self, run: Run) -> bool:
        """Return whether this is a good run."""
        calls = run.calls
        settled = [call for index, call in enumerate(calls) if not self.is_attempt(calls, index)]
        names = [call.tool for call in settled]
        return (
            all(call.tool in self.tools and self.tools[call.tool].arguments.holds(call.arguments) for call in calls)
            and len(names) in self.steps.ends(names, 0)
            and all(call.error is None or self._is_to_fail(settled, index) for index, call in enumerate(settled))
        )

    def is_attempt(self, calls: Sequence[Call], index: int) -> bool:
        """Return whether a call failed in passing and was made again."""
        call = calls[index]
        if call.error is None or call.tool not in self.tools or not self.tools[call.tool].fails:
            return False
        same = [each for each in calls[index + 1 :] if (each.tool, each.arguments) == (call.tool, call.arguments)]
        return any(each.error is None for each in same[: _MOST_ATTEMPTS - 1])

    def _is_to_fail(self, calls: Sequence[Call], index: int) -> bool:
        tool = calls[index].tool
        is_last = all(call.tool != tool for call in calls[index + 1 :])
        return self.tools[tool].fails_until_last and not is_last

    def _with_failures_until_last(self, turns: list[Turn]) -> tuple[Turn, ...]:
        calls = [call for turn in turns for call in turn]
        numbers = iter(range(len(calls)))
        return tuple(
            tuple(
                call._replace(error="AssertionError") if self._is_to_fail(calls, next(numbers)) else call
                for call in turn
            )
            for turn in turns
        )


def tools(*each: Tool) -> dict[str, Tool]:
    """Return tools by their names."""
    return {tool.name: tool for tool in each}


def taking(**arguments: Value) -> Members:
    """Return arguments by their names."""
    return Members(arguments)


def under(agent: str, *each: Tool) -> tuple[Tool, ...]:
    """Return the tools as those of another agent."""
    return tuple(replace(tool, agent=agent) for tool in each)


def each_call(run: Run) -> Iterator[tuple[int, int, Call]]:
    """Yield each call with its turn's number and its own in the turn."""
    for number, turn in enumerate(run.turns):
        for index, call in enumerate(turn):
            yield number, index, call
