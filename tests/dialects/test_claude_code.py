"""Claude Code's own telemetry."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialects.spans import call, calls, event, exception, read, span, span_id, told_to_wait
from spanscore.contracts import CallReading, Reading
from spanscore.dialects.claude_code import ClaudeCode
from spanscore.model import NOT_RECORDED, Span, StatusCode

SCOPE = "com.anthropic.claude_code.tracing"


def interaction() -> Span:
    """The root: one prompt and all that it led to."""
    return span(
        1,
        "claude_code.interaction",
        {
            "span.type": "interaction",
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.conversation.id": "sess-42",
            "session.id": "sess-42",
        },
        scope=SCOPE,
    )


def tool(number: int, *, parent: int = 1, name: str = "mcp__travel__get_weather", **fields: Any) -> Span:
    """A call: the model used the full name, the conventions' attribute has the bare one."""
    return span(
        number,
        "claude_code.tool",
        {
            "span.type": "tool",
            "tool_name": name,
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name.rpartition("__")[2],
            "gen_ai.tool.call.id": f"toolu_{number}",
            "tool_use_id": f"toolu_{number}",
            **fields.pop("attributes", {}),
        },
        parent=parent,
        scope=SCOPE,
        **fields,
    )


def step(number: int, kind: str, *, parent: int, **fields: Any) -> Span:
    """A part of a call: the wait for permission, or the execution."""
    attributes = {
        "span.type": f"tool.{kind}",
        "tool_use_id": f"toolu_{parent}",
        "gen_ai.tool.call.id": f"toolu_{parent}",
        **fields.pop("attributes", {}),
    }
    return span(number, f"claude_code.tool.{kind}", attributes, parent=parent, scope=SCOPE, **fields)


def test_three_spans_are_one_call() -> None:
    """The wait and the execution stand below the call's span; the name is the one the model used."""
    answered = tool(2, events=(event("tool.output", {"output": '{"sky":"clear"}'}),))
    spans = (interaction(), answered, step(3, "blocked_on_user", parent=2), step(4, "execution", parent=2))

    (trajectory,) = read(*spans)

    assert trajectory.calls == (call(2, "mcp__travel__get_weather", result={"sky": "clear"}, call_id="toolu_2"),)
    assert "sess-42" == trajectory.conversation_id
    assert not trajectory.completeness.arguments_recorded


@pytest.mark.parametrize(
    ("signs", "expected"),
    [
        ({"attributes": {"success": True}}, None),
        (
            {
                "status_code": StatusCode.ERROR,
                "status_message": "declined",
                "attributes": {"success": False, "error": "card declined", "error.type": "tool_error"},
            },
            "tool_error: card declined",
        ),
        ({"status_code": StatusCode.ERROR, "events": (exception("Error", "declined"),)}, "Error: declined"),
        ({"attributes": {"success": False}}, "error"),
    ],
    ids=["success", "error text", "exception", "flag alone"],
)
def test_a_failure_shows_on_the_execution_alone(signs: dict[str, Any], expected: str | None) -> None:
    """The call's own span stays unset."""
    spans = (interaction(), tool(2), step(3, "execution", parent=2, **signs))

    assert calls(*spans) == [call(2, "mcp__travel__get_weather", error=expected, call_id="toolu_2")]


def test_a_failure_inside_a_sub_agent_is_not_that_of_the_call_that_started_it() -> None:
    """The sub-agent's calls stand below the execution of the tool that runs it."""
    failed = {"attributes": {"success": False, "error": "declined"}}
    spans = (
        interaction(),
        tool(2, name="Agent"),
        step(3, "execution", parent=2, attributes={"success": True}),
        tool(4, parent=3),
        step(5, "execution", parent=4, **failed),
    )

    assert calls(*spans) == [
        call(2, "Agent", call_id="toolu_2"),
        call(4, "mcp__travel__get_weather", error="declined", call_id="toolu_4"),
    ]


def test_what_is_exported_of_a_commands_arguments_is_not_all_of_them() -> None:
    """Bash's `full_command` is one of several arguments: they count as not recorded."""
    ran = tool(2, name="Bash", attributes={"full_command": "echo hi"})

    assert calls(interaction(), ran) == [call(2, "Bash", call_id="toolu_2")]


def test_a_call_that_was_refused_is_no_call() -> None:
    """A person was waited for, and the tool was never executed."""
    refused = step(3, "blocked_on_user", parent=2, attributes={"decision": "reject", "source": "user_reject"})
    accepted = step(5, "blocked_on_user", parent=4, attributes={"decision": "accept", "source": "config"})

    found = calls(interaction(), tool(2), refused, tool(4), accepted)

    assert [(each.span_id, each.error) for each in found] == [(span_id(4), None)]


def test_an_answer_after_which_no_tool_starts_waits() -> None:
    """The request is not recorded, but its stop reason is."""
    asking, talking = ({"stop_reason": reason} for reason in ("tool_use", "end_turn"))
    asked = span(2, "claude_code.llm_request", {"span.type": "llm_request", **asking}, parent=1, scope=SCOPE)
    ended = span(4, "claude_code.llm_request", {"span.type": "llm_request", **talking}, parent=1, scope=SCOPE)
    assert told_to_wait(interaction(), asked) == ("",)
    assert told_to_wait(interaction(), asked, tool(3), ended) == ()


