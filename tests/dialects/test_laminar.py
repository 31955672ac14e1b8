from __future__ import annotations

import json
from typing import Any

from dialects.spans import call, calls, exception, read, span
from spanscore.model import Span, StatusCode


def observed(number: int, name: str, kind: str, **attributes: Any) -> Span:
    """Return a span of a decorated function, below the first one."""
    held = {"lmnr.span.type": kind, **{f"lmnr.{key}": value for key, value in attributes.items()}}
    return span(number, name, held, parent=number > 1, scope="lmnr.tracer")


AGENT = observed(1, "planner", "DEFAULT")


def test_a_tool_is_marked_as_such() -> None:
    """Its input is the arguments by their names; other decorated functions are no calls."""
    booked = observed(2, "book", "TOOL", **{"span.input": '{"hotel":"Ritz"}', "span.output": '{"id":"BK-1"}'})
    helper = observed(3, "book", "DEFAULT", **{"span.input": '{"hotel":"Ritz"}'})
    failed = observed(4, "book", "TOOL")._replace(
        status_code=StatusCode.ERROR, events=(exception("ValueError", "full"),)
    )

    assert calls(AGENT, booked, helper, failed) == [
        call(2, "book", {"hotel": "Ritz"}, result={"id": "BK-1"}),
        call(4, "book", error="ValueError: full", error_type="ValueError"),
    ]


def test_ids_are_those_that_the_model_gave() -> None:
    """Its span has no operation name, but the messages of the conventions."""
    said = [{"message": {"tool_calls": [{"id": "c1", "function": {"name": "book", "arguments": "{}"}}]}}]
    model = span(
        2,
        "openai.chat",
        {"lmnr.span.type": "LLM", "gen_ai.output.messages": json.dumps(said)},
        parent=1,
        scope="lmnr.tracer",
    )

    assert calls(AGENT, model, observed(3, "book", "TOOL")) == [call(3, "book", {}, call_id="c1")]


def test_the_session_is_the_conversation() -> None:
    """Laminar's decorator and its `set_trace_session_id` write it onto the spans."""
    named = observed(1, "planner", "DEFAULT", **{"association.properties.session_id": "s-1"})

    assert [run.conversation_id for run in read(named, observed(2, "book", "TOOL"))] == ["s-1"]


def test_openhands() -> None:
    """A call is named after the class of its action: the model asked for a tool. One of an unknown tool has failed."""
    part = {"function": {"name": "terminal", "arguments": '{"command": "ls"}'}, "id": "c1", "type": "function"}
    asked = json.dumps([{"role": "assistant", "content": None, "tool_calls": [part]}])
    action = '{"action":{"command":"ls","kind":"TerminalAction"}}'
    wrong = '{"tool_input":{"id":"c2","name":"book","arguments":"{\\"n\\": 1}"}}'
    told = '{"role":"tool","content":[{"type":"text","text":"Tool \'book\' not found"}]}'

    def node(number: int, name: str, kind: str, **attributes: str) -> Span:
        call_id = {"lmnr.association.properties.metadata.tool_call_id": attributes.pop("call_id", "")}
        held = {f"lmnr.span.{key}": value for key, value in attributes.items()}
        return span(number, name, {"lmnr.span.type": kind, **call_id, **held}, parent=1)

    model = node(2, "litellm.completion", "LLM")
    made = calls(
        span(1, "conversation", {"lmnr.span.type": "DEFAULT"}),
        model._replace(attributes={**model.attributes, "gen_ai.output.messages": asked}),
        node(3, "TerminalAction", "TOOL", input=action, output='{"content":[],"is_error":false}', call_id="c1"),
        node(4, "InvalidToolCall", "TOOL", input=wrong, output=told, call_id="c2"),
        node(5, "mine", "TOOL", input='{"tool_input": {"name": "x", "arguments": "y"}}'),
    )

    assert [(each.name, each.arguments, each.call_id, each.error) for each in made] == [
        ("terminal", {"command": "ls"}, "c1", None),
        ("book", {"n": 1}, "c2", "Tool 'book' not found"),
        ("mine", {"tool_input": {"name": "x", "arguments": "y"}}, None, None),
    ]


def test_arguments_of_a_users_own_tool_may_look_like_those_of_openhands() -> None:
    """Only OpenHands gives a call an id, and an action nothing else."""
    with_id = "association.properties.metadata.tool_call_id"
    given = {"action": {"kind": "step", "n": 1}}, {"action": {"kind": "step", "n": 1}, "speed": 2}
    wrong = {"tool_input": {"name": "x", "arguments": "{}"}}
    assert calls(
        AGENT,
        observed(2, "move", "TOOL", **{"span.input": json.dumps(given[0])}),
        observed(3, "move", "TOOL", **{"span.input": json.dumps(given[1]), with_id: "c1"}),
        observed(4, "move", "TOOL", **{"span.input": json.dumps(wrong), with_id: "c2"}),
    ) == [
        call(2, "move", given[0]),
        call(3, "move", given[1], call_id="c1"),
        call(4, "move", wrong, call_id="c2"),
    ]
