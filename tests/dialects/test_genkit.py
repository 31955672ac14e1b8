"""Genkit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialects.spans import call, calls, exception, read, span
from spanscore.model import Span, StatusCode, Unit

SCOPE = "genkit-tracer"


def action(number: int, subtype: str, name: str, *, parent: int = 0, **fields: Any) -> Span:
    """A span of one action; `given` and `answer` are what went in and came out."""
    content = {
        f"genkit:{key}": json.dumps(fields.pop(key), ensure_ascii=False) for key in ("input", "output") if key in fields
    }
    attributes = {"genkit:type": "action", "genkit:metadata:subtype": subtype, "genkit:name": name, **content}
    return span(number, name, {**attributes, **fields.pop("attributes", {})}, parent=parent, scope=SCOPE, **fields)


def requested(*calls_asked_for: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    """What a model answers when it asks for calls."""
    parts = [{"toolRequest": {"ref": ref, "name": name, "input": given}} for ref, name, given in calls_asked_for]
    return {"message": {"role": "model", "content": parts}, "finishReason": "stop"}


def test_ids_are_joined_from_what_the_model_asked_for() -> None:
    """The tool's span has no id: it is found by name and arguments, whatever the order of the spans."""
    asked = requested(("call_1", "get_weather", {"city": "Paris"}), ("call_2", "get_weather", {"city": "Zürich"}))
    model = action(2, "model", "scripted", parent=1, output=asked)
    second = action(3, "tool", "get_weather", parent=1, input={"city": "Zürich"}, output="rain")
    first = action(4, "tool", "get_weather", parent=1, input={"city": "Paris"}, output="sun")

    assert calls(action(1, "flow", "travel"), model, second, first) == [
        call(3, "get_weather", {"city": "Zürich"}, result="rain", call_id="call_2", agent="travel"),
        call(4, "get_weather", {"city": "Paris"}, result="sun", call_id="call_1", agent="travel"),
    ]


@pytest.mark.parametrize(
    ("signs", "expected"),
    [
        ({"status_code": StatusCode.ERROR, "events": (exception("TypeError", "declined"),)}, "TypeError: declined"),
        ({"attributes": {"genkit:state": "error"}}, "error"),
        ({"attributes": {"genkit:state": "success"}}, None),
    ],
    ids=["exception", "state alone", "success"],
)
def test_failures_show_in_the_state_and_the_exception(signs: dict[str, Any], expected: str | None) -> None:
    """A failing tool aborts the run and marks every span above it; the tool's own span is the one that counts."""
    failed = action(2, "tool", "charge_card", parent=1, input={"amount": 1}, **signs)
    above = action(1, "flow", "travel", status_code=StatusCode.ERROR)

    assert calls(above, failed) == [call(2, "charge_card", {"amount": 1}, error=expected, agent="travel")]


def test_a_nested_flow_is_the_agent_of_its_calls() -> None:
    """A flow below a tool is a run of its own."""
    spans = (
        action(1, "flow", "orchestrator"),
        action(2, "tool", "ask_weather_agent", parent=1, input={"question": "Paris?"}),
        action(3, "flow", "weather_agent", parent=2),
        action(4, "tool", "get_weather", parent=3, input={"city": "Paris"}),
    )

    assert [("orchestrator", ["ask_weather_agent"]), ("weather_agent", ["get_weather"])] == [
        (run.agent, [made.name for made in run.calls]) for run in read(*spans, unit=Unit.AGENT)
    ]


def test_a_tool_without_arguments_was_given_an_empty_object() -> None:
    """`{}` is what the model passed, not content that was left out."""
    assert calls(action(1, "tool", "now", input={}, output="noon")) == [call(1, "now", {}, result="noon")]


def test_an_unknown_tool_is_known_from_the_request_alone() -> None:
    """Nothing executes it, and no other tool ran: what the model asked for is all there is."""
    model = action(2, "model", "scripted", parent=1, output=requested(("call_1", "no_such_tool", {"x": 1})))

    assert calls(action(1, "flow", "travel"), model) == [
        call(None, "no_such_tool", {"x": 1}, at_ms=3, call_id="call_1", agent="travel")
    ]


def test_the_tools_offered_to_the_model_are_defined_in_its_input() -> None:
    """The schema stands below `tools` of the request."""
    offered = {"messages": [], "tools": [{"name": "get_weather", "inputSchema": {"type": "object"}}]}

    (trajectory,) = read(action(1, "flow", "travel"), action(2, "model", "scripted", parent=1, input=offered))

    assert {"get_weather": {"type": "object"}} == dict(trajectory.tool_definitions)


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ({"output": {"sky": "clear"}}, {"sky": "clear"}),
        ({"output": {"output": {"output": 1}}}, {"output": {"output": 1}}),
        ({"output": {"title": "sales"}, "content": [{"text": "x"}]}, {"title": "sales"}),
        ({"content": [{"text": "x"}]}, [{"text": "x"}]),
        ({}, None),
        ({"sky": "clear"}, {"sky": "clear"}),
        ("sun", "sun"),
    ],
    ids=["wrapped", "once", "with parts", "parts alone", "nothing", "not wrapped", "text"],
)
def test_the_second_kind_of_tool_wraps_what_it_returned(answer: Any, result: Any) -> None:
    """All of Go's tools since 1.4, and those of JavaScript that answer in parts."""
    made = action(1, "tool.v2", "get_weather", input={"city": "Paris"}, output=answer)

    assert calls(made) == [call(1, "get_weather", {"city": "Paris"}, result=result)]


def test_the_first_kind_of_tool_returns_what_it_returned() -> None:
    """What has an `output` of its own stays whole, and nothing is no result."""
    returned = {"output": {"sky": "clear"}}

    assert calls(action(1, "tool", "get_weather", input={}, output=returned), action(2, "tool", "ping", input={})) == [
        call(1, "get_weather", {}, result=returned),
        call(2, "ping", {}),
    ]


@pytest.mark.parametrize("kind", ["*ai.toolInterruptError", "ToolInterruptError"])
def test_an_interrupt_is_no_call_and_no_failure(kind: str) -> None:
    """A tool that waits for a person ends with an exception, and says so in every other way too."""
    events = (exception(kind, "tool execution interrupted"),)
    paused = action(
        1,
        "tool.v2",
        "confirm",
        input={"topic": "booking"},
        attributes={"genkit:state": "error"},
        status_code=StatusCode.ERROR,
        status_message="tool execution interrupted",
        events=events,
    )

    assert calls(paused) == []


def test_a_call_names_its_flow_where_the_flow_s_span_is_missing() -> None:
    """A filter or a sampler may have dropped it; a flow above counts more."""
    named = {"genkit:metadata:flow:name": "travel"}
    alone = action(2, "tool.v2", "ping", parent=1, input={}, output={}, attributes=named)

    assert calls(alone) == [call(2, "ping", {}, result=None, agent="travel")]
    assert calls(action(1, "flow", "weather"), alone) == [call(2, "ping", {}, result=None, agent="weather")]
