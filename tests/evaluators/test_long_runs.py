from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import pytest

import spanscore
from commands import python
from evaluators.runs import details_of, value_of

COUNT = 2_000
NAMES = [f"tool_{number % 601}" for number in range(COUNT)]

Calls: TypeAlias = list[dict[str, Any]]


@cache
def searches() -> Calls:
    """Calls that are much alike."""
    return [
        {
            "name": "search",
            "arguments": {"query": f"q{number}", "limit": 10, "page": number % 3},
            "result": f"r{number}",
        }
        for number in range(COUNT)
    ]


def shuffled() -> Calls:
    """The same calls in another order."""
    return random.Random(7).sample(searches(), COUNT)


def extended() -> Calls:
    """The same calls with one more argument."""
    return [{**call, "arguments": {**call["arguments"], "by": "me"}} for call in searches()]


def named() -> Calls:
    """Calls of many tools."""
    return [{"name": name} for name in NAMES]


def expected(arguments: str, calls: Calls) -> Calls:
    """The calls as an evaluator expects them."""
    return [{"name": call["name"], arguments: call["arguments"]} for call in calls]


@pytest.mark.parametrize(
    ("kind", "parameters", "calls"),
    [
        ("tool_call_count", lambda: {"tool_calls_count": {"search": COUNT}}, searches),
        ("tool_call_order", lambda: {"tool_calls_order": NAMES[1:]}, named),
        ("tool_call_args", lambda: {"tool_calls": expected("args", shuffled())}, searches),
        ("tool_call_args", lambda: {"tool_calls": expected("args", shuffled())}, extended),
        ("tool_call_args", lambda: {"tool_calls": expected("args", shuffled()), "subset": False}, searches),
        (
            "tool_call_output",
            lambda: {"tool_outputs": [{"name": "search", "output": call["result"]} for call in shuffled()]},
            searches,
        ),
        ("tool_call_accuracy", lambda: {"expected": expected("input", searches())}, searches),
        ("tool_call_accuracy", lambda: {"expected": expected("input", shuffled()), "mode": "flexible"}, searches),
        ("tool_call_f1", lambda: {"reference_tool_calls": expected("arguments", shuffled())}, searches),
        (
            "tool_call_f1",
            lambda: {"reference_tool_calls": expected("arguments", shuffled()), "mode": "flexible"},
            extended,
        ),
        ("tool_call_trajectory", dict, searches),
        ("tool_correctness", lambda: {"expected_tools": NAMES}, named),
        ("trajectory_match", lambda: {"reference": expected("arguments", shuffled()), "mode": "unordered"}, searches),
        (
            "trajectory_match",
            lambda: {
                "reference": expected("arguments", shuffled()),
                "mode": "any_order",
                "arguments": "superset",
            },
            extended,
        ),
        (
            "trajectory_match",
            lambda: {"reference": expected("arguments", extended()), "mode": "subset", "arguments": "subset"},
            searches,
        ),
        (
            "trajectory_match",
            lambda: {"reference": expected("arguments", searches()[1:]), "mode": "in_order"},
            searches,
        ),
        ("tool_policy", lambda: {"max_calls": COUNT, "forbidden": ["delete_*"]}, searches),
    ],
)
def test_thousands_of_calls(kind: str, parameters: Callable[[], dict[str, Any]], calls: Callable[[], Calls]) -> None:
    """Runs and expectations of thousands of calls that are much alike match in any order where order is no matter.

    Where all is as expected there is nothing to show: no alignment, and nothing that deviates.
    """
    evaluator = spanscore.evaluator(kind, parameters())
    outcome = evaluator.evaluate(spanscore.Trajectory.from_calls(calls()))

    assert 1.0 == value_of(outcome)
    assert set() == {"alignment", "deviations"} & details_of(outcome).keys()


@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.full_size)])
@pytest.mark.parametrize(
    ("kind", "key", "arguments", "mode"),
    [
        ("tool_call_args", "tool_calls", "args", {}),
        ("tool_call_accuracy", "expected", "input", {"mode": "flexible"}),
        ("tool_call_f1", "reference_tool_calls", "arguments", {}),
        ("tool_call_f1", "reference_tool_calls", "arguments", {"mode": "flexible"}),
        ("trajectory_match", "reference", "arguments", {"mode": "unordered"}),
        ("trajectory_match", "reference", "arguments", {"mode": "any_order", "arguments": "superset"}),
    ],
)
def test_arguments_that_python_hashes_alike(
    kind: str, key: str, arguments: str, mode: dict[str, str], count: int
) -> None:
    """Integers that a sender chose for their hash are scored as any others, ten thousand of them as well."""
    calls = [{"name": "search", "arguments": {"n": number * (2**61 - 1)}} for number in range(count)]
    evaluator = spanscore.evaluator(kind, {key: expected(arguments, calls[::-1]), **mode})

    assert 1.0 == value_of(evaluator.evaluate(spanscore.Trajectory.from_calls(calls)))


@pytest.mark.parametrize(
    ("kind", "key", "arguments", "mode"),
    [
        ("tool_call_args", "tool_calls", "args", {}),
        ("tool_call_f1", "reference_tool_calls", "arguments", {"mode": "flexible"}),
        ("trajectory_match", "reference", "arguments", {"mode": "any_order", "arguments": "superset"}),
    ],
)
def test_calls_that_are_too_alike(kind: str, key: str, arguments: str, mode: dict[str, str]) -> None:
    """Over a thousand calls that share almost all arguments with each other are skipped: comparing all takes ages."""
    alike = [{f"bit_{bit}": str(number >> bit & 1) for bit in range(11)} for number in range(1_536)]
    evaluator = spanscore.evaluator(kind, {key: [{"name": "search", arguments: each} for each in alike], **mode})
    calls = [{"name": "search", "arguments": {**each, "by": "me"}} for each in reversed(alike)]

    reason = "matching the arguments takes more than 250000 comparisons: the calls are too alike"
    assert spanscore.Skipped(reason) == evaluator.evaluate(spanscore.Trajectory.from_calls(calls))


def test_evaluators_are_light_to_import() -> None:
    """An evaluator brings in none of the libraries that only another one, or the configuration, needs."""
    heavy = ("google", "jsonschema", "opentelemetry", "pydantic", "re2", "yaml")
    code = (
        f"import sys, spanscore.evaluators.trajectory_match; print([name for name in {heavy} if name in sys.modules])"
    )

    done = python("-c", code)
    assert ("[]\n", "") == (done.stdout, done.stderr)


def test_arguments_that_python_hashes_alike_beside_others() -> None:
    """Such integers cost a time in proportion to their number, also if few other calls are expected."""
    evaluator = spanscore.evaluator("tool_call_args", {"tool_calls": [{"name": "s", "args": {"n": n}} for n in (1, 2)]})

    def seconds(modulus: int) -> float:
        calls = [{"name": "s", "arguments": {"n": number * modulus}} for number in range(3, 8_000)]
        run = spanscore.Trajectory.from_calls(calls)
        began = time.process_time()
        assert 0.0 == value_of(evaluator.evaluate(run))
        return time.process_time() - began

    assert seconds(2**61 - 1) < 20 * seconds(1) + 0.05
