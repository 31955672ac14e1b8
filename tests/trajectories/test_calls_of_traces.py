"""The calls of a trace, in order: executed, only answered, or only asked for."""

from __future__ import annotations

from typing import Any, Final

import pytest

from dialects.spans import start_ns
from given_readings import given, given_agent, given_call, given_model, given_runs
from spanscore.contracts import CallReading, CallRequest, Reading, SentMessage
from spanscore.model import LOG_RECORD, NOT_RECORDED, Span, ToolCall
from traces import lasting


def request(name: str, call_id: str | None = None) -> CallRequest:
    """Return the request for a call."""
    return CallRequest(name=name, call_id=call_id)


def asks(*requests: CallRequest) -> SentMessage:
    """Return a message of a model that asks for calls."""
    return SentMessage(requests=requests)


def answers(**told: Any) -> SentMessage:
    """Return a message with the results of calls, by id."""
    return SentMessage(answers=tuple(CallReading(call_id=call_id, result=each) for call_id, each in told.items()))


def results(*told: str) -> SentMessage:
    """Return a message with the results of calls without ids."""
    return SentMessage(answers=tuple(CallReading(result=each) for each in told))


PAY, BOOK, P1, B2, L3 = (
    request("pay"),
    request("book"),
    request("pay", "c1"),
    request("book", "c2"),
    request("look", "c3"),
)
DENIED: Final = "The tool call was denied."
USER: Final = SentMessage(is_user_text=True)
ANSWERED: Final = (USER, asks(PAY), results("ok"))
AGENT: Final = lasting(given_agent(1), 90)


def model(number: int, *requests: CallRequest, **more: Any) -> Span:
    """Return a request to a model."""
    return given_model(number, *requests, **{"parent": 1, **more})


def call(number: int, name: str | None = "pay", call_id: str | None = None, **more: Any) -> Span:
    """Return a call."""
    return given_call(number, name, call_id, **{"parent": 1, **more})


def waiting(number: int, *requests: CallRequest) -> Span:
    """Return a span after which calls wait."""
    return given(Reading(waits=requests), number, parent=1)


def step(number: int, **more: Any) -> Span:
    """Return another span with a reading."""
    return given(Reading(**more), number, parent=1)


def shown(made: ToolCall) -> str:
    """Return a call in words."""
    told = " ".join(filter(None, (made.name, made.call_id)))
    told += "" if made.result is NOT_RECORDED else f" = {made.result}"
    told += f", failed: {made.error}" if made.error else ""
    told += f", span {int.from_bytes(made.span_id, 'big')}" if made.span_id is not None else ""
    told += ", may be refused" * made.may_be_refused + ", may have failed" * made.may_have_failed
    return told if made.agent == "planner" else f"{told}, of {made.agent}"


