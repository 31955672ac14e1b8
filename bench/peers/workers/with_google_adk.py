"""The trajectory evaluator of Google's ADK."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.adk.evaluation.eval_case import IntermediateData, Invocation
from google.adk.evaluation.eval_metrics import EvalMetric, ToolTrajectoryCriterion
from google.adk.evaluation.trajectory_evaluator import TrajectoryEvaluator
from google.genai import types
from worker import Evaluate, Task, again, serve


def _task(mode: ToolTrajectoryCriterion.MatchType) -> Task:
    criterion = ToolTrajectoryCriterion(threshold=1.0, match_type=mode)
    evaluator = TrajectoryEvaluator(eval_metric=EvalMetric(metric_name="trajectory", criterion=criterion))

    def prepare(case: dict[str, Any]) -> Iterator[Evaluate]:
        made, expected = [_invocation(case["made"])], [_invocation(case["expected"])]
        return again(lambda: evaluator.evaluate_invocations(made, expected).overall_score)

    return prepare


def _invocation(calls: list[dict[str, Any]]) -> Invocation:
    used = [types.FunctionCall(name=call["name"], args=call["arguments"]) for call in calls]
    return Invocation(user_content=types.Content(parts=[]), intermediate_data=IntermediateData(tool_uses=used))


_MODES = ToolTrajectoryCriterion.MatchType

serve(
    {
        "trajectory_match exact": _task(_MODES.EXACT),
        "trajectory_match in_order": _task(_MODES.IN_ORDER),
        "trajectory_match any_order": _task(_MODES.ANY_ORDER),
    }
)
