"""Ten kinds of faults in runs of agents that act by chance, each only where it is one by what the agent does."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from campaigns.learned_agents import Agent, Call, call, failed

_RUNS = 600


@dataclass(frozen=True, slots=True)
class Facts:
    """What holds for an agent, read off many of its runs."""

    tools: Sequence[str]
    once: frozenset[str]
    """The tools that are called exactly once in every run."""
    ordered: frozenset[tuple[str, str]]
    """Of these, which comes before which in every run."""
    values: Mapping[tuple[str, str], Sequence[Any]]
    """What an argument of a tool may be."""


def facts(agent: Agent) -> Facts:
    """Read them off."""
    chance = random.Random(4242)
    runs = [agent(chance) for _ in range(_RUNS)]
    made = [[each["name"] for each in run if "error" not in each] for run in runs]
    counts = [Counter(names) for names in made]
    tools = sorted({name for names in made for name in names})
    once = [name for name in tools if all(count[name] == 1 for count in counts)]
    values: dict[tuple[str, str], list[Any]] = {}
    for run in runs:
        for each in run:
            for argument, value in each["arguments"].items():
                values.setdefault((each["name"], argument), []).append(value)
    ordered = {
        (one, other)
        for one in once
        for other in once
        if one != other and all(names.index(one) < names.index(other) for names in made)
    }
    return Facts(tools, frozenset(once), frozenset(ordered), values)


Fault = Callable[[list[Call], Facts, random.Random], list[Call] | None]
"""Puts a fault into a run; None where it has no place for it."""


def left_out(run: list[Call], known: Facts, chance: random.Random) -> list[Call] | None:
    """A step that every run has."""
    place = _one(run, known, chance)
    return [*run[:place], *run[place + 1 :]]


def out_of_order(run: list[Call], known: Facts, chance: random.Random) -> list[Call] | None:
    """Two steps that every run has in one order change places."""
    places = [
        (one, other)
        for one in _good(run)
        for other in _good(run)
        if one < other and (run[one]["name"], run[other]["name"]) in known.ordered
    ]
    if not places:
        return None
    one, other = chance.choice(places)
    run[one], run[other] = run[other], run[one]
    return run


def added(run: list[Call], _known: Facts, chance: random.Random) -> list[Call] | None:
    """A tool that the agent never calls."""
    run.insert(chance.randint(0, len(run)), call("delete_account", id=3))
    return run


def twice(run: list[Call], known: Facts, chance: random.Random) -> list[Call] | None:
    """A step that every run has once is made again."""
    place = _one(run, known, chance)
    return [*run[: place + 1], dict(run[place]), *run[place + 1 :]]


def loop(run: list[Call], _known: Facts, chance: random.Random) -> list[Call] | None:
    """Some call is made seven times."""
    place = chance.choice(_good(run))
    return [*run[:place], *(dict(run[place]) for _ in range(6)), *run[place:]]


def other_type(run: list[Call], _known: Facts, chance: random.Random) -> list[Call] | None:
    """An argument is of another type."""
    place, argument = chance.choice(_arguments(run))
    value = run[place]["arguments"][argument]
    others = [[value], {"value": value}, 12345 if isinstance(value, str) else str(value)]
    return _with(run, place, argument, others[0] if isinstance(value, dict) else chance.choice(others[1:] + others[:1]))


def out_of_range(run: list[Call], known: Facts, chance: random.Random) -> list[Call] | None:
    """A number is far above all that may be, or far below."""
    places = [at for at in _arguments(run) if type(run[at[0]]["arguments"][at[1]]) in {int, float}]
    if not places:
        return None
    place, argument = chance.choice(places)
    most = max(known.values[run[place]["name"], argument])
    return _with(run, place, argument, chance.choice([most * 10 + 1000, -abs(most) * 3 - 10]))


def new_value(run: list[Call], known: Facts, chance: random.Random) -> list[Call] | None:
    """One of a few words is another word."""
    places = [
        (place, argument)
        for place, argument in _arguments(run)
        if isinstance(run[place]["arguments"][argument], str)
        and len(set(known.values[run[place]["name"], argument])) <= 5
    ]
    return _with(run, *chance.choice(places), "something_else") if places else None


def not_retried(run: list[Call], known: Facts, chance: random.Random) -> list[Call] | None:
    """A step that every run has fails, and that is that."""
    place = _one(run, known, chance)
    run[place] = failed(run[place])
    return run


def wrong_tool(run: list[Call], known: Facts, chance: random.Random) -> list[Call] | None:
    """Another tool, of the agent's own or not, in place of a step that every run has."""
    place = _one(run, known, chance)
    others = [name for name in known.tools if name != run[place]["name"]]
    run[place] = run[place] | {"name": chance.choice([*others, "lookup_thing"])}
    return run


FAULTS: Mapping[str, Fault] = {
    "left out": left_out,
    "order": out_of_order,
    "added": added,
    "twice": twice,
    "loop": loop,
    "type": other_type,
    "range": out_of_range,
    "value": new_value,
    "not retried": not_retried,
    "wrong tool": wrong_tool,
}


def _good(run: Sequence[Call]) -> list[int]:
    return [place for place, each in enumerate(run) if "error" not in each]


def _one(run: Sequence[Call], known: Facts, chance: random.Random) -> int:
    """Return the place of a step that every run has once."""
    return chance.choice([place for place in _good(run) if run[place]["name"] in known.once])


def _arguments(run: Sequence[Call]) -> list[tuple[int, str]]:
    return [(place, argument) for place in _good(run) for argument in run[place]["arguments"]]


def _with(run: list[Call], place: int, argument: str, value: Any) -> list[Call]:
    run[place] = run[place] | {"arguments": run[place]["arguments"] | {argument: value}}
    return run
