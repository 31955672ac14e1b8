"""Rules out of runs that were right: what the steps leave open, and no run did otherwise."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any, Final, NamedTuple, TypeAlias

from spanscore.compare.matching import json_key
from spanscore.learn.evidence import is_chance, is_enumeration, most, times
from spanscore.learn.noted import Noted
from spanscore.model import JSON, ToolCall

Fits: TypeAlias = Callable[[Sequence[str]], bool]
"""Whether the steps let calls of these names through."""

_MOST_PLACES: Final = 12


class _Condition(NamedTuple):
    """That a tool is called, with a certain argument where one is named."""

    tool: str
    argument: str | None = None
    value: JSON = None

    def as_config(self) -> dict[str, Any]:
        if self.argument is None:
            return {"call": self.tool}
        value = {"$literal": self.value} if isinstance(self.value, str) and self.value.startswith("$") else self.value
        return {"call": self.tool, "args": {self.argument: value}}


def learned_rules(runs: Sequence[Sequence[ToolCall]], rare: Sequence[str], fits: Fits) -> dict[str, Any]:
    """Return the parameters of `tool_policy`, with notes; none where there is no rule.

    Args:
        runs: the calls of each, without failed ones.
        rare: the tools that no step names.
        fits: whether the steps let a run through: what they refuse already needs no rule.
    """
    names = [[call.name for call in run] for run in runs]
    rules: dict[str, Any] = {}
    if precede := list(_must_precede(names, fits)):
        rules["must_precede"] = precede
    if limits := {name: _limit(name, names) for name in rare}:
        rules["max_calls_per_tool"] = limits
    if when := list(_when(runs, names, fits)):
        rules["when"] = when
    return rules


def _limit(name: str, runs: Sequence[Sequence[str]]) -> Noted:
    counts = [count for run in runs if (count := run.count(name))]
    return Noted(most(counts), f"{times(counts)}, in {len(counts)} of {len(runs)} runs")


def _must_precede(runs: Sequence[Sequence[str]], fits: Fits) -> Iterator[Noted]:
    """Yield pairs of tools of which the second never came before the first, where the steps let it."""
    firsts = [{name: run.index(name) for name in set(run)} for run in runs]
    having: dict[str, list[int]] = defaultdict(list)
    for number, first in enumerate(firsts):
        for name in first:
            having[name].append(number)
    for left, right in permutations(sorted(having), 2):
        both = [number for number in having[right] if left in firsts[number]]
        if len(both) < len(having[right]) or is_chance(1 / 2, len(both), len(having) * (len(having) - 1)):
            continue
        if all(firsts[number][left] < firsts[number][right] for number in both):
            run = runs[both[0]]
            moved = [right, *run[: firsts[both[0]][right]], *run[firsts[both[0]][right] + 1 :]]
            if fits(moved):
                yield Noted([left, right], f"{len(both)} of {len(runs)} runs")


def _when(runs: Sequence[Sequence[ToolCall]], names: Sequence[Sequence[str]], fits: Fits) -> Iterator[Noted]:
    """Yield what always, and what never, comes with a call, or with a call with a certain argument."""
    having = _runs_with(names)
    sometimes = {tool: held for tool, held in having.items() if len(held) < len(runs)}
    always: dict[str, _Companions] = {}
    conditions = list(_conditions(runs))
    for condition, places in conditions:
        if condition.argument is None and len(places) == len(runs):
            continue
        others = {tool: where for tool, where in sometimes.items() if tool != condition.tool}
        found = _companions(places, names, others, len(conditions) * len(sometimes))
        example = names[min(places)]
        if condition.argument is None:
            always[condition.tool] = found
            before, behind = (
                [tool for tool in tools if fits([each for each in example if each != tool])] for tools in found[:2]
            )
        else:  # what a call brings with it, it brings with any argument, and one tool stands for those it comes with
            known = always.get(condition.tool, _Companions([], [], []))
            before, behind = ([each for each in found[at] if each not in known[at]] for at in (0, 1))
            before, behind = _telling(before, example, fits), _telling(behind, example, fits)
        forbidden = [tool for tool in found.never if _may_be_added(tool, example, condition.tool, fits)]
        then = {"must_precede": before, "must_follow": behind, "forbidden": forbidden}
        if then := {key: tools for key, tools in then.items() if tools}:
            yield Noted(condition.as_config() | {"then": then}, f"{len(places)} of {len(places)} runs with it")


class _Companions(NamedTuple):
    """Tools that some runs call, and all or none of those in which a condition holds."""

    before: list[str]
    behind: list[str]
    never: list[str]


def _companions(
    places: Mapping[int, list[int]], names: Sequence[Sequence[str]], others: Mapping[str, set[int]], tried: int
) -> _Companions:
    found = _Companions([], [], [])
    for tool, where in sorted(others.items()):
        rate = len(where) / len(names)
        if places.keys() <= where and not is_chance(rate, len(places), tried):
            if all(names[number].index(tool) < min(at) for number, at in places.items()):
                found.before.append(tool)
            elif all(_last(names[number], tool) > max(at) for number, at in places.items()):
                found.behind.append(tool)
        elif not places.keys() & where and not is_chance(1 - rate, len(places), tried):
            found.never.append(tool)
    return found


def _last(run: Sequence[str], tool: str) -> int:
    return max(place for place, name in enumerate(run) if name == tool)


def _telling(tools: Sequence[str], run: Sequence[str], fits: Fits) -> list[str]:
    """Return the first of some tools, and those that the steps let miss where the first is there."""
    return [tool for number, tool in enumerate(tools) if not number or fits([each for each in run if each != tool])]


def _runs_with(names: Sequence[Sequence[str]]) -> dict[str, set[int]]:
    having: dict[str, set[int]] = defaultdict(set)
    for number, run in enumerate(names):
        for tool in run:
            having[tool].add(number)
    return having


def _may_be_added(tool: str, run: Sequence[str], beside: str, fits: Fits) -> bool:
    """Return whether the steps let a call of one more tool stand in a run, added or in the place of another one."""
    places = range(len(run) + 1)[:_MOST_PLACES]
    return any(
        fits([*run[:at], tool, *run[at:]]) or (run[at : at + 1] != [beside] and fits([*run[:at], tool, *run[at + 1 :]]))
        for at in places
    )


def _conditions(runs: Sequence[Sequence[ToolCall]]) -> Iterator[tuple[_Condition, dict[int, list[int]]]]:
    """Yield conditions, each with the runs in which it holds, and for which calls: tools, then their few values."""
    tools: dict[str, dict[int, list[int]]] = defaultdict(dict)
    values: dict[tuple[str, str], dict[Any, dict[int, list[int]]]] = defaultdict(dict)
    known: dict[Any, JSON] = {}
    for number, run in enumerate(runs):
        for place, call in enumerate(run):
            tools[call.name].setdefault(number, []).append(place)
            if isinstance(call.arguments, Mapping):
                for argument, value in call.arguments.items():
                    key = json_key(value)
                    known[key] = value
                    values[call.name, argument].setdefault(key, {}).setdefault(number, []).append(place)
    for tool, places in sorted(tools.items()):
        yield _Condition(tool), places
    for (tool, argument), held in sorted(values.items()):
        seen = Counter({key: len(places) for key, places in held.items()})
        telling = all(isinstance(known[key], (str, bool)) for key in held)
        if len(held) > 1 and telling and is_enumeration(seen, len(tools[tool])):
            for key, places in held.items():
                yield _Condition(tool, argument, known[key]), places
