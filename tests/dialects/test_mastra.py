"""Mastra, through each of its exporters."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialects.spans import call, calls, exception, read, span
from spanscore.model import Span, StatusCode

SCOPE = "@mastra/otel-exporter"
WEATHER = {"city": "Paris", "days": 2}


def agent(**attributes: Any) -> Span:
    """The run of an agent, the root."""
    named = {
        "mastra.span.type": "agent_run",
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "travel_agent",
    }
    return span(1, "invoke_agent travel_agent", {**named, **attributes}, scope=SCOPE)


def tool(number: int, call_id: str, *, kind: str = "tool_call", **attributes: Any) -> Span:
    """An execution of get_weather that went well."""
    named = {
        "mastra.span.type": kind,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_weather",
        "gen_ai.tool.call.id": call_id,
        "gen_ai.tool.call.arguments": json.dumps(WEATHER),
        "gen_ai.tool.call.result": "sunny",
        "mastra.metadata.sessionId": "sess-42",
    }
    return span(number, "execute_tool get_weather", {**named, **attributes}, parent=1, scope=SCOPE, status_code=1)


@pytest.mark.parametrize("kind", ["tool_call", "mcp_tool_call", "provider_tool_call"])
def test_every_kind_of_executed_tool_is_a_call(kind: str) -> None:
    """The agent's own tools, those of MCP servers and those of the provider have a span type each."""
    (trajectory,) = read(agent(), tool(2, "call_1", kind=kind))

    assert trajectory.calls == (
        call(2, "get_weather", WEATHER, result="sunny", call_id="call_1", agent="travel_agent"),
    )
    assert ("travel_agent", "sess-42") == (trajectory.agent, trajectory.conversation_id)


@pytest.mark.parametrize("side", ["input", "output"])
def test_what_fails_validation_leaves_the_status_ok(side: str) -> None:
    """The refusal handed back to the model is the only sign of it."""
    told = f"Tool {side} validation failed for get_weather. Please fix:"
    refusal = {"error": True, "message": f"{told}\n- days: not a number"}
    refused = tool(2, "call_1", **{"gen_ai.tool.call.result": json.dumps(refusal)})

    assert calls(agent(), refused) == [
        call(
            2,
            "get_weather",
            WEATHER,
            result=refusal,
            error=told,
            call_id="call_1",
            agent="travel_agent",
        )
    ]


def test_a_result_with_an_error_in_it_is_no_failure() -> None:
    """A tool may return an object that says `error`: nothing failed."""
    returned = {"error": "policy not found", "message": "none"}
    answered = tool(2, "call_1", **{"gen_ai.tool.call.result": json.dumps(returned)})

    assert calls(agent(), answered) == [
        call(2, "get_weather", WEATHER, result=returned, call_id="call_1", agent="travel_agent")
    ]


def test_a_failure_has_an_exception_event() -> None:
    """`error.type` is always `unknown`; the event knows more."""
    failed = tool(2, "call_1", **{"error.type": "unknown"})._replace(
        status_code=StatusCode.ERROR, events=(exception("Error", "gateway timed out"),)
    )

    assert ["Error: gateway timed out"] == [made.error for made in calls(agent(), failed)]


def test_a_call_left_to_the_client_or_of_an_unknown_tool_is_none() -> None:
    """Both are spans of the kind `client_tool_call`; nothing was executed."""
    asked = span(
        2,
        "client_tool_call no_such_tool",
        {
            "mastra.span.type": "client_tool_call",
            "gen_ai.operation.name": "client_tool_call",
            "mastra.metadata.args": '{"x":1}',
        },
        parent=1,
        scope=SCOPE,
    )

    assert [] == calls(agent(), asked)


def test_the_steps_hold_the_requests_that_chat_spans_leave_out() -> None:
    """Calls that start together are in the order of the step's list; chunks and generations repeat it."""
    asked = {
        "toolCalls": [
            {"toolCallId": "call_1", "toolName": "get_weather", "args": WEATHER},
            {"toolCallId": "call_2", "toolName": "get_weather", "args": WEATHER},
        ]
    }
    step = span(
        2,
        "agent_step travel_agent",
        {"mastra.span.type": "model_step", "mastra.model_step.output": json.dumps(asked)},
        parent=1,
        scope=SCOPE,
    )
    chunk = span(
        3,
        "model_chunk travel_agent",
        {"mastra.span.type": "model_chunk", "mastra.model_chunk.output": json.dumps(asked["toolCalls"][1])},
        parent=2,
        scope=SCOPE,
    )
    first, second = (tool(4, "call_1"), tool(5, "call_2"))
    second = second._replace(start_ns=first.start_ns)

    assert ["call_1", "call_2"] == [made.call_id for made in calls(second, first, chunk, step, agent())]


def test_the_exporter_for_arize_writes_openinference() -> None:
    """Names, content and ids have OpenInference's keys, the metadata is one JSON text."""
    root = span(
        1,
        "invoke_agent travel_agent",
        {
            "mastra.span.type": "agent_run",
            "openinference.span.kind": "AGENT",
            "agent.name": "travel_agent",
            "metadata": '{"runId":"r-1","sessionId":"sess-42"}',
        },
        scope=SCOPE,
    )
    executed = span(
        2,
        "execute_tool get_weather",
        {
            "mastra.span.type": "tool_call",
            "openinference.span.kind": "TOOL",
            "tool.name": "get_weather",
            "tool_call.id": "call_1",
            "input.value": json.dumps(WEATHER),
            "output.value": '{"sky":"clear"}',
        },
        parent=1,
        scope=SCOPE,
    )

    (trajectory,) = read(root, executed)

    assert trajectory.calls == (
        call(2, "get_weather", WEATHER, result={"sky": "clear"}, call_id="call_1", agent="travel_agent"),
    )
    assert "sess-42" == trajectory.conversation_id


def test_the_owner_of_a_thread_is_no_conversation() -> None:
    """`resourceId` names a user, `threadId` the conversation."""
    owned = {"mastra.metadata.resourceId": "user-7"}

    assert [None, "thread-1"] == [
        read(agent(**metadata))[0].conversation_id
        for metadata in (owned, {**owned, "mastra.metadata.threadId": "thread-1"})
    ]


def test_the_last_step_of_a_suspended_run_does_not_end() -> None:
    """Without content, nothing else says that the run waits. Some exporters do not write which step ends."""
    step = {"mastra.span.type": "model_step", "gen_ai.operation.name": "agent_step"}
    index: dict[str, Any] = {"mastra.model_step.step_index": 1}
    ends = (index, {**index, "mastra.model_step.is_continued": False}, {})
    found = [read(agent(), span(2, "agent_step", {**step, **end}, parent=1, scope=SCOPE)) for end in ends]

    assert [("",), (), ()] == [run.completeness.paused for (run,) in found]


def test_a_suspended_run_names_what_it_waits_for() -> None:
    """Its last step adds nothing to that."""
    suspended = json.dumps({"status": "suspended", "toolName": "issue_refund", "toolCallId": "c2"})
    step = {
        "mastra.span.type": "model_step",
        "gen_ai.operation.name": "agent_step",
        "mastra.model_step.step_index": 1,
    }
    (run,) = read(agent(**{"mastra.agent_run.output": suspended}), span(2, "agent_step", step, parent=1, scope=SCOPE))

    assert ("issue_refund",) == run.completeness.paused
