"""Calls in the first messages of a trace: which were made before it, for each sign."""

from __future__ import annotations

from typing import Any, Final

import pytest

from dialects.spans import start_ns
from given_readings import given_agent, given_call, given_model, given_runs, given_tree
from spanscore.contracts import CallReading, CallRequest, SentMessage
from spanscore.model import LOG_RECORD, Span, StatusCode
from spanscore.trajectories.resumption import Resumption
from traces import lasting


def request(name: str, call_id: str | None = None) -> CallRequest:
    """Return the request for a call."""
    return CallRequest(name=name, call_id=call_id)


def asks(*requests: CallRequest) -> SentMessage:
    """Return a message of a model that asks for calls."""
    return SentMessage(requests=requests)


def answers(**results: Any) -> SentMessage:
    """Return a message with the results of calls, by id."""
    return SentMessage(answers=tuple(CallReading(call_id=call_id, result=each) for call_id, each in results.items()))


P1, B2, L3, PAY = request("pay", "c1"), request("book", "c2"), request("look", "c3"), request("pay")
DENIED: Final = "The tool call was denied."
USER: Final = SentMessage(is_user_text=True)
LOOKED: Final = (asks(L3), answers(c3=1))
PAID: Final = (asks(P1), answers(c1=1))
REFUSED: Final = SentMessage(answers=(CallReading(call_id="c1", state="refused"),))
AGENT: Final = lasting(given_agent(1), 90)


def turn(*messages: SentMessage) -> tuple[SentMessage, ...]:
    """Return the messages of a turn."""
    return USER, *messages


def model(number: int, *requests: CallRequest, **more: Any) -> Span:
    """Return a request to a model."""
    return given_model(number, *requests, **{"parent": 1, **more})


def call(number: int, name: str | None = "pay", call_id: str | None = None, **more: Any) -> Span:
    """Return a call."""
    return given_call(number, name, call_id, **{"parent": 1, **more})


def ask() -> Span:
    """Return the call of a sub-agent."""
    return lasting(call(4, "ask", "c9", result=1), 60)


def told(**known: Any) -> dict[str, Any]:
    """Return what is told of a run; restored calls have an asterisk."""
    usual = {"calls": "", "unsure": "", "refused": "", "withheld": "", "reordered": (), "resumed": False}
    return usual | known


