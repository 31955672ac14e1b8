"""Qwen Code's own telemetry, as version 0.24.4 writes it."""

from __future__ import annotations

from typing import Any

from dialects.spans import call, calls, read, span
from spanscore.model import LOG_RECORD, Span, session_key


def logged(number: int, parent: int = 2, **attributes: Any) -> Span:
    """A log event of a call."""
    known = {"event.name": "qwen-code.tool_call", "session.id": "s-1", "function_name": "read", "call_id": "c1"}
    return span(
        number,
        "qwen-code.tool_call",
        {**known, "function_args": '{"path": "a"}', "success": True, **attributes},
        parent=parent,
        kind=LOG_RECORD,
    )


def test_the_log_event_has_the_arguments_of_the_span() -> None:
    """The span has them with a setting only."""
    known = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "read", "gen_ai.tool.call.id": "c1"}
    made = span(2, "qwen-code.tool", known, parent=1, scope="qwen-code")
    root = span(1, "qwen-code.interaction", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "qwen-code"})

    (trajectory,) = read(root, made, logged(3))

    assert trajectory.calls == (call(2, "read", {"path": "a"}, call_id="c1", agent="qwen-code"),)
    assert trajectory.conversation_id == "s-1"


def test_a_log_event_alone() -> None:
    """A failure has a type; a call that the user or a rule does not allow is no call."""
    failed: dict[str, Any] = {"success": False, "error_type": "file_not_found", "error": "no such file"}
    denied: dict[str, Any] = {"success": False, "error_type": "execution_denied", "error": "declined", "call_id": "c2"}
    rejected: dict[str, Any] = {"success": False, "decision": "reject", "call_id": "c3"}

    made = calls(logged(3, **failed), logged(4, **denied), logged(5, **rejected))

    assert [(each.error, each.error_type) for each in made] == [("file_not_found: no such file", "file_not_found")]


def test_a_call_outside_the_trace_that_was_not_started() -> None:
    """Such a call is not read: it would be a run of its own."""
    outside = logged(3, 0, execution_status="not_started", success=False, error_type="tool_not_registered")
    assert [each.name for each in calls(outside)] == ["read"]
    assert calls(outside._replace(trace_id=session_key(outside.trace_id))) == []
