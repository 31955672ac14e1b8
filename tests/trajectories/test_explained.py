"""What each span of a trace was taken for."""

from __future__ import annotations

from typing import Any

import pytest

from dialects.spans import TRACE_ID, built_in_reader, read, span
from given_readings import GIVEN, given
from spanscore.contracts import CallReading, CallRequest, ModelCallReading, ModelReading, Reading
from spanscore.model import CloseReason, Span, ToolCall, Trace, Trajectory
from spanscore.trajectories.explained import Explanation, explained
from spanscore.trajectories.trajectory import trajectories
from traces import BERN, PARIS, agent, asked, having, model, tool


def of(*spans: Span) -> Explanation:
    """What is said of a trace."""
    trace = Trace(trace_id=spans[0].trace_id, spans=spans, close_reason=CloseReason.ROOT_ENDED)
    return explained(trace, read(*spans), built_in_reader())


def test_every_span_has_its_place_and_what_it_was_taken_for() -> None:
    """Depth first, siblings by start, with the number of the call that a span is, or is a second sight of."""
    mcp = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "book", "network.transport": "pipe"}
    found = of(
        agent(1),
        model(2, asked("book", PARIS, "c1"), asked("pay", {}, "c2"), parent=1),
        tool(3, "book", PARIS, "c1", parent=1),
        span(4, "tools/call book", mcp, parent=3),
        span(5, "GET /", {"http.request.method": "GET"}, parent=4),
        having(model(6, parent=1), {"gen_ai.output.messages": None, "gen_ai.response.finish_reasons": ["tool_calls"]}),
    )

    assert [(each.span.name, each.depth, each.role, each.call) for each in found.spans] == [
        ("invoke_agent", 0, "a run of agent planner", None),
        ("chat", 1, "a request to a model, which asked for book, pay", None),
        ("execute_tool book", 1, "call 1", 1),
        ("tools/call book", 2, "the same call as 1", 1),
        ("GET /", 3, "not read: no attribute, scope or name of a known instrumentation", None),
        ("chat", 1, "a request to a model, which asked for tools: it is not recorded for which", None),
    ]
    assert ("pay",) == found.not_made
    assert ("Mcp",) == found.spans[3].dialects[:1]


def test_parents_that_form_a_cycle() -> None:
    """Every span is told once."""
    found = of(tool(1, "book", BERN, parent=2), tool(2, "pay", parent=1))

    assert [("execute_tool book", 0), ("execute_tool pay", 0)] == sorted(
        (each.span.name, each.depth) for each in found.spans
    )


def test_requests_without_ids_that_were_run_and_one_that_was_not() -> None:
    """The executions have ids that the framework made up."""
    asking = model(2, asked("book", PARIS), asked("book", BERN), asked("pay", {}), parent=1)
    executed = tool(3, "book", PARIS, "x1", parent=1), tool(4, "pay", {}, "x2", parent=1)

    assert ("book",) == of(agent(1), asking, *executed).not_made
    assert () == of(agent(1), asking, *executed, tool(5, "book", BERN, "x3", parent=1)).not_made


def test_an_earlier_version_of_a_span() -> None:
    """The last one counts."""
    first = tool(2, "pay", {"n": 1}, "c1", parent=1)
    last = first._replace(end_ns=first.end_ns + 1, attributes={**first.attributes, "gen_ai.tool.call.result": "ok"})

    assert [
        "a run of agent planner",
        "an earlier version of this span; the last one counts",
        "call 1",
    ] == [each.role for each in of(agent(1), first, last).spans]


PAY, NAMELESS, BOOK = (CallRequest(name=name) for name in ("pay", "", "book"))


def taken_for(*spans: Span) -> list[tuple[str, int | None]]:
    """What each span was taken for, and the number of its call."""
    trace = Trace(trace_id=TRACE_ID, spans=spans, close_reason=CloseReason.ROOT_ENDED)
    return [(each.role, each.call) for each in explained(trace, trajectories(trace, GIVEN), GIVEN).spans]