def test_a_sub_agent_is_named_by_the_call_that_starts_it() -> None:
    """The call itself is the outer agent's, which has no name."""
    started = tool(2, name="Agent", attributes={"subagent_type": "scout"})
    spans = (interaction(), started, step(3, "execution", parent=2), tool(4, parent=3))

    (trajectory,) = read(*spans)

    assert [(each.name, each.agent) for each in trajectory.calls] == [
        ("Agent", None),
        ("mcp__travel__get_weather", "scout"),
    ]
    assert trajectory.agent is None


def logged(event_name: str = "tool_result", **attributes: Any) -> Reading | None:
    """Return what is read from a log event."""
    known = {
        "event.name": event_name,
        "body": f"claude_code.{event_name}",
        "session.id": "sess-42",
        "tool_name": "Bash",
        "tool_use_id": "toolu_1",
        "success": "true",
    }
    return ClaudeCode().read(span(1, event_name, {**known, **attributes}, scope="com.anthropic.claude_code.events"))


def log_call(**attributes: Any) -> CallReading:
    """Return the call that is read from a log event."""
    reading = logged(**attributes)
    assert reading is not None
    assert reading.call is not None
    return reading.call


def test_a_log_event_has_the_arguments() -> None:
    """And never a result."""
    reading = logged(tool_input='{"command":"echo grüezi"}')

    expected = CallReading(name="Bash", arguments={"command": "echo grüezi"}, call_id="toolu_1")
    assert reading == Reading(call=expected, conversation_id="sess-42")


@pytest.mark.parametrize(
    "given",
    [
        '{"plan":{"pax":"<nested>"}}',
        f'{{"text":"{"x" * 128}…[600 chars]"}}',
        '{"cities":["a","…[25 items]"]}',
        '{"a":1,"…":"25 keys"}',
        '{"text":"cut off…[truncated]',
    ],
)
def test_arguments_of_which_a_log_event_leaves_some_out_are_not_recorded(given: str) -> None:
    """It shortens what is long, numerous or deep."""
    assert log_call(tool_input=given).arguments is NOT_RECORDED


@pytest.mark.parametrize("given", ['{"text":"wait…"}', '{"text":"a<nested>b"}', "{}"])
def test_arguments_that_only_look_so_are_recorded(given: str) -> None:
    """A mark stands alone, or at the end."""
    assert log_call(tool_input=given).arguments == json.loads(given)


@given(given=st.dictionaries(st.text("abü_ "), st.text("abü_<> ") | st.integers() | st.lists(st.booleans())))
def test_arguments_of_which_nothing_is_left_out_are_exact(given: Any) -> None:
    """Whatever they are."""
    assert log_call(tool_input=json.dumps(given, ensure_ascii=False)).arguments == given


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"mcp_server_name": "travel", "mcp_tool_name": "get_weather"}, "mcp__travel__get_weather"),
        ({"mcp_server_name": "claude.ai x", "mcp_tool_name": "ask"}, "mcp__claude_ai_x__ask"),
        ({"mcp_tool_name": "ask"}, None),
        (None, None),
    ],
)
def test_the_tool_of_a_server_is_named_in_its_parameters(parameters: Any, expected: str | None) -> None:
    """All of them have one name, and without content nothing else."""
    told = {"tool_parameters": json.dumps(parameters)} if parameters else {}

    assert log_call(tool_name="mcp_tool", **told).name == expected


@pytest.mark.parametrize(
    ("signs", "expected"),
    [
        ({"error_type": "McpToolCallError", "error": "declined"}, ("McpToolCallError: declined", "McpToolCallError")),
        ({"error_type": "ShellError"}, ("ShellError", "ShellError")),
        ({}, ("error", None)),
    ],
)
def test_a_log_event_tells_a_failure(signs: dict[str, Any], expected: tuple[str, str | None]) -> None:
    """Its flag is a text."""
    failed = log_call(success="false", **signs)

    assert (failed.error, failed.error_type) == expected
    assert log_call(**signs).error is None


def test_a_decision_is_a_call_only_where_it_refuses() -> None:
    """What is accepted has a result later."""
    assert logged("tool_decision", decision="accept") is None
    assert log_call(event_name="tool_decision", decision="reject").state == "refused"


def test_other_log_events_are_not_calls() -> None:
    """Nor is an event of that name by another program."""
    assert logged("api_request") is None
    assert ClaudeCode().read(span(1, "tool_result", {"event.name": "tool_result"}, scope="my-app")) is None


def test_a_log_event_is_known_by_its_body() -> None:
    """Where the scope was lost on the way."""
    reading = ClaudeCode().read(span(1, "claude_code.tool_result", {"tool_name": "Bash", "tool_use_id": "toolu_1"}))

    assert reading == Reading(call=CallReading(name="Bash", call_id="toolu_1"))


def test_a_run_whose_model_asked_for_tools_that_no_span_shows_is_not_read() -> None:
    """The request to the model says why the model stopped."""
    asking, stopped = (
        span(
            2,
            "claude_code.llm_request",
            {"span.type": "llm_request", "stop_reason": reason},
            parent=1,
            scope=SCOPE,
        )
        for reason in ("tool_use", "end_turn")
    )

    assert [True, False] == [
        trajectory.unread is not None for each in (asking, stopped) for trajectory in read(interaction(), each)
    ]
