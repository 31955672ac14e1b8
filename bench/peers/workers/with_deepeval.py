"""DeepEval's tool correctness, by names, without the part that asks a model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "YES"
os.environ.setdefault("OPENAI_API_KEY", "none")  # a model is set up, and never asked

from deepeval.metrics import ToolCorrectnessMetric
from deepeval.test_case import LLMTestCase, ToolCall
from worker import Evaluate, again, serve


def _correctness(case: dict[str, Any]) -> Iterator[Evaluate]:
    metric = ToolCorrectnessMetric(async_mode=False)
    test_case = LLMTestCase(
        input="", actual_output="", tools_called=_calls(case["made"]), expected_tools=_calls(case["expected"])
    )
    return again(lambda: metric.measure(test_case, _show_indicator=False))


def _calls(calls: list[dict[str, Any]]) -> list[ToolCall]:
    return [ToolCall(name=call["name"], input_parameters=call["arguments"]) for call in calls]


serve({"tool_correctness": _correctness})
