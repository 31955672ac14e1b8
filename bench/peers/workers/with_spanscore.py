"""The evaluators of spanscore. Each evaluation gets a trajectory of its own, so that none finds another's work done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from worker import Evaluate, Task, serve

import spanscore

Parameters = Callable[[list[dict[str, Any]]], dict[str, Any]]
"""An evaluator's parameters for the calls that are expected."""


def _task(evaluator_type: str, parameters: Parameters) -> Task:
    def prepare(case: dict[str, Any]) -> Iterator[Evaluate]:
        evaluator = spanscore.evaluator(evaluator_type, parameters(case["expected"]))
        while True:
            trajectory = spanscore.Trajectory.from_calls(case["made"])
            yield lambda trajectory=trajectory: _value(evaluator.evaluate(trajectory))

    return prepare


def _value(outcome: object) -> float:
    if not isinstance(outcome, spanscore.Score):
        raise TypeError(outcome)
    return outcome.value


def _counts(calls: list[dict[str, Any]]) -> dict[str, Any]:
    return {"tool_calls_count": {name: ["=", count] for name, count in Counter(_names(calls)).items()}}


def _names(calls: list[dict[str, Any]]) -> list[str]:
    return [call["name"] for call in calls]


def _called(calls: list[dict[str, Any]], key: str = "arguments") -> list[dict[str, Any]]:
    return [{"name": call["name"], key: call["arguments"]} for call in calls]


def _outputs(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"name": call["name"], "output": call["result"]} for call in calls]


def _match(mode: str) -> Task:
    return _task("trajectory_match", lambda calls: {"mode": mode, "reference": _called(calls)})


def _match_names(mode: str) -> Task:
    f1 = {"mode": mode, "scoring": "f1", "arguments": "ignore"}
    return _task("trajectory_match", lambda calls: {**f1, "reference": _called(calls)})


_SCHEMA = {"type": "object", "required": ["order_id"], "properties": {"amount": {"type": "number"}}}
_ACCURACY = {"mode": "exact", "weights": {"exact": 1.0, "name_only": 0.0, "extra_penalty": 0.0, "wrong_penalty": 0.0}}

serve(
    {
        "tool_call_count": _task("tool_call_count", _counts),
        "tool_call_order": _task("tool_call_order", lambda calls: {"tool_calls_order": _names(calls)}),
        "tool_call_args": _task("tool_call_args", lambda calls: {"tool_calls": _called(calls, "args")}),
        "tool_call_output": _task("tool_call_output", lambda calls: {"tool_outputs": _outputs(calls)}),
        "tool_call_accuracy": _task(
            "tool_call_accuracy", lambda calls: {**_ACCURACY, "expected": _called(calls, "input")}
        ),
        "tool_call_f1": _task("tool_call_f1", lambda calls: {"reference_tool_calls": _called(calls)}),
        "tool_correctness": _task("tool_correctness", lambda calls: {"expected_tools": _names(calls)}),
        "tool_policy": _task("tool_policy", lambda calls: {"max_calls": len(calls)}),
        "tool_call_trajectory": _task("tool_call_trajectory", lambda _: {}),
        "tool_arguments_schema": _task(
            "tool_arguments_schema",
            lambda calls: {"schemas": dict.fromkeys(_names(calls), _SCHEMA)},
        ),
        "trajectory_match exact": _match("exact"),
        "trajectory_match in_order": _match("in_order"),
        "trajectory_match any_order": _match("any_order"),
        "trajectory_match unordered": _match("unordered"),
        "trajectory_match subset": _match("subset"),
        "trajectory_match superset": _match("superset"),
        "trajectory_match in_order, F1 of names": _match_names("in_order"),
        "trajectory_match any_order, F1 of names": _match_names("any_order"),
    }
)
