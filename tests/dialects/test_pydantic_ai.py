from __future__ import annotations

import json
from typing import Any

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
