from __future__ import annotations

import json
from typing import Any

from dialects.spans import call, calls, exception, read, span
from spanscore.model import Span, StatusCode

OPENINFERENCE = "openinference.instrumentation.llama_index"
OPENLLMETRY = "opentelemetry.instrumentation.llamaindex"


def output(raw: Any, text: str = "", *, is_error: bool = False) -> dict[str, Any]:
    """What a tool returns, as LlamaIndex serialises it."""
    blocks = [{"block_type": "text", "text": text}]
    return {"blocks": blocks, "tool_name": "book", "raw_input": {}, "raw_output": raw, "is_error": is_error}


def function_tool(number: int, given: Any, returned: Any, **fields: Any) -> Span:
    """OpenInference's span: every tool has the name of the class."""
    attributes = {
        "openinference.span.kind": "TOOL",
        "tool.name": "book",
        "input.value": json.dumps(given),
        **({} if returned is None else {"output.value": json.dumps(returned)}),
    }
    return span(number, "FunctionTool.acall", attributes, parent=1, scope=OPENINFERENCE, **fields)


def test_under_openinference() -> None:
    """The raw output is the result; the workflow's context is no argument."""
    failure = {"status_code": StatusCode.ERROR, "events": (exception("ValueError", "full"),)}

    assert calls(
        function_tool(2, {"kwargs": {"nights": 2}}, output({"id": "BK-1"}, "{'id': 'BK-1'}")),
        function_tool(3, {"kwargs": {"ctx": "<Context object at 0x1>", "to": "clerk"}}, output("ok", "ok")),
        function_tool(4, {"kwargs": {}}, None, **failure),
    ) == [
        call(2, "book", {"nights": 2}, result={"id": "BK-1"}),
        call(3, "book", {"to": "clerk"}, result="ok"),
        call(4, "book", {}, error="ValueError: full"),
    ]


def step(number: int, told: Any, parent: int = 1, **attributes: Any) -> Span:
    """OpenLLMetry's span of a step of the workflow: all have the name of the class."""
    held = {"traceloop.span.kind": "task", "traceloop.entity.output": json.dumps(told), **attributes}
    return span(number, "BaseWorkflowAgent.task", held, parent=parent, scope=OPENLLMETRY)


def executed(call_id: str, returned: Any) -> dict[str, Any]:
    """What the step that ran a tool hands on."""
    return {"tool_name": "book", "tool_kwargs": {}, "tool_id": call_id, "tool_output": returned}


def test_under_openllmetry() -> None:
    """Steps with a tool's name are calls. A failure shows in what they hand on; the span of the function is poorer."""
    tool = {"tool.name": "book", "tool.arguments": '{"nights": 2}'}
    poorer = {"traceloop.span.kind": "task", "traceloop.entity.name": "FunctionTool.task"}
    root = {"traceloop.span.kind": "workflow", "traceloop.entity.name": "FunctionAgent.workflow"}

    (trajectory,) = read(
        span(1, "FunctionAgent.workflow", root, scope=OPENLLMETRY),
        step(2, {"input": [], "current_agent_name": "planner"}),
        step(3, executed("c1", output({"id": "BK-1"})), **tool),
        span(4, "FunctionTool.task", poorer, parent=3, scope=OPENLLMETRY),
        step(5, executed("c2", output(None, "no rooms", is_error=True)), **tool),
        step(6, {"input": [], "current_agent_name": "clerk"}),
    )

    assert trajectory.agent == "planner"
    assert trajectory.calls == (
        call(3, "book", {"nights": 2}, result={"id": "BK-1"}, call_id="c1"),
        call(5, "book", {"nights": 2}, result=None, error="no rooms", call_id="c2"),
    )


def test_under_openllmetry_with_a_renamed_tool() -> None:
    """The Collector's `gen_ai_normalizer` renames the tool, and may remove the original."""
    tool = {"gen_ai.tool.name": "book", "tool.arguments": '{"nights": 2}'}

    assert calls(step(2, executed("c1", output("BK-1")), **tool)) == [
        call(2, "book", {"nights": 2}, result="BK-1", call_id="c1")
    ]


def test_the_agent_s_name_under_openinference() -> None:
    """It stands at the end of a printed event."""
    printed = "AgentInput(input=[ChatMessage(role='user')], current_agent_name='planner')"
    attributes = {"openinference.span.kind": "CHAIN", "output.value": printed}

    (trajectory,) = read(span(1, "FunctionAgent.init_run", attributes, scope=OPENINFERENCE))

    assert trajectory.agent == "planner"
