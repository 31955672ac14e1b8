"""Respan's instrumentation of the OpenAI Agents SDK, as version 1.1.2 writes it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialects.spans import call, calls, read, span
from spanscore.model import Span, StatusCode


def node(number: int, begin: str, kind: str, parent: int = 2, **attributes: Any) -> Span:
    """A span of the instrumentation; keys are below `traceloop.entity`."""
    held = {f"traceloop.entity.{key}": value for key, value in attributes.items()}
    return span(number, f"{begin}.{kind}", {"respan.entity.log_type": kind, **held}, parent=parent)


def tool(number: int, answer: str) -> Span:
    """A tool span: arguments and result are messages."""
    given = json.dumps([{"role": "tool", "content": '{"n": 1}'}])
    return node(
        number, "book", "tool", name="book", input=given, output=json.dumps({"role": "tool", "content": answer})
    )


def asked(number: int) -> Span:
    """A request to a model, whose calls are in one attribute."""
    wanted = json.dumps([{"id": "c1", "type": "function", "function": {"name": "book", "arguments": '{"n": 1}'}}])
    model = node(number, "openai", "chat")
    return model._replace(attributes={**model.attributes, "gen_ai.completion.0.tool_calls": wanted})


def entity(given: Any) -> dict[str, str]:
    """The content of a tool as plain JSON."""
    return {"traceloop.entity.input": json.dumps(given), "traceloop.entity.output": '{"content": "ok"}'}


BEFORE = node(1, "w", "workflow", 0), node(2, "shop", "agent", 1, name="shop"), asked(3)


def test_calls_agents_and_requests() -> None:
    """The kinds are those of an attribute of its own."""
    failed = tool(5, "no rooms")._replace(status_code=StatusCode.ERROR, status_message="full")

    (run,) = read(*BEFORE, tool(4, '{"id": "BK-1"}'), failed)

    assert run.calls == (
        call(4, "book", {"n": 1}, result={"id": "BK-1"}, call_id="c1", agent="shop", turn=0),
        call(5, "book", {"n": 1}, result="no rooms", error="full", agent="shop"),
    )


def test_a_tool_that_waits_has_an_empty_result() -> None:
    """And no request to a model starts after it."""
    (paused,) = read(*BEFORE, tool(4, ""))
    (whole,) = read(*BEFORE, tool(4, ""), node(5, "openai", "chat"))
    assert (paused.calls, paused.completeness.paused) == ((), ("book",))
    assert (whole.names, whole.completeness.paused) == (("book",), ())


def test_a_refused_tool_was_not_made() -> None:
    """The next request of the same trace sends the refusal to the model."""
    wanted = {"id": "c1", "type": "function", "function": {"name": "book", "arguments": '{"n": 1}'}}
    refusal = {"role": "tool", "content": "Tool execution was not approved.", "tool_call_id": "c1"}
    sent = json.dumps([{"role": "assistant", "content": "", "tool_calls": [wanted]}, refusal])

    (run,) = read(*BEFORE, tool(4, ""), node(5, "openai", "chat", input=sent))

    assert (run.calls, [each.name for each in run.withheld], run.completeness.paused) == ((), ["book"], ())


@pytest.mark.parametrize(
    "held",
    [
        {"traceloop.span.kind": "tool", **entity({"args": [], "kwargs": {"n": 1}})},
        {"traceloop.span.kind": "tool", **entity({"name": "book", "arguments": {"n": 1}})},
        {"openinference.span.kind": "TOOL", "input.value": '{"n": 1}', "output.value": '{"content": "ok"}'},
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.call.arguments": '{"n": 1}',
            "gen_ai.tool.call.result": '{"content": "ok"}',
        },
        entity({"n": 1}),
        entity({"name": "book", "arguments": {"n": 1}}),
    ],
)
def test_tools_without_messages(held: dict[str, str]) -> None:
    """Decorated functions and other frameworks: the conventions read them, or their content is plain JSON."""
    made = span(1, "book", {"respan.entity.log_type": "tool", "traceloop.entity.name": "book", **held})
    assert calls(made) == [call(1, "book", {"n": 1}, result={"content": "ok"})]
