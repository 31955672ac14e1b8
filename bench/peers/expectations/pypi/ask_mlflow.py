"""Asks MLflow what its scorer of tool calls says of runs, where it needs no model. Runs in its environment."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

os.environ["MLFLOW_ENABLE_ASYNC_TRACE_LOGGING"] = "false"

import mlflow
from draw import SEED, Draw, write
from mlflow.entities import SpanType
from mlflow.genai.scorers import ToolCallCorrectness


def traced(calls: list[dict[str, Any]]) -> Any:
    """Return the trace of a run."""
    with mlflow.start_span("agent", span_type=SpanType.AGENT) as root:
        root.set_inputs({"q": "go"})
        for call in calls:
            with mlflow.start_span(call["name"], span_type=SpanType.TOOL) as span:
                span.set_inputs(call["arguments"])
                span.set_outputs("done")
        root.set_outputs("done")
    return mlflow.get_trace(root.trace_id)


def asked(family: str, expected: list[dict[str, Any]], calls: list[dict[str, Any]], *, ordered: bool) -> dict[str, Any]:
    """Return a row."""
    scorer = ToolCallCorrectness(should_exact_match=True, should_consider_ordering=ordered)
    feedback = scorer(trace=traced(calls), expectations={"expected_tool_calls": expected})
    return {
        "family": family,
        "expectation": {"should_consider_ordering": ordered, "expected_tool_calls": expected},
        "run": {"calls": calls},
        "verdict": str(feedback.value) == "yes",
    }


def without_arguments(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the names alone."""
    return [{"name": call["name"]} for call in calls]


with tempfile.TemporaryDirectory() as directory:
    mlflow.set_tracking_uri(f"sqlite:///{Path(directory) / 'mlflow.db'}")
    draw = Draw(SEED)
    rows = []
    for ordered in (True, False):
        for _ in range(75):
            calls = draw.calls(1, 5)
            made = draw.near_calls(calls)
            expected = without_arguments(calls) if draw.chance(0.3) else calls
            rows.append(asked("drawn", expected, made, ordered=ordered))
        one, two = {"name": "search_web", "arguments": {"q": 1}}, {"name": "send_mail", "arguments": {}}
        for expected, made in (
            ([one], []), ([one, two], [two, one]), ([one, one], [one]), ([{"name": "search_web"}, two], [one, two]),
            ([{**one, "arguments": {"q": {"a": 1, "b": 2}}}], [{**one, "arguments": {"q": {"b": 2, "a": 1}}}]),
        ):  # fmt: skip
            rows.append(asked("edges", expected, made, ordered=ordered))
    rows.append({**asked("differs", [one, two, two], [one, one, two], ordered=False), "kind": "sets"})
write("mlflow", rows)
