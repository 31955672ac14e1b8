"""The Vercel AI SDK behind the span processors that rewrite its spans."""

from __future__ import annotations

import json
from typing import Any

from dialects.spans import call, calls, event, exception, read, span, span_id
from dialects.vercel_ai_spans import SCOPE, SUNNY, WEATHER, root, semconv_root, semconv_tool, tool
from spanscore.model import Span, StatusCode


def openinference_tool(number: int, name: str, **fields: Any) -> Span:
    """An execution of version 6 behind openinference-vercel, which adds its own attributes."""
    added = {"openinference.span.kind": "TOOL", "tool.name": name, "tool_call.id": f"call_{number}"}
    return tool(number, name, f"call_{number}", attributes={"ai.toolCall.args": "{}", **added}, **fields)


def test_openinference_marks_good_calls_as_failed() -> None:
    """After one failure its processor marks every span ERROR with that message; only an exception event is true."""
    error = {"status_code": StatusCode.ERROR, "status_message": "card declined"}
    failed = openinference_tool(2, "charge_card", events=(exception("TypeError", "card declined"),), **error)
    good = openinference_tool(3, "lookup_policy", **error)

    assert calls(root(), failed, good) == [
        call(2, "charge_card", {}, error="TypeError: card declined", call_id="call_2", agent="travel-agent"),
        call(3, "lookup_policy", {}, call_id="call_3", agent="travel-agent"),
    ]


def test_version_7_behind_openinference_needs_an_exception_too() -> None:
    """The processor's false errors are the same there."""
    added = {"openinference.span.kind": "TOOL", "tool.name": "lookup_policy", "input.value": "{}"}
    good = semconv_tool(2, added, status_code=StatusCode.ERROR, status_message="overloaded")
    failed = good._replace(span_id=span_id(3), events=(exception("Error", "no such policy"),))

    assert [None, "Error: no such policy"] == [
        made.error
        for made in calls(
            semconv_root(), good, failed._replace(attributes={**failed.attributes, "gen_ai.tool.call.id": "call_2"})
        )
    ]


def test_traceloop_replaces_the_attributes() -> None:
    """Traceloop's processor deletes `ai.toolCall.*` and `ai.response.toolCalls` and writes the conventions' keys."""
    executed = span(
        3,
        "execute_tool get_weather",
        {
            "ai.operationId": "ai.toolCall",
            "ai.telemetry.functionId": "travel-agent",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.conversation.id": "sess-42",
            "gen_ai.tool.name": "get_weather",
            "gen_ai.tool.call.id": "call_1",
            "gen_ai.tool.call.arguments": json.dumps(WEATHER),
            "gen_ai.tool.call.result": json.dumps(SUNNY),
            "traceloop.entity.input": json.dumps(WEATHER),
            "traceloop.entity.name": "get_weather",
            "traceloop.span.kind": "tool",
        },
        parent=1,
        scope=SCOPE,
    )

    assert calls(root(), executed) == [
        call(3, "get_weather", WEATHER, result=SUNNY, call_id="call_1", agent="travel-agent")
    ]


def test_traceloop_rewrites_requests_too() -> None:
    """Behind Traceloop's processor the model's requests stand in `gen_ai.output.messages`."""
    parts = [{"type": "tool_call", "name": "get_weather", "id": "call_1", "arguments": WEATHER}]
    asked = span(
        2,
        "chat scripted-1",
        {
            "ai.operationId": "ai.generateText.doGenerate",
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}]),
        },
        parent=1,
        scope=SCOPE,
    )

    assert calls(root(), asked) == [call(None, "get_weather", WEATHER, at_ms=3, call_id="call_1", agent="travel-agent")]


def test_langsmith_adds_nothing_but_a_session() -> None:
    """LangSmith's exporter marks the span as a tool of its own and moves the metadata: the name is not the span's."""
    marked = {
        "ai.toolCall.args": json.dumps(WEATHER),
        "ai.toolCall.result": '{"content":"sunny"}',
        "langsmith.span.kind": "tool",
        "langsmith.metadata.sessionId": "sess-43",
        "gen_ai.prompt": json.dumps(WEATHER),
        "gen_ai.completion": '{"content":"sunny"}',
    }
    above = root()
    kept = {key: value for key, value in above.attributes.items() if "metadata" not in key}

    (trajectory,) = read(above._replace(attributes=kept), tool(2, "get_weather", "call_1", attributes=marked))

    assert trajectory.calls == (
        call(2, "get_weather", WEATHER, result={"content": "sunny"}, call_id="call_1", agent="travel-agent"),
    )
    assert "sess-43" == trajectory.conversation_id


def test_events_of_other_kinds_are_no_errors() -> None:
    """Only the event named `exception` tells of a failure."""
    noted = openinference_tool(2, "lookup_policy", events=(event("retry"),), status_code=StatusCode.ERROR)

    assert [None] == [made.error for made in calls(root(), noted)]