@pytest.mark.parametrize(
    ("case", "spans", "expected", "is_later_step"),
    [
        (
            "a call that starts with the model, by id",
            [AGENT, call(4, "pay", "c1", result=1), model(5, at_ms=4, history=turn(*LOOKED, *PAID))],
            told(calls="*look pay", resumed=True),
            False,
        ),
        (
            "by another id",
            [AGENT, call(4, "pay", "c7", result=1), model(5, at_ms=4, history=turn(*LOOKED, *PAID))],
            told(calls="pay", unsure="look pay"),
            False,
        ),
        (
            "by its name",
            [AGENT, call(4, "pay", result=1), model(5, at_ms=4, history=turn(*LOOKED, *PAID))],
            told(calls="*look pay", resumed=True),
            False,
        ),
        (
            "without a name",
            [AGENT, call(4, None, result=1), model(5, at_ms=4, history=turn(*LOOKED, *PAID))],
            told(calls="*look pay", resumed=True),
            False,
        ),
        (
            "by another name",
            [AGENT, call(4, "x", result=1), model(5, at_ms=4, history=turn(*LOOKED, *PAID))],
            told(calls="x", unsure="look pay"),
            False,
        ),
        (
            "a call without an answer in the messages",
            [AGENT, call(4, "pay", "c1", result=1), model(5, at_ms=4, history=turn(*LOOKED, asks(P1)))],
            told(calls="pay", unsure="look"),
            False,
        ),
        (
            "one of two calls",
            [
                AGENT,
                call(4, "pay", "c1", result=1),
                model(5, at_ms=4, history=turn(*LOOKED, asks(B2, P1), answers(c2=1, c1=1))),
            ],
            told(calls="*look pay", unsure="book", resumed=True),
            False,
        ),
        (
            "a call before the model",
            [AGENT, call(2, "pay", "c1", result=1), model(4, history=turn(*LOOKED, *PAID))],
            told(calls="*look pay", resumed=True),
            False,
        ),
        (
            "another call before the model",
            [AGENT, call(2, "x", result=1), model(4, history=turn(*LOOKED, *PAID))],
            told(calls="x", unsure="look pay"),
            False,
        ),
        (
            "a nanosecond before the model",
            [
                AGENT,
                call(4, "pay", "c1", result=1)._replace(start_ns=start_ns(4) - 1),
                model(5, at_ms=4, history=turn(*LOOKED, *PAID)),
            ],
            told(calls="*look pay", resumed=True),
            False,
        ),
        (
            "a call behind the model",
            [AGENT, model(2, history=turn(*LOOKED, *PAID)), call(4, "pay", "c1", result=1)],
            told(calls="pay", unsure="look"),
            False,
        ),
        (
            "another process",
            [AGENT, call(2, "pay", "c1", result=1, resource={"h": 1}), model(4, history=turn(*LOOKED, *PAID))],
            told(calls="pay", unsure="look"),
            False,
        ),
        (
            "the same process",
            [
                AGENT,
                call(2, "pay", "c1", result=1, resource={"h": 1}),
                model(4, history=turn(*LOOKED, *PAID), resource={"h": 1}),
            ],
            told(calls="*look pay", resumed=True),
            False,
        ),
        (
            "a log record",
            [AGENT, call(2, "pay", "c1", result=1, kind=LOG_RECORD), model(4, history=turn(*LOOKED, *PAID))],
            told(calls="pay", unsure="look"),
            False,
        ),
        (
            "calls of two answers",
            [
                AGENT,
                call(2, "look", "c3", result=1),
                call(3, "pay", "c1", result=1),
                model(5, history=turn(asks(B2), answers(c2=1), *LOOKED, *PAID)),
            ],
            told(calls="*book look pay", resumed=True),
            False,
        ),
        (
            "a call seen by two instrumentations",
            [
                AGENT,
                call(2, "look", "c3", result=1, scope="a"),
                call(3, "pay", "c1", result=1, scope="b"),
                model(5, history=turn(asks(B2), answers(c2=1), *LOOKED, *PAID)),
            ],
            told(calls="*book look pay", resumed=True),
            False,
        ),
        (
            "the first request failed",
            [
                AGENT,
                model(2, status_code=StatusCode.ERROR),
                call(3, "pay", "c1", result=1),
                model(5, history=turn(*LOOKED, *PAID)),
            ],
            told(calls="pay", unsure="look"),
            False,
        ),
        (
            "the first request has no messages",
            [AGENT, model(2), call(3, "pay", "c1", result=1), model(5, history=turn(*LOOKED, *PAID))],
            told(calls="pay"),
            False,
        ),
        (
            "the first request failed with its messages",
            [
                AGENT,
                model(2, status_code=StatusCode.ERROR, history=(USER,)),
                call(3, "pay", "c1", result=1),
                model(5, history=turn(*LOOKED, *PAID)),
            ],
            told(calls="pay"),
            False,
        ),
        ("all requests failed", [AGENT, model(2, status_code=StatusCode.ERROR), call(3)], told(calls="pay"), False),
        (
            "spans around the request",
            [
                AGENT,
                call(2, "pay", "c1", result=1),
                lasting(model(3), 9),
                lasting(model(4, parent=3), 5),
                model(5, parent=4, history=turn(*LOOKED, *PAID)),
            ],
            told(calls="*look pay", resumed=True),
            False,
        ),
        (
            "a request beside the first",
            [AGENT, call(2, "pay", "c1", result=1), model(3), model(5, history=turn(*LOOKED, *PAID))],
            told(calls="pay", resumed=True),
            False,
        ),
        (
            "messages without a text of a user",
            [AGENT, call(2, "pay", "c1", result=1), model(4, history=(*LOOKED, *PAID))],
            told(calls="pay", resumed=True),
            False,
        ),
        (
            "an earlier turn",
            [AGENT, call(2, "pay", "c1", result=1), model(4, history=(USER, *LOOKED, USER, *PAID))],
            told(calls="pay", resumed=True),
            False,
        ),
        (
            "a refusal beside the call",
            [
                AGENT,
                call(2, "book", "c2", result=1),
                model(4, history=turn(*LOOKED, asks(B2, P1), answers(c2=1, c1=DENIED))),
            ],
            told(calls="*look book", refused="pay", withheld="pay:refused", resumed=True),
            False,
        ),
        (
            "a refusal before",
            [
                AGENT,
                call(2, "book", "c2", result=1),
                model(4, history=turn(asks(P1), answers(c1=DENIED), asks(B2), answers(c2=1))),
            ],
            told(calls="book", refused="pay", resumed=True),
            False,
        ),
        (
            "an answer left out",
            [AGENT, call(2, "book", "c2", result=1), model(4, history=turn(*LOOKED, asks(B2, P1), answers(c2=1)))],
            told(calls="*look book", unsure="pay", resumed=True),
            False,
        ),
        (
            "an answer left out, made here",
            [
                AGENT,
                call(2, "book", "c2", result=1),
                model(4, history=turn(*LOOKED, asks(B2, P1), answers(c2=1))),
                call(8, "pay", "c1", result=1),
            ],
            told(calls="*look book pay", resumed=True),
            False,
        ),
        (
            "an answer left out, made here without an id",
            [
                AGENT,
                call(2, "book", "c2", result=1),
                model(4, history=turn(*LOOKED, asks(B2, PAY), answers(c2=1))),
                call(8, "pay", result=1),
            ],
            told(calls="*look book pay", resumed=True),
            False,
        ),
        (
            "an answer left out, another call here",
            [
                AGENT,
                call(2, "book", "c2", result=1),
                model(4, history=turn(*LOOKED, asks(B2, P1), answers(c2=1))),
                call(8, "pay", "c8", result=1),
            ],
            told(calls="*look book pay", unsure="pay", resumed=True),
            False,
        ),
        (
            "an answer without a span",
            [
                AGENT,
                call(2, "book", "c2", result=1),
                model(4, history=turn(*LOOKED, asks(B2, P1), answers(c2=1, c1=2))),
            ],
            told(calls="*look book", unsure="pay", resumed=True),
            False,
        ),
        (
            "an answer with a mark",
            [
                AGENT,
                call(2, "book", "c2", result=1),
                model(4, refused={"c3": None}, history=turn(*LOOKED, asks(B2), answers(c2=1))),
            ],
            told(calls="book", unsure="look", resumed=True),
            False,
        ),
        (
            "the call itself was refused",
            [AGENT, call(2, "pay", "c1", result=DENIED), model(4, history=turn(*LOOKED, asks(P1), answers(c1=DENIED)))],
            told(calls="*look", refused="pay", withheld="pay:refused", resumed=True),
            False,
        ),
        (
            "an approval for the provider",
            [
                AGENT,
                model(
                    4, history=turn(*LOOKED, asks(P1), SentMessage(answers=(CallReading(call_id="c1", state="waits"),)))
                ),
            ],
            told(calls="*look", resumed=True),
            False,
        ),
        ("no call", [AGENT, model(4, history=turn(*LOOKED, *PAID))], told(unsure="look pay"), False),
        (
            "no call before, an earlier one here",
            [AGENT, model(4, history=turn(*LOOKED, *PAID)), call(6, "look", "c3", result=1)],
            told(calls="look", unsure="pay"),
            False,
        ),
        (
            "no call before, the last one here",
            [AGENT, model(4, P1, history=turn(*LOOKED, *PAID)), call(6, "pay", "c1", result=1)],
            told(calls="pay", unsure="look"),
            False,
        ),
        (
            "a tool that waits was called before",
            [
                AGENT,
                call(2, "pay", "c1", result=1),
                model(
                    4,
                    history=turn(
                        asks(request("pay", "c4"), L3),
                        answers(c4=1, c3=1),
                        asks(CallRequest(name="look", call_id="c5")),
                        answers(c5=1),
                        *PAID,
                    ),
                ),
            ],
            told(calls="*pay *look *look pay", reordered=(1, 0, 2), resumed=True),
            False,
        ),
        (
            "a tool that waits was called last",
            [
                AGENT,
                call(2, "pay", "c1", result=1),
                model(4, history=turn(asks(L3, request("pay", "c4")), answers(c4=1, c3=1), *PAID)),
            ],
            told(calls="*look *pay pay", resumed=True),
            False,
        ),
        (
            "below a call",
            [
                AGENT,
                model(2),
                ask(),
                call(6, "pay", "c1", result=1, parent=4),
                model(8, parent=4, history=turn(*LOOKED, *PAID)),
            ],
            told(calls="ask *look pay", resumed=True),
            False,
        ),
        (
            "below a call, an earlier call is here",
            [
                AGENT,
                model(2),
                lasting(call(3, "ask", "c8", result=1), 9),
                call(4, "look", "c3", result=1, parent=3),
                lasting(call(20, "ask", "c9", result=1), 40),
                call(22, "pay", "c1", result=1, parent=20),
                model(24, parent=20, history=turn(*LOOKED, *PAID)),
            ],
            told(calls="ask look ask pay", resumed=True),
            False,
        ),
        (
            "below a call, an earlier call without an id is here",
            [
                AGENT,
                model(2),
                lasting(call(3, "ask", "c8", result=1), 9),
                call(4, "look", result=1, parent=3),
                lasting(call(20, "ask", "c9", result=1), 40),
                call(22, "pay", "c1", result=1, parent=20),
                model(
                    24,
                    parent=20,
                    history=turn(asks(CallRequest(name="look")), SentMessage(answers=(CallReading(result=1),)), *PAID),
                ),
            ],
            told(calls="ask look ask pay", resumed=True),
            False,
        ),
        (
            "below a call, an equal call follows",
            [
                AGENT,
                model(2),
                ask(),
                call(6, "pay", "c1", result=1, parent=4),
                model(8, parent=4, history=turn(*LOOKED, *PAID)),
                call(30, "look", "c3", result=1, parent=4),
            ],
            told(calls="ask *look pay look", resumed=True),
            False,
        ),
        (
            "below a call, calls of others",
            [AGENT, model(2), ask(), model(8, parent=4, history=turn(*LOOKED, *PAID))],
            told(calls="ask"),
            False,
        ),
        (
            "below a call, calls of others that are here",
            [AGENT, model(2), call(3, "look", "c3", result=1), ask(), model(8, parent=4, history=turn(*LOOKED, *PAID))],
            told(calls="look ask"),
            False,
        ),
        (
            "below a call, one of two was made here",
            [
                AGENT,
                model(2),
                lasting(call(3, "ask", "c8", result=1), 9),
                call(4, "book", "c2", result=1, parent=3),
                lasting(call(20, "ask", "c9", result=1), 40),
                call(22, "pay", "c1", result=1, parent=20),
                model(24, parent=20, history=turn(*LOOKED, asks(P1, B2), answers(c1=1, c2=1))),
            ],
            told(calls="ask book ask *look pay", resumed=True),
            False,
        ),
        (
            "below a call, one of two was refused here",
            [
                AGENT,
                model(2),
                lasting(call(3, "ask", "c8", result=1), 9),
                call(4, "book", "c2", result=1, parent=3),
                lasting(call(20, "ask", "c9", result=1), 40),
                call(22, "pay", "c1", result=1, parent=20),
                model(24, parent=20, history=turn(*LOOKED, asks(P1, B2), answers(c1=1, c2=DENIED))),
            ],
            told(calls="ask book ask *look pay", refused="book", withheld="book:refused", resumed=True),
            False,
        ),
        (
            "below the call that continues",
            [
                AGENT,
                call(2, "ask", "c9", result=1)._replace(end_ns=start_ns(30)),
                model(8, parent=2, history=turn(*LOOKED, *PAID)),
                model(40, history=turn(asks(CallRequest(name="ask", call_id="c9")), answers(c9=1))),
            ],
            told(calls="ask", unsure="look pay", resumed=True),
            False,
        ),
        ("a step", [model(2, parent=0, history=turn(*LOOKED, *PAID))], told(), True),
        (
            "a step with a decision",
            [model(2, parent=0, history=turn(*LOOKED, asks(P1), REFUSED))],
            told(calls="*look", refused="pay", withheld="pay:refused", resumed=True),
            False,
        ),
        ("a step without messages", [model(2, parent=0)], told(), False),
        (
            "log records of models",
            [given_model(2, kind=LOG_RECORD, history=turn(*LOOKED, *PAID)), call(4)],
            told(calls="pay"),
            False,
        ),
    ],
)
def test_calls_before_the_trace(case: str, spans: list[Span], expected: dict[str, Any], *, is_later_step: bool) -> None:
    """The messages of the first request repeat them, if a call here is one of its last answer, or was refused."""
    (run,) = given_runs(*spans)
    assert expected == {
        "calls": " ".join("*" * each.restored + each.name for each in run.calls),
        "unsure": " ".join(each.name for each in run.uncertain),
        "refused": " ".join(each.name for each in run.refused),
        "withheld": " ".join(f"{each.name}:{each.state}" for each in run.withheld),
        "reordered": run.reordered,
        "resumed": run.completeness.resumed,
    }, case
    assert is_later_step == Resumption(given_tree(*spans)).is_later_step, case


