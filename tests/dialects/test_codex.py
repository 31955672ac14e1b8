"""Codex CLI's own telemetry, as version 0.169 writes it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialects.spans import call, calls, event, read, span
from spanscore.dialects import _content as content
from spanscore.dialects.codex import Codex
from spanscore.model import NOT_RECORDED, Span

SCOPE = "codex_exec"
LOG_SCOPE = "codex_otel.log_only"
LINE = "event otel/src/tool_result.rs:54"
"""What log records and span events are called: the name stands in an attribute."""


def turn() -> Span:
    """One prompt and all that it led to."""
    return span(1, "run_turn", {"conversation.id": "conv-1", "turn.id": "turn-1"}, scope=SCOPE)


def tool(
    number: int, name: str = "exec_command", namespace: str = "functions", *, parent: int = 1, **fields: Any
) -> Span:
    """A call's own span: named after the tool, namespace and name run together."""
    whole = name if namespace == "functions" else namespace + name
    attributes = {"tool_name": whole, "call_id": f"call_{number}", "conversation.id": "conv-1"}
    told = {"event.name": "codex.tool_result_ready", "tool_name": name, "tool_namespace": namespace}
    events = fields.pop("events", (event("codex.tool_result_ready", told),))
    return span(number, whole, attributes, parent=parent, scope=fields.pop("scope", SCOPE), events=events, **fields)


def dispatch(number: int, success: str, *, parent: int) -> Span:
    """The span below it whose event says how the call ended."""
    told = {"event.name": "codex.tool_result", "call_id": f"call_{parent}", "success": success}
    return span(
        number, "dispatch_tool_call_with_state", parent=parent, scope=SCOPE, events=(event(LINE, told),), at_ms=number
    )


def request(number: int, *, parent: int, **more: Any) -> Span:
    """The request to the MCP server."""
    attributes = {"tool.name": "book", "tool.call_id": "call_2", "mcp.server.name": "travel", **more}
    return span(number, "mcp.tools.call", {"rpc.method": "tools/call", **attributes}, parent=parent, scope=SCOPE)


def logged(**attributes: Any) -> Span:
    """A log event `codex.tool_result`."""
    told = {"tool_name": "exec_command", "tool_namespace": "functions", "call_id": "call_1", "success": "true"}
    return span(1, "codex.tool_result", {"event.name": "codex.tool_result", **told, **attributes}, scope=LOG_SCOPE)


def log_call(**attributes: Any) -> Any:
    """Return what is read from it."""
    reading = Codex().read(logged(**attributes))
    assert reading is not None
    assert reading.call is not None
    return reading.call


def test_a_call_is_the_span_named_after_its_tool() -> None:
    """Other spans carry the tool's name and the call's id as well."""
    noise = span(3, "guardian_scoring_observation", {"tool_name": "exec_command", "call_id": "call_2"}, parent=2)
    received = span(4, "handle_responses", {"tool_name": "exec_command", "from": "output_item_done"}, parent=1)

    (trajectory,) = read(turn(), tool(2), noise._replace(scope=SCOPE), received._replace(scope=SCOPE))

    assert trajectory.calls == (call(2, "exec_command", call_id="call_2"),)
    assert trajectory.conversation_id == "conv-1"


def test_a_turn_without_calls_is_an_agents() -> None:
    """An answer without a tool is a trajectory without calls."""
    (trajectory,) = read(turn())

    assert trajectory.recognised
    assert trajectory.calls == ()


@pytest.mark.parametrize(
    ("name", "namespace", "expected"),
    [
        ("book", "mcp__travel", "mcp__travel__book"),
        ("book", "mcp__travel__", "mcp__travel__book"),
        ("spawn_agent", "multi_agent_v1", "spawn_agent"),
        ("exec_command", "functions", "exec_command"),
    ],
)
def test_the_tool_of_a_server_is_named_with_the_server(name: str, namespace: str, expected: str) -> None:
    """Also the log event's: namespace and name are attributes there."""
    assert [each.name for each in calls(turn(), tool(2, name, namespace))] == [expected]
    assert log_call(tool_name=name, tool_namespace=namespace).name == expected


def test_a_name_that_cannot_be_taken_apart_is_left_to_the_request() -> None:
    """Without its event, the call's span does not say where the server's name ends."""
    cut = tool(2, "book", "mcp__travel", events=())

    assert calls(turn(), cut, request(3, parent=2)) == [call(2, "mcp__travel__book", call_id="call_2")]


