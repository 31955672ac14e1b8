from __future__ import annotations

import json
from typing import Any

from dialects.spans import calls, read, span
from spanscore.model import Span

SCOPE = "opentelemetry.instrumentation.haystack"
ASKED = {"tool_name": "get_weather", "arguments": {"city": "Bern"}, "id": "c1"}


def said(role: str, part: dict[str, Any]) -> dict[str, Any]:
    """A message as version 2 writes it."""
    return {"_role": role, "_content": [part], "_name": None, "_meta": {}}


def pipeline(*messages: dict[str, Any]) -> tuple[Span, Span]:
    """A pipeline with an agent, and a request of its model."""
    told = {"traceloop.entity.output": json.dumps({"weather": {"messages": messages}})} if messages else {}
    kind = {"traceloop.span.kind": "workflow", "traceloop.entity.name": "haystack_pipeline"}
    bogus = {
        "llm.request.type": "chat",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "replies",
    }
    return (
        span(1, "haystack_pipeline.workflow", kind | told, scope=SCOPE),
        span(2, "haystack.openai.chat", bogus, parent=1, scope=SCOPE),
    )


USER = said("user", {"text": "go"})


def test_calls_are_read_from_the_result_of_the_pipeline() -> None:
    """With their results; those before the last message of a user are of earlier turns."""
    earlier = said("assistant", ASKED | {"id": "c0"})
    answer = said("tool", {"result": '{"celsius":21}', "origin": ASKED, "error": False})
    (found,) = calls(
        *pipeline(USER, earlier, USER, said("assistant", ASKED), answer, said("assistant", {"text": "21"}))
    )
    assert (found.name, found.arguments, found.result, found.call_id, found.agent, found.error) == (
        "get_weather",
        {"city": "Bern"},
        {"celsius": 21},
        "c1",
        "weather",
        None,
    )


def test_a_failed_call_is_marked_in_its_result() -> None:
    """In the conversation of later versions, too."""
    request = {"role": "assistant", "content": [{"tool_call": ASKED}]}
    answer = {"role": "tool", "content": [{"tool_call_result": {"result": "no city", "origin": ASKED, "error": True}}]}
    (found,) = calls(*pipeline(USER, request, answer))
    assert found.error == "no city"


def test_a_pipeline_whose_agent_called_no_tool_is_scored() -> None:
    """Its result holds the whole conversation."""
    (run,) = read(*pipeline(USER, said("assistant", {"text": "hello"})))
    assert (run.calls, run.unread) == ((), None)


def test_without_the_result_nothing_says_what_tools_did() -> None:
    """Content is off, or the result cannot be written."""
    (run,) = read(*pipeline())
    assert run.unread is not None
    assert run.calls == ()