def test_ids_that_are_answered_before() -> None:
    """The messages of first requests have them, of this turn or of an earlier one; later requests tell no others."""
    first = model(4, history=turn(*LOOKED, *turn(*PAID)))
    later = model(6, history=turn(*LOOKED, *turn(*PAID, asks(B2), answers(c2=1))))
    tree = given_tree(AGENT, call(3, "pay", "c1", result=1), first, call(5, "book", "c2", result=1), later)

    assert {"c1", "c3"} == Resumption(tree).answered_before


def test_other_requests_here_do_not_make_a_tool_one_that_waits() -> None:
    """Only calls that the run has waited for do: the order of earlier calls of other tools is sure."""
    earlier = asks(request("book", "c4"), L3), answers(c4=1, c3=1), asks(B2, P1), answers(c2=1, c1=1)
    spans = call(2, "pay", "c1", result=1), model(4, request("look", "c9"), history=turn(*earlier))
    (run,) = given_runs(AGENT, *spans, call(6, "look", "c9", result=1))
    assert (["book", "look", "pay", "look"], ()) == ([each.name for each in run.calls], run.reordered)


def test_the_agent_of_restored_calls() -> None:
    """The one of the model that was sent the messages, whose span may be the agent's own."""
    history = turn(*LOOKED, *PAID)
    (run,) = given_runs(AGENT, call(2, "pay", "c1", result=1), model(4, history=history))
    assert ["planner", "planner"] == [each.agent for each in run.calls]
    own = given_model(4, is_agent=True, agent="z", parent=1, history=history)
    (run,) = given_runs(AGENT, call(2, "pay", "c1", result=1), own)
    assert ["z", "planner"] == [each.agent for each in run.calls]


def test_restored_calls_come_first() -> None:
    """Also if a call of the run has no span, as a log record has none."""
    record = call(6, "book", kind=LOG_RECORD)
    (run,) = given_runs(AGENT, call(2, "pay", "c1", result=1), model(4, history=turn(*LOOKED, *PAID)), record)
    assert ["look", "pay", "book"] == [each.name for each in run.calls]
