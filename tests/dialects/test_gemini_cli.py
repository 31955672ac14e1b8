"""Gemini CLI's own telemetry, as version 0.61 writes it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialects.spans import call, calls, read, span
from spanscore.contracts import CallReading
from spanscore.dialects.gemini_cli import GeminiCli
from spanscore.model import NOT_RECORDED, Span

SCOPE = "gemini-cli"
NAME = "mcp_travel_get_weather"
FAILED = {"error": "card declined"}


def spanned(number: int, operation: str, attributes: dict[str, Any], *, parent: int = 0) -> Span:
    """A span of the program, which calls itself the agent."""
    known = {"gen_ai.operation.name": operation, "gen_ai.agent.name": SCOPE, "gen_ai.conversation.id": "sess-1"}
    return span(number, operation, {**known, **attributes}, parent=parent, scope=SCOPE)


def batch(number: int = 1, *came: Any, parent: int = 0) -> Span:
    """The calls that a model asked for at once: the root of a trace."""
    told = {"gen_ai.output.messages": json.dumps(came)} if came else {}
    return spanned(number, "schedule_tool_calls", told, parent=parent)


def entry(number: int = 2, status: str = "success", answer: Any = None, **more: Any) -> dict[str, Any]:
    """What a call came to."""
    call_id = f"{NAME}__call_{number}"
    parts = [{"functionResponse": {"id": call_id, "name": NAME, "response": answer or {"output": "sunny"}}}]
    request = {"callId": call_id, "name": NAME, "args": {"city": "Zürich"}}
    return {
        "status": status,
        "request": request,
        "response": {"responseParts": parts, **more.pop("response", {})},
    } | more


def tool(number: int = 2, came: Any = None, *, parent: int = 1, **attributes: Any) -> Span:
    """A call; with no outcome its content is off."""
    known = {"gen_ai.tool.name": NAME, "gen_ai.tool.call_id": f"{NAME}__call_{number}"}
    content = {"gen_ai.input.messages": came["request"], "gen_ai.output.messages": came} if came else {}
    told = {key: json.dumps(value, separators=(",", ":")) for key, value in content.items()}
    return spanned(number, "tool_call", {**known, **told, **attributes}, parent=parent)


def logged(**attributes: Any) -> CallReading:
    """Return what is read from a log event."""
    known = {"event.name": "gemini_cli.tool_call", "function_name": NAME, "success": True, "session.id": "sess-1"}
    reading = GeminiCli().read(span(1, "gemini_cli.tool_call", {**known, **attributes}, scope=SCOPE))
    assert reading is not None
    assert reading.conversation_id == "sess-1"
    assert reading.call is not None
    return reading.call


def test_a_call_has_its_content_in_two_objects() -> None:
    """The id is the model's, which the program writes after the tool's name."""
    told = {"output": '<untrusted_context>\n{"sky": "heiter ☀"}\n</untrusted_context>'}

    (trajectory,) = read(batch(), tool(came=entry(answer=told)))

    expected = call(2, NAME, {"city": "Zürich"}, result={"sky": "heiter ☀"}, call_id="call_2", agent=SCOPE)
    assert trajectory.calls == (expected,)
    assert (trajectory.agent, trajectory.conversation_id) == (SCOPE, "sess-1")


def test_without_content_a_call_has_its_name_and_its_id() -> None:
    """So it is with prompts, or with traces, switched off."""
    assert calls(batch(), tool()) == [call(2, NAME, call_id="call_2", agent=SCOPE)]


@pytest.mark.parametrize(
    ("came", "expected"),
    [
        (entry(), None),
        (entry(answer={"output": '{"error": "not found"}'}), None),
        (
            entry(status="error", answer=FAILED, response={"errorType": "mcp_tool_error"}),
            "mcp_tool_error: card declined",
        ),
        (entry(status="error", answer=FAILED), "card declined"),
        (entry(status="cancelled", answer={"error": "User denied execution."}), "User denied execution."),
    ],
    ids=["success", "result of that name", "error", "no type", "cancelled"],
)
def test_a_failure_is_part_of_the_content(came: Any, expected: str | None) -> None:
    """The status of the span is OK."""
    assert [each.error for each in calls(batch(), tool(came=came))] == [expected]


def test_content_that_is_cut_still_tells_of_a_failure() -> None:
    """It is cut at ten thousand characters."""
    cut = tool(came=entry(status="error"))
    told = str(cut.attributes["gen_ai.output.messages"])
    cut = cut._replace(attributes={**cut.attributes, "gen_ai.output.messages": told[:40] + "...[TRUNCATED"})

    assert [(each.error, each.result) for each in calls(batch(), cut)] == [("error", NOT_RECORDED)]


def test_a_result_that_is_cut_is_not_recorded() -> None:
    """Nor are the arguments."""
    cut = tool(
        **{
            "gen_ai.input.messages": '{"callId":"x","args":{"city":"Zü...[TRUNCATED',
            "gen_ai.output.messages": '{"status":"success","request":...[TRUNCATED',
        }
    )

    assert calls(batch(), cut) == [call(2, NAME, call_id="call_2", agent=SCOPE)]


def test_a_tool_that_was_never_started_is_told_by_the_batch() -> None:
    """An unknown tool, or arguments that it does not take, leave no span of the call."""
    never = entry(status="error", answer=FAILED, response={"errorType": "invalid_tool_params"})

    assert calls(batch(1, never)) == [
        call(
            1,
            NAME,
            {"city": "Zürich"},
            error="invalid_tool_params: card declined",
            error_type="invalid_tool_params",
            call_id="call_2",
            agent=SCOPE,
        )
    ]


def test_a_call_that_was_started_is_told_by_its_own_span() -> None:
    """Its batch says the same of it."""
    came = entry(status="error", answer=FAILED, outcome="proceed_once")

    assert [each.span_id for each in calls(batch(1, came), tool(came=came))] == [tool().span_id]


def test_a_sub_agent_is_named_where_it_is_asked() -> None:
    """Its span has the name of the program."""
    asked = {"gen_ai.input.messages": '{"agent_name":"scout","prompt":"?"}'}
    spans = (
        batch(),
        tool(2, **{"gen_ai.tool.name": "invoke_agent"}),
        spanned(3, "agent_call", asked, parent=2),
        batch(4, parent=3),
        tool(5, parent=4),
    )

    (trajectory,) = read(*spans)

    assert [(each.name, each.agent) for each in trajectory.calls] == [("invoke_agent", SCOPE), (NAME, "scout")]
    assert trajectory.agent == SCOPE


def test_a_log_event_has_neither_id_nor_result() -> None:
    """Its arguments are JSON text over several lines."""
    expected = CallReading(name=NAME, arguments={"city": "Zürich"})

    assert logged(function_args='{\n  "city": "Zürich"\n}') == expected
    assert logged() == CallReading(name=NAME)


@pytest.mark.parametrize(
    ("signs", "expected"),
    [
        ({"error.type": "mcp_tool_error", "error.message": "declined"}, "mcp_tool_error: declined"),
        ({"error_type": "file_not_found", "error": "no such file"}, "file_not_found: no such file"),
        ({}, "error"),
    ],
)
def test_a_log_event_tells_a_failure(signs: dict[str, Any], expected: str) -> None:
    """Under the names of either version."""
    assert logged(success=False, **signs).error == expected
    assert logged(success=True, **signs).error is None
