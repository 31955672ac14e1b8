"""The evaluators of pydantic-evals that look at tool calls. They read them from a span tree, which is made before."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic_evals.evaluators import Evaluator, EvaluatorContext, MaxToolCalls, ToolCorrectness, TrajectoryMatch
from pydantic_evals.otel.span_tree import SpanNode, SpanTree
from worker import Evaluate, Task, again, serve

_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def _task(make: Callable[[list[str]], Evaluator]) -> Task:
    def prepare(case: dict[str, Any]) -> Iterator[Evaluate]:
        evaluator = make([call["name"] for call in case["expected"]])
        context = EvaluatorContext(
            name=None,
            inputs=None,
            metadata=None,
            expected_output=None,
            output=None,
            duration=1.0,
            _span_tree=_tree(case["made"]),
            attributes={},
            metrics={},
        )
        return again(lambda: float(evaluator.evaluate(context).value))

    return prepare


def _tree(calls: list[dict[str, Any]]) -> SpanTree:
    tree = SpanTree()
    tree.add_spans([_node(index, call) for index, call in enumerate(calls, start=1)])
    return tree


def _node(index: int, call: dict[str, Any]) -> SpanNode:
    start = _BEGAN + timedelta(seconds=index)
    return SpanNode(
        name=f"execute_tool {call['name']}",
        trace_id=1,
        span_id=index,
        parent_span_id=None,
        start_timestamp=start,
        end_timestamp=start,
        attributes={
            "gen_ai.tool.name": call["name"],
            "gen_ai.tool.call.arguments": json.dumps(call["arguments"]),
        },
    )


serve(
    {
        "tool_correctness": _task(lambda names: ToolCorrectness(expected_tools=names)),
        "tool_policy": _task(lambda names: MaxToolCalls(max_calls=len(names))),
        "trajectory_match in_order, F1 of names": _task(
            lambda names: TrajectoryMatch(expected_trajectory=names, order="in_order")
        ),
        "trajectory_match any_order, F1 of names": _task(
            lambda names: TrajectoryMatch(expected_trajectory=names, order="any_order")
        ),
    }
)
