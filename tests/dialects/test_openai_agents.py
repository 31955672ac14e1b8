from __future__ import annotations

import json
from typing import Any

import pytest

from dialects.spans import call, calls, read, span
from spanscore.model import Span, StatusCode

OPENINFERENCE = "openinference.instrumentation.openai_agents"
OPENTELEMETRY = "opentelemetry.instrumentation.openai_agents"
RUN = span(1, "invoke_agent", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"})


def test_under_openinference() -> None:
    """The trace itself is written as an agent without a name; the text of a failure is redacted."""
    tool = {"openinference.span.kind": "TOOL", "tool.name": "book", "input.value": "{}"}
    redacted = "Error running tool (non-fatal): {'error': 'Tool execution failed. Error details are redacted.'}"
    agent = {"openinference.span.kind": "AGENT", "agent.name": "planner", "graph.node.id": "planner"}

    (trajectory,) = read(
        span(1, "trip", {"openinference.span.kind": "AGENT"}, scope=OPENINFERENCE),
        span(2, "planner", agent, parent=1, scope=OPENINFERENCE),
        span(
            3,
            "book",
            tool,
            parent=2,
            scope=OPENINFERENCE,
            status_code=StatusCode.ERROR,
            status_message=redacted,
        ),
    )

    assert trajectory.calls == (call(3, "book", {}, error=redacted, agent="planner"),)
    assert trajectory.agent == "planner"


def requested(name: str, arguments: str = "{}") -> dict[str, Any]:
    """What a model asked for, by the convention."""
    part = {"type": "tool_call", "id": "c1", "name": name, "arguments": arguments}
    said = json.dumps([{"role": "assistant", "parts": [part]}])
    return {"gen_ai.operation.name": "chat", "gen_ai.output.messages": said}


@pytest.mark.parametrize(
    "handoff",
    [
        span(
            3,
            "handoff to clerk",
            {"openinference.span.kind": "TOOL", "input.value": "planner"},
            parent=1,
            scope=OPENINFERENCE,
        ),
        span(
            3,
            "handoff to clerk",
            {"openinference.span.kind": "TOOL", "tool.name": "handoff_to_clerk"},
            parent=1,
            scope="@arizeai/openinference-instrumentation-openai-agents",
        ),
        span(3, "planner → clerk.handoff", {"gen_ai.operation.name": "handoff"}, parent=1, scope=OPENTELEMETRY),
        span(3, "agent_handoff", {"gen_ai.operation.name": "agent_handoff"}, parent=1, scope=OPENTELEMETRY),
    ],
)
def test_a_hand_off_is_no_call(handoff: Span) -> None:
    """Neither its span is, nor in a run of hand-offs alone what the model asked for."""
    assert calls(RUN, span(2, "chat", requested("transfer_to_clerk"), parent=1), handoff) == []


MESSAGE = {
    "content": None,
    "tool_calls": [{"id": "c1", "function": {"arguments": '{"city": "Zürich"}', "name": "book"}, "type": "function"}],
}


@pytest.mark.parametrize(
    "printed",
    [
        repr(MESSAGE),
        "ResponseFunctionToolCall(arguments='{\"city\": \"Zürich\"}', call_id='c1', name='book', type='function_call')",
    ],
)
def test_opentelemetry_prints_what_the_model_asked_for(printed: str) -> None:
    """As the text of its answer; the tool's span has no call id, and for its agent a constant."""
    said = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": printed}]}])
    chat = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": said}
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "book",
        "gen_ai.tool.call.arguments": '{"city": "Zürich"}',
        "gen_ai.tool.call.result": "booked",
        "gen_ai.agent.name": "OpenAI Agent",
    }

    assert calls(
        RUN,
        span(2, "chat", chat, parent=1, scope=OPENTELEMETRY),
        span(3, "execute_tool book", tool, parent=1, scope=OPENTELEMETRY),
    ) == [call(3, "book", {"city": "Zürich"}, result="booked", call_id="c1", agent="planner")]


def test_an_answer_that_quotes_a_call_asks_for_none() -> None:
    """Text is text where nothing prints objects."""
    said = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": repr(MESSAGE)}]}])

    assert (
        calls(RUN, span(2, "chat", {"gen_ai.operation.name": "chat", "gen_ai.output.messages": said}, parent=1)) == []
    )


@pytest.mark.parametrize(
    "scope",
    [OPENINFERENCE, OPENTELEMETRY, "opentelemetry.instrumentation.genai.openai_agents", "weave.openai_agents"],
)
def test_a_call_without_a_result_waits_if_no_model_is_asked_after_it(scope: str) -> None:
    """So it does without content: then a result is missing in any case."""
    kind = {"openinference.span.kind": "TOOL"} if scope == OPENINFERENCE else {"gen_ai.operation.name": "execute_tool"}
    chat = {"gen_ai.operation.name": "chat"}
    last = span(3, "book", {**kind, "tool.name": "book", "gen_ai.tool.name": "book"}, parent=1, scope=scope)
    (paused,) = read(RUN, span(2, "chat", chat, parent=1), last)
    (whole,) = read(RUN, span(2, "chat", chat, parent=1), last, span(5, "chat", chat, parent=1))

    assert (("book",), ()) == (paused.completeness.paused, paused.calls)
    assert ((), ["book"]) == (whole.completeness.paused, [each.name for each in whole.calls])