@pytest.mark.parametrize(
    ("case", "spans", "expected"),
    [
        ("a hidden refusal", [AGENT, model(2), call(4, refusal="hidden")], ["pay, span 4, may be refused"]),
        (
            "a hidden refusal, with a result",
            [AGENT, model(2), call(4, refusal="hidden", result=1)],
            ["pay = 1, span 4"],
        ),
        ("a refusal would show", [AGENT, model(2), call(4)], ["pay, span 4"]),
        (
            "hidden at the start, behind its model",
            [AGENT, model(2), call(4, refusal="hidden at start")],
            ["pay, span 4"],
        ),
        (
            "hidden at the start, before its model",
            [AGENT, call(2, refusal="hidden at start"), model(4)],
            ["pay, span 2, may be refused"],
        ),
        (
            "hidden at the start, with its model",
            [AGENT, call(2, refusal="hidden at start"), model(3, at_ms=2)],
            ["pay, span 2"],
        ),
        (
            "hidden at the start, without models",
            [AGENT, call(2, refusal="hidden at start"), call(4, refusal="hidden at start")],
            ["pay, span 2, may be refused", "pay, span 4"],
        ),
        (
            "a failure or a wait",
            [AGENT, model(2), call(4, may_have_failed=True, state="uncertain")],
            ["pay, span 4, may be refused, may have failed"],
        ),
        ("a failure that would show", [AGENT, model(2), call(4, may_have_failed=True)], ["pay, span 4"]),
        ("a wait", [AGENT, model(2), call(4, state="uncertain")], []),
        (
            "no wait, as the caller of the agent was asked again",
            [
                AGENT,
                model(2),
                lasting(call(4, "ask"), 20),
                given_agent(5, "sub", parent=4),
                model(6, parent=5),
                call(8, state="uncertain", parent=5),
                model(40),
            ],
            ["ask, span 4", "pay, span 8, may be refused, of sub"],
        ),
        (
            "a failure, as the run went on",
            [AGENT, model(2), call(4, may_have_failed=True, state="uncertain"), model(6)],
            ["pay, span 4, may have failed"],
        ),
    ],
)
def test_calls_that_may_not_have_been_made(case: str, spans: list[Span], expected: list[str]) -> None:
    """Only content that is not recorded would show a refusal, or a failure."""
    (run,) = given_runs(*spans)
    assert expected == list(map(shown, run.calls)), case


@pytest.mark.parametrize(
    ("case", "spans", "expected"),
    [
        (
            "only answered, before the execution",
            [AGENT, model(2, P1, B2), call(4, "book", "c2", result=1), model(6, answers={"c1": "unknown", "c2": 1})],
            ["pay c1 = unknown", "book c2 = 1, span 4"],
        ),
        (
            "only answered, behind the execution",
            [AGENT, model(2, B2, P1), call(4, "book", "c2", result=1), model(6, answers={"c1": "unknown", "c2": 1})],
            ["book c2 = 1, span 4", "pay c1 = unknown"],
        ),
        (
            "only answered, between executions",
            [
                AGENT,
                model(2, B2, P1, L3),
                call(4, "book", "c2", result=1),
                call(5, "look", "c3", result=1),
                model(6, answers={"c1": "unknown", "c2": 1, "c3": 1}),
            ],
            ["book c2 = 1, span 4", "pay c1 = unknown", "look c3 = 1, span 5"],
        ),
        (
            "only answered, in an answer that is streamed",
            [
                AGENT,
                lasting(model(2, P1, B2), 9),
                call(4, "book", "c2", result=1),
                model(16, answers={"c1": "unknown", "c2": 1}),
            ],
            ["pay c1 = unknown", "book c2 = 1, span 4"],
        ),
        (
            "only answered, of a later model",
            [
                AGENT,
                model(2, B2),
                call(4, "book", "c2", result=1),
                model(6, P1, answers={"c2": 1}),
                model(8, answers={"c1": "x"}),
            ],
            ["book c2 = 1, span 4", "pay c1 = x"],
        ),
        (
            "only answered, with a failure",
            [
                AGENT,
                model(2, P1, B2),
                call(4, "book", "c2", result=1),
                model(6, answers={"c1": "boom", "c2": 1}, failures={"c1": "boom"}),
            ],
            ["pay c1 = boom, failed: boom", "book c2 = 1, span 4"],
        ),
        (
            "only answered, with a refusal",
            [AGENT, model(2, P1, B2), call(4, "book", "c2", result=1), model(6, answers={"c1": DENIED, "c2": 1})],
            ["book c2 = 1, span 4"],
        ),
        (
            "a hand-over beside it",
            [
                AGENT,
                model(2, P1, B2),
                call(4, "book", "c2", result=1),
                step(5, not_a_call=True),
                model(6, answers={"c1": "x", "c2": 1}),
            ],
            ["book c2 = 1, span 4"],
        ),
        (
            "an execution without a request, and the provider's",
            [
                AGENT,
                model(2, P1, B2),
                call(4, "x", "c9", result=1),
                model(6, answers={"c1": "x", "c2": 1}, by_provider={"c1": "x"}),
            ],
            ["pay c1 = x", "x c9 = 1, span 4"],
        ),
        (
            "an execution without a request",
            [AGENT, model(2, P1, B2), call(4, "x", "c9", result=1), model(6, answers={"c1": "x", "c2": 1})],
            ["x c9 = 1, span 4"],
        ),
        (
            "an id of an executed call",
            [
                AGENT,
                model(2, P1),
                model(3, request("book", "c1")),
                call(4, "pay", "c1", result=1),
                model(6, answers={"c1": "x"}),
            ],
            ["pay c1 = 1, span 4"],
        ),
        (
            "an id of an earlier call",
            [
                AGENT,
                model(2, P1),
                call(3, "pay", "c1", result=1),
                model(5, P1, answers={"c1": 1}),
                model(7, answers={"c1": 2}),
            ],
            ["pay c1 = 1, span 3"],
        ),
    ],
)
def test_calls_that_were_only_answered(case: str, spans: list[Span], expected: list[str]) -> None:
    """Each has its place in the model's answer; if any execution has no request, it may be that one."""
    (run,) = given_runs(*spans)
    assert expected == list(map(shown, run.calls)), case


