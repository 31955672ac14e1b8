"""agentUniverse (0.0.19; the recording is of the same)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialects.spans import call, calls, read, span
from spanscore.model import NOT_RECORDED, Span, StatusCode

SCOPE = "opentelemetry-instrumentation-agentuniverse-tool"


def tool(number: int, name: str, given: Any, *, parent: int = 0, **fields: Any) -> Span:
    """A span of one run of a tool."""
    attributes = {
        "au.span.kind": "tool",
        "au.tool.name": name,
        "au.tool.input": json.dumps(given, ensure_ascii=False),
        "au.tool.pair_id": "tool_96ed4c03d442449e85bc54aa094240d4",
        **fields.pop("attributes", {}),
    }
    return span(number, f"au.tool.{name}", attributes, parent=parent, scope=SCOPE, **fields)


def agent(number: int, name: str, *, parent: int = 0, **attributes: Any) -> Span:
    """A span of one run of an agent."""
    known = {"au.span.kind": "agent", "au.agent.name": name, **attributes}
    return span(number, f"au.agent.{name}", known, parent=parent)


def test_a_call_is_what_the_method_was_called_with_and_no_pair_id_is_a_call_id() -> None:
    """The arguments are the keywords; the agent is the one above."""
    done = tool(
        2,
        "get_weather",
        {"kwargs": {"city": "Zürich"}},
        parent=1,
        attributes={"au.tool.status": "success", "au.tool.output": '{"sky": "heiter"}'},
    )

    assert calls(agent(1, "travel_agent"), done) == [
        call(2, "get_weather", {"city": "Zürich"}, result={"sky": "heiter"}, agent="travel_agent")
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"city": "Genève"}', {"city": "Genève"}),
        ('```json\n{"city": "Genève"}\n```', {"city": "Genève"}),
        ('So:\n```\n{"city": "Genève"}\n```\nThat is all.', {"city": "Genève"}),
        ('{"city": "Gen', NOT_RECORDED),
        ("Genève", NOT_RECORDED),
        ('["Genève"]', NOT_RECORDED),
        ("", NOT_RECORDED),
    ],
    ids=["object", "fenced", "fenced within a text", "cut", "text", "list", "empty"],
)
def test_a_planner_hands_over_the_text_of_its_model(text: str, expected: Any) -> None:
    """Tools parse it, fenced or not; the name of an argument that is bare text stands nowhere."""
    assert calls(tool(1, "get_weather", {"args": [text], "callbacks": None, "kwargs": {}})) == [
        call(1, "get_weather", expected)
    ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"status_code": StatusCode.ERROR, "status_message": "it is down"}, "RuntimeError: it is down"),
        ({"status_code": StatusCode.ERROR}, "RuntimeError"),
        ({}, "RuntimeError"),
    ],
    ids=["status and message", "status alone", "attribute alone"],
)
def test_a_failure_begins_with_its_type(fields: dict[str, Any], expected: str) -> None:
    """The status has the message, an attribute the type."""
    attributes = {"au.tool.status": "error", "au.tool.error.type": "RuntimeError"}
    (failed,) = calls(tool(1, "refunds", {"kwargs": {"booking": "BK-7"}}, attributes=attributes, **fields))

    assert (failed.error, failed.error_type) == (expected, "RuntimeError")


def test_a_result_that_says_error_is_none() -> None:
    """What a tool returns is its own affair."""
    answered = {"au.tool.status": "success", "au.tool.output": '{"error": "no entry"}'}

    assert calls(tool(1, "lookup", {"kwargs": {}}, attributes=answered)) == [
        call(1, "lookup", {}, result={"error": "no entry"})
    ]


@pytest.mark.parametrize(("session", "expected"), [("s-1", "s-1"), ("-1", None)], ids=["one", "none"])
def test_a_session_is_a_conversation(session: str, expected: str | None) -> None:
    """Where there is no session, its processor writes -1."""
    (trajectory,) = read(agent(1, "travel_agent", **{"au.trace.session.id": session}))

    assert trajectory.conversation_id == expected
