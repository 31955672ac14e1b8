"""Parts of runs, for each sign of one: what is known of the run, and which of its calls are in other traces."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

import pytest

from given_readings import given, given_agent, given_call, given_model, given_runs
from spanscore.contracts import CallReading, CallRequest, Reading, SentMessage
from spanscore.model import Completeness, Span, Trajectory, Unit
from traces import lasting

P1, B2, L3 = (
    CallRequest(name=name, call_id=call_id) for name, call_id in (("pay", "c1"), ("book", "c2"), ("look", "c3"))
)
DENIED: Final = "The tool call was denied."
USER: Final = SentMessage(is_user_text=True)
AGENT: Final = lasting(given_agent(1), 90)
SUB: Final = lasting(given_agent(20, "sub", parent=1), 60)
ASK: Final = lasting(given_call(4, "ask", parent=1), 20)
_OF_CALLS: Final = {"arguments_recorded", "results_recorded"}


def asks(*requests: CallRequest) -> SentMessage:
    """Return a message of a model that asks for calls."""
    return SentMessage(requests=requests)


def answers(**results: Any) -> SentMessage:
    """Return a message with the results of calls, by id."""
    return SentMessage(answers=tuple(CallReading(call_id=call_id, result=each) for call_id, each in results.items()))


def model(number: int, *requests: CallRequest, **more: Any) -> Span:
    """Return a request to a model."""
    return given_model(number, *requests, **{"parent": 1, **more})


def call(number: int, name: str = "pay", call_id: str | None = None, **more: Any) -> Span:
    """Return a call."""
    return given_call(number, name, call_id, **{"parent": 1, **more})


def waiting(number: int, *requests: CallRequest, **more: Any) -> Span:
    """Return a span after which calls wait."""
    return given(Reading(waits=requests), number, **{"parent": 1, **more})


def step(number: int, parent: int = 1, **more: Any) -> Span:
    """Return another span with a reading."""
    return given(Reading(**more), number, parent=parent)


WAITS: Final = waiting(9, P1, parent=5)


def told(**known: Any) -> dict[str, Any]:
    """Return what is told of a run; names of calls are texts, restored calls have an asterisk."""
    return known


def of(run: Trajectory) -> dict[str, Any]:
    """Return what differs from a whole run without calls."""
    usual = Completeness()
    known = {each.name: getattr(run.completeness, each.name) for each in fields(Completeness)}
    differing = {key: value for key, value in known.items() if value != getattr(usual, key) and key not in _OF_CALLS}
    calls = {
        "calls": " ".join("*" * each.restored + each.name for each in run.calls),
        "withheld": " ".join(f"{each.name}:{each.state}" for each in run.withheld),
        "unsure": " ".join(each.name for each in run.uncertain),
        "refused": " ".join(each.name for each in run.refused),
    }
    return differing | {key: value for key, value in calls.items() if value}


@pytest.mark.parametrize(
    ("case", "spans", "expected", "by_agent"),
    [
        ("a call waits", [AGENT, model(2, P1), waiting(4, P1)], [told(paused=("pay",), withheld="pay:waits")], None),
        (
            "two calls wait",
            [AGENT, model(2, P1, B2), waiting(4, P1, B2)],
            [told(paused=("pay", "book"), withheld="pay:waits book:waits")],
            None,
        ),
        (
            "a model is asked behind the wait",
            [AGENT, model(2, P1), waiting(4, P1), model(8)],
            [told(withheld="pay:waits")],
            None,
        ),
        (
            "a model is asked as the wait ends",
            [AGENT, model(2, P1), waiting(4, P1), model(5)],
            [told(paused=("pay",), withheld="pay:waits")],
            None,
        ),
        (
            "a model of another agent is asked",
            [AGENT, SUB, model(2, P1), waiting(4, P1), model(30, parent=20)],
            [told(paused=("pay",), withheld="pay:waits")],
            [told(paused=("pay",), withheld="pay:waits"), told()],
        ),
        (
            "the caller of the agent that waits is asked behind its call",
            [AGENT, model(2), ASK, given_agent(5, "sub", parent=4), model(6, P1, parent=5), WAITS, model(40)],
            [told(calls="ask", withheld="pay:waits")],
            [told(calls="ask"), told(withheld="pay:waits")],
        ),
        (
            "the caller of the agent that waits is not asked",
            [AGENT, model(2), ASK, given_agent(5, "sub", parent=4), model(6, P1, parent=5), WAITS],
            [told(calls="ask", paused=("pay",), withheld="pay:waits")],
            [told(calls="ask", paused=("pay",)), told(paused=("pay",), withheld="pay:waits")],
        ),
        (
            "any model, if the call is of no agent",
            [model(2, P1, parent=0), waiting(4, P1, parent=0), given_agent(20, "sub"), model(30, parent=20)],
            [told(withheld="pay:waits")],
            [told()],
        ),
        (
            "a model below the span that waits",
            [AGENT, model(2, P1), waiting(4, P1), model(8, parent=4)],
            [told(paused=("pay",), withheld="pay:waits")],
            None,
        ),
        (
            "the span that waits has no end",
            [AGENT, model(2, P1), waiting(4, P1)._replace(end_ns=0), model(5)],
            [told(withheld="pay:waits")],
            None,
        ),
        (
            "a model of another conversation",
            [
                AGENT,
                model(2, P1, conversation_id="x"),
                given(Reading(waits=(P1,), conversation_id="x"), 4, parent=1),
                model(8, conversation_id="y"),
            ],
            [told(paused=("pay",), withheld="pay:waits")],
            None,
        ),
        (
            "a model of the same conversation",
            [
                AGENT,
                model(2, P1, conversation_id="x"),
                given(Reading(waits=(P1,), conversation_id="x"), 4, parent=1),
                model(7, conversation_id="y"),
                model(8, conversation_id="x"),
            ],
            [told(withheld="pay:waits")],
            None,
        ),
        (
            "a model without a conversation",
            [
                AGENT,
                model(2, P1, conversation_id="x"),
                given(Reading(waits=(P1,), conversation_id="x"), 4, parent=1),
                model(7, conversation_id="y"),
                model(8),
            ],
            [told(withheld="pay:waits")],
            None,
        ),
        (
            "a wait without a conversation",
            [
                AGENT,
                model(2, P1, conversation_id="x"),
                given(Reading(waits=(P1,)), 4, parent=1),
                model(7, conversation_id="y"),
            ],
            [told(withheld="pay:waits")],
            None,
        ),
        ("an agent may wait", [given_agent(1, may_wait=True), model(2)], [told(may_pause=True)], None),
        (
            "a model is asked behind it",
            [given_agent(1, may_wait=True), model(2, parent=0), model(8, parent=0)],
            [told()],
            None,
        ),
        (
            "a model is asked as it ends",
            [given_agent(1, may_wait=True), model(2, parent=0)],
            [told(may_pause=True)],
            None,
        ),
        (
            "a sub-agent may wait",
            [AGENT, lasting(given_agent(20, "sub", parent=1, may_wait=True), 60), model(22, parent=20)],
            [told(may_pause=True)],
            [told(may_pause=True), told()],
        ),
        (
            "an agent may wait, and does",
            [lasting(given_agent(1, may_wait=True), 90), model(2, P1), waiting(4, P1)],
            [told(paused=("pay",), withheld="pay:waits")],
            None,
        ),
        (
            "an agent without a model may wait",
            [given_agent(1, may_wait=True), call(2)],
            [told(may_pause=True, calls="pay")],
            None,
        ),
    ],
)
def test_runs_that_pause(
    case: str, spans: list[Span], expected: list[dict[str, Any]], by_agent: list[dict[str, Any]] | None
) -> None:
    """A run waits with a span unless a model of its agent is asked afterwards; the runs around it wait, too."""
    assert expected == list(map(of, given_runs(*spans))), case
    assert (by_agent or expected) == list(map(of, given_runs(*spans, unit=Unit.AGENT))), case


@pytest.mark.parametrize(
    ("case", "spans", "expected", "by_agent"),
    [
        (
            "a span says that the run continues",
            [AGENT, step(2, resumes=True), model(3)],
            [told(resumed=True, begin_unseen=True)],
            None,
        ),
        ("it says so behind a call", [AGENT, call(2, result=1), step(4, resumes=True)], [told(calls="pay")], None),
        ("it says so behind a model", [AGENT, model(2), step(4, resumes=True)], [told()], None),
        (
            "it starts with a model",
            [AGENT, model(2), given(Reading(resumes=True), 3, parent=1, at_ms=2)],
            [told(resumed=True, begin_unseen=True)],
            None,
        ),
        ("it is alone", [AGENT, step(2, resumes=True)], [told(resumed=True, begin_unseen=True)], None),
        (
            "a sub-agent's run continues",
            [AGENT, SUB, step(22, parent=20, resumes=True), model(24, parent=20)],
            [told(resumed=True, begin_unseen=True)],
            [told(resumed=True, begin_unseen=True), told(resumed=True, begin_unseen=True)],
        ),
        (
            "a call is refused before any model is asked",
            [AGENT, call(2, "pay", "c1", state="refused"), model(4)],
            [told(resumed=True, begin_unseen=True, withheld="pay:refused", refused="pay")],
            None,
        ),
        (
            "a call is refused, and no model is asked",
            [AGENT, call(2, "pay", "c1", state="refused")],
            [told(withheld="pay:refused", refused="pay")],
            None,
        ),
        (
            "a call is refused behind its model",
            [AGENT, model(2), call(4, "pay", "c1", state="refused")],
            [told(withheld="pay:refused", refused="pay")],
            None,
        ),
        (
            "a refusal would not show",
            [AGENT, model(2), step(3, refuses_silently=True)],
            [told(may_continue=True)],
            None,
        ),
        (
            "the messages would show it",
            [AGENT, model(2, history=(USER,)), step(3, refuses_silently=True)],
            [told()],
            None,
        ),
        (
            "the messages leave calls out",
            [AGENT, model(2, history=(USER,), leaves_out_calls=True), step(3, refuses_silently=True)],
            [told(may_continue=True)],
            None,
        ),
        ("a call was made", [AGENT, model(2), step(3, refuses_silently=True), call(4)], [told(calls="pay")], None),
        (
            "the first messages count",
            [AGENT, model(2, history=(USER,)), model(4), step(3, refuses_silently=True)],
            [told()],
            None,
        ),
        ("no model is asked", [AGENT, step(3, refuses_silently=True)], [told()], None),
        (
            "another run has made a call",
            [AGENT, model(2), step(3, refuses_silently=True), SUB, call(22, parent=20)],
            [told(calls="pay")],
            [told(may_continue=True), told(calls="pay")],
        ),
        (
            "a hidden refusal before the run",
            [AGENT, call(2, refusal="hidden at start"), model(4)],
            [told(may_continue=True, calls="pay")],
            None,
        ),
        (
            "a result shows that there was none",
            [AGENT, call(2, refusal="hidden at start", result=1), model(4)],
            [told(calls="pay")],
            None,
        ),
        ("a hidden refusal within the run", [AGENT, model(2), call(4, refusal="hidden")], [told(calls="pay")], None),
        (
            "a call with an id before its model",
            [AGENT, call(2, "pay", "c1", result=1), model(4)],
            [told(resumed=True, begin_unseen=True, calls="pay")],
            None,
        ),
        ("a call without an id before its model", [AGENT, call(2, result=1), model(4)], [told(calls="pay")], None),
        (
            "a call that only models ask for",
            [AGENT, call(2, result=1, only_if_asked=True), model(4)],
            [told(resumed=True, begin_unseen=True, calls="pay")],
            None,
        ),
        (
            "a model is sent results first",
            [AGENT, call(2, result=1), model(4, answers={"x": 1})],
            [told(resumed=True, begin_unseen=True, calls="pay")],
            None,
        ),
        (
            "a call that starts with its model",
            [AGENT, call(4, "pay", "c1", result=1), model(4)],
            [told(calls="pay")],
            None,
        ),
        (
            "a call that starts with its model and is answered",
            [AGENT, call(4, "pay", "c1", result=1), model(4, answers={"c1": 1})],
            [told(calls="pay")],
            None,
        ),
        (
            "a call without an id that starts with its model",
            [AGENT, call(4, result=1), model(4, answers={"c1": 1})],
            [told(calls="pay")],
            None,
        ),
        ("a call behind its model", [AGENT, model(2), call(4, "pay", "c1", result=1)], [told(calls="pay")], None),
        (
            "a call within a call",
            [
                AGENT,
                model(2),
                lasting(call(4, "ask", "c9", result=1), 40),
                call(6, "pay", "c1", result=1, parent=4),
                model(8, parent=4),
            ],
            [told(resumed=True, begin_unseen=True, between_unseen=True, calls="ask pay")],
            None,
        ),
        (
            "a call that has waited here",
            [AGENT, step(2, waits=(P1,)), call(4, "pay", "c1", result=1), model(6)],
            [told(calls="pay")],
            None,
        ),
        (
            "another call has waited here",
            [AGENT, step(2, waits=(B2,)), call(4, "pay", "c1", result=1), model(6)],
            [told(resumed=True, begin_unseen=True, calls="pay", withheld="book:waits")],
            None,
        ),
        (
            "a call that has waited in its own span",
            [AGENT, call(2, "pay", "c1", state="waits"), call(4, "pay", "c1", result=1), model(6)],
            [told(calls="pay")],
            None,
        ),
        (
            "messages begin with an answer",
            [AGENT, model(2, history=(USER, answers(c1=1)))],
            [told(resumed=True, begin_unseen=True)],
            None,
        ),
        (
            "messages begin with an answer without an id",
            [AGENT, model(2, history=(USER, SentMessage(answers=(CallReading(result=1),))))],
            [told()],
            None,
        ),
        (
            "an answer to a request of the messages",
            [AGENT, model(2, history=(USER, asks(P1), answers(c1=1)))],
            [told(uncertain=("pay",), unsure="pay")],
            None,
        ),
        (
            "messages within a call begin with an answer",
            [AGENT, lasting(call(4, "ask", "c9", result=1), 40), model(8, parent=4, history=(USER, answers(c1=1)))],
            [told(resumed=True, begin_unseen=True, between_unseen=True, calls="ask")],
            None,
        ),
        (
            "messages repeat earlier calls",
            [
                AGENT,
                call(2, "pay", "c1", result=1),
                model(4, history=(USER, asks(L3), answers(c3=1), asks(P1), answers(c1=1))),
            ],
            [told(resumed=True, calls="*look pay")],
            None,
        ),
        (
            "messages within a call repeat earlier calls",
            [
                AGENT,
                model(2),
                lasting(call(4, "ask", "c9", result=1), 40),
                call(6, "pay", "c1", result=1, parent=4),
                model(8, parent=4, history=(USER, asks(L3), answers(c3=1), asks(P1), answers(c1=1))),
            ],
            [told(resumed=True, calls="ask *look pay")],
            None,
        ),
        (
            "messages have a refusal",
            [AGENT, model(4, history=(USER, asks(L3), answers(c3=1), asks(P1), answers(c1=DENIED)))],
            [told(resumed=True, calls="*look", withheld="pay:refused", refused="pay")],
            None,
        ),
        (
            "messages have a refusal that a span shows",
            [
                AGENT,
                call(2, "pay", "c1", state="refused"),
                model(4, history=(USER, asks(L3), answers(c3=1), asks(P1), answers(c1=DENIED))),
            ],
            [told(resumed=True, calls="*look", withheld="pay:refused", refused="pay")],
            None,
        ),
        (
            "nothing shows whether the calls are of this run",
            [AGENT, model(4, history=(USER, asks(L3), answers(c3=1), asks(P1), answers(c1=1)))],
            [told(uncertain=("look", "pay"), unsure="look pay")],
            None,
        ),
        (
            "another conversation continues",
            [
                AGENT,
                model(2, conversation_id="x", history=(USER,)),
                model(4, conversation_id="y", history=(USER, asks(P1), answers(c1=1))),
            ],
            [told(resumed=True, begin_unseen=True)],
            None,
        ),
        (
            "another conversation begins",
            [AGENT, model(2, conversation_id="x", history=(USER,)), model(4, conversation_id="y", history=(USER,))],
            [told()],
            None,
        ),
        (
            "the first conversation continues",
            [
                AGENT,
                model(2, conversation_id="x", history=(USER, asks(P1), answers(c1=1))),
                model(4, conversation_id="y", history=(USER,)),
            ],
            [told(uncertain=("pay",), unsure="pay")],
            None,
        ),
        (
            "a model of no conversation",
            [
                AGENT,
                model(2, conversation_id="x", history=(USER,)),
                model(3, conversation_id="y", history=(USER,)),
                given_model(4, history=(USER, asks(P1), answers(c1=1))),
            ],
            [told()],
            None,
        ),
        ("a later step of a run", [model(2, P1, parent=0, history=(USER, asks(P1), answers(c1=1)))], [told()], None),
        ("the first step of a run", [model(2, P1, parent=0, history=(USER,))], [told()], None),
        (
            "a step with a decision",
            [
                model(
                    2,
                    parent=0,
                    history=(USER, asks(P1), SentMessage(answers=(CallReading(call_id="c1", state="refused"),))),
                )
            ],
            [told(resumed=True, withheld="pay:refused", refused="pay")],
            None,
        ),
    ],
)
def test_runs_that_continue(
    case: str, spans: list[Span], expected: list[dict[str, Any]], by_agent: list[dict[str, Any]] | None
) -> None:
    """A run continues if a call comes before its model, or its messages have earlier calls."""
    assert expected == list(map(of, given_runs(*spans))), case
    assert (by_agent or expected) == list(map(of, given_runs(*spans, unit=Unit.AGENT))), case
