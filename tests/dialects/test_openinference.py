from __future__ import annotations

import json
from typing import Any

from dialects.spans import call, calls, exception, read, span
from spanscore.model import NOT_RECORDED, Span, StatusCode

SCOPE = "openinference.instrumentation.some_framework"
RUN = span(
    1, "planner", {"openinference.span.kind": "AGENT", "agent.name": "planner", "session.id": "s-1"}, scope=SCOPE
)


def tool(number: int, **attributes: Any) -> Span:
    """A tool span."""
    held = {"openinference.span.kind": "TOOL", "tool.name": "book", **attributes}
    return span(number, "book", held, parent=1, scope=SCOPE)


def model(number: int, **attributes: Any) -> Span:
    """A model span; keys are below `llm.`."""
    held = {f"llm.{key}": value for key, value in attributes.items()}
    return span(number, "generate", {"openinference.span.kind": "LLM", **held}, parent=1, scope=SCOPE)


def requested(position: int, name: str, arguments: str | None, call_id: str) -> dict[str, str]:
    """The flat attributes of one request."""
    prefix = f"output_messages.0.message.tool_calls.{position}.tool_call"
    told = {f"{prefix}.id": call_id, f"{prefix}.function.name": name}
    return told if arguments is None else {**told, f"{prefix}.function.arguments": arguments}


def test_a_tool_span() -> None:
    """Arguments and result are input and output; several keys hold the call id."""
    (trajectory,) = read(
        RUN,
        tool(2, **{"input.value": '{"nights": 2}', "output.value": '{"id": "BK-1"}', "tool_call.id": "c1"}),
        tool(3, **{"input.value": "{}", "output.value": "BK-2", "tool.id": "c2"}),
        tool(4, **{"input.value": "__REDACTED__", "output.value": "__REDACTED__"}),
    )

    assert trajectory.calls == (
        call(2, "book", {"nights": 2}, result={"id": "BK-1"}, call_id="c1", agent="planner"),
        call(3, "book", {}, result="BK-2", call_id="c2", agent="planner"),
        call(4, "book", agent="planner"),
    )
    assert (trajectory.agent, trajectory.conversation_id) == ("planner", "s-1")


def test_a_failure() -> None:
    """By status and exception event."""
    failed = tool(2, **{"input.value": "{}"})

    assert calls(failed._replace(status_code=StatusCode.ERROR, events=(exception("ValueError", "full"),))) == [
        call(2, "book", {}, error="ValueError: full")
    ]


def test_flat_messages_of_a_model() -> None:
    """In the order of their numbers, which is not that of their text; arguments are left out when there are none."""
    asked: dict[str, str] = {}
    for position in (10, 2, 0):
        asked |= requested(position, f"t{position}", json.dumps({"n": position}) if position else None, f"c{position}")
    told = {
        "input_messages.3.message.role": "tool",
        "input_messages.3.message.tool_call_id": "c2",
        "input_messages.3.message.content": '{"ok": true}',
    }

    assert calls(RUN, model(2, **asked), model(4, **told)) == [
        call(None, "t0", {}, at_ms=3, call_id="c0", agent="planner"),
        call(None, "t2", {"n": 2}, at_ms=3, call_id="c2", agent="planner", result={"ok": True}),
        call(None, "t10", {"n": 10}, at_ms=3, call_id="c10", agent="planner"),
    ]


def test_the_raw_answer_stands_in_for_the_messages() -> None:
    """Streamed answers have no flat messages; an answer that is an object is not taken for a request."""
    request = {"type": "function", "id": "c1", "function": {"name": "book", "arguments": '{"nights": 2}'}}
    raw = {"output.value": json.dumps([{"role": "assistant", "tool_calls": [request]}])}
    plan = {"output.value": json.dumps({"steps": [{"id": "1", "name": "search", "input": "hotels"}]})}
    held = {"openinference.span.kind": "LLM"}

    assert calls(
        RUN,
        span(2, "generate", {**held, **raw}, parent=1, scope=SCOPE),
        span(4, "generate", {**held, **plan}, parent=1, scope=SCOPE),
    ) == [call(None, "book", {"nights": 2}, at_ms=3, call_id="c1", agent="planner")]


