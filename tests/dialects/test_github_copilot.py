"""GitHub Copilot: the command line 1.0.102, which the recordings are of, and the editor.

The editor's spans are written as in microsoft/vscode-copilot-chat at 31acd00a8642, and its attributes of hooks as in
the table of microsoft/vscode-docs#9834.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialects.spans import call, calls, event, span
from spanscore.model import NOT_RECORDED, Span, StatusCode

HASHES = f"{'0209442e' * 8}/{'7c170977' * 8}"


def tool(number: int, name: str, call_id: str = "call_1", *, parent: int = 0, **fields: Any) -> Span:
    """A span of one call."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": call_id,
        **fields.pop("attributes", {}),
    }
    return span(number, f"execute_tool {name}", attributes, parent=parent, **fields)


def hook(number: int, call_id: str | None, decision: str | None, kind: str = "PreToolUse", **fields: Any) -> Span:
    """A span of one hook of the editor."""
    given = {"tool_name": "run_in_terminal", "tool_input": {"command": "rm"}, "tool_use_id": call_id}
    attributes = {
        "gen_ai.operation.name": "execute_hook",
        "copilot_chat.hook_type": kind,
        "github.copilot.hook.tool_names": '["run_in_terminal"]',
    }
    if call_id is not None:
        attributes["copilot_chat.hook_input"] = json.dumps(given)
    if decision is not None:
        attributes["github.copilot.hook.decision"] = decision
    return span(number, f"execute_hook {kind}", attributes, parent=1, **fields)


AGENT = span(1, "invoke_agent copilot", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "copilot"})


def test_hashes_are_no_name() -> None:
    """With content off the name of an MCP server's tool is hashed: nothing says of which tool the call is."""
    off = {"github.copilot.tool.parameters.mcp_server_name_hash": "0209442e" * 8}
    on = {**off, "github.copilot.tool.parameters.mcp_tool_name": "get_weather"}

    made = calls(
        tool(1, HASHES, attributes=off),
        tool(2, HASHES, "call_2", attributes=on),
        tool(3, HASHES[:64], "call_3", scope="github.copilot"),
    )
    assert [done.name for done in made] == ["unknown", "get_weather", "unknown"]


def test_a_call_that_a_hook_refuses_has_failed() -> None:
    """In the command line the tool's own span says so, beside an event that is no exception."""
    refused = tool(
        1,
        "travel-cancel_booking",
        attributes={"gen_ai.tool.call.arguments": '{"booking": "BK-9"}', "error.type": "denied"},
        scope="github.copilot",
        status_code=StatusCode.ERROR,
        status_message="Denied by preToolUse hook: bookings stay",
        events=(event("gen_ai.client.operation.exception", {"exception.type": "ToolError"}),),
    )
    (found,) = calls(refused)

    assert found.error == "denied: Denied by preToolUse hook: bookings stay"
    assert found.error_type == "denied"


@pytest.mark.parametrize("decision", ["block", "deny"])
@pytest.mark.parametrize("number", [2, 4], ids=["hook first", "tool first"])
def test_the_editor_tells_a_refusal_in_the_hooks_span(decision: str, number: int) -> None:
    """The call's own span has ended well: it is joined by its id, which the editor makes longer."""
    done = tool(3, "run_in_terminal", parent=1, attributes={"gen_ai.tool.call.arguments": '{"command": "rm"}'})
    refused = hook(number, "call_1__vscode-17", decision, status_code=StatusCode.ERROR, status_message="not in here")

    assert calls(AGENT, refused, done) == [
        call(3, "run_in_terminal", {"command": "rm"}, call_id="call_1", agent="copilot", error="denied: not in here")
    ]


@pytest.mark.parametrize(
    "beside",
    [
        hook(2, "call_1", "pass"),
        hook(2, "call_1", "approve"),
        hook(2, "call_1", "non_blocking_error", status_code=StatusCode.ERROR),
        hook(2, "call_1", None),
        hook(2, "call_1", "block", kind="PostToolUse"),
        hook(2, "call_2", "block"),
        hook(2, None, "block"),
    ],
    ids=["passed", "approved", "the hook failed", "no decision", "after the call", "another call", "content off"],
)
def test_no_other_hook_is_a_call_or_a_failure(beside: Span) -> None:
    """A hook is no tool, and what it refuses is known by the id of the call alone."""
    assert calls(AGENT, beside, tool(3, "run_in_terminal", parent=1)) == [
        call(3, "run_in_terminal", NOT_RECORDED, call_id="call_1", agent="copilot")
    ]


def test_what_the_editor_has_cut_is_not_recorded() -> None:
    """It writes so into the text: an object that does not end."""
    cut = '{"command": "' + "x" * 40 + "...[truncated, original 70000 chars]"

    assert calls(tool(1, "run_in_terminal", "", attributes={"gen_ai.tool.call.arguments": cut})) == [
        call(1, "run_in_terminal")
    ]
