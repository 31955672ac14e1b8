"""The Vercel AI SDK, every version and with every span processor seen."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialects.spans import call, calls, exception, read, span, span_id, start_ns
from dialects.vercel_ai_spans import SCOPE, SUNNY, WEATHER, model, root, semconv_root, semconv_tool, tool
from spanscore.model import NOT_RECORDED, Completeness, StatusCode, Unit


def test_a_tool_span_holds_everything_about_the_call() -> None:
    """Name, arguments, result and id stand in `ai.toolCall.*`, the agent is the function id of the run."""
    recorded = {"ai.toolCall.args": json.dumps(WEATHER), "ai.toolCall.result": json.dumps(SUNNY)}

    (trajectory,) = read(root(), tool(2, "get_weather", "call_1", attributes=recorded))

    assert trajectory.calls == (call(2, "get_weather", WEATHER, result=SUNNY, call_id="call_1", agent="travel-agent"),)
    assert ("travel-agent", "sess-42") == (trajectory.agent, trajectory.conversation_id)


def test_a_string_result_is_decoded() -> None:
    """The SDK writes a string result with JSON quotes."""
    recorded = {"ai.toolCall.args": "{}", "ai.toolCall.result": '"BK-1001"'}

    assert calls(root(), tool(2, "book_hotel", "call_1", attributes=recorded)) == [
        call(2, "book_hotel", {}, result="BK-1001", call_id="call_1", agent="travel-agent")
    ]


def test_the_error_is_that_of_the_tool_not_of_the_wrapper() -> None:
    """Version 4 records the tool's exception, then its own that wraps it."""
    failed = tool(
        2,
        "charge_card",
        "call_1",
        status_code=StatusCode.ERROR,
        status_message="Error executing tool charge_card: card declined",
        events=(
            exception("TypeError", "card declined"),
            exception("AI_ToolExecutionError", "Error executing tool charge_card: card declined"),
        ),
    )

    assert calls(root(), failed) == [
        call(2, "charge_card", error="TypeError: card declined", call_id="call_1", agent="travel-agent")
    ]


def test_content_switched_off_is_not_recorded_rather_than_empty() -> None:
    """With recordInputs and recordOutputs off the attributes are missing, but the error text is still there."""
    failed = tool(2, "charge_card", "call_1", status_code=StatusCode.ERROR, status_message="card declined")

    (trajectory,) = read(root(), failed)

    assert trajectory.calls == (
        call(2, "charge_card", NOT_RECORDED, error="card declined", call_id="call_1", agent="travel-agent"),
    )
    assert not trajectory.completeness.arguments_recorded


def test_what_was_asked_for_but_not_executed_is_no_call() -> None:
    """A tool without `execute` is left to the client: the model's request alone does not count beside executions."""
    asked = model(
        2,
        [
            {"toolCallId": "call_1", "toolName": "lookup_policy", "input": '{"topic":"refunds"}'},
            {"toolCallId": "call_2", "toolName": "ask_user", "input": '{"question":"Proceed?"}'},
        ],
    )
    executed = tool(3, "lookup_policy", "call_1", attributes={"ai.toolCall.args": '{"topic":"refunds"}'})

    assert calls(root(), asked, executed) == [
        call(3, "lookup_policy", {"topic": "refunds"}, call_id="call_1", agent="travel-agent")
    ]


@pytest.mark.parametrize(
    "asked",
    [
        {"toolCallType": "function", "toolCallId": "call_1", "toolName": "get_weather", "args": json.dumps(WEATHER)},
        {"type": "tool-call", "toolCallId": "call_1", "toolName": "get_weather", "args": WEATHER},
        {"toolCallId": "call_1", "toolName": "get_weather", "input": json.dumps(WEATHER)},
        {"type": "tool-call", "toolCallId": "call_1", "toolName": "get_weather", "input": WEATHER},
    ],
    ids=["4 generateText", "4 streamText", "5 generateText", "5 streamText"],
)
def test_requests_stand_in_for_executions_that_no_span_records(asked: dict[str, Any]) -> None:
    """Every version writes the model's request in its own shape."""
    assert calls(root(), model(2, [asked])) == [
        call(None, "get_weather", WEATHER, at_ms=3, call_id="call_1", agent="travel-agent")
    ]


def test_the_root_repeats_requests_and_adds_none() -> None:
    """A run that ends with a tool call lists it a second time on its root span."""
    asked = [{"toolCallId": "call_1", "toolName": "ask_user", "input": "{}"}]
    above = root()
    above = above._replace(attributes={**above.attributes, "ai.response.toolCalls": json.dumps(asked)})

    assert ["ask_user"] == [made.name for made in calls(above, model(2, asked))]


