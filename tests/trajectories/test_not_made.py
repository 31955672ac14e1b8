"""Calls that wait, may wait or were refused, for each sign of it: the states of spans, and calls without a span."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pytest

from dialects.spans import span
from given_readings import given, given_agent, given_call, given_model, given_tree
from spanscore.contracts import CallRequest, Reading
from spanscore.model import NOT_RECORDED, Span
from spanscore.trajectories.requested import Requested
from spanscore.trajectories.same_calls import merged_calls
from spanscore.trajectories.withheld import Withheld
from traces import lasting

PAY, BOOK, NAMELESS = (CallRequest(name=name) for name in ("pay", "book", ""))
PAY1, BOOK2 = CallRequest(name="pay", call_id="c1"), CallRequest(name="book", call_id="c2")
DENIED: Final = "The tool call was denied."
AGENT: Final = lasting(given_agent(1), 90)
AGAIN: Final = given_agent(6)
UNENDED: Final = AGENT._replace(end_ns=0)
ENDS_ASKING: Final = lasting(given_agent(1, ends_asking=True), 90)


class Told(NamedTuple):
    """The calls of a trace that were not made, or may not have been, by the positions of their spans."""

    spans: dict[int, str]
    asked: list[tuple[str, str]]
    may_wait: list[int]
    doubted: list[int]
    superseded: list[int]


def told(**fields: Any) -> Told:
    """Return what is told, with nothing in the fields that are left out."""
    empty: dict[str, Any] = {"spans": {}, "asked": [], "may_wait": [], "doubted": [], "superseded": []}
    return Told(**{**empty, **fields})


def of(*spans: Span, may_block: bool = False) -> Told:
    """Return what is told of a trace."""
    tree = given_tree(*spans)
    found = Withheld(tree, merged_calls(tree), Requested(tree), may_block=may_block)
    asked = [(request.name, state) for request, state in found.asked]
    return Told(dict(found.spans), asked, found.may_wait, sorted(found.doubted), sorted(found.superseded))


def other(number: int, **fields: Any) -> Span:
    """Return a span that no dialect reads."""
    return span(number, "GET /", **fields)


def shifted(spanned: Span, ns: int) -> Span:
    """Return a span so many nanoseconds later."""
    return spanned._replace(start_ns=spanned.start_ns + ns, end_ns=spanned.end_ns + ns)


def doubtful(number: int, name: str = "pay", call_id: str | None = None, **more: Any) -> Span:
    """Return a call that may wait, by its own span."""
    return given_call(number, name, call_id, state="uncertain", **{"parent": 1, **more})


def made(number: int, name: str | None = "pay", call_id: str | None = None, **more: Any) -> Span:
    """Return a call with a result."""
    return given_call(number, name, call_id, **{"parent": 1, "result": "ok", **more})


def asked(number: int, *requests: CallRequest, **more: Any) -> Span:
    """Return a request to a model that asks for these calls."""
    return given_model(number, *requests, **{"parent": 1, **more})


def waiting(number: int, *requests: CallRequest, **more: Any) -> Span:
    """Return a span after which these calls wait."""
    return given(Reading(waits=requests), number, **{"parent": 1, **more})


def unnamed(number: int, **more: Any) -> Span:
    """Return a span after which a call waits that it does not name."""
    return waiting(number, NAMELESS, **more)


def refusing(number: int, *requests: CallRequest, **more: Any) -> Span:
    """Return a span that says that these calls were refused."""
    return given(Reading(refused=requests), number, **{"parent": 1, **more})


@pytest.mark.parametrize(
    ("case", "spans", "expected"),
    [
        ("no model is asked after it", [AGENT, asked(2), doubtful(4)], told(spans={2: "waits"})),
        ("a model is asked after it", [AGENT, asked(2), doubtful(4), asked(6)], told()),
        (
            "its agent is run again after it",
            [AGENT, asked(2), doubtful(4), AGAIN, asked(7, parent=6)],
            told(doubted=[2]),
        ),
        (
            "its agent is run again and sent its result",
            [AGENT, asked(2, PAY1), doubtful(4, "pay", "c1"), AGAIN, asked(7, parent=6, answers={"c1": "ok"})],
            told(),
        ),
        (
            "its agent is run again after another model",
            [AGENT, asked(2), doubtful(3), asked(4), AGAIN, asked(7, parent=6)],
            told(),
        ),
        ("a model starts in its millisecond", [AGENT, doubtful(4), asked(5, at_ms=4)], told()),
        (
            "a model starts with it by an exact clock",
            [AGENT, shifted(doubtful(4), 1), shifted(asked(5, at_ms=4), 1)],
            told(spans={1: "waits"}),
        ),
        (
            "a model of another agent is asked after it",
            [AGENT, asked(2), doubtful(4), given_model(6, agent="other")],
            told(spans={2: "waits"}),
        ),
        (
            "it may have failed, without content",
            [AGENT, asked(2), doubtful(4, may_have_failed=True)],
            told(may_wait=[2], doubted=[2]),
        ),
        (
            "it may have failed, with content",
            [AGENT, asked(2), doubtful(4, may_have_failed=True, arguments={})],
            told(spans={2: "waits"}),
        ),
        (
            "a model is sent its refusal",
            [AGENT, asked(2, PAY1), doubtful(4, "pay", "c1"), asked(6, answers={"c1": DENIED})],
            told(spans={2: "refused"}),
        ),
        (
            "a model is sent a marked refusal",
            [AGENT, asked(2, PAY1), doubtful(4, "pay", "c1"), asked(6, answers={"c1": "no"}, refused={"c1": None})],
            told(spans={2: "refused"}),
        ),
        (
            "a model is sent its result",
            [AGENT, asked(2, PAY1), doubtful(4, "pay", "c1"), asked(6, answers={"c1": "ok"})],
            told(),
        ),
        (
            "without models, the last call may wait",
            [AGENT, doubtful(4), doubtful(6, "book")],
            told(may_wait=[2], doubted=[2]),
        ),
        (
            "without models, the last call of its agent may wait",
            [AGENT, doubtful(4), doubtful(6, "book"), given_call(8, "x", agent="o", parent=0)],
            told(may_wait=[2], doubted=[2]),
        ),
        (
            "without models, each call that may have failed may wait",
            [AGENT, doubtful(4, may_have_failed=True), doubtful(6, "book")],
            told(may_wait=[1, 2], doubted=[1, 2]),
        ),
        ("without models, a hidden refusal says nothing", [AGENT, doubtful(4, refusal="hidden")], told()),
        (
            "a batch span behind the calls",
            [AGENT, doubtful(4), doubtful(6, "book"), given(Reading(not_a_call=True), 8, parent=1)],
            told(may_wait=[1, 2], doubted=[1, 2]),
        ),
        (
            "a batch span with the last call",
            [AGENT, doubtful(4), doubtful(6, "book"), given(Reading(not_a_call=True), 8, parent=1, at_ms=6)],
            told(may_wait=[1, 2], doubted=[1, 2]),
        ),
        (
            "a batch span before the last call",
            [AGENT, doubtful(4), doubtful(6, "book"), given(Reading(not_a_call=True), 5, parent=1)],
            told(may_wait=[2], doubted=[2]),
        ),
    ],
)
def test_a_call_that_may_wait_by_its_own_span(case: str, spans: list[Span], expected: Told) -> None:
    """The models after it decide: its agent asks none while it waits. Without models, the last batch may wait."""
    assert expected == of(*spans), case


@pytest.mark.parametrize(
    ("case", "spans", "expected"),
    [
        (
            "an execution without a result",
            [AGENT, made(3, "pay", "c1", result=NOT_RECORDED), waiting(5, PAY1)],
            told(spans={1: "waits"}),
        ),
        ("an execution with a result", [AGENT, made(3, "pay", "c1"), waiting(5, PAY1)], told(asked=[("pay", "waits")])),
        (
            "an execution that failed",
            [AGENT, made(3, "pay", "c1", result=NOT_RECORDED, error="x"), waiting(5, PAY1)],
            told(asked=[("pay", "waits")]),
        ),
        ("by its name", [AGENT, made(3, "pay", "c1", result=NOT_RECORDED), waiting(5, PAY)], told(spans={1: "waits"})),
        (
            "another id",
            [AGENT, made(3, "pay", "c1", result=NOT_RECORDED), waiting(5, CallRequest(name="pay", call_id="c9"))],
            told(asked=[("pay", "waits")]),
        ),
        (
            "the last of two",
            [AGENT, made(3, result=NOT_RECORDED), made(4, result=NOT_RECORDED, arguments={}), waiting(6, PAY)],
            told(spans={2: "waits"}),
        ),
        ("an execution after the span", [AGENT, waiting(2, PAY), made(4, result=NOT_RECORDED)], told()),
        (
            "an execution at the end of the span",
            [AGENT, waiting(2, PAY), made(4, at_ms=3, result=NOT_RECORDED)],
            told(spans={2: "waits"}),
        ),
        (
            "an execution before the parent",
            [made(1, parent=0, result=NOT_RECORDED), other(3), waiting(5, PAY, parent=3)],
            told(asked=[("pay", "waits")]),
        ),
        (
            "an execution that starts with the parent",
            [made(1, parent=0, at_ms=3, result=NOT_RECORDED), other(3), waiting(5, PAY, parent=3)],
            told(spans={0: "waits"}),
        ),
        (
            "an execution before a root",
            [made(1, parent=0, result=NOT_RECORDED), waiting(5, PAY, parent=0)],
            told(asked=[("pay", "waits")]),
        ),
        (
            "a span without an end, before",
            [AGENT, made(4, result=NOT_RECORDED), waiting(3, PAY)._replace(end_ns=0)],
            told(),
        ),
        (
            "a span without an end, behind",
            [AGENT, made(3, result=NOT_RECORDED), waiting(4, PAY)._replace(end_ns=0)],
            told(spans={1: "waits"}),
        ),
        (
            "refused, and waiting before",
            [AGENT, made(3, "pay", "c1", state="waits"), refusing(5, PAY1)],
            told(spans={1: "refused"}),
        ),
        (
            "refused, and executed",
            [AGENT, made(3, "pay", "c1", result=NOT_RECORDED), refusing(5, PAY1)],
            told(asked=[("pay", "refused")]),
        ),
        ("refused, and nowhere else", [AGENT, refusing(5, PAY1)], told(asked=[("pay", "refused")])),
        (
            "refused, and waiting after it",
            [AGENT, refusing(2, PAY1), made(4, "pay", "c1", state="waits")],
            told(spans={2: "waits"}, asked=[("pay", "refused")]),
        ),
        (
            "refused, and waiting before the parent",
            [made(1, "pay", "c1", state="waits", parent=0), other(3), refusing(5, PAY1, parent=3)],
            told(spans={0: "refused"}),
        ),
        (
            "refused without an id",
            [AGENT, made(3, "pay", "c1", state="waits"), refusing(5, PAY)],
            told(spans={1: "waits"}, asked=[("pay", "refused")]),
        ),
        (
            "refused by its own span",
            [AGENT, made(3, "pay", "c1", state="refused"), waiting(5, PAY1)],
            told(spans={1: "refused"}),
        ),
    ],
)
def test_spans_that_name_the_calls(case: str, spans: list[Span], expected: Told) -> None:
    """The last execution without a result beside the span waits, or was refused, else the request."""
    assert expected == of(*spans), case


@pytest.mark.parametrize(
    ("case", "spans", "expected"),
    [
        (
            "an uncertain call within",
            [AGENT, lasting(unnamed(3), 20), doubtful(4, parent=3)],
            told(spans={2: "waits"}, may_wait=[2], doubted=[2]),
        ),
        ("a made call within", [AGENT, lasting(unnamed(3), 20), made(4, parent=3)], told(asked=[("", "waits")])),
        (
            "a call within that is executed again",
            [AGENT, lasting(unnamed(3), 20), made(4, "pay", "c1", parent=3), made(30, "pay", "c1")],
            told(superseded=[2]),
        ),
        ("an uncertain call of a run that ends asking", [ENDS_ASKING, doubtful(4)], told(may_wait=[1, 0], doubted=[1])),
        (
            "a call that waits beside it, in its time",
            [AGENT, asked(2, PAY1), lasting(unnamed(3), 20), made(4, "pay", "c1", state="waits")],
            told(spans={3: "waits"}),
        ),
        (
            "a call that waits beside it, later",
            [AGENT, asked(2, PAY1), unnamed(3), made(8, "pay", "c1", state="waits")],
            told(spans={3: "waits"}, asked=[("", "waits")]),
        ),
        (
            "the request that is left",
            [AGENT, asked(2, PAY1, BOOK2), made(4, "book", "c2"), unnamed(6)],
            told(asked=[("pay", "waits")]),
        ),
        (
            "no request is left",
            [AGENT, asked(2, PAY1, BOOK2), made(4, "book", "c2"), asked(5, answers={"c1": "ok"}), unnamed(6)],
            told(asked=[("", "waits")]),
        ),
        (
            "a call that waits elsewhere",
            [AGENT, made(2, state="waits"), lasting(unnamed(4), 20), other(6, parent=4)],
            told(spans={1: "waits"}, asked=[("", "waits")]),
        ),
        ("no request", [AGENT, unnamed(6)], told(asked=[("", "waits")])),
        (
            "two steps of one request",
            [AGENT, asked(2, PAY1), unnamed(4, name="step"), unnamed(6, name="step")],
            told(asked=[("pay", "waits")]),
        ),
        ("two nested steps", [AGENT, lasting(unnamed(4), 20), unnamed(6, parent=4)], told(asked=[("", "waits")])),
        (
            "a span around names it",
            [lasting(waiting(1, PAY1, parent=0), 50), unnamed(3)],
            told(asked=[("pay", "waits")]),
        ),
        ("a model within", [AGENT, lasting(unnamed(3), 20), asked(4, PAY1, parent=3)], told(asked=[("pay", "waits")])),
        (
            "a call around the model with an empty result",
            [AGENT, lasting(unnamed(3), 40), made(4, "ask", "c9", parent=3, result=""), asked(5, PAY1, parent=4)],
            told(spans={2: "waits"}, asked=[("pay", "waits")]),
        ),
        (
            "a call around the model with a result",
            [AGENT, lasting(unnamed(3), 40), made(4, "ask", "c9", parent=3, result="done"), asked(5, PAY1, parent=4)],
            told(asked=[("pay", "waits")]),
        ),
        (
            "a call around the model that failed",
            [
                AGENT,
                lasting(unnamed(3), 40),
                made(4, "ask", "c9", parent=3, result="", error="x"),
                asked(5, PAY1, parent=4),
            ],
            told(asked=[("pay", "waits")]),
        ),
        (
            "a call around the model without a result",
            [
                AGENT,
                lasting(unnamed(3), 40),
                made(4, "ask", "c9", parent=3, result=NOT_RECORDED),
                asked(5, PAY1, parent=4),
            ],
            told(spans={2: "waits"}, asked=[("pay", "waits")]),
        ),
    ],
)
def test_spans_that_name_none(case: str, spans: list[Span], expected: Told) -> None:
    """The calls of the last answer that have no result wait; if nothing shows for which, a call without a name."""
    assert expected == of(*spans), case


@pytest.mark.parametrize(
    ("case", "spans", "expected"),
    [
        (
            "a run that ends asking, with a request left",
            [ENDS_ASKING, asked(2, PAY1, BOOK2), made(4, "book", "c2")],
            told(asked=[("pay", "waits")]),
        ),
        ("a run that ends asking, without", [ENDS_ASKING, asked(2, PAY1), made(4, "pay", "c1")], told()),
        ("a run that ends asking for unknown tools", [ENDS_ASKING, asked(2, asks=True)], told(asked=[("", "waits")])),
        ("some of the unknown tools ran", [ENDS_ASKING, asked(2, asks=True), made(4)], told(may_wait=[0])),
        ("a tool ran before the model", [ENDS_ASKING, made(2), asked(4, asks=True)], told(asked=[("", "waits")])),
        ("a tool ran with the model", [ENDS_ASKING, asked(4, asks=True), made(5, at_ms=4)], told(may_wait=[0])),
        ("a run that ends asking, without a model", [ENDS_ASKING], told(may_wait=[0])),
        (
            "the last model asks for nothing",
            [ENDS_ASKING, asked(2, PAY1), made(3, "pay", "c1"), asked(5)],
            told(may_wait=[0]),
        ),
        (
            "a request is left from an earlier model",
            [ENDS_ASKING, asked(2, PAY1), asked(5)],
            told(asked=[("pay", "waits")]),
        ),
        ("a step of a model that ends asking", [AGENT, asked(2, PAY1, ends_asking=True)], told(asked=[("", "waits")])),
        (
            "a step of a model that ends asking for unknown tools",
            [AGENT, asked(2, asks=True, ends_asking=True)],
            told(asked=[("", "waits")]),
        ),
        (
            "the last of such steps",
            [AGENT, asked(2, asks=True, ends_asking=True, name="m"), asked(4, ends_asking=True, name="m")],
            told(asked=[("", "waits")]),
        ),
        (
            "a sub-agent that ends asking",
            [ENDS_ASKING, lasting(given_agent(3, "sub", ends_asking=True, parent=1), 50), asked(4, PAY1, parent=3)],
            told(asked=[("pay", "waits")], may_wait=[0]),
        ),
    ],
)
def test_runs_that_end_asking(case: str, spans: list[Span], expected: Told) -> None:
    """The same; only a call that may have been executed is no reason."""
    assert expected == of(*spans), case


@pytest.mark.parametrize(
    ("case", "spans", "expected"),
    [
        (
            "executed by its id",
            [AGENT, made(3, "pay", "c1", state="waits"), made(5, "pay", "c1")],
            told(superseded=[1]),
        ),
        (
            "executed before",
            [AGENT, made(3, "pay", "c1"), made(5, "pay", "c1", state="waits")],
            told(spans={2: "waits"}),
        ),
        (
            "executed by content, without an id",
            [AGENT, made(3, "pay", state="waits", arguments={"a": 1}), made(5, "pay", "c1", arguments={"a": 1})],
            told(superseded=[1]),
        ),
        (
            "executed without an id, by content",
            [AGENT, made(3, "pay", "c1", state="waits", arguments={"a": 1}), made(5, "pay", arguments={"a": 1})],
            told(superseded=[1]),
        ),
        (
            "executed by another id",
            [AGENT, made(3, "pay", "c1", state="waits", arguments={"a": 1}), made(5, "pay", "c2", arguments={"a": 1})],
            told(spans={1: "waits"}),
        ),
        (
            "executed with other arguments",
            [AGENT, made(3, "pay", state="waits", arguments={"a": 1}), made(5, "pay", arguments={"a": 2})],
            told(spans={1: "waits"}),
        ),
        ("nothing known of either", [AGENT, made(3, None, state="waits"), made(5, None)], told(spans={1: "waits"})),
        ("executed by name", [AGENT, made(3, "pay", state="waits"), made(5, "pay")], told(superseded=[1])),
        (
            "uncertain, and executed",
            [AGENT, doubtful(3, "pay", "c1", may_have_failed=True), made(5, "pay", "c1")],
            told(doubted=[1], superseded=[1]),
        ),
        ("asked for, and executed", [AGENT, waiting(3, PAY1), made(5, "pay", "c1")], told()),
        (
            "asked for, and executed before",
            [AGENT, made(2, "pay", "c1"), waiting(4, PAY1)],
            told(asked=[("pay", "waits")]),
        ),
        (
            "unknown tools, and executed",
            [ENDS_ASKING, asked(2, PAY1, asks=True), made(4, "pay", arguments={"b": 1})],
            told(),
        ),
    ],
)
def test_calls_that_are_executed_afterwards(case: str, spans: list[Span], expected: Told) -> None:
    """They are one call: by id, else by tool and arguments if one of both has no id."""
    assert expected == of(*spans), case


@pytest.mark.parametrize(
    ("case", "spans", "expected"),
    [
        (
            "executed by the provider",
            [AGENT, waiting(3, PAY1), asked(5, answers={"c1": "ok"}, by_provider={"c1": "ok"})],
            told(),
        ),
        (
            "refused by an answer",
            [AGENT, waiting(3, PAY1), asked(5, answers={"c1": DENIED})],
            told(asked=[("pay", "refused")]),
        ),
        ("answered", [AGENT, waiting(3, PAY1), asked(5, answers={"c1": "ok"})], told(asked=[("pay", "waits")])),
        (
            "refused, and answered",
            [AGENT, refusing(3, PAY1), asked(5, answers={"c1": "ok"})],
            told(asked=[("pay", "refused")]),
        ),
    ],
)
def test_answers_to_calls_that_wait(case: str, spans: list[Span], expected: Told) -> None:
    """The provider's own execution ends the wait, as does a refusal."""
    assert expected == of(*spans), case


