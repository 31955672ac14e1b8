from __future__ import annotations

import json
from typing import Any

import pytest

from dialects.spans import call, calls, exception, read, span
from spanscore.model import Span, StatusCode
from traces import lasting

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


def test_a_tool_that_waits_under_openllmetry() -> None:
    """Neither its span nor one below it holds a result. If the run goes on, the tool is executed once more."""
    asked = {"tool_calls": [{"tool_name": "book", "tool_kwargs": {"nights": 2}, "tool_id": "c1"}]}
    asks = {"response": {"role": "assistant"}, "current_agent_name": "clerk", **asked}
    held = {"traceloop.span.kind": "task", "tool.name": "book", "tool.arguments": '{"nights": 2}'}
    waits = span(3, "BaseWorkflowAgent.task", held, parent=1, scope=OPENLLMETRY)
    root = span(1, "FunctionAgent.workflow", {"traceloop.span.kind": "workflow"}, scope=OPENLLMETRY)
    (pauses,) = read(root, step(2, asks), waits)
    made = step(4, executed("c1", output("ok")), **{"tool.name": "book", "tool.arguments": '{"nights": 2}'})
    (goes_on,) = read(root, step(2, asks), waits, made)

    assert ((), ("book",)) == (pauses.calls, pauses.completeness.paused)
    assert ([call(4, "book", {"nights": 2}, call_id="c1", result="ok", agent="clerk")], ()) == (
        list(goes_on.calls),
        goes_on.completeness.paused,
    )


def test_a_result_that_cannot_be_written_under_openllmetry() -> None:
    """The span below shows that the tool was executed."""
    held = {"traceloop.span.kind": "task", "tool.name": "book", "tool.arguments": "{}"}
    inner = {"traceloop.span.kind": "task", "traceloop.entity.input": "{}"}
    asks = {"response": {"role": "assistant"}, "current_agent_name": "clerk", "tool_calls": []}

    assert ["book"] == [
        each.name
        for each in calls(
            step(2, asks),
            span(3, "BaseWorkflowAgent.task", held, parent=1, scope=OPENLLMETRY),
            span(4, "FunctionTool.task", inner, parent=3, scope=OPENLLMETRY),
        )
    ]


def test_a_call_is_of_the_agent_whose_step_has_asked_its_model() -> None:
    """After a hand-over the step of the other agent comes before the call. The requests are below the steps."""

    def asks(number: int, agent: str) -> Span:
        given = json.dumps({"ctx": "<Context>", "ev": f"AgentSetup(input=[], current_agent_name='{agent}')"})
        held = {"openinference.span.kind": "CHAIN", "input.value": given}
        return span(number, "AgentWorkflow.run_agent_step", held, parent=1, scope=OPENINFERENCE)

    def runs(number: int) -> tuple[Span, Span]:
        around = span(number, "AgentWorkflow.call_tool", parent=1, scope=OPENINFERENCE)
        made = function_tool(number + 1, {"kwargs": {}}, output("ok"))
        return around, made._replace(parent_span_id=around.span_id)

    spans = (span(1, "AgentWorkflow.run"), asks(2, "desk"), *runs(4), asks(6, "clerk"), *runs(8))

    assert ["desk", "clerk"] == [each.agent for each in calls(*spans)]


def test_opentelemetrys_agent_stops_at_the_calls_that_it_asks_for() -> None:
    """The tool that waits for a person has a span without a result; the other has been called."""
    asked = [{"type": "tool_call", "id": f"c{n}", "name": name, "arguments": "{}"} for n, name in enumerate(("a", "b"))]
    agent = {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": asked}])}
    done = {"gen_ai.tool.name": "a", "gen_ai.tool.call.id": "c0", "gen_ai.tool.call.result": "ok"}

    (trajectory,) = read(
        lasting(opentelemetrys(1, "invoke_agent", **agent), 9),
        opentelemetrys(2, "execute_tool", **done),
        opentelemetrys(3, "execute_tool", **{"gen_ai.tool.name": "b", "gen_ai.tool.call.id": "c1"}),
    )

    assert ([made.name for made in trajectory.calls], trajectory.completeness.paused) == (["a"], ("b",))


@pytest.mark.parametrize(
    ("held", "is_unseen"),
    [
        ({"gen_ai.output.messages": "[]"}, True),
        ({"gen_ai.output.messages": "[]", "gen_ai.input.messages": "[]"}, False),
        ({}, False),  # without content
    ],
)
def test_opentelemetrys_workflow_that_continues_is_given_no_messages(held: dict[str, str], *, is_unseen: bool) -> None:
    """The workflow is given the person's answer alone."""
    call = opentelemetrys(2, "execute_tool", **{"gen_ai.tool.name": "a"})

    (trajectory,) = read(opentelemetrys(1, "invoke_workflow", **held), call)

    assert trajectory.completeness.begin_unseen == is_unseen


def opentelemetrys(number: int, operation: str, **attributes: str) -> Span:
    """A span by OpenTelemetry's own instrumentation; all are below the first."""
    held = {"gen_ai.operation.name": operation, **attributes}
    return span(
        number, operation, held, parent=min(number - 1, 1), scope="opentelemetry.instrumentation.genai.llama_index"
    )
