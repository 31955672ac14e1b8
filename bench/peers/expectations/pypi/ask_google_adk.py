"""Asks Google's ADK what it says of runs: its trajectory evaluator, of one invocation. Runs in its environment."""

from __future__ import annotations

from typing import Any

from draw import SEED, Draw, write
from google.adk.evaluation.eval_case import IntermediateData, Invocation
from google.adk.evaluation.eval_metrics import EvalMetric, ToolTrajectoryCriterion
from google.adk.evaluation.trajectory_evaluator import TrajectoryEvaluator
from google.genai import types

MATCH_TYPES = ("EXACT", "IN_ORDER", "ANY_ORDER")


def invocation(calls: list[dict[str, Any]]) -> Invocation:
    """Return an invocation in which these calls were made."""
    uses = [types.FunctionCall(name=call["name"], args=call["arguments"]) for call in calls]
    return Invocation(user_content=types.Content(), intermediate_data=IntermediateData(tool_uses=uses))


def asked(
    family: str, expected: list[dict[str, Any]], match_type: str, calls: list[Any], *, ignore_args: bool
) -> dict[str, Any]:
    """Return a row."""
    criterion = ToolTrajectoryCriterion(
        threshold=1.0, match_type=ToolTrajectoryCriterion.MatchType[match_type], ignore_args=ignore_args
    )
    metric = EvalMetric(metric_name="tool_trajectory_avg_score", threshold=1.0, criterion=criterion)
    result = TrajectoryEvaluator(eval_metric=metric).evaluate_invocations([invocation(calls)], [invocation(expected)])
    return {
        "family": family,
        "expectation": {"match_type": match_type, "ignore_args": ignore_args, "tool_uses": expected},
        "run": {"calls": calls},
        "verdict": result.overall_eval_status.name == "PASSED",
    }


draw = Draw(SEED)
rows = []
for match_type in MATCH_TYPES:
    for ignore_args in (False, True):
        for _ in range(60):
            expected = draw.calls(0, 6)
            rows.append(asked("drawn", expected, match_type, draw.near_calls(expected), ignore_args=ignore_args))
        one, other = {"name": "search_web", "arguments": {"q": 1}}, {"name": "search_web", "arguments": {"q": 2}}
        for expected, calls in (
            ([], []), ([one], []), ([], [one]), ([one, one], [one]), ([one], [one, one]), ([one, other], [other, one]),
            ([one, other], [one, {"name": "send_mail", "arguments": {}}, other]),
            ([{**one, "arguments": {"q": {"b": 1, "a": [2]}}}], [{**one, "arguments": {"q": {"a": [2], "b": 1}}}]),
            ([{**one, "arguments": {"q": 1}}], [{**one, "arguments": {"q": 1.0}}]),
            ([{**one, "arguments": {"q": None}}], [{**one, "arguments": {}}]),
        ):  # fmt: skip
            rows.append(asked("edges", expected, match_type, calls, ignore_args=ignore_args))
for match_type in MATCH_TYPES:
    yes, number = {"name": "search_web", "arguments": {"q": True}}, {"name": "search_web", "arguments": {"q": 1}}
    rows.append({**asked("differs", [yes], match_type, [number], ignore_args=False), "kind": "truth is no number"})
write("google-adk", rows)