@pytest.mark.parametrize(
    ("case", "spans", "expected"),
    [
        ("an agent that may wait", [lasting(given_agent(1, may_wait=True), 90)], told(may_wait=[0])),
        (
            "a step of an agent without an end",
            [AGENT._replace(end_ns=0), given(Reading(may_wait=True, is_agent=False), 3, parent=1)],
            told(may_wait=[1]),
        ),
        ("a step of an agent that ended", [AGENT, given(Reading(may_wait=True, is_agent=False), 3, parent=1)], told()),
        ("a step of no agent", [AGENT, given(Reading(may_wait=True, is_agent=False), 3)], told(may_wait=[1])),
    ],
)
def test_spans_with_which_a_run_may_wait(case: str, spans: list[Span], expected: Told) -> None:
    """Steps of an agent only while the agent's span has not ended."""
    assert expected == of(*spans), case


@pytest.mark.parametrize(
    ("case", "spans", "waits"),
    [
        ("a request is left", [UNENDED, asked(2, PAY1)], ["pay"]),
        ("the agent has ended", [AGENT, asked(2, PAY1)], []),
        ("no agent", [other(1), asked(2, PAY1)], ["pay"]),
        ("the request is executed", [UNENDED, asked(2, PAY1), made(4, "pay", "c1")], []),
        ("one of two is executed", [UNENDED, asked(2, PAY1, BOOK2), made(4, "pay", "c1")], ["book"]),
        ("a model was asked later", [UNENDED, asked(2, PAY1), asked(4)], []),
        ("a model within the answer", [UNENDED, lasting(asked(2, PAY1), 9), asked(4)], ["pay"]),
        ("a model at the end of the answer", [UNENDED, lasting(asked(2, PAY1), 2), asked(4)], ["pay"]),
        (
            "a model without an end",
            [UNENDED, asked(2, PAY1)._replace(end_ns=0), asked(2, at_ms=2)._replace(span_id=span(7, "x").span_id)],
            ["pay"],
        ),
        ("nothing was asked for", [UNENDED, asked(2)], []),
        ("two requests are left", [UNENDED, asked(2, PAY1, BOOK2)], ["pay", "book"]),
    ],
)
def test_runs_that_block(case: str, spans: list[Span], waits: list[str]) -> None:
    """The last answer's requests wait if the trace timed out, no span shows their execution, and the agent runs on."""
    assert told(asked=[(name, "waits") for name in waits]) == of(*spans, may_block=True), case
    assert told() == of(*spans), case
