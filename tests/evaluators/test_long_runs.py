from __future__ import annotations

import random
from typing import Any

import pytest

import spanscore
from commands import python
from evaluators.runs import details_of, value_of

COUNT = 2_000
CALLS = [
    {"name": "search", "arguments": {"query": f"q{number}", "limit": 10, "page": number % 3}, "result": f"r{number}"}
    for number in range(COUNT)
]
SHUFFLED = random.Random(7).sample(CALLS, COUNT)
EXTRA = [{**call, "arguments": {**call["arguments"], "by": "me"}} for call in CALLS]
NAMES = [f"tool_{number % 601}" for number in range(COUNT)]


def expected(arguments: str, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The calls as an evaluator expects them."""
    return [{"name": call["name"], arguments: call["arguments"]} for call in calls]


@pytest.mark.parametrize(
    ("kind", "parameters", "calls"),
    [
        ("tool_call_count", {"tool_calls_count": {"search": COUNT}}, CALLS),
        ("tool_call_order", {"tool_calls_order": NAMES[1:]}, [{"name": name} for name in NAMES]),
        ("tool_call_args", {"tool_calls": expected("args", SHUFFLED)}, CALLS),
        ("tool_call_args", {"tool_calls": expected("args", SHUFFLED)}, EXTRA),
        ("tool_call_args", {"tool_calls": expected("args", SHUFFLED), "subset": False}, CALLS),
        (
            "tool_call_output",
            {"tool_outputs": [{"name": "search", "output": call["result"]} for call in SHUFFLED]},
            CALLS,
        ),
        ("tool_call_accuracy", {"expected": expected("input", CALLS)}, CALLS),
        ("tool_call_accuracy", {"expected": expected("input", SHUFFLED), "mode": "flexible"}, CALLS),
        ("tool_call_f1", {"reference_tool_calls": expected("arguments", SHUFFLED)}, CALLS),
        ("tool_call_f1", {"reference_tool_calls": expected("arguments", SHUFFLED), "mode": "flexible"}, EXTRA),
        ("tool_call_trajectory", {}, CALLS),
        ("tool_correctness", {"expected_tools": NAMES}, [{"name": name} for name in NAMES]),
        ("trajectory_match", {"reference": expected("arguments", SHUFFLED), "mode": "unordered"}, CALLS),
        (
            "trajectory_match",
            {"reference": expected("arguments", SHUFFLED), "mode": "any_order", "arguments": "superset"},
            EXTRA,
        ),
        (
            "trajectory_match",
            {"reference": expected("arguments", EXTRA), "mode": "subset", "arguments": "subset"},
            CALLS,
        ),
        ("trajectory_match", {"reference": expected("arguments", CALLS[1:]), "mode": "in_order"}, CALLS),
        ("tool_policy", {"max_calls": COUNT, "forbidden": ["delete_*"]}, CALLS),
    ],
)
def test_thousands_of_calls(kind: str, parameters: dict[str, Any], calls: list[dict[str, Any]]) -> None:
    """Runs and expectations of thousands of calls that are much alike match in any order where order is no matter.

    Where all is as expected there is nothing to show: no alignment, and nothing that deviates.
    """
    evaluator = spanscore.evaluator(kind, parameters)
    outcome = evaluator.evaluate(spanscore.Trajectory.from_calls(calls))

    assert 1.0 == value_of(outcome)
    assert set() == {"alignment", "deviations"} & details_of(outcome).keys()


COLLIDING = [{"name": "search", "arguments": {"n": number * (2**61 - 1)}} for number in range(10_000)]


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("tool_call_args", {"tool_calls": expected("args", COLLIDING[::-1])}),
        ("tool_call_accuracy", {"expected": expected("input", COLLIDING[::-1]), "mode": "flexible"}),
        ("tool_call_f1", {"reference_tool_calls": expected("arguments", COLLIDING[::-1])}),
        ("tool_call_f1", {"reference_tool_calls": expected("arguments", COLLIDING[::-1]), "mode": "flexible"}),
        ("trajectory_match", {"reference": expected("arguments", COLLIDING[::-1]), "mode": "unordered"}),
        (
            "trajectory_match",
            {"reference": expected("arguments", COLLIDING[::-1]), "mode": "any_order", "arguments": "superset"},
        ),
    ],
)
def test_arguments_that_python_hashes_alike(kind: str, parameters: dict[str, Any]) -> None:
    """Ten thousand integers that a sender chose for their hash take no longer than any others."""
    evaluator = spanscore.evaluator(kind, parameters)

    assert 1.0 == value_of(evaluator.evaluate(spanscore.Trajectory.from_calls(COLLIDING)))


ALIKE = [{f"bit_{bit}": str(number >> bit & 1) for bit in range(11)} for number in range(1_536)]


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("tool_call_args", {"tool_calls": [{"name": "search", "args": each} for each in ALIKE]}),
        (
            "tool_call_f1",
            {"reference_tool_calls": [{"name": "search", "arguments": each} for each in ALIKE], "mode": "flexible"},
        ),
        (
            "trajectory_match",
            {
                "reference": [{"name": "search", "arguments": each} for each in ALIKE],
                "mode": "any_order",
                "arguments": "superset",
            },
        ),
    ],
)
def test_calls_that_are_too_alike(kind: str, parameters: dict[str, Any]) -> None:
    """Over a thousand calls that share almost all arguments with each other are skipped: comparing all takes ages."""
    calls = [{"name": "search", "arguments": {**each, "by": "me"}} for each in reversed(ALIKE)]

    outcome = spanscore.evaluator(kind, parameters).evaluate(spanscore.Trajectory.from_calls(calls))

    reason = "matching the arguments takes more than 250000 comparisons: the calls are too alike"
    assert spanscore.Skipped(reason) == outcome


def test_evaluators_are_light_to_import() -> None:
    """An evaluator brings in none of the libraries that only another one, or the configuration, needs."""
    heavy = ("google", "jsonschema", "opentelemetry", "pydantic", "re2", "yaml")
    code = (
        f"import sys, spanscore.evaluators.trajectory_match; print([name for name in {heavy} if name in sys.modules])"
    )

    done = python("-c", code)
    assert ("[]\n", "") == (done.stdout, done.stderr)