def test_a_run_that_begins_with_a_call_continues_after_a_pause() -> None:
    """The SDK makes a call only if a model asks for it; a workflow may make one by itself."""
    made = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "book"}
    asked = span(4, "chat", {"gen_ai.operation.name": "chat"}, parent=1)

    for scope, expected in ((OPENTELEMETRY, True), ("shop", False)):
        (run,) = read(RUN, span(2, "execute_tool book", made, parent=1, scope=scope), asked)

        assert expected is run.completeness.begin_unseen


JAVASCRIPT = "@arizeai/openinference-instrumentation-openai-agents"


def test_javascript_fails_a_refused_call() -> None:
    """It begins with the person's own words, if there are any."""
    told = 'Too much.: {"tool_name":"book","error":"Tool execution for c2 was manually rejected by user."}'
    tool = {"openinference.span.kind": "TOOL", "tool.name": "book"}
    (run,) = read(
        RUN, span(3, "book", tool, parent=1, scope=JAVASCRIPT, status_code=StatusCode.ERROR, status_message=told)
    )

    assert ((), [("book", "refused")]) == (run.calls, [(each.name, each.state) for each in run.withheld])


@pytest.mark.parametrize(
    ("given", "ends", "expected"),
    [
        ("__REDACTED__", False, (("",), False)),
        ("__REDACTED__", True, ((), False)),
        ('[{"type": "message", "role": "user"}, {"type": "function_call"}]', True, ((), True)),
        ('[{"type": "function_call_result"}, {"type": "message", "role": "user"}]', True, ((), False)),
        ('[{"role": "assistant", "tool_calls": [{}]}, {"role": "tool", "content": "ok"}]', True, ((), True)),
        ('[{"role": "assistant", "tool_calls": [{}]}, {"role": "user", "content": "hi"}]', True, ((), False)),
    ],
    ids=["waits", "ends", "continues", "next turn", "continues with chat completions", "their next turn"],
)
def test_the_root_in_javascript(given: str, expected: tuple[tuple[str, ...], bool], *, ends: bool) -> None:
    """It has no result if the run waits; and a run that continues is given calls without a text of the user behind."""
    attributes = {
        "openinference.span.kind": "AGENT",
        "input.value": given,
        **({"output.value": "done"} if ends else {}),
    }
    root = span(1, "Agent workflow", attributes, scope=JAVASCRIPT, status_code=StatusCode.OK)
    (run,) = read(root, span(2, "chat", {"gen_ai.operation.name": "chat"}, parent=1))

    assert expected == (run.completeness.paused, run.completeness.begin_unseen)


@pytest.mark.parametrize(("asked", "expected"), [("transfer_to_booking", []), ("find_assistant", ["find_assistant"])])
def test_a_hand_off_before_the_pause_is_no_call(asked: str, expected: list[str]) -> None:
    """For the model it is a tool with a result of the SDK's; a tool of the user's may have one alike."""
    messages = {
        "0.message": {"role": "user", "content": "Book."},
        "1.message": {"role": "assistant", "tool_calls.0.tool_call.id": "h1"},
        "2.message": {"role": "tool", "tool_call_id": "h1", "content": '{"assistant": "booking"}'},
        "3.message": {"role": "assistant", "tool_calls.0.tool_call.id": "c1"},
        "4.message": {"role": "tool", "tool_call_id": "c1", "content": "free"},
        "5.message": {"role": "assistant", "tool_calls.0.tool_call.id": "c2"},
        "6.message": {"role": "tool", "tool_call_id": "c2", "content": "ok"},
    }
    names = {"h1": asked, "c1": "look_up", "c2": "book"}
    told = {
        f"llm.input_messages.{place}.{key}": value for place, said in messages.items() for key, value in said.items()
    }
    for key, call_id in list(told.items()):
        if key.endswith("tool_call.id"):
            told[f"{key.removesuffix('id')}function.name"] = names[call_id]
    tool = {"openinference.span.kind": "TOOL", "tool.name": "book", "input.value": "{}", "output.value": "ok"}

    (run,) = read(
        RUN,
        span(2, "book", tool, parent=1, scope=JAVASCRIPT),
        span(3, "response", {"openinference.span.kind": "LLM", **told}, parent=1, scope=JAVASCRIPT),
    )

    restored = [(name, True) for name in (*expected, "look_up")]
    assert [*restored, ("book", False)] == [(each.name, each.restored) for each in run.calls]
