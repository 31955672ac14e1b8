"""Claude Code's own telemetry."""

from __future__ import annotations

from typing import Any

import pytest

from dialects.spans import call, calls, event, exception, read, span
from spanscore.model import Span, StatusCode

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
