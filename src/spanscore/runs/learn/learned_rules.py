"""Rules from correct runs: properties of all runs that the steps do not express."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import Any, Final, NamedTuple, TypeAlias

from spanscore.compare.effort import Effort, TooMuchWorkError
from spanscore.compare.matching import json_key
from spanscore.model import JSON, ToolCall
from spanscore.runs.learn.evidence import Noted, is_chance, is_enumeration, most, times
from spanscore.runs.learn.structure import counts_by_name

Fits: TypeAlias = Callable[[Sequence[str]], bool]
"""Returns whether the steps allow calls of these names."""

_Places: TypeAlias = Mapping[str, tuple[int, int]]
"""The first and the last place of each tool in a run."""

_MOST_PLACES: Final = 12
"""A tool is tried at so many places of a run: each takes two alignments."""


class _LearnedCondition(NamedTuple):
    """A condition: a tool is called, with a certain value of an argument if one is named."""

    tool: str
    argument: str | None = None
    value: JSON = None

    def as_config(self) -> dict[str, Any]:
        if self.argument is None:
            return {"call": self.tool}
        value = {"$literal": self.value} if isinstance(self.value, str) and self.value.startswith("$") else self.value
        return {"call": self.tool, "args": {self.argument: value}}


def learned_rules(
    runs: Sequence[Sequence[ToolCall]], rare: Sequence[str], fits: Fits, effort: Effort
) -> dict[str, Any]:
    """Return the parameters of `tool_policy`, with notes; none where there is no rule.

    Args:
        runs: the calls of each, without failed ones.
        rare: the tools that no step names.
        fits: whether the steps accept a run: runs that they refuse need no rule.
        effort: the work that this may take; after it is spent, no more rules are searched.
    """
    names = [[call.name for call in run] for run in runs]
    places_in = [_places(run) for run in names]
    having: dict[str, list[int]] = defaultdict(list)
    for number, places in enumerate(places_in):
        for name in places:
            having[name].append(number)
    rules: dict[str, Any] = {"must_precede": [], "max_calls_per_tool": _limits(rare, names), "when": []}
    with suppress(TooMuchWorkError):  # the rules that were found so far are valid
        for rule in _must_precede(names, places_in, having, fits, effort):
            rules["must_precede"].append(rule)
        sometimes = {tool: set(held) for tool, held in having.items() if len(held) < len(runs)}
        for rule in _when(runs, places_in, sometimes, fits, effort):
            rules["when"].append(rule)
    return {name: found for name, found in rules.items() if found}


def _limits(rare: Sequence[str], runs: Sequence[Sequence[str]]) -> dict[str, Noted]:
    counts = counts_by_name(runs)
    seen = {name: f"{times(counts[name])}, in {len(counts[name])} of {len(runs)} runs" for name in rare}
    return {name: Noted(most(counts[name]), note) for name, note in seen.items()}


def _must_precede(
    runs: Sequence[Sequence[str]],
    places_in: Sequence[_Places],
    having: Mapping[str, list[int]],
    fits: Fits,
    effort: Effort,
) -> Iterator[Noted]:
    """Yield pairs of tools whose second never came before the first, although the steps allow it."""
    firsts = [{name: first for name, (first, _) in places.items()} for places in places_in]
    tried = len(having) * (len(having) - 1)
    often = [name for name in sorted(having) if not is_chance(1 / 2, len(having[name]), tried)]
    for left, right in product(sorted(having), often):
        both = having[right]
        effort.spend(1 + len(both) // 10)
        if left == right or len(having[left]) < len(both):
            continue
        if all(firsts[number].get(left, len(runs[number])) < firsts[number][right] for number in both):
            run, place = runs[both[0]], firsts[both[0]][right]
            if fits([right, *run[:place], *run[place + 1 :]]):
                yield Noted([left, right], f"{len(both)} of {len(runs)} runs")


def _when(
    runs: Sequence[Sequence[ToolCall]],
    places_in: Sequence[_Places],
    sometimes: Mapping[str, set[int]],
    fits: Fits,
    effort: Effort,
) -> Iterator[Noted]:
    """Yield the tools that always, and that never, accompany a call, or a call with a certain argument."""
    always: dict[str, _Companions] = {}
    conditions = list(_conditions(runs))
    for condition, places in conditions:
        if condition.argument is None and len(places) == len(runs):
            continue
        effort.spend(len(sometimes) * (1 + len(places) // 10))
        others = {tool: where for tool, where in sometimes.items() if tool != condition.tool}
        found = _companions(places, places_in, others, len(conditions) * len(sometimes))
        example = [call.name for call in runs[min(places)]]
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
    """Tools that some runs call, and that all or none of the runs with a condition call."""

    before: list[str]
    behind: list[str]
    never: list[str]


def _companions(
    places: Mapping[int, list[int]], places_in: Sequence[_Places], others: Mapping[str, set[int]], tried: int
) -> _Companions:
    found = _Companions([], [], [])
    for tool, where in sorted(others.items()):
        rate = len(where) / len(places_in)
        if places.keys() <= where and not is_chance(rate, len(places), tried):
            if all(places_in[number][tool][0] < at[0] for number, at in places.items()):
                found.before.append(tool)
            elif all(places_in[number][tool][1] > at[-1] for number, at in places.items()):
                found.behind.append(tool)
        elif not places.keys() & where and not is_chance(1 - rate, len(places), tried):
            found.never.append(tool)
    return found


def _places(run: Sequence[str]) -> _Places:
    found: dict[str, tuple[int, int]] = {}
    for place, name in enumerate(run):
        found[name] = found.get(name, (place,))[0], place
    return found


def _telling(tools: Sequence[str], run: Sequence[str], fits: Fits) -> list[str]:
    """Return the first of some tools, and the others that the steps allow to be missing."""
    return [tool for number, tool in enumerate(tools) if not number or fits([each for each in run if each != tool])]


def _may_be_added(tool: str, run: Sequence[str], beside: str, fits: Fits) -> bool:
    """Return whether the steps accept a run with one more tool, added or in place of another one."""
    places = range(len(run) + 1)[:_MOST_PLACES]
    return any(
        fits([*run[:at], tool, *run[at:]]) or (run[at : at + 1] != [beside] and fits([*run[:at], tool, *run[at + 1 :]]))
        for at in places
    )


def _conditions(runs: Sequence[Sequence[ToolCall]]) -> Iterator[tuple[_LearnedCondition, dict[int, list[int]]]]:
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
        yield _LearnedCondition(tool), places
    for (tool, argument), held in sorted(values.items()):
        seen = Counter({key: len(places) for key, places in held.items()})
        telling = all(isinstance(known[key], (str, bool)) for key in held)
        if len(held) > 1 and telling and is_enumeration(seen, len(tools[tool])):
            for key, places in held.items():
                yield _LearnedCondition(tool, argument, known[key]), places
