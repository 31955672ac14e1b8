"""The trajectory match of LangChain's agentevals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

from agentevals.trajectory.match import create_trajectory_match_evaluator
from worker import Evaluate, Task, again, serve


def _task(mode: Literal["strict", "unordered", "subset", "superset"]) -> Task:
    evaluator = create_trajectory_match_evaluator(trajectory_match_mode=mode)

    def prepare(case: dict[str, Any]) -> Iterator[Evaluate]:
        made, expected = _messages(case["made"]), _messages(case["expected"])
        return again(lambda: evaluator(outputs=made, reference_outputs=expected)["score"])

    return prepare


def _messages(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    functions = [{"name": call["name"], "arguments": json.dumps(call["arguments"])} for call in calls]
    tool_calls = [{"type": "function", "id": "", "function": function} for function in functions]
    return [{"role": "assistant", "content": "", "tool_calls": tool_calls}]


serve(
    {
        "trajectory_match exact": _task("strict"),
        "trajectory_match unordered": _task("unordered"),
        "trajectory_match subset": _task("subset"),
        "trajectory_match superset": _task("superset"),
    }
)