@pytest.mark.parametrize(
    ("case", "spans", "expected"),
    [
        (
            "requests without executions",
            [AGENT, model(2, P1, CallRequest(name="book", agent="q"))],
            ["pay c1", "book, of q"],
        ),
        ("an answered request", [AGENT, model(2, P1, B2), model(4, answers={"c1": "x"})], ["pay c1 = x", "book c2"]),
        (
            "a request whose answer has failed",
            [AGENT, model(2, P1), model(4, answers={"c1": "boom"}, failures={"c1": "boom"})],
            ["pay c1 = boom, failed: boom"],
        ),
        (
            "requests of a step",
            [model(2, P1, B2, parent=0), model(4, answers={"c1": "x"}, parent=0)],
            ["pay c1 = x, of None"],
        ),
        ("requests beside a hand-over", [AGENT, model(2, P1), step(3, not_a_call=True)], []),
        (
            "requests beside a part of a call",
            [AGENT, model(2, P1), given_call(3, "x", part_of_call=True, parent=1)],
            [],
        ),
        ("a refused request", [AGENT, model(2, P1), model(4, answers={"c1": DENIED})], []),
        ("a request that waits", [AGENT, model(2, P1, B2), waiting(4, P1)], ["book c2"]),
        ("a request of a run", [lasting(given_model(1, P1, is_agent=True, agent="z"), 20)], ["pay c1, of z"]),
        ("an id in two answers", [AGENT, model(2, P1), model(4, P1, answers={"c1": "x"})], ["pay c1 = x", "pay c1"]),
        (
            "an id in two answers, answered once",
            [AGENT, model(2, P1), model(4, P1, answers={"c1": "x"}), model(6, answers={"c1": "x"})],
            ["pay c1 = x", "pay c1"],
        ),
        ("a span around the request", [AGENT, lasting(model(2, P1), 9), model(3, P1, parent=2)], ["pay c1"]),
        ("two spans of one answer", [AGENT, lasting(model(2, P1), 9), model(3, P1)], ["pay c1"]),
        ("two spans that end together", [AGENT, lasting(model(2, P1), 5), lasting(model(3, P1), 4)], ["pay c1"]),
        (
            "an agent within the span of a model",
            [AGENT, lasting(model(2, P1), 9), lasting(given_agent(3, "b", parent=2), 5), model(4, B2, parent=3)],
            ["pay c1", "book c2, of b"],
        ),
        ("a model within the span of a model", [AGENT, lasting(model(2, P1), 9), model(4, P1, parent=2)], ["pay c1"]),
        ("two requests without ids", [AGENT, model(2, PAY), model(4, PAY)], ["pay", "pay"]),
        ("two spans without ids", [AGENT, lasting(model(2, PAY), 9), model(4, PAY)], ["pay", "pay"]),
        ("without an id, answered next", [AGENT, model(2, PAY), model(6, history=ANSWERED)], ["pay = ok"]),
        (
            "without an id, answered by one",
            [AGENT, model(2, PAY), model(6, history=(USER, asks(request("pay", "z")), answers(z="ok")))],
            ["pay z = ok"],
        ),
        ("a model at the end of the answer", [AGENT, model(2, PAY), model(3, history=ANSWERED)], ["pay = ok"]),
        ("a model within the answer", [AGENT, lasting(model(2, PAY), 9), model(6, history=ANSWERED)], ["pay"]),
        (
            "a model in the millisecond of the end",
            [AGENT, lasting(model(2, PAY), 4)._replace(end_ns=start_ns(6) + 500), model(6, history=ANSWERED)],
            ["pay = ok"],
        ),
        (
            "a model before the end by an exact clock",
            [
                AGENT,
                lasting(model(2, PAY), 4)._replace(end_ns=start_ns(6) + 500),
                model(6, history=ANSWERED)._replace(start_ns=start_ns(6) + 100),
            ],
            ["pay"],
        ),
        (
            "a model of another agent",
            [AGENT, model(2, PAY), lasting(given_agent(4, "b", parent=1), 9), model(6, parent=4, history=ANSWERED)],
            ["pay"],
        ),
        (
            "two calls without ids",
            [AGENT, model(2, PAY, BOOK), model(6, history=(USER, asks(PAY, BOOK), results("a", "b")))],
            ["pay = a", "book = b"],
        ),
        (
            "two calls in another order",
            [AGENT, model(2, BOOK, PAY), model(6, history=(USER, asks(PAY, BOOK), results("a", "b")))],
            ["book", "pay"],
        ),
        (
            "an id that counts from 0 in every answer",
            [
                AGENT,
                model(2, P1),
                model(4, P1, answers={"c1": "x"}, history=(USER, asks(P1), answers(c1="x"))),
                model(6, answers={"c1": "y"}, history=(USER, asks(P1), answers(c1="x"), asks(P1), answers(c1="y"))),
            ],
            ["pay c1 = x", "pay c1 = y"],
        ),
    ],
)
def test_calls_that_were_only_asked_for(case: str, spans: list[Span], expected: list[str]) -> None:
    """Each request once, with the answer to it; in a step of a run only those with an answer."""
    (run,) = given_runs(*spans)
    assert expected == list(map(shown, run.calls)), case