@pytest.mark.parametrize(
    ("reading", "attributes", "role"),
    [
        (Reading(is_agent=True, agent="a"), {}, "a run of agent a"),
        (Reading(is_agent=True), {}, "a run of an agent without a name"),
        (Reading(is_workflow=True), {}, "a run of a workflow"),
        (Reading(of_span={"x": 1}), {}, "attributes of the span above, moved into a log record"),
        (Reading(agent="a"), {}, "other span (no call)"),
        (
            Reading(not_a_call=True),
            {},
            "no tool call: its instrumentation writes other steps in this form, such as a hand-over",
        ),
        (Reading(is_model=True), {}, "a request to a model"),
        (Reading(is_model=True), {"model call": ModelCallReading(is_request=True)}, "a request to a model"),
        (Reading(is_model=True), {"model call": ModelCallReading(is_request=False)}, "the messages of a model"),
        (
            Reading(is_model=True),
            {"model": ModelReading(requests=(PAY, BOOK), asks=True)},
            "a request to a model, which asked for pay, book",
        ),
        (
            Reading(is_model=True),
            {"model": ModelReading(asks=True)},
            "a request to a model, which asked for tools: it is not recorded for which",
        ),
        (
            Reading(is_model=True, is_agent=True, agent="a"),
            {"model": ModelReading(requests=(PAY,), asks=True), "model call": ModelCallReading(is_request=False)},
            "a run of agent a, which asked for pay",
        ),
        (Reading(waits=(PAY, NAMELESS, BOOK)), {}, "other span (no call), after which the run waits for pay, book"),
        (Reading(waits=(NAMELESS,)), {}, "other span (no call), after which the run waits"),
        (Reading(refused=(PAY, NAMELESS, BOOK)), {}, "other span (no call), which says that pay, book was refused"),
        (
            Reading(is_workflow=True, waits=(PAY,), refused=(BOOK,)),
            {},
            "a run of a workflow, after which the run waits for pay, which says that book was refused",
        ),
        (Reading(call=CallReading(name="pay", state="refused")), {}, "no call: pay was refused"),
        (
            Reading(call=CallReading(name="pay", state="waits")),
            {},
            "no call yet: pay waits for approval or for an answer",
        ),
        (Reading(call=CallReading(state="refused")), {}, "no call: the tool was refused"),
    ],
)
def test_roles(reading: Reading, attributes: dict[str, Any], role: str) -> None:
    """In words, for each thing that a dialect may read."""
    assert [(role, None)] == taken_for(given(reading, attributes=attributes))


def test_a_part_of_a_call() -> None:
    """It has the number of the call, whose span may be above it."""
    pay = Reading(call=CallReading(name="pay"))
    part = Reading(call=CallReading(name="pay"), part_of_call=True)
    book = Reading(call=CallReading(name="book"))

    assert [("call 1", 1), ("call 2", 2), ("a part of call 2", 2)] == taken_for(
        given(book, 1), given(pay, 2), given(part, 3, parent=2)
    )


@pytest.mark.parametrize(("at", "number"), [(1, 1), (3, 2), (5, 3), (7, 3)])
def test_a_part_beside_its_call_names_it_by_its_id(at: int, number: int) -> None:
    """Where the id comes again, it is of the next call to start, else of the last."""
    pay = Reading(call=CallReading(name="pay", call_id="c1"))
    part = Reading(call=CallReading(name="pay", call_id="c1"), part_of_call=True)
    spans = [given(pay, start) for start in (2, 4, 6)]

    assert (f"a part of call {number}", number) in taken_for(*spans, given(part, 9, at_ms=at))


def test_a_call_that_waited_and_was_executed_afterwards() -> None:
    """The first span is no call of its own."""
    waiting = Reading(call=CallReading(name="pay", call_id="c1", state="waits"))
    made = Reading(call=CallReading(name="pay", call_id="c1", result="ok"))

    assert [("no call of its own: pay waited here, and is executed afterwards", None), ("call 1", 1)] == taken_for(
        given(waiting, 1), given(made, 5)
    )


def test_calls_are_numbered_through_all_runs_that_are_told() -> None:
    """A call of a run that is not told has no number, nor has what is the same call or a part of it."""
    pay = given(Reading(call=CallReading(name="pay")), 1)
    part = given(Reading(call=CallReading(name="pay"), part_of_call=True), 2, parent=1)
    trace = Trace(trace_id=TRACE_ID, spans=(pay, part), close_reason=CloseReason.ROOT_ENDED)
    (run,) = trajectories(trace, GIVEN)
    other = Trajectory(calls=(ToolCall(name="other"),))

    assert [("a call of another run", None), ("a part of call span 1", None)] == [
        (each.role, each.call) for each in explained(trace, [other], GIVEN).spans
    ]
    assert [2, 2] == [each.call for each in explained(trace, [other, run], GIVEN).spans]


@pytest.mark.parametrize(
    ("requests", "calls", "not_made"),
    [
        ([PAY, BOOK], [], ("pay", "book")),
        ([PAY, BOOK], [CallReading(name="pay")], ("book",)),
        ([CallRequest(name="pay", call_id="c1"), BOOK], [CallReading(name="pay", call_id="c1")], ("book",)),
        ([CallRequest(name="pay", call_id="c1")], [CallReading(name="pay", call_id="c2")], ()),
        ([CallRequest(name="pay", call_id="c1")], [CallReading(name="book", call_id="c2")], ("pay",)),
        ([PAY, PAY], [CallReading(name="pay")], ()),
    ],
)
def test_what_models_asked_for_in_vain(
    requests: list[CallRequest], calls: list[CallReading], not_made: tuple[str, ...]
) -> None:
    """Requests that an executed call may belong to are left out."""
    asking = given(Reading(is_model=True), 2, parent=1, attributes={"model": ModelReading(requests=tuple(requests))})
    executed = [given(Reading(call=call), number, parent=1) for number, call in enumerate(calls, 3)]
    spans = (given(Reading(is_agent=True, agent="a"), 1), asking, *executed)
    trace = Trace(trace_id=TRACE_ID, spans=spans, close_reason=CloseReason.ROOT_ENDED)

    found = explained(trace, trajectories(trace, GIVEN) if calls else [], GIVEN)
    assert (not_made, (), ()) == (found.not_made, found.waits, found.refused)
    if not calls:  # what models asked for are the calls of the run then
        assert () == explained(trace, trajectories(trace, GIVEN), GIVEN).not_made
