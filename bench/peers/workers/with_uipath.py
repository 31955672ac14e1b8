"""UiPath's functions for the score alone, which its evaluators call with what they found in the spans."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from uipath.eval._helpers.evaluators_helpers import (
    count_tool_calls_by_name_and_id,
    tool_calls_args_score,
    tool_calls_count_score,
    tool_calls_order_score,
    tool_calls_output_score,
)
from uipath.eval.models import ToolCall, ToolOutput
from worker import Evaluate, again, serve


def _count(case: dict[str, Any]) -> Iterator[Evaluate]:
    made = _calls(case["made"])
    expected = {name: ("=", count) for name, count in count_tool_calls_by_name_and_id(_calls(case["expected"])).items()}
    return again(lambda: tool_calls_count_score(count_tool_calls_by_name_and_id(made), expected)[0])


def _order(case: dict[str, Any]) -> Iterator[Evaluate]:
    made, expected = ([call["name"] for call in case[side]] for side in ("made", "expected"))
    return again(lambda: tool_calls_order_score(made, expected)[0])


def _arguments(case: dict[str, Any]) -> Iterator[Evaluate]:
    made, expected = _calls(case["made"]), _calls(case["expected"])
    return again(lambda: tool_calls_args_score(made, expected, subset=True)[0])


def _output(case: dict[str, Any]) -> Iterator[Evaluate]:
    made, expected = (
        [ToolOutput(name=call["name"], output=call["result"]) for call in case[side]] for side in ("made", "expected")
    )
    return again(lambda: tool_calls_output_score(made, expected)[0])


def _calls(calls: list[dict[str, Any]]) -> list[ToolCall]:
    return [ToolCall(name=call["name"], args=call["arguments"]) for call in calls]


serve(
    {
        "tool_call_count": _count,
        "tool_call_order": _order,
        "tool_call_args": _arguments,
        "tool_call_output": _output,
    }
)