def test_a_call_that_was_never_made_is_named_by_its_dispatch() -> None:
    """A request to the server is missing where the user refused: the names stay run together in older versions."""
    told = {"event.name": "codex.tool_result", "tool_name": "mcp__travelbook", "success": "false"}
    refused = dispatch(3, "false", parent=2)._replace(events=(event(LINE, told),))

    assert calls(turn(), tool(2, "book", "mcp__travel", events=()), refused) == [
        call(2, "mcp__travelbook", error="error", call_id="call_2")
    ]


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ((dispatch(3, "true", parent=2),), None),
        ((dispatch(3, "false", parent=2),), "error"),
        ((dispatch(3, "false", parent=2), request(4, parent=3, **{"error.type": "tool_result"})), "tool_result"),
    ],
    ids=["success", "dispatch", "request"],
)
def test_a_failure_shows_below_the_call(inner: tuple[Span, ...], expected: str | None) -> None:
    """The call's own span never has an error."""
    (found,) = calls(turn(), tool(2, "book", "mcp__travel"), *inner)

    assert (found.span_id, found.error) == (tool(2).span_id, expected)


def test_spans_of_others_that_look_alike_are_not_calls() -> None:
    """A tool's name and a call's id are anybody's attributes."""
    assert calls(tool(2, parent=0, scope="my-app", events=())) == []


def test_a_program_around_it_may_replace_the_scope() -> None:
    """The scope is the program's name; the module stays."""
    around = tool(2, scope="my-editor")
    module = {**around.attributes, "code.module.name": "codex_core::tools::parallel"}

    assert [each.name for each in calls(turn(), around._replace(attributes=module))] == ["exec_command"]


def test_a_log_event_has_the_content() -> None:
    """The result stands after what Codex tells the model about the call."""
    output = 'Wall time: 0.0056 seconds\nOutput:\n{"sky": "heiter ☀"}'
    found = log_call(arguments='{"city": "Zürich"}', output=output, agent_name="/root/scout")

    assert found.arguments == {"city": "Zürich"}
    assert found.result == {"sky": "heiter ☀"}
    assert (found.error, found.call_id, found.agent) == (None, "call_1", None)


def test_a_log_events_name_may_stand_in_an_attribute_alone() -> None:
    """The record's own is a line of the source."""
    reading = Codex().read(logged()._replace(name=LINE))

    assert reading is not None
    assert reading.call is not None


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.\n", "Success.\n"),
        ("Chunk ID: 7b\nWall time: 0.1 seconds\nProcess exited with code 3\nOutput:\nerror: no\n", "error: no\n"),
        ("Wall time: 0.1 seconds\nOutput:\n", ""),
        ('{"agent_id": "a"}', {"agent_id": "a"}),
        ("Output:\nof a tool", "Output:\nof a tool"),
    ],
)
def test_a_result_is_what_the_tool_said(output: str, expected: Any) -> None:
    """A command that fails is no failed call: its exit code is part of the output."""
    found = log_call(output=output)

    assert (found.result, found.error) == (expected, None)


def test_an_output_that_is_cut_is_not_recorded() -> None:
    """Codex says so."""
    assert log_call(output="a lot", output_truncated=True).result is NOT_RECORDED


def test_a_failure_of_a_log_event_is_a_text() -> None:
    """Its output is what went wrong."""
    found = log_call(success="false", output="Wall time: 0.1 seconds\nOutput:\nTypeError: card declined\nat x")

    assert (found.error, found.result) == ("TypeError: card declined", NOT_RECORDED)
    assert log_call(success="false").error == "error"


def test_a_patch_is_no_object() -> None:
    """Arguments that cannot be parsed are no lone text argument."""
    patch = "*** Begin Patch\n*** Add File: note.txt\n+Grüezi\n*** End Patch\n"

    assert (log_call(arguments=patch).arguments, log_call(arguments=patch).sole_argument) == (NOT_RECORDED, patch)
    assert (log_call(arguments="{not json").arguments, log_call(arguments="{not json").sole_argument) == (
        NOT_RECORDED,
        None,
    )


@pytest.mark.parametrize("name", ["mcp__travelbook", "mcp__travel__book"])
def test_older_log_events_have_the_server_apart(name: str) -> None:
    """Version 0.140 writes no namespace, and the blocks that the server answered."""
    output = 'Wall time: 0.1 seconds\nOutput:\n[{"type":"text","text":"{\\"sky\\": \\"heiter ☀\\"}"}]'
    found = log_call(tool_name=name, tool_namespace=None, mcp_server="travel", output=output)

    assert (found.name, found.result) == ("mcp__travel__book", {"sky": "heiter ☀"})


def test_an_older_log_event_tells_a_failure_in_a_block() -> None:
    """The text in it is what went wrong."""
    output = 'Wall time: 0.1 seconds\nOutput:\n[{"type":"text","text":"TypeError: declined"}]'

    assert log_call(success="false", mcp_server="travel", output=output).error == "TypeError: declined"


@given(text=st.text(st.characters(codec="utf-8")))
def test_whatever_a_tool_says_is_its_result(text: str) -> None:
    """Also where it begins as Codex itself does: only what is in front of it is left out."""
    output = f"Wall time: 0.1 seconds\nOutput:\n{text}"

    assert log_call(output=output).result == content.decoded(text)
