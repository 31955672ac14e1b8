"""Which spans of models are one request, and which request asked for a call: each rule in one case."""

from __future__ import annotations

from typing import Any, Final

import pytest

from given_readings import given, given_agent, given_call, given_model, given_runs
from spanscore.contracts import CallRequest, Reading
from spanscore.model import LOG_RECORD, Span, Unit
from traces import lasting

P1, P2 = (CallRequest(name="pay", call_id=call_id) for call_id in ("c1", "c2"))
AGENT: Final = lasting(given_agent(1, "main"), 90)


def asked(number: int, *requests: CallRequest, **more: Any) -> Span:
    """Return a request to a model of `number` tokens."""
    return given_model(number, *requests, **{"parent": 1, "input_tokens": number, **more})


def made(number: int, call_id: str | None = None, **more: Any) -> Span:
    """Return a call."""
    return given_call(number, "pay", call_id, **{"parent": 1, **more})


@pytest.mark.parametrize(
    ("case", "spans", "tokens", "turns"),
    [
        ("log records without tokens", [given_model(1, kind=LOG_RECORD), made(3)], [], [None]),
        ("a log record with tokens read", [given_model(1, kind=LOG_RECORD, input_tokens=1), made(3)], [1], [0]),
        ("a log record with tokens written", [given_model(1, kind=LOG_RECORD, output_tokens=1), made(3)], [None], [0]),
        (
            "a log record beside a span",
            [AGENT, asked(2), given_model(3, kind=LOG_RECORD, input_tokens=3, parent=1)],
            [2],
            [],
        ),
        (
            "a part of a request within",
            [AGENT, lasting(asked(2, model="m"), 9), asked(3, parent=2, is_request=False)],
            [2],
            [],
        ),
        (
            "a span around several",
            [AGENT, lasting(asked(2, is_request=False), 9), asked(3, parent=2), asked(5, parent=2)],
            [3, 5],
            [],
        ),
        ("a span around one", [AGENT, lasting(asked(2), 9), asked(3, parent=2)], [3], []),
        (
            "two spans around one",
            [AGENT, lasting(asked(2), 9), lasting(asked(3, parent=2), 7), asked(4, parent=3)],
            [4],
            [],
        ),
        (
            "spans around two, of which one is around one",
            [
                AGENT,
                lasting(asked(2), 20),
                lasting(asked(3, parent=2), 9),
                asked(4, parent=3),
                lasting(asked(14, parent=2), 5),
                asked(15, parent=14),
            ],
            [4, 15],
            [],
        ),
        (
            "a request below a call of another",
            [AGENT, lasting(asked(2), 9), lasting(made(3, parent=2), 5), asked(4, parent=3)],
            [2, 4],
            [0],
        ),
        (
            "no request, around one",
            [AGENT, lasting(asked(2, is_request=False, model="x"), 9), asked(3, parent=2)],
            [3],
            [],
        ),
        (
            "a request that lists the call, while another runs",
            [AGENT, lasting(asked(2), 50), asked(4, P1), made(8, "c1")],
            [2, 4],
            [1],
        ),
        (
            "a request around no request around one",
            [
                AGENT,
                lasting(asked(2, model="m"), 20),
                lasting(asked(3, parent=2, is_request=False), 9),
                asked(4, parent=3),
            ],
            [4],
            [],
        ),
        (
            "no request around no request around two",
            [
                AGENT,
                lasting(asked(2, is_request=False), 20),
                lasting(asked(3, parent=2, is_request=False), 9),
                asked(4, parent=3),
                asked(6, parent=3),
            ],
            [4, 6],
            [],
        ),
        ("no request", [AGENT, asked(2, is_request=False)], [], []),
        ("a model of which nothing is known", [AGENT, given(Reading(is_model=True), 2, parent=1)], [], []),
        (
            "parents that form a cycle",
            [
                given_model(1, parent=2, input_tokens=1),
                given_model(2, parent=1, input_tokens=2),
                given_model(3, input_tokens=3),
            ],
            [3],
            [],
        ),
        ("two scopes, one within the other", [AGENT, lasting(asked(2, scope="a"), 9), asked(3, scope="b")], [3], []),
        (
            "two scopes that end together",
            [AGENT, lasting(asked(2, scope="a"), 4), lasting(asked(3, scope="b"), 3)],
            [3],
            [],
        ),
        ("two scopes at one time", [AGENT, asked(2, scope="a"), asked(9, scope="b", at_ms=2)], [9], []),
        (
            "two scopes that overlap",
            [AGENT, lasting(asked(2, scope="a"), 9), lasting(asked(3, scope="b"), 20)],
            [2, 3],
            [],
        ),
        ("two scopes, one behind the other", [AGENT, lasting(asked(2, scope="a"), 2), asked(4, scope="b")], [2, 4], []),
        (
            "two scopes that touch",
            [AGENT, lasting(asked(2, scope="a"), 2), lasting(asked(4, scope="b"), 0)],
            [2, 4],
            [],
        ),
        (
            "two scopes, one below a call",
            [AGENT, lasting(asked(2, scope="a"), 9), lasting(made(3), 7), asked(4, scope="b", parent=3)],
            [2, 4],
            [None],
        ),
        (
            "two scopes, one around two",
            [AGENT, lasting(asked(2, scope="a"), 9), asked(3, scope="b"), asked(5, scope="b")],
            [3, 5],
            [],
        ),
        (
            "two scopes that start together",
            [AGENT, lasting(asked(2, scope="b"), 9), lasting(asked(9, scope="a", at_ms=2), 5)],
            [9],
            [],
        ),
        (
            "requests that list the calls",
            [AGENT, asked(2, P1), asked(4, P2), made(6, "c2"), made(7, "c1")],
            [2, 4],
            [1, 0],
        ),
        ("a call below a request", [AGENT, lasting(asked(2), 9), made(4, parent=2), asked(15)], [2, 15], [0]),
        (
            "a call below a span around several",
            [AGENT, lasting(asked(2, is_request=False), 20), asked(3, parent=2), asked(5, parent=2), made(7, parent=2)],
            [3, 5],
            [None],
        ),
        ("the last request that ended", [AGENT, asked(2), asked(4), made(6)], [2, 4], [1]),
        ("a request is running", [AGENT, asked(2), lasting(asked(4), 9), made(6)], [2, 4], [None]),
        ("a request that ends with the start", [AGENT, asked(2), lasting(asked(4), 2), made(6)], [2, 4], [1]),
        ("a request without an end", [AGENT, asked(2)._replace(end_ns=0), made(6)], [2], [None]),
        ("an earlier request that ended last", [AGENT, lasting(asked(2), 5), asked(4), made(9)], [2, 4], [0]),
        ("two requests that end together", [AGENT, lasting(asked(2), 3), asked(4), made(9)], [2, 4], [1]),
        ("a request that lists other calls", [AGENT, asked(2, P1), made(6)], [2], [0]),
        (
            "requests of a sub-agent",
            [
                AGENT,
                asked(2),
                lasting(given_agent(3, "sub", parent=1), 20),
                made(5, parent=3),
                asked(7, parent=3),
                made(9, parent=3),
            ],
            [2, 7],
            [None, 1],
        ),
        ("a call of the provider", [AGENT, asked(2, P1, answers={"c1": "x"}, by_provider={"c1": "x"})], [2], [None]),
        ("a call without a span", [AGENT, asked(2, P1), asked(4, answers={"c1": "x"})], [2, 4], [0]),
        (
            "a call without a span beside one",
            [AGENT, asked(2, P1, P2), made(3, "c1"), asked(5, answers={"c1": "x", "c2": "y"})],
            [2, 5],
            [0, 0],
        ),
        (
            "an answer around a request",
            [AGENT, lasting(given_model(2, P1, parent=1, is_request=False), 9), asked(4), made(15, "c1")],
            [4],
            [0],
        ),
        (
            "an answer behind a request",
            [AGENT, asked(2), lasting(given_model(4, P1, parent=1, is_request=False), 9), made(15, "c1")],
            [2],
            [None],
        ),
        (
            "an answer that starts with a request",
            [AGENT, lasting(given_model(4, P1, parent=1, is_request=False), 9), asked(9, at_ms=4), made(15, "c1")],
            [9],
            [0],
        ),
        (
            "a request below a call",
            [AGENT, asked(2), lasting(made(4), 9), asked(5, parent=4), given_call(7, "book", parent=4)],
            [2, 5],
            [0, 1],
        ),
    ],
)
def test_requests_and_the_calls_they_asked_for(
    case: str, spans: list[Span], tokens: list[int | None], turns: list[int | None]
) -> None:
    """The tokens of each request, and the number of the request of each call."""
    (run,) = given_runs(*spans, model_calls=True)
    assert tokens == [each.input_tokens for each in run.model_calls], case
    assert turns == [each.turn for each in run.calls], case


