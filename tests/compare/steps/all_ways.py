"""What a run deviates from steps at least, found by going through all ways of making the steps and of aligning them.

Written without the implementation, from the configured steps: a way of making the steps is a list of tokens, each a
tool, its arguments, and the groups that it is in and behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count, product
from typing import Any

MOST_REPEATS = 3
"""So often at most steps are repeated here that may be repeated without end: there must be no more calls."""

_numbers = count()


@dataclass(frozen=True)
class Token:
    """A call that is to be made."""

    tool: str
    args: Any = field(default=None, hash=False)
    parallel: frozenset[int] = frozenset()
    turns: frozenset[int] = frozenset()
    behind: frozenset[int] = field(default=frozenset())
    """The turns that have to be over."""


@dataclass(frozen=True)
class Made:
    """A call that was made."""

    name: str
    args: Any = None
    turn: int = 0


Way = tuple[Token, ...]


def ways(step: Any) -> Iterator[Way]:  # noqa: C901, PLR0912 - a branch for each kind of step
    """Yield each way of making a step, some more than once."""
    if isinstance(step, str):
        yield (Token(step),)
    elif isinstance(step, list):
        yield from _in_a_row([list(ways(each)) for each in step])
    elif "call" in step:
        yield (Token(step["call"], step.get("args")),)
    elif "any_order" in step:
        for chosen in product(*(list(ways(each)) for each in step["any_order"])):
            yield from _shuffled(chosen)
    elif "parallel" in step or "turn" in step:
        kind = "parallel" if "parallel" in step else "turn"
        number = frozenset([next(_numbers)])
        for chosen in product(*(list(ways(each)) for each in step[kind])):
            for way in _shuffled(chosen):
                if kind == "parallel":
                    yield tuple(replace(token, parallel=token.parallel | number) for token in way)
                else:
                    yield tuple(replace(token, turns=token.turns | number) for token in way)
    elif "one_of" in step:
        for branch in step["one_of"]:
            yield from ways(branch)
    elif "optional" in step:
        yield ()
        yield from ways(step["optional"])
    else:
        most = step.get("max")
        for times in range(step.get("min", 1), (MOST_REPEATS if most is None else most) + 1):
            yield from _in_a_row([list(ways(step["repeat"])) for _ in range(times)])


def least(steps: list[Any], calls: list[Made], unexpected: set[str]) -> int:
    """Return the least number of deviations; calls of unexpected tools are one each where they take no step."""
    return min(_least(way, calls, unexpected) for way in set(ways(steps)))


def required(steps: list[Any]) -> int:
    """Return the least number of calls that steps take."""
    return min(map(len, ways(steps)))


def _in_a_row(parts: list[list[Way]]) -> Iterator[Way]:
    for chosen in product(*parts):
        way: Way = ()
        for part in chosen:
            over = frozenset().union(*(token.turns for token in way))
            way += tuple(replace(token, behind=token.behind | over) for token in part)
        yield way


def _shuffled(parts: tuple[Way, ...]) -> Iterator[Way]:
    if not any(parts):
        yield ()
    for index, part in enumerate(parts):
        if part:
            for rest in _shuffled((*parts[:index], part[1:], *parts[index + 1 :])):
                yield (part[0], *rest)


def _least(way: Way, calls: list[Made], unexpected: set[str]) -> int:
    return min(cost for cost in _costs(way, calls, unexpected, []))


def _costs(way: Way, calls: list[Made], unexpected: set[str], taken: list[tuple[Token, Made]]) -> Iterator[int]:
    if not way:
        if _are_together(taken):
            yield sum(call.name in unexpected for call in calls)
        return
    token, rest = way[0], way[1:]
    for cost in _costs(rest, calls, unexpected, taken):
        yield 1 + cost
    for index, call in enumerate(calls):
        if call.name != token.tool:
            continue
        passed = sum(each.name in unexpected for each in calls[:index])
        wrong = token.args is not None and token.args != call.args
        for cost in _costs(rest, calls[index + 1 :], unexpected, [*taken, (token, call)]):
            yield passed + wrong + cost


def _are_together(taken: list[tuple[Token, Made]]) -> bool:
    for index, (one, first) in enumerate(taken):
        for other, second in taken[index + 1 :]:
            if (one.parallel & other.parallel or one.turns & other.turns) and first.turn != second.turn:
                return False
    return all(
        made.turn > earlier.turn for token, made in taken for group, earlier in taken if token.behind & group.turns
    )
