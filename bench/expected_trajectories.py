"""P15: what it costs to align a run with steps, ordinary ones and such as are made to be slow."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any, Final

import spanscore
from bench.goals import Row, Run, judged

_SEED: Final = 1
_TOOLS: Final = [f"tool_{index}" for index in range(20)]
_ORDINARY: Final[list[Any]] = [
    _TOOLS[0],
    {"any_order": _TOOLS[1:5]},
    {"optional": [_TOOLS[5]]},
    {"repeat": [_TOOLS[6]], "max": 5},
    {"one_of": [[_TOOLS[7]], _TOOLS[8:10]]},
    {"call": _TOOLS[10], "args": {"order": "4711", "amount": {"$near": 40, "within": 0.01}}},
    {"call": _TOOLS[11], "args": {"order": {"$from": _TOOLS[0], "path": "/id"}}},
    *_TOOLS[12:],
]


def rows(run: Run) -> Iterator[Row]:
    """Measure one evaluation of each case."""
    rounds = 3 if run.quick else 7
    for other_calls in ("allow", "forbid"):
        took = _ms(_ORDINARY, _TOOLS, 1_000, other_calls, rounds)
        yield judged("P15", took, figure=f"{took:.1f} ms", what=f"1,000 calls, ordinary steps, {other_calls}")
    for what, steps, tools in _slow():
        took = _ms(steps, tools, 10_000, "forbid", 1)
        yield Row(goal="", what=f"`expected_trajectory`: 10,000 calls, {what}", figure=f"{took:.0f} ms")


def _slow() -> Iterator[tuple[str, list[Any], Sequence[str]]]:
    """Yield patterns of many calls, and the tools that a run calls at random."""
    many = [f"tool_{index}" for index in range(500)]
    nested: list[Any] = ["a_0", "b_0"]
    for level in range(1, 8):
        nested = [{"any_order": [[f"a_{level}", *nested], f"b_{level}"]}]
    yield "a row of 500 tools", many, many
    yield "a row of 500 calls of two tools", [f"tool_{index % 3 % 2}" for index in range(500)], many[:2]
    yield "500 tools in any order", [{"any_order": many}], many
    yield "50 groups of the same 10 tools", [{"any_order": many[:10]} for _ in range(50)], many[:10]
    yield (
        "12 calls of one tool in any order",
        [{"any_order": [{"call": "tool_0", "args": {"order": str(index)}} for index in range(12)]}],
        many[:1],
    )
    yield "groups in groups, repeated", [{"repeat": nested}], [f"{tool}_{level}" for tool in "ab" for level in range(8)]
    yield "500 steps that may each repeat", [{"repeat": ["*"], "min": 0} for _ in range(500)], many


def _ms(steps: list[Any], tools: Sequence[str], count: int, other_calls: str, rounds: int) -> float:
    choice = random.Random(_SEED)  # noqa: S311 - the same calls each time, and no secrets
    calls = [_call(choice.choice(tools), choice.randrange(20)) for _ in range(count)]
    evaluator = spanscore.evaluator("expected_trajectory", {"steps": steps, "other_calls": other_calls})
    found = []
    for _ in range(rounds):
        trajectory = spanscore.Trajectory.from_calls(calls)
        began = time.perf_counter()
        evaluator.evaluate(trajectory)
        found.append((time.perf_counter() - began) * 1000)
    return median(found)


def _call(tool: str, order: int) -> dict[str, Any]:
    return {"name": tool, "arguments": {"order": str(order), "amount": 40}, "result": {"id": 1}}