def test_the_requests_of_each_run() -> None:
    """Turns count from the run's first request; a call that another run's request asked for has none."""
    sub = lasting(given_agent(5, "sub", parent=1), 20), asked(6, parent=5), made(8, "c1", parent=5), made(9, parent=5)
    runs = given_runs(AGENT, asked(2), asked(3, P1), *sub, unit=Unit.AGENT, model_calls=True)
    assert [("main", [2, 3], []), ("sub", [6], [None, 0])] == [
        (run.agent, [each.input_tokens for each in run.model_calls], [each.turn for each in run.calls]) for run in runs
    ]


@pytest.mark.parametrize(
    ("spanned", "times"),
    [
        (asked(2), (True, True)),
        (asked(2)._replace(end_ns=0), (True, False)),
        (asked(2)._replace(start_ns=0), (False, True)),
        (asked(2, kind=LOG_RECORD), (False, False)),
    ],
)
def test_times_that_are_not_recorded(spanned: Span, times: tuple[bool, bool]) -> None:
    """A log record has none of a request."""
    (run,) = given_runs(spanned, model_calls=True)
    (call,) = run.model_calls
    assert times == (call.start_ns is not None, call.end_ns is not None)


def test_texts_of_a_run() -> None:
    """Each once, in their order; a model of which nothing is known has none."""
    spans = (
        AGENT,
        asked(2, user_text=("a", "b"), system_text=("s",)),
        given(Reading(is_model=True), 3, parent=1),
        asked(4, user_text=("b", "c"), system_text=("t", "s"), is_request=False),
    )
    (run,) = given_runs(*spans, model_calls=True)
    assert (("a", "b", "c"), ("s", "t")) == (run.user_text, run.system_text)
