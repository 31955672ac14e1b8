"""Ten kinds of faults, each made in a good run, and only where the agent's own description refuses what comes of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any, Final, NamedTuple

from campaigns.learned_agents.runs import Agent, Call, Run, each_call
from campaigns.learned_agents.values import TOOLS, Number, OneOf, Path, Value, of_another_type, places, replaced

_UNKNOWN_TOOLS: Final = ("delete_account", "run_shell", "post_to_forum", "export_everything", "buy_now")
_TRIES: Final = 200
_LOOP: Final = (5, 12)


class Faulty(NamedTuple):
    """A run with one fault."""

    run: Run
    what: str
    """What was done to it, for people."""


class _Place(NamedTuple):
    """A value inside of the arguments of a call."""

    turn: int
    nth: int
    """The number of the call in the turn."""
    call: Call
    path: Path
    allowed: Value
    value: Any


def faulty(agent: Agent, fault: str, chance: random.Random) -> Faulty | None:
    """Return a run of the agent with a fault of this kind.

    None where no run of it can have one, such as a new value where nothing is enumerated.
    """
    for _ in range(_TRIES):
        run = agent.draw(chance)
        found = list(FAULTS[fault](agent, run, chance))
        chance.shuffle(found)
        for each in found:
            if not agent.accepts(each.run):
                return each
    return None


def _left_out(agent: Agent, run: Run, _chance: random.Random) -> Iterator[Faulty]:
    """A call of a tool that every run has to call, and as often as here: all attempts of it are gone."""
    for *_, call in _settled(agent, run):
        left = sum(each.tool == call.tool for *_, each in _settled(agent, run)) - 1
        counts = agent.counts[call.tool]
        if 0 not in counts and (len(counts) == 1 or left == 0):
            yield Faulty(_without(run, [call, *_attempts(run, call)]), f"{call.tool} left out")


def _out_of_order(agent: Agent, run: Run, _: random.Random) -> Iterator[Faulty]:
    """Two calls of one agent, to tools that every run has to call, have changed places."""
    able = [
        each
        for each in _settled(agent, run)
        if 0 not in agent.counts[each[2].tool] and not _attempts(run, each[2]) and each[2].error is None
    ]
    for (at, index, call), (to, other_index, other) in combinations(able, 2):
        if at != to and call.tool != other.tool and call.agent == other.agent:
            changed = _with(_with(run, at, index, other), to, other_index, call)
            yield Faulty(changed, f"{call.tool} and {other.tool} changed places")


def _tool_added(_: Agent, run: Run, chance: random.Random) -> Iterator[Faulty]:
    """A tool that the agent does not have."""
    at = chance.randrange(len(run.turns) + 1)
    name = chance.choice(_UNKNOWN_TOOLS)
    agent = run.turns[min(at, len(run.turns) - 1)][0].agent
    yield Faulty(_inserted(run, at, Call(name, {"id": chance.randrange(1_000)}, agent)), f"{name} added")


def _called_twice(agent: Agent, run: Run, chance: random.Random) -> Iterator[Faulty]:
    """A tool that is called once in every run; attempts do not fail in passing."""
    for number, _, call in each_call(run):
        tool = agent.tools[call.tool]
        if agent.counts[call.tool] == {1} and not tool.fails and not tool.fails_until_last:
            at = number + 1 if chance.random() < 1 / 2 else chance.randint(number + 1, len(run.turns))
            yield Faulty(_inserted(run, at, call), f"{call.tool} called twice")


def _loop(_: Agent, run: Run, chance: random.Random) -> Iterator[Faulty]:
    """One call that is made again and again, five times or more, and as it was."""
    for number, _, call in each_call(run):
        times = chance.randint(*_LOOP)
        yield Faulty(_inserted(run, number + 1, *[call] * (times - 1)), f"{call.tool} called {times} times in a row")


def _wrong_type(agent: Agent, run: Run, chance: random.Random) -> Iterator[Faulty]:
    """An argument, or a value inside of one, is of another type of JSON."""
    for place in _places(agent, run):
        yield _told(run, place, of_another_type(chance, place.value))


def _out_of_range(agent: Agent, run: Run, chance: random.Random) -> Iterator[Faulty]:
    """A number is ten times the largest that there is, or has a minus where none has one."""
    for place in _places(agent, run):
        if isinstance(place.allowed, Number):
            yield _told(run, place, place.allowed.far(chance, place.value))


def _new_value(agent: Agent, run: Run, chance: random.Random) -> Iterator[Faulty]:
    """A value that is not in a closed list."""
    for place in _places(agent, run):
        if isinstance(place.allowed, OneOf):
            yield _told(run, place, chance.choice(place.allowed.new))


def _not_retried(agent: Agent, run: Run, _: random.Random) -> Iterator[Faulty]:
    """A call fails, no later one of the tool is good, and the run goes on."""
    calls = list(each_call(run))
    for place, (number, index, call) in enumerate(calls):
        if call.error is not None or any(each.tool == call.tool for *_, each in calls[place + 1 :]):
            continue
        if _attempts(run, call):
            changed = _without(run, [call])
        else:
            tool = agent.tools[call.tool]
            error = "AssertionError" if tool.fails_until_last else "TimeoutError"
            changed = _with(run, number, index, call._replace(error=error))
        yield Faulty(changed, f"{call.tool} failed and was not tried again")


def _wrong_tool(agent: Agent, run: Run, chance: random.Random) -> Iterator[Faulty]:
    """Another tool of the agent in place of one that is called equally often in all runs that call it."""
    for number, index, call in _settled(agent, run):
        others = [each for each in agent.tools.values() if each.name != call.tool and _calls_it(agent, each.name, call)]
        if len(agent.counts[call.tool] - {0}) == 1 and not _attempts(run, call) and others:
            other = agent.call(chance.choice(others).name, chance, {TOOLS: ()})
            yield Faulty(_with(run, number, index, other), f"{other.tool} in place of {call.tool}")


FAULTS: Final[dict[str, Callable[[Agent, Run, random.Random], Iterator[Faulty]]]] = {
    "left out": _left_out,
    "order": _out_of_order,
    "tool added": _tool_added,
    "twice": _called_twice,
    "loop": _loop,
    "type": _wrong_type,
    "range": _out_of_range,
    "new value": _new_value,
    "not retried": _not_retried,
    "wrong tool": _wrong_tool,
}


def _settled(agent: Agent, run: Run) -> list[tuple[int, int, Call]]:
    """Return the calls but those that failed in passing and were made again."""
    calls = run.calls
    return [each for place, each in enumerate(each_call(run)) if not agent.is_attempt(calls, place)]


def _places(agent: Agent, run: Run) -> Iterator[_Place]:
    for number, index, call in _settled(agent, run):
        if not _attempts(run, call):
            for path, allowed, value in places(agent.tools[call.tool].arguments, call.arguments):
                yield _Place(number, index, call, path, allowed, value)


def _told(run: Run, place: _Place, new: Any) -> Faulty:
    call = place.call._replace(arguments=replaced(place.call.arguments, place.path, new))
    where = "/".join(map(str, place.path))
    return Faulty(_with(run, place.turn, place.nth, call), f"{call.tool}: {where} is {new!r}")


def _calls_it(agent: Agent, name: str, call: Call) -> bool:
    """Return whether the tool is one of the agent that made the call."""
    return (agent.tools[name].agent or agent.name) == call.agent


def _is_same(one: Call, other: Call) -> bool:
    return (one.tool, one.arguments) == (other.tool, other.arguments)


def _attempts(run: Run, call: Call) -> list[Call]:
    """Return the failed attempts of a call."""
    return [each for each in run.calls if each is not call and _is_same(each, call) and each.error is not None]


def _with(run: Run, number: int, index: int, call: Call) -> Run:
    turn = run.turns[number]
    return Run((*run.turns[:number], (*turn[:index], call, *turn[index + 1 :]), *run.turns[number + 1 :]))


def _inserted(run: Run, at: int, *calls: Call) -> Run:
    return Run((*run.turns[:at], *((call,) for call in calls), *run.turns[at:]))


def _without(run: Run, gone: list[Call]) -> Run:
    """Return the run without these very calls; there may be others that say the same."""
    left = (tuple(call for call in turn if all(call is not each for each in gone)) for turn in run.turns)
    return Run(tuple(turn for turn in left if turn))
