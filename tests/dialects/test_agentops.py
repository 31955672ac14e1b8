from __future__ import annotations

import json
from typing import Any

from dialects.spans import call, calls, exception, read, span
from spanscore.model import Span, StatusCode


def entity(number: int, name: str, kind: str, parent: int = 1, **held: Any) -> Span:
    """A span of AgentOps; in its keys a double underscore stands for a dot."""
    told = {key.replace("__", "."): value for key, value in held.items()}
    return span(number, name, {"agentops.span.kind": kind, **told}, parent=parent, scope="agentops")


def test_decorated_functions() -> None:
    """Positional arguments have lost their names."""
    named = json.dumps({"args": [], "kwargs": {"nights": 2}})
    failed = entity(4, "pay.tool", "tool", operation__name="pay", agentops__tool__input=named)

    (trajectory,) = read(
        entity(1, "planner.agent", "agent", parent=0, operation__name="planner"),
        entity(
            2, "book.tool", "tool", operation__name="book", agentops__tool__input=named, agentops__tool__output="BK-1"
        ),
        entity(3, "log.tool", "tool", operation__name="log", agentops__tool__input='{"args": ["a"], "kwargs": {}}'),
        failed._replace(status_code=StatusCode.ERROR, events=(exception("ValueError", "full"),)),
    )

    assert trajectory.agent == "planner"
    assert trajectory.calls == (
        call(2, "book", {"nights": 2}, result="BK-1", agent="planner"),
        call(3, "log", agent="planner"),
        call(4, "pay", {"nights": 2}, error="ValueError: full", agent="planner"),
    )


def test_tools_of_the_openai_agents_sdk() -> None:
    """A result may be a number; nothing executes an unknown tool."""
    asked = {
        f"gen_ai.completion.0.tool_calls.0.{key}": value
        for key, value in {"id": "fc_1", "name": "book", "arguments": '{"nights": 2}'}.items()
    }

    assert calls(
        entity(1, "Travel", "agent", parent=0, agent__name="Travel"),
        entity(2, "response", "llm", **asked),
        entity(3, "book", "tool", tool__name="book", tool__parameters='{"nights": 2}', tool__result=7),
    ) == [call(3, "book", {"nights": 2}, result=7, call_id="fc_1", agent="Travel")]


def test_tools_of_ag2() -> None:
    """The result has the name of the tool, and a span below that of the model its arguments."""
    asked = {"tool__name": "book", "tool__parameters": '{"nights": 2}', "tool__call__id": "c1"}
    result = json.dumps({"name": "book", "role": "function", "content": "Error: full"})

    assert calls(
        entity(1, "ag2.agent.travel.receive", "agent", parent=0, agent__name="travel"),
        entity(2, "gpt-4o.llm", "llm"),
        entity(3, "tool_call.book", "AgentOpsSpanKindValues.TOOL", 2, **asked),
        entity(
            4, "ag2.tool.function.tool_usage", "tool", tool__name="function", tool__status="error", tool__result=result
        ),
    ) == [
        call(4, "book", {"nights": 2}, result="Error: full", error="Error: full", call_id="c1", agent="travel"),
    ]


def test_a_failure_without_a_result() -> None:
    """Only the status tells."""
    (made,) = calls(entity(2, "pay", "tool", parent=0, tool__name="pay", tool__status="failed"))

    assert made.error == "error"


def test_tools_of_crewai() -> None:
    """Arguments are printed, and an error is a part of the text to the model."""
    failed = "\nI encountered an error while trying to use the tool. This was the error: full.\n Tool book accepts"
    held = {
        "tool__name": "book",
        "tool__parameters": "{'nights': 2}",
        "tool__result": failed,
        "tool__status": "success",
    }

    (made,) = calls(
        entity(1, "Traveller.agent", "agent", parent=0, agent__role="Traveller"),
        entity(2, "book.tool_usage", "tool.usage", **held),
    )

    assert (made.name, made.arguments, made.error, made.agent) == ("book", {"nights": 2}, "full", "Traveller")