@pytest.mark.parametrize(
    ("case", "spans", "expected"),
    [
        (
            "calls that start together",
            [AGENT, model(2, P1, B2), call(5, "book", "c2", result=1), call(6, "pay", "c1", at_ms=5, result=1)],
            ["pay c1 = 1, span 6", "book c2 = 1, span 5"],
        ),
        (
            "a nested call that starts with its parent",
            [
                AGENT,
                call(5, "in", parent=7, result=1),
                call(6, "next", at_ms=5, result=1),
                call(7, "out", at_ms=5, result=1),
            ],
            ["next = 1, span 6", "out = 1, span 7", "in = 1, span 5"],
        ),
        (
            "a nested call that starts later",
            [
                AGENT,
                call(5, "in", parent=7, result=1),
                call(6, "next", at_ms=5, result=1),
                call(7, "out", at_ms=3, result=1),
            ],
            ["out = 1, span 7", "in = 1, span 5", "next = 1, span 6"],
        ),
        ("no name", [AGENT, call(5, None)], ["unknown, span 5"]),
        ("an empty id", [AGENT, call(5, "pay", "")], ["pay, span 5"]),
        ("a log record", [AGENT, call(5, "pay", kind=LOG_RECORD)], ["pay"]),
    ],
)
def test_executed_calls(case: str, spans: list[Span], expected: list[str]) -> None:
    """In the order of their start; a parent before its children, siblings as the model asked for them."""
    (run,) = given_runs(*spans)
    assert expected == list(map(shown, run.calls)), case
