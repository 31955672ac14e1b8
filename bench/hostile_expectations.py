"""P16: expectations and runs that are made to be slow: each evaluation ends within a second, by a score or a reason."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import spanscore
from bench.goals import Row, Run, judged
from spanscore.model import ModelCall, Trajectory

_CALLS: Final = 10_000

Case = tuple[str, str, dict[str, Any], Callable[[], Trajectory]]
"""What it is, the evaluator, its parameters, and the run."""


def rows(run: Run) -> Iterator[Row]:
    """Measure one evaluation of each case, and say how it ended."""
    calls = _CALLS // 10 if run.quick else _CALLS
    slowest = 0.0
    for what, name, params, made in _cases(calls):
        took, ended = _measured(name, params, made)
        slowest = max(slowest, took)
        yield Row(goal="", what=f"`{name}`: {what}", figure=f"{took:.0f} ms, {ended}")
    yield judged("P16", slowest, figure=f"{slowest:.0f} ms", what=f"the slowest of them, {calls:,} calls")


def _measured(name: str, params: Mapping[str, Any], made: Callable[[], Trajectory]) -> tuple[float, str]:
    try:
        evaluator = spanscore.evaluator(name, params)
    except spanscore.ConfigError as error:
        return 0.0, f"refused: {str(error)[:120]}"
    trajectory = made()
    began = time.perf_counter()
    outcome = evaluator.evaluate(trajectory)
    took = (time.perf_counter() - began) * 1000
    if isinstance(outcome, spanscore.Score):
        return took, f"scored {outcome.value:.3g}"
    return took, f"skipped: {outcome.reason[:100]}" if isinstance(outcome, spanscore.Skipped) else str(outcome)[:120]


def _cases(count: int) -> Iterator[Case]:
    yield from _matchers(count)
    yield from _rules(count)
    yield from _repetition(count)
    yield from _provenance(count)


def _matchers(count: int) -> Iterator[Case]:
    deep: Any = {"$glob": "y*"}
    for _ in range(6):
        deep = {"$one_of": [{"$all_of": [deep, {"$not": deep}]}, {"$contains": deep}]}
    wide = {"$unordered": [{"$one_of": [number, {"$range": [0, None]}]} for number in range(200)]}
    matchers: dict[str, tuple[Any, Any]] = {
        "a pattern that backtracks": ({"$regex": "(a+)+b"}, "a" * 10_000),
        "a glob of many stars": ({"$glob": "*a" * 50 + "b"}, "a" * 10_000),
        "200 values in any order": (wide, list(range(200))),
        "a value in a long array": ({"$contains": {"$subset": {"id": -1}}}, [{"id": index} for index in range(2_000)]),
        "matchers in matchers": (deep, ["x"] * 100),
        "a number of many digits": ({"$near": 1, "within": 1}, 10**4_000),
        "a schema of many branches": (
            {"$schema": {"anyOf": [{"type": "object", "required": [f"k{index}"]} for index in range(500)]}},
            {"a": 1},
        ),
        "a long text without case": ({"$ignore_case": "ß" * 5_000}, "ẞ" * 5_000),
    }
    for what, (matcher, value) in matchers.items():
        calls = [{"name": "search", "arguments": {"q": value}, "result": 1}] * count
        expected = {"steps": [{"repeat": [{"call": "search", "args": {"q": matcher}}]}], "other_calls": "forbid"}
        yield f"{what}, in each of {count:,} calls", "expected_trajectory", expected, _run(calls)
        one = {"tool_calls": [{"name": "search", "args": {"q": matcher}}]}
        yield f"{what}, in each of {count:,} calls", "tool_call_args", one, _run(calls)
    large = {"rows": [{"id": index, "text": "abc" * 10} for index in range(100)]}
    calls = [{"name": "search", "arguments": {"id": -1}, "result": large} for _ in range(count)]
    earlier = {"steps": [{"repeat": [{"call": "search", "args": {"id": {"$from": "*"}}}]}], "other_calls": "forbid"}
    yield f"any of {count:,} earlier results", "expected_trajectory", earlier, _run(calls)
    calls = [{"name": "search", "arguments": {"q": index}, "result": 1} for index in range(count)]
    many = [{"name": "search", "arguments": {"q": {"$range": [index, None]}}} for index in range(500)]
    yield "500 ranges that overlap", "tool_call_f1", {"reference_tool_calls": many}, _run(calls)
    yield "500 ranges that overlap", "trajectory_match", {"reference": many, "mode": "any_order"}, _run(calls)


def _rules(count: int) -> Iterator[Case]:
    calls = [{"name": f"tool_{index % 500}", "arguments": {"n": index}, "result": 1} for index in range(count)]
    globs = [f"*{index}*" for index in range(500)]
    pairs = [[glob, f"tool_{index}"] for index, glob in enumerate(globs)]
    for rule in ("must_precede", "must_follow", "never_after", "forbidden_sequences"):
        yield f"500 times {rule}", "tool_policy", {rule: pairs}, _run(calls)
    yield "500 globs that are required", "tool_policy", {"required": globs}, _run(calls)
    yield "retries of 500 globs", "tool_policy", {"max_retries_per_tool": dict.fromkeys(globs, 1)}, _run(calls)
    yield "500 limits of globs", "tool_policy", {"max_calls_per_tool": dict.fromkeys(globs, 1)}, _run(calls)
    pattern = {"call": "*", "args": {"n": {"$regex": "(x+x+)+y"}}}
    yield "500 patterns of calls", "tool_policy", {"forbidden_calls": [pattern] * 500}, _run(calls)
    conditions = [
        {"call": glob, "args": {"n": {"$range": [5, None]}}, "then": {"must_precede": "none"}} for glob in globs
    ]
    yield "500 conditions", "tool_policy", {"when": conditions}, _run(calls)


def _repetition(count: int) -> Iterator[Case]:
    alike = [
        {"name": "search", "arguments": {"q": "word " * 40 + str(index)}, "result": index} for index in range(count)
    ]
    yield "long arguments that are nearly the same", "tool_loops", {}, _run(alike)
    cycle = [{"name": f"tool_{index % 4}", "arguments": {}, "result": 1} for index in range(count)]
    yield "one long cycle", "tool_loops", {"cycle": {"longest": 50, "times": 2}}, _run(cycle)
    failing = [{"name": f"tool_{index % 7}", "arguments": {}, "error": "E"} for index in range(count)]
    several = {"alternatives": {f"tool_{index}": ["*"] for index in range(7)}, "within": count}
    yield "calls that all fail", "tool_recovery", several, _run(failing)
    prices = {f"*{index}*": {"input": 1, "output": 1} for index in range(500)}
    limits = {"tool_calls": 1, "model_calls": 1, "total_tokens": 1, "cost": 1, "prices": prices}
    yield "limits of all", "run_budget", limits, _run(cycle, count)


def _provenance(count: int) -> Iterator[Case]:
    text = "the quick brown fox " * 200
    calls = [
        {"name": "send", "arguments": {"a": f"value {index}", "b": index}, "result": text} for index in range(count)
    ]
    yield "values that nobody said", "argument_provenance", {}, _run(calls)
    calls = [{"name": "send", "arguments": {"a": text[index % 50 :]}, "result": text} for index in range(count)]
    yield "long values in long texts", "argument_provenance", {}, _run(calls)


def _run(calls: list[dict[str, Any]], model_calls: int = 0) -> Callable[[], Trajectory]:
    def made() -> Trajectory:
        trajectory = spanscore.Trajectory.from_calls(json.loads(json.dumps(calls)))
        models = tuple(ModelCall(model=f"m{index}", input_tokens=1, output_tokens=1) for index in range(model_calls))
        return replace(trajectory, model_calls=models)

    return made
