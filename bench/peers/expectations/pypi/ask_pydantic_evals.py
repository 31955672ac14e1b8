"""Asks pydantic-evals what its evaluators of tool calls say of runs. Runs in its environment."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from draw import SEED, TOOLS, Draw, write
from pydantic_evals.evaluators import (
    ArgumentCorrectness,
    EvaluatorContext,
    MaxModelRequests,
    MaxToolCalls,
    ToolCorrectness,
    TrajectoryMatch,
)
from pydantic_evals.otel.span_tree import SpanNode, SpanTree

KINDS = {
    each.__name__: each
    for each in (ToolCorrectness, TrajectoryMatch, ArgumentCorrectness, MaxToolCalls, MaxModelRequests)
}
START = datetime(2026, 1, 1, tzinfo=UTC)


def spans(run: dict[str, Any]) -> SpanTree:
    """Return the spans of a run, as Pydantic AI writes them."""
    told: list[SpanNode] = []

    def add(name: str, attributes: dict[str, Any], status: str = "ok") -> None:
        began = START + timedelta(seconds=len(told))
        told.append(
            SpanNode(
                name=name,
                trace_id=1,
                span_id=len(told) + 1,
                parent_span_id=None,
                start_timestamp=began,
                end_timestamp=began,
                attributes=attributes,
                status=status,
            )
        )

    for _ in range(run.get("model_calls", 0)):
        add("chat", {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})
    for call in run["calls"]:
        attributes = {"gen_ai.tool.name": call["name"], "gen_ai.tool.call.arguments": json.dumps(call["arguments"])}
        add(f"execute_tool {call['name']}", attributes, "error" if call.get("error") else "ok")
    tree = SpanTree()
    tree.add_spans(told)
    return tree


def asked(family: str, kind: str, params: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    """Return a row. A value passes where it is 1."""
    context = EvaluatorContext(
        name=None, inputs=None, metadata=None, expected_output=None, output=None, duration=0.0,
        _span_tree=spans(run), attributes={}, metrics={},
    )  # fmt: skip
    value = KINDS[kind](**params).evaluate(context).value
    row = {"family": family, "expectation": {"kind": kind, **params}, "run": run, "verdict": value == 1}
    return row if isinstance(value, bool) else {**row, "value": value}


def failing(draw: Draw, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the calls, of which some fail."""
    return [{**call, "error": "ValueError"} if draw.chance(0.2) else call for call in calls]


def named(names: list[str]) -> list[dict[str, Any]]:
    """Return calls without arguments."""
    return [{"name": name, "arguments": {}} for name in names]


draw = Draw(SEED)
rows = []
for _ in range(110):
    names = draw.names(0, 6)
    params = {"expected_tools": draw.near(names), "allow_extra": draw.chance(0.5), "include_failed": draw.chance(0.3)}
    rows.append(asked("ToolCorrectness", "ToolCorrectness", params, {"calls": failing(draw, named(names))}))
for order in ("exact", "in_order", "any_order"):
    for _ in range(55):
        names = draw.names(0, 7)
        params = {"expected_trajectory": draw.near(names), "order": order, "include_failed": draw.chance(0.3)}
        rows.append(asked("TrajectoryMatch", "TrajectoryMatch", params, {"calls": failing(draw, named(names))}))
for _ in range(130):
    tool = draw.choice(TOOLS[:2])
    calls = [{**call, "name": draw.choice(TOOLS[:2])} for call in draw.calls(0, 4)]
    like = draw.choice(calls)["arguments"] if calls else draw.args()
    params = {
        "tool_name": tool,
        "expected_arguments": draw.near_args(like),
        "match_mode": draw.choice(["exact", "subset"]),
        "occurrence": draw.choice(["first", "last", 0, 1, 2]),
        "include_failed": draw.chance(0.3),
    }
    rows.append(asked("ArgumentCorrectness", "ArgumentCorrectness", params, {"calls": failing(draw, calls)}))
for _ in range(30):
    params = {"max_calls": draw.randint(0, 5), "include_failed": draw.chance(0.5)}
    rows.append(asked("MaxToolCalls", "MaxToolCalls", params, {"calls": failing(draw, named(draw.names(0, 6)))}))
for _ in range(20):
    run = {"calls": named(draw.names(0, 3)), "model_calls": draw.randint(1, 5)}
    rows.append(asked("MaxModelRequests", "MaxModelRequests", {"max_requests": draw.randint(0, 5)}, run))
yes = {"tool_name": "search_web", "expected_arguments": {"q": True}, "match_mode": "exact", "occurrence": "first"}
one = {"calls": [{"name": "search_web", "arguments": {"q": 1}}]}
rows.append({**asked("differs", "ArgumentCorrectness", yes, one), "kind": "truth is no number"})
write("pydantic-evals", rows)
