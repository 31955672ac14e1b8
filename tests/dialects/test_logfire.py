from __future__ import annotations

import json
from typing import Any

import pytest

from dialects.spans import call, calls, read, span
from spanscore.model import Span, StatusCode

SCOPE = "logfire.openai_agents"


def traced(number: int, template: str, parent: int, **attributes: Any) -> Span:
    """A span of `instrument_openai_agents`: its name is a template."""
    encoded = {key: value if isinstance(value, str) else json.dumps(value) for key, value in attributes.items()}
    return span(number, template, {"logfire.span_type": "span", **encoded}, parent=parent, scope=SCOPE)


def test_functions_of_the_openai_agents_sdk() -> None:
    """The group is the conversation; agents are runs and not turns."""
    failed = traced(4, "Function: {name}", 2, name="pay", input="{}", output="An error occurred.")

    (trajectory,) = read(
        traced(1, "OpenAI Agents trace: {name}", 0, name="trip", group_id="g-1"),
        traced(2, "Agent run: {name!r}", 1, name="planner"),
        traced(3, "Function: {name}", 2, name="book", input='{"nights": 2}', output='{"id": "BK-1"}'),
        failed._replace(status_code=StatusCode.ERROR, status_message="Error running tool"),
    )

    assert trajectory.calls == (
        call(3, "book", {"nights": 2}, result={"id": "BK-1"}, agent="planner"),
        call(4, "pay", {}, result="An error occurred.", error="Error running tool", agent="planner"),
    )
    assert (trajectory.agent, trajectory.conversation_id) == ("planner", "g-1")


def request(number: int, name: str, method: str = "tools/call", parent: int = 0, **answer: Any) -> Span:
    """A request to a server of MCP's SDK before version 2; Logfire writes empty fields as null."""
    params = {"task": None, "name": "book", "arguments": {"nights": 2}}
    parts = [{"type": "text", "text": '{"id": "BK-1"}', "annotations": None, "meta": None}]
    held = {
        "request": json.dumps({"method": method, "params": params}),
        "response": json.dumps({"meta": None, "content": parts, "structuredContent": {"result": "BK"}, **answer}),
    }
    return span(number, name, {"logfire.span_type": "span", **held}, parent=parent, scope="logfire.mcp")


@pytest.mark.parametrize(("failed", "error"), [(False, None), (True, "{'id': 'BK-1'}")])
def test_client_and_server_of_mcp(error: str | None, *, failed: bool) -> None:
    """Both have the whole messages; together they are one call."""
    made = calls(
        request(1, "MCP request: initialize", "initialize"),
        request(2, "MCP request: tools/call book", isError=failed),
        request(3, "MCP server handle request: tools/call", parent=2, isError=failed),
    )

    assert made == [call(2, "book", {"nights": 2}, result={"id": "BK-1"}, error=error)]


CHAT = {"tool_calls": [{"id": "c1", "type": "function", "function": {"name": "book", "arguments": '{"nights": 2}'}}]}
RESPONSE = {
    "output": [{"type": "function_call", "call_id": "c1", "id": "fc_1", "name": "book", "arguments": '{"nights": 2}'}]
}


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("Chat completion with {gen_ai.request.model!r}", {"response_data": {"message": CHAT}}),
        ("Responses API with {gen_ai.request.model!r}", {"response": RESPONSE}),
        (
            "Responses API",
            {
                "events": [
                    {"event.name": "gen_ai.assistant.message", "tool_calls": CHAT["tool_calls"]},
                    {"event.name": "gen_ai.choice", "message": CHAT},
                ]
            },
        ),
    ],
)
def test_call_ids_come_from_the_model_s_answer(template: str, told: Any) -> None:
    """Whichever API was used."""
    assert calls(
        traced(1, "Agent run: {name!r}", 0, name="planner"),
        traced(2, template, 1, **told),
        traced(3, "Function: {name}", 1, name="book", input='{"nights": 2}'),
    ) == [call(3, "book", {"nights": 2}, call_id="c1", agent="planner")]


