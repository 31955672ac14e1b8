from __future__ import annotations

from typing import Any

import pytest

from evaluators.runs import NO_ARGUMENTS
from spanscore.compare.steps.calls import StepCalls
from spanscore.compare.steps.graph import graph_of
from spanscore.compare.steps.parsing import read_pattern
from spanscore.model import ToolCall, Trajectory


def aligned(steps: list[Any], calls: list[ToolCall], *, by_name: bool = False) -> tuple[list[int | None], set[int]]:
    """The calls that take the steps, and those that are not allowed without."""
    pattern = read_pattern(steps, str)
    run = Trajectory(calls=tuple(calls))
    found = StepCalls(pattern, {"free"}.__contains__, run, run.names, ignore_failed=True)
    result = found.aligned(graph_of(pattern.row), by_name=by_name)
    return [pair.call for pair in result.pairs], set(result.unexpected)


def test_failed_calls_are_left_out() -> None:
    """They take no step, and are not unexpected."""
    assert aligned(["a"], [ToolCall(name="a", error="boom"), ToolCall(name="a"), ToolCall(name="free")]) == ([1], {1})


def test_by_name() -> None:
    """By name alone, a call fits whatever its arguments."""
    steps = [{"call": "a", "args": {"x": 1}}]
    calls = [ToolCall(name="a", arguments={"x": 2}), ToolCall(name="a", arguments={"x": 1})]

    assert aligned(steps, calls)[0] == [1]
    assert aligned(steps, calls, by_name=True)[0] == [0]
    pattern, run = read_pattern(steps, str), Trajectory(calls=(calls[0],))
    found = StepCalls(pattern, bool, run, run.names, ignore_failed=False)
    assert [1, 0] == [found.aligned(graph_of(pattern.row), by_name=by_name).count for by_name in (False, True)]


def test_blocks_of_one_agent() -> None:
    """A call of an agent that several blocks name has to be allowed by all of them."""
    steps = [
        {"agent": "r*", "steps": ["a"], "other_calls": ["x", "y"]},
        {"agent": "res", "steps": ["b"], "other_calls": ["x"]},
    ]
    calls = [
        ToolCall(name=name, agent=agent) for name, agent in (("x", "res"), ("y", "res"), ("y", "r"), ("free", "z"))
    ]

    assert aligned(steps, calls) == ([None, None], {1})


TURN = "the model turn was not recorded for 'b' (call 2), which may take a 'turn' step"
TIME = "neither model turn nor times were recorded for 'b' (call 2), which may take a 'parallel' step"
AGENT = "the agents that made the calls were not recorded, and the steps name agents"


@pytest.mark.parametrize(
    ("steps", "second", "reason"),
    [
        (["a", "b"], {}, None),
        ([{"turn": ["b"]}], {}, TURN),
        ([{"turn": ["b"]}], {"turn": 0}, None),
        ([{"turn": ["b"]}], {"start_ns": 1, "end_ns": 2}, TURN),
        ([{"turn": ["c"]}], {}, None),
        ([{"turn": ["b"]}], {"error": "boom"}, None),
        ([{"parallel": ["b", "c"]}], {}, TIME),
        ([{"parallel": ["b", "c"]}], {"turn": 1}, None),
        ([{"parallel": ["b", "c"]}], {"start_ns": 1, "end_ns": 2}, None),
        ([{"parallel": ["b", "c"]}], {"start_ns": 1}, TIME),
        ([{"parallel": [{"turn": ["b"]}]}], {}, TURN),
        ([{"agent": "x", "steps": ["a"]}], {}, AGENT),
        ([{"agent": "x", "steps": ["a"]}], {"agent": "y"}, None),
        ([{"agent": "x", "steps": ["a"]}], {"agent": "y", "error": "boom"}, AGENT),
    ],
)
def test_steps_that_are_unknown(steps: list[Any], second: dict[str, Any], reason: str | None) -> None:
    """Where something was not recorded of a call that may take a step which asks for it."""
    pattern = read_pattern(steps, str)
    run = Trajectory(calls=(ToolCall(name="a"), ToolCall(name="b", **second)))
    allows = {"free"}.__contains__

    assert reason == StepCalls(pattern, allows, run, run.names, ignore_failed=True).unknown()
    assert StepCalls(pattern, allows, Trajectory(calls=()), (), ignore_failed=True).unknown() is None


