"""VoltAgent."""

from __future__ import annotations

import json
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


LOOKUP = {"type": "tool-call", "toolCallId": "c1", "toolName": "lookup_order", "input": {"order_id": "A-1"}}
REFUND = {"type": "tool-call", "toolCallId": "c2", "toolName": "issue_refund", "input": {"order_id": "A-1"}}
FOUND = {
    "type": "tool-result",
    "toolCallId": "c1",
    "toolName": "lookup_order",
    "output": {"type": "text", "value": "40"},
}


def sent(*, approved: bool) -> list[dict[str, Any]]:
    """Messages to the model after a person has decided: the decision, and not yet its outcome."""
    return [
        {"role": "user", "content": [{"type": "text", "text": "Refund A-1"}]},
        {"role": "assistant", "content": [LOOKUP]},
        {"role": "tool", "content": [FOUND]},
        {
            "role": "assistant",
            "content": [REFUND, {"type": "tool-approval-request", "approvalId": "a1", "toolCallId": "c2"}],
        },
        {"role": "tool", "content": [{"type": "tool-approval-response", "approvalId": "a1", "approved": approved}]},
    ]


def looped(messages: list[dict[str, Any]], reason: str = "stop", *, parent: int = 1) -> Span:
    """The span around all requests of the loop, which begins before its calls."""
    attributes = {"span.type": "llm", "llm.messages": json.dumps(messages), "llm.finish_reason": reason}
    return work(2, "llm:generateText", "refunds", parent=parent, attributes=attributes)


def test_a_run_that_continues_has_the_calls_before_its_pause() -> None:
    """The call that was approved is executed within the span of the model that was sent the approval."""
    refund = tool(3, "issue_refund", "refunds", attributes={"tool.call.id": "c2"})

    (run,) = read(work(1, "refunds", "refunds"), looped(sent(approved=True)), refund)

    assert [("lookup_order", True), ("issue_refund", False)] == [(made.name, made.restored) for made in run.calls]
    assert (40, (), (), True) == (run.calls[0].result, run.withheld, run.uncertain, run.completeness.resumed)


def test_a_call_that_failed_before_the_pause_has_failed() -> None:
    """The Vercel AI SDK, on which VoltAgent runs, says so by the type of the result."""
    messages = sent(approved=True)
    messages[2] = {"role": "tool", "content": [{**FOUND, "output": {"type": "error-text", "value": "no such order"}}]}

    (run,) = read(work(1, "refunds", "refunds"), looped(messages), tool(3, "issue_refund", "refunds"))

    assert [("lookup_order", "no such order"), ("issue_refund", None)] == [
        (made.name, made.error) for made in run.calls
    ]


def test_a_call_that_a_person_refused_is_none() -> None:
    """Only the messages show it."""
    (run,) = read(work(1, "refunds", "refunds"), looped(sent(approved=False)))

    assert ["lookup_order"] == [made.name for made in run.calls]
    assert [("issue_refund", "refused")] == [(each.name, each.state) for each in run.withheld]


def test_earlier_calls_that_the_last_messages_leave_out_are_unseen() -> None:
    """The span has the last ten messages: they may begin behind the user's."""
    refund = tool(3, "issue_refund", "refunds", attributes={"tool.call.id": "c2"})

    (run,) = read(work(1, "refunds", "refunds"), looped(sent(approved=True)[3:]), refund)

    assert (["issue_refund"], True) == ([made.name for made in run.calls], run.completeness.begin_unseen)


@pytest.mark.parametrize(
    ("attributes", "expected"), [({}, True), ({"subagent.name": "refunds"}, False), ({"ended": "stop"}, False)]
)
def test_a_run_that_ends_asking_for_tools_may_pause(attributes: dict[str, str], *, expected: bool) -> None:
    """Such a run may have reached its limit, too. Nobody continues a sub-agent."""
    ended = {"ai.response.finish_reason": attributes.get("ended", "tool-calls"), **attributes}
    spans = (
        work(1, "refunds", "refunds", attributes=ended),
        looped(sent(approved=True)[:1], "tool-calls"),
        tool(3, "look_up"),
    )

    (run,) = read(*spans)

    assert (expected, ()) == (run.completeness.may_pause, run.completeness.paused)