def test_a_function_without_a_result_waits_for_approval() -> None:
    """Unless a model is asked afterwards, as the function returned nothing."""
    spans = (
        traced(1, "Agent run: {name!r}", 0, name="planner"),
        traced(2, "Responses API", 1, raw_input=[{"role": "user", "content": "pay"}]),
        traced(3, "Function: {name}", 1, name="pay", input='{"amount": 40}', output=None),
    )

    (waits,) = read(*spans)
    (goes_on,) = read(*spans, traced(4, "Responses API", 1))

    assert (("pay",), ()) == (waits.completeness.paused, waits.names)
    assert ((), ("pay",)) == (goes_on.completeness.paused, goes_on.names)


@pytest.mark.parametrize(("template", "key"), [("Responses API", "raw_input"), ("Chat completion", "input")])
def test_a_run_that_continues_is_sent_its_earlier_calls(template: str, key: str) -> None:
    """With either API."""
    sent = [
        {"role": "user", "content": "book"},
        {"role": "assistant", "content": None, **CHAT},
        {"role": "tool", "tool_call_id": "c1", "content": "BK-1"},
        {"role": "assistant", "tool_calls": [{"id": "c2", "function": {"name": "pay", "arguments": '{"amount": 40}'}}]},
        {"role": "tool", "tool_call_id": "c2", "content": "paid"},
    ]
    (run,) = read(
        traced(1, "Agent run: {name!r}", 0, name="planner"),
        traced(2, "Function: {name}", 1, name="pay", input='{"amount": 40}', output="paid"),
        traced(3, template, 1, **{key: sent}),
    )

    assert [("book", True), ("pay", False)] == [(call.name, call.restored) for call in run.calls]
    assert run.completeness.resumed


def test_a_run_that_continues_behind_a_hand_off_has_made_no_call_by_it() -> None:
    """The model was told of it as of a tool's result, which names the next agent."""
    sent = [
        {"role": "user", "content": "pay"},
        {"type": "function_call", "call_id": "c0", "name": "transfer_to_clerk", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c0", "output": '{"assistant": "clerk"}'},
        {"type": "function_call", "call_id": "c1", "name": "look_up", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": '{"assistant": "clerk", "open": true}'},
        {"type": "function_call", "call_id": "c2", "name": "pay", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c2", "output": "paid"},
    ]
    (run,) = read(
        traced(1, "Agent run: {name!r}", 0, name="clerk"),
        traced(2, "Function: {name}", 1, name="pay", input="{}", output="paid"),
        traced(3, "Responses API", 1, raw_input=sent),
    )

    assert [("look_up", True), ("pay", False)] == [(call.name, call.restored) for call in run.calls]


def test_a_hand_off_is_no_call() -> None:
    """Though the model asked for it like for a tool."""
    request = {"id": "c1", "type": "function", "function": {"name": "transfer_to_clerk", "arguments": "{}"}}

    assert (
        calls(
            traced(1, "Agent run: {name!r}", 0, name="planner"),
            traced(2, "Chat completion", 1, response_data={"message": {"tool_calls": [request]}}),
            traced(3, "Handoff: {from_agent} → {to_agent}", 1, from_agent="planner", to_agent="clerk"),
        )
        == []
    )


def test_a_pending_span_announces_and_is_none() -> None:
    """It repeats what the span has at its start, and lies below it."""
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "book", "gen_ai.tool.call.arguments": "{}"}
    run = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"}
    pending = {"logfire.span_type": "pending_span", "logfire.pending_parent_id": "0" * 16}

    (trajectory,) = read(
        span(2, "invoke_agent planner", {**run, **pending}, parent=1, at_ms=1),
        span(4, "execute_tool book", {**tool, **pending}, parent=3, at_ms=3),
        span(3, "execute_tool book", tool, parent=1),
        span(1, "invoke_agent planner", run),
    )

    assert trajectory.calls == (call(3, "book", {}, agent="planner"),)