def test_definitions_of_tools() -> None:
    """Each is JSON of its own."""
    schema = {"type": "object", "properties": {"nights": {"type": "integer"}}}
    openai = {"type": "function", "function": {"name": "book", "parameters": schema}}
    anthropic = {"name": "pay", "input_schema": schema}
    tools = {f"tools.{number}.tool.json_schema": json.dumps(each) for number, each in enumerate([openai, anthropic])}

    (trajectory,) = read(RUN, model(2, **tools))

    assert dict(trajectory.tool_definitions) == {"book": schema, "pay": schema}


def test_both_conventions_on_one_span() -> None:
    """Told to write the GenAI conventions as well, instrumentors have the tool's schema for its arguments there."""
    both = {
        "openinference.span.kind": "TOOL",
        "tool.name": "book",
        "tool.parameters": '{"properties": {"city": {"type": "string"}}}',
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "book",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.arguments": '{"properties": {"city": {"type": "string"}}}',
    }

    for given, arguments in [('{"city": "Oslo"}', {"city": "Oslo"}), ("__REDACTED__", NOT_RECORDED)]:
        made = span(1, "book", {**both, "input.value": given}, scope="openinference.instrumentation.openai_agents")
        assert calls(made) == [call(1, "book", arguments, call_id="c1")]


def test_a_failure_that_only_the_whole_input_marks() -> None:
    """LangChain's status of a message is not in the numbered attributes."""
    failed = {"type": "tool", "content": "gone", "tool_call_id": "c1", "status": "error"}
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Refund it.",
        "llm.input_messages.1.message.role": "assistant",
        "llm.input_messages.1.message.tool_calls.0.tool_call.id": "c1",
        "llm.input_messages.1.message.tool_calls.0.tool_call.function.name": "look",
        "llm.input_messages.2.message.role": "tool",
        "llm.input_messages.2.message.content": "gone",
        "llm.input_messages.2.message.tool_call_id": "c1",
        "llm.input_messages.3.message.role": "assistant",
        "llm.input_messages.3.message.tool_calls.0.tool_call.id": "c2",
        "llm.input_messages.3.message.tool_calls.0.tool_call.function.name": "refund",
        "llm.input_messages.4.message.role": "tool",
        "llm.input_messages.4.message.content": "ok",
        "llm.input_messages.4.message.tool_call_id": "c2",
        "input.value": json.dumps({"messages": [[{"kwargs": failed}]]}),
    }
    refund = {"openinference.span.kind": "TOOL", "tool.name": "refund", "tool_call.id": "c2", "output.value": "ok"}
    root = span(1, "agent", {"openinference.span.kind": "AGENT"})
    (run,) = read(root, span(2, "refund", refund, parent=1), span(3, "model", attributes, parent=1))

    assert [("look", "gone"), ("refund", None)] == [(each.name, each.error) for each in run.calls]


def test_answers_that_only_the_whole_input_has() -> None:
    """The instrumentor of LangChain.js once left out the ids of calls, and the role of the tool's message."""
    given = [
        {
            "id": ["langchain_core", "messages", "AIMessage"],
            "kwargs": {"tool_calls": [{"name": "pay", "args": {}, "id": "c1"}]},
        },
        {
            "id": ["langchain_core", "messages", "ToolMessage"],
            "kwargs": {"content": "no such tool", "tool_call_id": "c1"},
        },
    ]
    prefix = "input_messages.0.message.tool_calls.0.tool_call.function"
    sent = {
        "input_messages.0.message.role": "assistant",
        f"{prefix}.name": "pay",
        f"{prefix}.arguments": "{}",
        "input_messages.1.message.content": "no such tool",
    }
    asked = {key: value for key, value in requested(0, "pay", "{}", "c1").items() if not key.endswith(".id")}
    answered = model(4, **sent)
    told = {"input.value": json.dumps({"messages": [given]})}

    made = calls(
        RUN,
        model(3, **asked),
        answered._replace(attributes={**answered.attributes, **told}),
    )

    assert [(each.name, each.result, each.call_id) for each in made] == [("pay", "no such tool", "c1")]