def test_calls_that_start_together_are_in_the_order_of_the_request() -> None:
    """Start times are whole milliseconds: the model's list tells the order, whichever span arrives first."""
    asked = model(
        2,
        [
            {"toolCallId": "call_1", "toolName": "get_weather", "input": '{"city":"Paris"}'},
            {"toolCallId": "call_2", "toolName": "get_weather", "input": '{"city":"Zürich"}'},
        ],
    )
    first = tool(3, "get_weather", "call_1", at_ms=5)
    second = tool(4, "get_weather", "call_2", at_ms=5)

    assert ["call_1", "call_2"] == [made.call_id for made in calls(second, first, asked, root())]


def test_steps_that_start_together_are_in_the_order_of_their_arrival() -> None:
    """An exact duration on a start cut to the millisecond: the second step seems to end before the first."""
    slow, quick = (
        model(number, [{"toolCallId": call_id, "toolName": "search", "input": "{}"}])._replace(
            start_ns=start_ns(2), end_ns=start_ns(2) + duration_ns
        )
        for number, call_id, duration_ns in ((2, "call_1", 900_000), (4, "call_2", 100_000))
    )
    first, second = tool(3, "search", "call_1", at_ms=2), tool(5, "search", "call_2", at_ms=2)

    assert ["call_1", "call_2"] == [made.call_id for made in calls(slow, second, first, quick, root())]


def test_a_sub_agent_works_below_the_tool_that_runs_it() -> None:
    """The inner run's calls belong to its function id, and come after the call that started it."""
    outer = tool(2, "ask_weather_agent", "call_1", at_ms=3)
    inner = tool(4, "get_weather", "call_2", parent=3, at_ms=3)
    spans = (inner, root(3, "weather-agent", parent=2), outer, root(agent="orchestrator"))

    assert [("ask_weather_agent", "orchestrator"), ("get_weather", "weather-agent")] == [
        (made.name, made.agent) for made in calls(*spans)
    ]
    assert [("orchestrator", ["call_1"]), ("weather-agent", ["call_2"])] == [
        (run.agent, [made.call_id for made in run.calls]) for run in read(*spans, unit=Unit.AGENT)
    ]


def test_a_root_dropped_by_a_filtering_processor_leaves_one_incomplete_trajectory() -> None:
    """Langfuse's processor exports no user spans: the runs below them are orphans of one trace.

    Each run lacks the spans of its model, too.
    """
    spans = (
        root(2, parent=1),
        tool(3, "lookup_policy", "call_1", parent=2),
        root(4, parent=1),
        tool(5, "lookup_policy", "call_2", parent=4),
    )

    (trajectory,) = read(*spans)

    assert ["call_1", "call_2"] == [made.call_id for made in trajectory.calls]
    assert span_id(2) == trajectory.root_span_id
    assert trajectory.completeness == Completeness(
        parents_missing=2, spans_missing=2, arguments_recorded=False, results_recorded=False
    )


def test_version_7_follows_the_conventions() -> None:
    """Everything stands in `gen_ai.tool.*`; the session stands in the settings when the application asks for it."""
    recorded = {
        "gen_ai.tool.call.arguments": '{"topic":"refunds"}',
        "gen_ai.tool.call.result": '{"error":"policy not found"}',
    }

    (trajectory,) = read(semconv_root(**{"ai.settings.context.sessionId": "sess-42"}), semconv_tool(2, recorded))

    assert trajectory.calls == (
        call(
            2,
            "lookup_policy",
            {"topic": "refunds"},
            result={"error": "policy not found"},
            call_id="call_1",
            agent="travel-agent",
        ),
    )
    assert "sess-42" == trajectory.conversation_id


def test_version_7_says_no_more_than_that_a_call_failed_when_content_is_off() -> None:
    """Neither message nor event: the status alone."""
    assert calls(semconv_root(), semconv_tool(2, {}, status_code=StatusCode.ERROR)) == [
        call(2, "lookup_policy", error="error", call_id="call_1", agent="travel-agent")
    ]


def test_an_embedding_is_no_run_of_an_agent() -> None:
    """Only the operations that generate are runs."""
    embedding = span(
        2, "ai.embed", {"ai.operationId": "ai.embed", "ai.telemetry.functionId": "search"}, parent=1, scope=SCOPE
    )

    assert ["travel-agent"] == [run.agent for run in read(root(), embedding, unit=Unit.AGENT)]


def test_tool_definitions_are_read_from_the_prompt() -> None:
    """Each tool is a JSON text of its own in a list."""
    definition = {"type": "function", "name": "get_weather", "inputSchema": {"type": "object"}}
    asked = model(2, [])
    asked = asked._replace(attributes={**asked.attributes, "ai.prompt.tools": [json.dumps(definition)]})

    (trajectory,) = read(root(), asked)

    assert {"get_weather": {"type": "object"}} == dict(trajectory.tool_definitions)