@pytest.mark.parametrize(
    ("steps", "calls", "taken"),
    [
        (["a", "a*", "!b"], "a ab c b", [0, 1, 2]),
        (["a*", "ab"], "ab ab", [0, 1]),
        (["b", "b", "b"], "b b", [0, 1, None]),
        (["b", "b", {"call": "b", "args": {"x": 1}}], "b", [None, None, 0]),
        ([{"optional": ["b"]}, "b"], "b", [0]),
        ([{"turn": ["a", "b"]}, {"turn": ["a", "b"]}], "a@0 b@0 a@1 b@1", [0, 1, 2, 3]),
        ([{"turn": ["b", "b"]}, {"turn": ["b", "b"]}], "b@0 b@1 b@1", [0, None, 1, 2]),
        ([{"parallel": ["a", "b"]}], "a:1-5 b:7-9", [0, None]),
        ([{"parallel": ["a", "b"]}], "a:1-5 b:4-9", [0, 1]),
        ([{"parallel": ["a", "b"]}], "a:1-3 a:2-6 b:4-9", [1, 2]),
        ([{"turn": ["a"]}, "b"], "a@0 c@1 b@1", [0, 2]),
    ],
)
def test_which_calls_take_the_steps(steps: list[Any], calls: str, taken: list[int | None]) -> None:
    """By name and glob; in one turn, or at one time. Of equal steps the last are missing, group by group."""
    made = []
    for each in calls.split():
        name, _, times = each.partition(":")
        name, _, turn = name.partition("@")
        start, _, end = times.partition("-")
        made.append(
            ToolCall(
                name=name,
                arguments={"x": 1},
                turn=int(turn) if turn else None,
                start_ns=int(start or 0),
                end_ns=int(end or 0),
            )
        )

    assert taken == aligned(steps, made)[0]


def test_a_call_that_fits_is_better_than_one_that_may() -> None:
    """And one that may, as its arguments were not recorded, is better than one that deviates."""
    pattern = read_pattern([{"call": "a", "args": {"x": 1}}], str)
    calls = [ToolCall(name="a", arguments={"x": 2}), ToolCall(name="a"), ToolCall(name="a", arguments={"x": 1})]
    for last, expected in ((3, 2), (2, 1), (1, 0)):
        run = Trajectory(calls=tuple(calls[:last]), completeness=NO_ARGUMENTS)
        found = StepCalls(pattern, bool, run, run.names, ignore_failed=False).aligned(graph_of(pattern.row))
        assert [expected] == [pair.call for pair in found.pairs]
        assert (expected == 0) == bool(found.count)


def test_agents_of_calls() -> None:
    """A call without one is of the run's agent; a step of an agent is taken by its calls only."""
    pattern = read_pattern([{"agent": "x", "steps": ["a"], "other_calls": "forbid"}, "b"], str)
    calls = (ToolCall(name="a", agent="y"), ToolCall(name="a"), ToolCall(name="c"), ToolCall(name="b", agent="y"))
    for agent, taken, unexpected in (("x", [1, 3], {1, 2}), ("z", [None, 3], set()), (None, [None, 3], set())):
        run = Trajectory(calls=calls, agent=agent)
        found = StepCalls(pattern, lambda _: True, run, run.names, ignore_failed=False)
        result = found.aligned(graph_of(pattern.row))
        assert (taken, unexpected) == ([pair.call for pair in result.pairs], set(result.unexpected)), agent
