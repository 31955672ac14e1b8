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
