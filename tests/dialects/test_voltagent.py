"""VoltAgent."""

from __future__ import annotations

from typing import Any

import pytest

from dialects.spans import call, calls, exception, read, span
from spanscore.model import Span, StatusCode, Unit


def work(number: int, name: str, agent: str, *, scope: str = "@voltagent/core", **fields: Any) -> Span:
    """A span of an agent's run: every one names the agent and the conversation."""
    attributes = {
        "operation.id": "run-1",
        "entity.type": "agent",
        "entity.name": agent,
        "conversation.id": "sess-42",
        **fields.pop("attributes", {}),
    }
    return span(number, name, attributes, scope=scope, **fields)


def tool(number: int, name: str, agent: str = "travel_agent", *, parent: int = 1, **fields: Any) -> Span:
    """An execution; the schema of the tool stands in `tool.parameters`."""
    attributes = {
        "span.type": "tool",
        "tool.name": name,
        "tool.call.id": f"call_{number}",
        "tool.parameters": '{"def":{"type":"object"}}',
        "input": '{"hotel":"Ritz"}',
        **fields.pop("attributes", {}),
    }
    return work(number, f"tool.execution:{name}", agent, parent=parent, kind=3, attributes=attributes, **fields)


@pytest.mark.parametrize("scope", ["@voltagent/core", "my-bot"])
def test_a_tool_span_holds_everything_about_the_call(scope: str) -> None:
    """Input and output have no prefix, the schema is not taken for arguments, and the scope's name is free."""
    executed = tool(2, "book_hotel", attributes={"output": "BK-1001"}, scope=scope)

    (trajectory,) = read(work(1, "travel_agent", "travel_agent", scope=scope), executed)

    assert trajectory.calls == (
        call(2, "book_hotel", {"hotel": "Ritz"}, result="BK-1001", call_id="call_2", agent="travel_agent"),
    )
    assert ("travel_agent", "sess-42") == (trajectory.agent, trajectory.conversation_id)


def test_the_tools_name_may_have_been_renamed() -> None:
    """As the Collector's `gen_ai_normalizer` does it, which leaves input and output where they are."""
    renamed = {key: value for key, value in tool(2, "book_hotel").attributes.items() if key != "tool.name"}
    executed = tool(2, "book_hotel")._replace(attributes={**renamed, "gen_ai.tool.name": "book_hotel"})

    assert calls(work(1, "travel_agent", "travel_agent"), executed) == [
        call(2, "book_hotel", {"hotel": "Ritz"}, call_id="call_2", agent="travel_agent")
    ]


def test_the_tools_own_exception_is_told_after_the_type() -> None:
    """`error.type` names VoltAgent's wrapper and comes first, the exception event the tool's error."""
    failed = tool(
        2,
        "book_hotel",
        status_code=StatusCode.ERROR,
        status_message="gateway timed out",
        events=(exception("Error", "gateway timed out"),),
        attributes={"error.type": "VoltAgentError"},
    )

    assert [("VoltAgentError: Error: gateway timed out", "VoltAgentError")] == [
        (made.error, made.error_type) for made in calls(work(1, "a", "travel_agent"), failed)
    ]


def test_a_sub_agents_calls_are_its_own() -> None:
    """The root of the sub-agent's run carries its name in `subagent.name`."""
    spans = (
        work(1, "orchestrator", "orchestrator"),
        tool(2, "delegate_task", "orchestrator"),
        work(3, "subagent:weather", "weather", parent=2, attributes={"subagent.name": "weather"}),
        tool(4, "get_weather", "weather", parent=3),
    )

    assert [("orchestrator", ["delegate_task"]), ("weather", ["get_weather"])] == [
        (run.agent, [made.name for made in run.calls]) for run in read(*spans, unit=Unit.AGENT)
    ]


def test_memory_and_model_spans_are_no_calls() -> None:
    """They have the same bare `input` and `output`, and another type."""
    others = [
        work(number, kind, "travel_agent", parent=1, attributes={"span.type": kind, "input": "{}", "output": "[]"})
        for number, kind in enumerate(("memory", "llm"), start=2)
    ]

    assert [] == calls(work(1, "travel_agent", "travel_agent"), *others)


def test_the_same_call_seen_by_the_sdk_below_is_counted_once() -> None:
    """VoltAgent runs on the Vercel AI SDK: its telemetry, switched on too, tells of the same call id."""
    below = span(
        3,
        "ai.toolCall",
        {
            "ai.operationId": "ai.toolCall",
            "ai.toolCall.name": "book_hotel",
            "ai.toolCall.id": "call_2",
            "ai.toolCall.args": '{"hotel":"Ritz"}',
        },
        parent=1,
        at_ms=2,
        scope="ai",
    )

    assert calls(work(1, "travel_agent", "travel_agent"), tool(2, "book_hotel"), below) == [
        call(2, "book_hotel", {"hotel": "Ritz"}, call_id="call_2", agent="travel_agent")
    ]


def test_a_run_whose_model_asked_for_tools_that_no_span_shows_is_not_read() -> None:
    """The span of the model says why the model stopped."""
    asking, stopped = (
        work(
            2,
            "llm:generateText",
            "travel_agent",
            parent=1,
            attributes={"span.type": "llm", "llm.finish_reason": reason},
        )
        for reason in ("tool-calls", "stop")
    )

    assert [True, False] == [
        trajectory.unread is not None
        for each in (asking, stopped)
        for trajectory in read(work(1, "a", "travel_agent"), each)
    ]
