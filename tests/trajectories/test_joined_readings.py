"""What several dialects say of one span, joined."""

from __future__ import annotations

from typing import Any

import pytest

from catalogue.scoring import report_of
from dialects.spans import span
from spanscore.contracts import (
    CallReading,
    CallRequest,
    CallState,
    ModelCallReading,
    ModelReading,
    Reading,
    SentMessage,
)
from spanscore.model import Later, LaterList, ToolCall
from spanscore.trajectories.joined_readings import (
    for_tools,
    joined_calls,
    joined_model_calls,
    joined_models,
    joined_readings,
)

OPENINFERENCE = {"openinference.span.kind": "TOOL", "tool.name": "search", "input.value": '{"a": 1}'}
CONVENTIONS = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}


def call_of(attributes: dict[str, Any]) -> ToolCall:
    """Return the only call of a run."""
    root = span(1, "invoke_agent", {"gen_ai.operation.name": "invoke_agent"})
    (call,) = report_of([root, span(2, "execute_tool search", attributes, parent=1)]).trajectory.calls
    return call


@pytest.mark.parametrize("kind", ["function", "extension", None])
def test_the_type_of_a_tool_is_that_of_the_conventions(kind: str | None) -> None:
    """Also where another dialect says all else of the call."""
    conventions = CONVENTIONS if kind is None else CONVENTIONS | {"gen_ai.tool.type": kind}
    call = call_of(OPENINFERENCE | conventions)
    assert ("search", {"a": 1}, kind) == (call.name, call.arguments, call.tool_type)


PAY, BOOK, OUT = (CallRequest(name=name) for name in ("pay", "book", "answer"))


@pytest.mark.parametrize(
    ("reading", "requests", "asks"),
    [
        (ModelReading(requests=(PAY,), asks=True), (PAY,), True),
        (ModelReading(requests=(PAY, OUT), asks=True, output_tools={"answer": {}}), (PAY,), True),
        (ModelReading(requests=(OUT,), asks=True, output_tools={"answer": {}}), (), False),
        (ModelReading(requests=(PAY,), asks=False, output_tools={"answer": {}}), (PAY,), False),
        (ModelReading(asks=True, output_tools={"answer": {}}), (), True),
    ],
)
def test_structured_output_is_no_request(
    reading: ModelReading, requests: tuple[CallRequest, ...], *, asks: bool
) -> None:
    """A model that only hands in its output asks for no tools."""
    found = for_tools(reading)
    assert (requests, asks) == (found.requests, found.asks)
    assert (found is reading) is (found == reading)


def later(found: dict[str, Any]) -> Later:
    """Return what is found when it is looked at."""
    return Later(lambda: found)


def test_the_sides_of_models() -> None:
    """The first that has requests, output tools, answers, definitions or messages; all refusals and failures."""
    first = ModelReading(
        requests=(PAY,), answers=later({}), refused={"1": "a"}, failures=later({"1": "f"}), history=LaterList(list)
    )
    second = ModelReading(
        requests=(BOOK,),
        asks=True,
        output_tools={"o": {}},
        answers={"1": "x"},
        refused={"1": "b", "2": "c"},
        failures={"2": "g"},
        by_provider={"3": "p"},
        tool_definitions=later({"d": {}}),
        history=LaterList(lambda: [SentMessage(is_user_text=True)]),
    )
    found = joined_models([first, second, ModelReading(answers={"9": "z"}, by_provider=later({"4": "q"}))])
    assert ((PAY,), True) == (found.requests, found.asks)
    assert ({"o": {}}, {"1": "x"}, {"d": {}}) == (
        dict(found.output_tools),
        dict(found.answers),
        dict(found.tool_definitions),
    )
    assert ({"1": "b", "2": "c"}, {"1": "f", "2": "g"}, {"3": "p", "4": "q"}) == (
        dict(found.refused),
        dict(found.failures),
        dict(found.by_provider),
    )
    assert [SentMessage(is_user_text=True)] == list(found.history)
    assert ModelReading() == joined_models([ModelReading(), ModelReading()])
    assert [] == list(joined_models([first, first]).history)


@pytest.mark.parametrize(
    ("told", "is_request"),
    [([None, None], None), ([True, None], None), ([None, False], False), ([False, True], False), ([True], True)],
)
def test_requests_to_models(told: list[bool | None], is_request: bool | None) -> None:  # noqa: FBT001 - a parameter
    """Of each field the first value; one dialect is enough to say that a span is no request."""
    readings = [ModelCallReading(is_request=each, input_tokens=n or None) for n, each in enumerate(told)]
    found = joined_model_calls(readings)
    assert (is_request, 1 if len(told) > 1 else None) == (found.is_request, found.input_tokens)
    assert ModelCallReading(model="a", output_tokens=2) == joined_model_calls(
        [ModelCallReading(model="a"), ModelCallReading(model="b", output_tokens=2)]
    )


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (("made", "made"), "made"),
        (("made", "uncertain"), "uncertain"),
        (("uncertain", "waits"), "waits"),
        (("waits", "refused"), "refused"),
    ],
)
def test_the_states_of_one_call(states: tuple[CallState, ...], expected: CallState) -> None:
    """The sign that it was not made counts; the failure is that of the first reading, all names count."""
    first, second = (
        CallReading(name=f"n{n}", other_names=(f"o{n}", "o"), error=("e" if n else None), error_type="E", state=state)
        for n, state in enumerate(states)
    )
    found = joined_calls([first, second])
    assert ("n0", ("o0", "o", "o1"), None, "E", expected) == (
        found.name,
        found.other_names,
        found.error,
        found.error_type,
        found.state,
    )
    assert first is joined_calls([first])


def test_readings_of_one_span() -> None:
    """Of each field the first value, by precedence; of a call the lowest precedence, with the first type of a tool."""
    call = CallReading(name="f")
    other = CallReading(name="g", arguments={}, tool_type="function")
    assert None is joined_readings([])
    assert Reading(agent="a") == joined_readings([(1, Reading(agent="a"))])
    assert Reading() == joined_readings([(1, Reading()), (2, Reading())])
    assert Reading(agent="a") == joined_readings([(1, Reading()), (2, Reading(agent="a"))])
    moved = {"x": 1}
    assert Reading(of_span=moved) == joined_readings([(1, Reading()), (2, Reading(of_span=moved))])
    assert Reading(agent="a", of_span={"x": 1, "y": 2, "z": 3}) == joined_readings(
        [
            (1, Reading(of_span={"x": 1, "y": 2})),
            (2, Reading(agent="a")),
            (2, Reading(of_span={"x": 0, "z": 3})),
        ]
    )
    assert Reading(call=CallReading(name="f", tool_type="function"), is_model=True) == joined_readings(
        [(1, Reading(call=call)), (2, Reading(call=other, is_model=True)), (2, Reading(agent=None))]
    )
    assert Reading(call=CallReading(name="f", arguments={}, tool_type="function")) == joined_readings(
        [(1, Reading(call=call)), (1, Reading(call=other))]
    )
    assert Reading(call=CallReading(name="f", tool_type="own")) == joined_readings(
        [(1, Reading(call=CallReading(name="f", tool_type="own"))), (2, Reading(call=other))]
    )
