from __future__ import annotations

import json
from typing import Any

import pytest

from dialects.spans import call, calls, exception, read, span
from spanscore.model import Span, StatusCode

SCOPE = "pydantic-ai"
RUN = span(1, "agent run", {"agent_name": "planner", "model_name": "gpt-4o"}, scope=SCOPE)


def running(number: int, **attributes: Any) -> Span:
    """A tool span of versions 1 and 2 of the instrumentation."""
    held = {"gen_ai.tool.name": "book", "gen_ai.tool.call.id": f"c{number}", **attributes}
    return span(number, "running tool", held, parent=1, scope=SCOPE)


def test_versions_1_and_2() -> None:
    """Neither the span above a batch nor the one that asks the model is a call."""
    batch = span(5, "running tools", {"tools": ["book", "pay"]}, parent=1, scope=SCOPE)

    (trajectory,) = read(
        RUN, running(2, tool_arguments='{"nights": 2}', tool_response='{"id": "BK-1"}'), running(3), batch
    )

    assert trajectory.calls == (
        call(2, "book", {"nights": 2}, result={"id": "BK-1"}, call_id="c2", agent="planner"),
        call(3, "book", call_id="c3", agent="planner"),
    )
    assert trajectory.agent == "planner"


def test_a_retry_asked_for_is_a_failure_with_a_result() -> None:
    """The result is the text for the model."""
    failed = running(2, tool_arguments="{}", tool_response="full\n\nFix the errors and try again.")
    failed = failed._replace(status_code=StatusCode.ERROR, events=(exception("ToolRetryError", "full"),))

    assert calls(RUN, failed) == [
        call(
            2,
            "book",
            {},
            result="full\n\nFix the errors and try again.",
            error="ToolRetryError: full",
            call_id="c2",
            agent="planner",
        )
    ]


def test_events_in_one_attribute() -> None:
    """The list holds the history too: only the choice is the model's answer."""
    request = {"id": "c1", "type": "function", "function": {"name": "book", "arguments": '{"nights": 2}'}}
    past = {"id": "c0", "type": "function", "function": {"name": "past", "arguments": "{}"}}
    first = [
        {"event.name": "gen_ai.assistant.message", "role": "assistant", "tool_calls": [past]},
        {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "tool_calls": [request]}},
    ]
    second = [{"event.name": "gen_ai.tool.message", "role": "tool", "id": "c1", "content": "BK-1"}]
    chat = {"gen_ai.operation.name": "chat"}

    assert calls(
        RUN,
        span(2, "chat", {**chat, "events": json.dumps(first)}, parent=1, scope=SCOPE),
        span(4, "chat", {**chat, "events": json.dumps(second)}, parent=1, scope=SCOPE),
    ) == [call(None, "book", {"nights": 2}, at_ms=3, call_id="c1", result="BK-1", agent="planner")]


def test_later_versions_follow_the_convention() -> None:
    """Cut arguments are not recorded; the conversation is a run's."""
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "book",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.arguments": '{"origin": "ZRH", "filters": {"max_price": 200.5, "airli',
        "gen_ai.tool.call.result": "BK-1",
        "gen_ai.agent.name": "planner",
        "gen_ai.conversation.id": "s-1",
    }

    (trajectory,) = read(span(1, "execute_tool book", tool, scope=SCOPE))

    assert trajectory.calls == (call(1, "book", result="BK-1", call_id="c1", agent="planner"),)
    assert trajectory.conversation_id == "s-1"


def answer(number: int, *names: str, parameters: str | None = None, told: str | None = None) -> Span:
    """A request to a model that asks for tools, as its finish reason says too."""
    parts = [{"type": "tool_call", "id": f"c{number}", "name": name, "arguments": {"n": 1}} for name in names]
    past = [{"role": "user", "parts": [{"type": "tool_call_response", "id": told, "result": "again"}]}] if told else []
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(past),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts, "finish_reason": "tool_call"}]),
        "gen_ai.response.finish_reasons": ("tool_call",),
    }
    if parameters is not None:
        attributes["model_request_parameters"] = parameters
    return span(number, "chat gpt-4o", attributes, parent=1, scope=SCOPE)


OUTPUT = json.dumps({"function_tools": [{"name": "book"}], "output_mode": "tool", "output_tools": [{"name": "answer"}]})
NO_OUTPUT = json.dumps({"function_tools": [{"name": "final_result"}], "output_mode": "text", "output_tools": []})


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("answer", OUTPUT), ("final_result", None), ("final_result", '{"function_tools": [{"na'), ("final_result", "[]")],
)
def test_structured_output_is_no_call(name: str, parameters: str | None) -> None:
    """The run needed no tool, also where the model was told to hand its output in again."""
    (once,) = read(RUN, answer(2, name, parameters=parameters))
    (again,) = read(RUN, answer(2, name, parameters=parameters), answer(4, name, parameters=parameters, told="c2"))

    assert [((), None), ((), None)] == [(each.calls, each.unread) for each in (once, again)]


@pytest.mark.parametrize("name", ["running output function", "execute_tool shout"])
@pytest.mark.parametrize("of_a_tool", [{}, {"gen_ai.tool.call.id": "c2"}])
def test_an_output_function_is_no_call(name: str, of_a_tool: dict[str, str]) -> None:
    """Its span is marked as a tool: of an output tool, which has an id, and of the model's text."""
    held = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "shout", **of_a_tool}
    shout = span(3, name, {**held, "logfire.msg": "running output function: shout"}, parent=1, scope=SCOPE)
    booked = {**held, "gen_ai.tool.name": "book", "logfire.msg": "running tool: book"}
    book = span(2, "execute_tool book", booked, parent=1, scope=SCOPE)

    (run,) = read(RUN, book, shout)
    (alone,) = read(RUN, shout)

    assert (run.names, alone.names, alone.unread) == (("book",), (), None)


def test_a_tool_beside_structured_output_is_a_call() -> None:
    """Whatever its name, where the model's span lists the output tools."""
    assert ["book"] == [made.name for made in calls(RUN, answer(2, "book", "answer", parameters=OUTPUT))]
    assert ["final_result"] == [made.name for made in calls(RUN, answer(2, "final_result", parameters=NO_OUTPUT))]


def test_structured_output_in_events() -> None:
    """Versions 1 and 2 hold the model's answer in one attribute."""
    request = {"id": "c1", "type": "function", "function": {"name": "final_result", "arguments": "{}"}}
    events = [{"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "tool_calls": [request]}}]
    (trajectory,) = read(RUN, span(2, "chat", {"events": json.dumps(events)}, parent=1, scope=SCOPE))

    assert ((), None) == (trajectory.calls, trajectory.unread)


@pytest.mark.parametrize(("kind", "expected"), [("unapproved", ("book",)), ("external", ("book",)), ("function", ())])
def test_a_call_of_a_tool_that_needs_approval_waits(kind: str, expected: tuple[str, ...]) -> None:
    """Also without content: the model's span has the tools' kinds."""
    said = [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "book"}]}]
    chat = {
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": json.dumps(said),
        "model_request_parameters": json.dumps({"function_tools": [{"name": "book", "kind": kind}]}),
    }
    (run,) = read(RUN, span(2, "chat", chat, parent=1, scope=SCOPE))

    assert expected == run.completeness.paused
