from __future__ import annotations

from typing import Any

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
