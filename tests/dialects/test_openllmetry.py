from __future__ import annotations

import json
from typing import Any

from dialects.spans import call, calls, exception, read, span
from spanscore.model import Span, StatusCode

SCOPE = "traceloop.tracer"
SESSION = {"traceloop.association.properties.session_id": "s-1"}


def entity(number: int, name: str, kind: str, parent: int = 1, **written: Any) -> Span:
    """A span of a decorated function, with its `input` and `output`."""
    content = {f"traceloop.entity.{key}": json.dumps(value) for key, value in written.items()}
    held = {"traceloop.span.kind": kind, "traceloop.entity.name": name, **SESSION, **content}
    return span(number, f"{name}.{kind}", held, parent=parent, scope=SCOPE)


def test_decorated_functions() -> None:
    """Positional arguments have lost their names, unless it is one object."""
    failed = entity(5, "book", "tool", input={"args": [], "kwargs": {}})
    failed = failed._replace(status_code=StatusCode.ERROR, events=(exception("ValueError", "full"),))

    (trajectory,) = read(
        entity(1, "planner", "agent", parent=0),
        entity(2, "book", "tool", input={"args": [], "kwargs": {"nights": 2}}, output={"id": "BK-1"}),
        entity(3, "log", "tool", input={"args": ["a"], "kwargs": {}}, output="BK-1"),
        entity(4, "pay", "tool", input={"args": [{"amount": 9.5}], "kwargs": {}}),
        failed,
    )

    assert trajectory.calls == (
        call(2, "book", {"nights": 2}, result={"id": "BK-1"}, agent="planner"),
        call(3, "log", result="BK-1", agent="planner"),
        call(4, "pay", {"amount": 9.5}, agent="planner"),
        call(5, "book", {}, error="ValueError: full", agent="planner"),
    )
    assert (trajectory.agent, trajectory.conversation_id) == ("planner", "s-1")


def test_flat_requests_of_older_versions() -> None:
    """In the order of their numbers; the tools are there, too."""
    schema = {"type": "object", "properties": {"nights": {"type": "integer"}}}
    attributes = {
        "llm.request.type": "chat",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.tool_calls.1.id": "c2",
        "gen_ai.completion.0.tool_calls.1.name": "pay",
        "gen_ai.completion.0.tool_calls.1.arguments": "{}",
        "gen_ai.completion.0.tool_calls.0.id": "c1",
        "gen_ai.completion.0.tool_calls.0.name": "book",
        "gen_ai.completion.0.tool_calls.0.arguments": '{"nights": 2}',
        "gen_ai.prompt.1.tool_calls.0.name": "past",
        "llm.request.functions.0.name": "book",
        "llm.request.functions.0.parameters": json.dumps(schema),
    }

    (trajectory,) = read(entity(1, "planner", "workflow", parent=0), span(2, "openai.chat", attributes, parent=1))

    assert trajectory.calls == (
        call(None, "book", {"nights": 2}, at_ms=3, call_id="c1"),
        call(None, "pay", {}, at_ms=3, call_id="c2"),
    )
    assert dict(trajectory.tool_definitions) == {"book": schema}


def test_flat_messages_of_older_versions() -> None:
    """They have the results, and what a framework answered for a tool that does not exist."""
    sent = {
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "book",
        "gen_ai.prompt.1.role": "assistant",
        "gen_ai.prompt.1.tool_calls.0.id": "c1",
        "gen_ai.prompt.1.tool_calls.0.name": "book",
        "gen_ai.prompt.1.tool_calls.0.arguments": '{"nights": 2}',
        "gen_ai.prompt.2.role": "tool",
        "gen_ai.prompt.2.tool_call_id": "c1",
        "gen_ai.prompt.2.content": '{"id": "BK-1"}',
        "gen_ai.prompt.3.role": "tool",
        "gen_ai.prompt.3.tool_call_id": "c2",
        "gen_ai.prompt.3.content": "no_such_tool is not a valid tool",
    }
    asked = {
        f"gen_ai.completion.0.tool_calls.{place}.{key}": value
        for place, made in enumerate((("c1", "book", '{"nights": 2}'), ("c2", "no_such_tool", "{}")))
        for key, value in zip(("id", "name", "arguments"), made, strict=True)
    }
    said = {"llm.request.type": "chat", "gen_ai.completion.0.role": "assistant"}

    made = calls(
        entity(1, "planner", "workflow", parent=0),
        span(2, "openai.chat", {**said, **asked}, parent=1),
        entity(3, "book", "tool", input={"args": [], "kwargs": {"nights": 2}}),
        span(4, "openai.chat", {**said, **sent}, parent=1),
    )

    assert [(each.name, each.call_id, each.result) for each in made] == [
        ("book", "c1", {"id": "BK-1"}),
        ("no_such_tool", "c2", "no_such_tool is not a valid tool"),
    ]


def test_anthropics_results_in_flat_messages() -> None:
    """A message's content is the text of a list of blocks."""
    block = {"type": "tool_result", "tool_use_id": "c1", "content": "full", "is_error": True}
    said = {"llm.request.type": "completion", "gen_ai.completion.0.role": "assistant"}
    asked = {f"gen_ai.completion.0.tool_calls.0.{key}": key for key in ("id", "name")}
    asked["gen_ai.completion.0.tool_calls.0.id"] = "c1"
    sent = {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": json.dumps([block])}

    (made,) = calls(
        entity(1, "planner", "workflow", parent=0),
        span(2, "anthropic.chat", {**said, **asked}, parent=1),
        span(3, "anthropic.chat", {**said, **sent}, parent=1),
    )

    assert (made.name, made.result, made.error) == ("name", "full", "full")


def test_other_kinds_are_no_calls() -> None:
    """Workflows and tasks are steps."""
    assert calls(entity(1, "trip", "workflow", parent=0), entity(2, "tools", "task")) == []


def test_the_requests_of_litellm_are_function_calls() -> None:
    """Its callback numbers them as if each were an answer, and leaves them out of the messages beside it."""
    chat = {
        "llm.request.type": "completion",
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": '[{"role": "assistant", "parts": [], "finish_reason": "tool_calls"}]',
        "gen_ai.completion.0.function_call.name": "book",
        "gen_ai.completion.0.function_call.arguments": '{"city": "Oslo"}',
        "gen_ai.completion.1.function_call.name": "pay",
    }

    assert calls(span(1, "POST /chat"), span(2, "litellm_request", chat, parent=1)) == [
        call(None, "book", {"city": "Oslo"}, at_ms=3),
        call(None, "pay", at_ms=3),
    ]
