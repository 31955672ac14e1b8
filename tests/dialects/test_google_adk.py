from __future__ import annotations

import json
from typing import Any

import pytest

from dialects.spans import call, calls, exception, read, span
from spanscore.model import Span, StatusCode

SCOPE = "gcp.vertex.agent"
OPENINFERENCE = "openinference.instrumentation.google_adk"


def tool(number: int, name: str = "book", scope: str = SCOPE, **attributes: Any) -> Span:
    """A tool span as every version writes it, with content off."""
    held = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": f"c{number}"}
    return span(number, f"execute_tool {name}", {**held, **attributes}, parent=1, scope=scope)


def content(arguments: Any, response: Any) -> dict[str, str]:
    """The two attributes that hold content in versions before 2, and in schema 1."""
    return {
        "gcp.vertex.agent.tool_call_args": json.dumps(arguments),
        "gcp.vertex.agent.tool_response": json.dumps(response),
    }


def test_with_its_own_attributes() -> None:
    """What is no object is wrapped as one; the agent and the session are told by other spans."""
    run = span(1, "agent_run [planner]", scope=SCOPE)
    session = {"gcp.vertex.agent.session_id": "s-1", "gcp.vertex.agent.llm_response": "{}"}

    (trajectory,) = read(
        run,
        span(2, "call_llm", session, parent=1, scope=SCOPE),
        tool(3, **content({"nights": 2}, {"result": [1, 2]})),
        tool(4, **content({}, {"id": "BK-1"})),
    )

    assert trajectory.calls == (
        call(3, "book", {"nights": 2}, result=[1, 2], call_id="c3", agent="planner"),
        call(4, "book", {}, result={"id": "BK-1"}, call_id="c4", agent="planner"),
    )
    assert (trajectory.agent, trajectory.conversation_id) == ("planner", "s-1")


def test_by_the_convention_with_content_on_and_off() -> None:
    """Off is the default."""
    on = {"gen_ai.tool.call.arguments": '{"nights": 2}', "gen_ai.tool.call.result": '{"result": "BK-1"}'}

    assert calls(tool(2, **on), tool(3)) == [
        call(2, "book", {"nights": 2}, result="BK-1", call_id="c2"),
        call(3, "book", call_id="c3"),
    ]


def test_content_off_may_look_like_empty_content() -> None:
    """Arguments and response are both the text of an empty object then."""
    assert calls(tool(2, **content({}, {}))) == [call(2, "book", call_id="c2")]


@pytest.mark.parametrize("attributes", [{}, content("N/A", {})])
def test_the_merged_span_of_parallel_calls_is_no_call(attributes: dict[str, str]) -> None:
    """One stands beside every batch, with an id of its own."""
    merged = tool(4, "(merged tools)", **attributes)._replace(name="execute_tool (merged)")

    assert [made.name for made in calls(tool(2), tool(3), merged)] == ["book", "book"]


def test_a_tool_that_raised_may_leave_nothing() -> None:
    """Python sets the status, JavaScript not even that; both leave a span without attributes."""
    python = span(
        2,
        "execute_tool book",
        scope=SCOPE,
        status_code=StatusCode.ERROR,
        events=(exception("ValueError", "full"),),
    )
    javascript = span(3, "execute_tool book", scope=SCOPE)

    assert calls(python, javascript) == [
        call(2, "book", error="ValueError: full"),
        call(3, "book", error="the tool raised"),
    ]


def test_no_call_id_where_the_tool_raised() -> None:
    """A placeholder stands in its place."""
    failed = tool(2, **{"gen_ai.tool.call.id": "<not specified>", "error.type": "ValueError"})

    assert calls(failed) == [call(2, "book", error="ValueError")]


def test_under_openinference() -> None:
    """Arguments and response stand in its attributes; it writes no arguments where there are none."""
    named = {"openinference.span.kind": "TOOL", "tool.name": "book"}
    answer = {"output.value": json.dumps({"id": "c2", "name": "book", "response": {"result": "BK-1"}})}
    given = {"input.value": '{"nights": 2}', "tool.parameters": '{"nights": 2}'}
    hidden = {"input.value": "__REDACTED__", "output.value": "__REDACTED__"}

    assert calls(
        tool(2, scope=OPENINFERENCE, **named, **given, **answer),
        tool(3, scope=OPENINFERENCE, **named, **answer),
        tool(4, scope=OPENINFERENCE, **named, **hidden),
        tool(5, scope=OPENINFERENCE, **named)._replace(dropped_attributes=1),
    ) == [
        call(2, "book", {"nights": 2}, result="BK-1", call_id="c2"),
        call(3, "book", {}, result="BK-1", call_id="c3"),
        call(4, "book", call_id="c4"),
        call(5, "book", call_id="c5"),
    ]
