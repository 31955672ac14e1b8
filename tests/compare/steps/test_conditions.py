from __future__ import annotations

from typing import Any

import pytest

from evaluators.runs import NO_ARGUMENTS, NO_RESULTS
from spanscore.compare.effort import MAX_COMPARISONS, TooMuchWorkError
from spanscore.compare.steps._conditions import CallVerdict, Conditions
from spanscore.compare.steps.parsing import read_pattern
from spanscore.compare.steps.pattern import Leaf
from spanscore.model import NOT_RECORDED, ToolCall, Trajectory


def leaf(**parts: Any) -> Leaf:
    """A step for a call of a."""
    (step,) = read_pattern([{"call": "a", **parts}], str).row.steps
    assert isinstance(step, Leaf)
    return step


def verdict(step: Leaf, *calls: ToolCall, **parts: Any) -> CallVerdict:
    """What is wrong with the last call."""
    run = Trajectory(calls=calls, **parts)
    return Conditions(run, run.names).verdict(step, len(calls) - 1)


@pytest.mark.parametrize(
    ("parts", "arguments", "kind"),
    [
        ({}, {"y": 1}, None),
        ({"args": {"x": 1}}, {"x": 1, "y": 2}, None),
        ({"args": {"x": 1}}, {"x": 2}, "arguments"),
        ({"args": {"x": 1}}, NOT_RECORDED, "arguments"),
        ({"args": {"x": 1}, "match": "exact"}, {"x": 1, "y": 2}, "arguments"),
        ({"args": {"x": {"y": 1}}}, {"x": {"y": 1, "z": 2}}, "arguments"),
        ({"args": {"x": {"$subset": {"y": 1}}}}, {"x": {"y": 1, "z": 2}}, None),
        ({"args": {"x": 1}, "match": "ignore"}, {"x": 2}, None),
        ({"args": {}, "match": "exact"}, NOT_RECORDED, None),
        ({"args": {}, "match": "exact"}, {"x": 1}, "arguments"),
        ({"args": {"$any": True}}, [1], None),
    ],
)
def test_arguments(parts: dict[str, Any], arguments: Any, kind: str | None) -> None:
    """By default the top-level keys expected, and whatever else; a call without arguments has none."""
    assert verdict(leaf(**parts), ToolCall(name="a", arguments=arguments)).kind == kind


@pytest.mark.parametrize(
    ("parts", "call", "kind"),
    [
        ({"result": 1}, {"result": 1}, None),
        ({"result": 1}, {"result": 2}, "result"),
        ({"result": None}, {"result": None}, None),
        ({"result": {"$any": True}}, {"error": "boom"}, "result"),
        ({"error": True}, {}, "error"),
        ({"error": False}, {"error": "boom"}, "error"),
        ({"error": False, "result": 1}, {"error": "boom"}, "error"),
    ],
)
def test_result_and_error(parts: dict[str, Any], call: dict[str, Any], kind: str | None) -> None:
    """What came back, and whether it failed, which is told before the result that is not there then."""
    assert verdict(leaf(**parts), ToolCall(name="a", **call)).kind == kind


def test_not_recorded() -> None:
    """What was not recorded is not held against a call; what is known to be wrong is."""
    call = ToolCall(name="a")

    assert verdict(leaf(args={"x": 1}), call, completeness=NO_ARGUMENTS).unrecorded == "the arguments of"
    assert verdict(leaf(result=1), call, completeness=NO_RESULTS).unrecorded == "the result of"
    assert verdict(leaf(args={"x": 1}, error=True), call, completeness=NO_ARGUMENTS).kind == "error"


def test_from_earlier() -> None:
    """An argument may have to come from an earlier result; where that was not recorded, nothing is known."""
    step = leaf(args={"x": {"$from": "b", "path": "/id"}})
    later = ToolCall(name="a", arguments={"x": 7})

    assert verdict(step, ToolCall(name="b", result={"id": 7}), later) == CallVerdict()
    assert verdict(step, ToolCall(name="b", result={"id": 8}), later).kind == "arguments"
    assert verdict(step, ToolCall(name="b"), later, completeness=NO_RESULTS).unrecorded is not None
    assert verdict(step, ToolCall(name="c"), later, completeness=NO_RESULTS).kind == "arguments"


def test_bounded() -> None:
    """As many pairs of calls and steps are compared as anywhere else, each once, and no more."""
    run = Trajectory(calls=(ToolCall(name="a"),) * 1_000)
    conditions = Conditions(run, run.names)
    *steps, another = (leaf(call=f"a{number}", error=False) for number in range(MAX_COMPARISONS // 1_000 + 1))

    assert all(conditions.verdict(step, call) == CallVerdict() for step in steps for call in range(1_000))
    assert conditions.verdict(steps[0], 0) == CallVerdict()
    with pytest.raises(TooMuchWorkError):
        conditions.verdict(another, 0)
