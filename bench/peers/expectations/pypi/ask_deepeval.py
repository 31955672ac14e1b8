"""Asks DeepEval what its metrics without a model say of runs: permissions and loops. Runs in its environment."""

from __future__ import annotations

from typing import Any

from deepeval.metrics import ToolPermissionMetric
from deepeval.metrics.agent_loop_detection.agent_loop_detection import AgentLoopDetectionMetric
from deepeval.test_case import LLMTestCase, ToolCall
from draw import SEED, TOOLS, Draw, write


def permission(family: str, params: dict[str, Any], calls: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a row."""
    case = LLMTestCase(input="", actual_output="", tools_called=[ToolCall(name=call["name"]) for call in calls])
    metric = ToolPermissionMetric(**params)
    value = metric.measure(case, _show_indicator=False)
    return {
        "family": family,
        "expectation": {"metric": "ToolPermission", **params},
        "run": {"calls": calls},
        "verdict": bool(metric.success),
        "value": value,
    }


def loops(family: str, params: dict[str, Any], calls: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a row: tools that repeat themselves, and nothing of texts."""
    case = LLMTestCase(input="x", actual_output="x")
    tools = [{"type": "tool", "name": call["name"], "input": call["arguments"], "children": []} for call in calls]
    case._trace_dict = {"type": "agent", "name": "a", "input": "", "children": tools}  # noqa: SLF001 - its tracing writes it
    metric = AgentLoopDetectionMetric(
        check_reasoning_stagnation=False, check_call_graph_cycles=False, async_mode=False, **params
    )
    metric.measure(case, _show_indicator=False)
    return {
        "family": family,
        "expectation": {"metric": "AgentLoopDetection", **params},
        "run": {"calls": calls},
        "verdict": bool(metric.success),
    }


def named(names: list[str]) -> list[dict[str, Any]]:
    """Return calls without arguments."""
    return [{"name": name, "arguments": {}} for name in names]


draw = Draw(SEED)
rows = []
for _ in range(150):
    params: dict[str, Any] = {}
    if draw.chance(0.7):
        params["allowed_tools"] = sorted(set(draw.names(0, 5)))
    if draw.chance(0.5) or not params:
        params["denied_tools"] = sorted(set(draw.names(1, 2)))
    if draw.chance(0.5):
        params["threshold"] = draw.choice([0.5, 0.75, 0.0])
    rows.append(permission("ToolPermission", params, named(draw.names(0, 6))))
rows.append(permission("ToolPermission", {"allowed_tools": []}, []))
rows.append(
    permission("ToolPermission", {"allowed_tools": list(TOOLS), "denied_tools": list(TOOLS)}, named(["send_mail"]))
)
for _ in range(150):
    kinds = [{"name": draw.choice(TOOLS[:2]), "arguments": {"query": draw.choice("ab")}} for _ in range(2)]
    params = {"repetition_threshold": draw.choice([2, 3, 4]), "threshold": draw.choice([0.4, 0.5, 0.6, 1.0])}
    rows.append(loops("AgentLoopDetection", params, [draw.choice(kinds) for _ in range(draw.randint(0, 10))]))
as_text = [{"name": "search_web", "arguments": {"q": value}} for value in (1, "1", 1)]
rows.append({**loops("differs", {"threshold": 1.0}, as_text), "kind": "text is no number"})
write("deepeval", rows)
