"""The results of calls that have no span, where an id is that of several calls, or of none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from catalogue.bounds import costs_at_most
from dialects.spans import TRACE_ID, built_in_reader, calls, span
from spanscore.model import NOT_RECORDED, CloseReason, Span, Trace
from spanscore.trajectories.trajectory import trajectories
from traces import BERN, PARIS, agent, asked, lasting, tool

USER = {"role": "user", "parts": [{"type": "text", "content": "book"}]}


def assistant(*requests: dict[str, Any]) -> dict[str, Any]:
    """A message of a model that asks for calls."""
    return {"role": "assistant", "parts": list(requests)}


def results(*told: tuple[str | None, Any]) -> dict[str, Any]:
    """A message with the results of calls, by their ids."""
    parts = [{"type": "tool_call_response", "response": result} | ({"id": key} if key else {}) for key, result in told]
    return {"role": "tool", "parts": parts}


def chat(number: int, *sent: dict[str, Any], said: tuple[dict[str, Any], ...] = (), **fields: Any) -> Span:
    """A request to a model with all messages, and the calls that it asks for."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps([USER, *sent]),
        "gen_ai.output.messages": json.dumps([assistant(*said)]),
    }
    return span(number, "chat", attributes, **fields)


def test_an_id_that_comes_again_is_that_of_the_next_request() -> None:
    """Some instrumentations count the calls of each answer from 0: each call has the result that was sent after it."""
    first, again = asked("book", PARIS, "book_0"), asked("book", BERN, "book_0")
    one = (assistant(first), results(("book_0", "full")))
    two = (*one, assistant(again), results(("book_0", "B-1")))
    spans = [chat(1, said=(first,)), chat(2, *one, said=(again,)), chat(3, *two)]

    assert [(made.arguments, made.result) for made in calls(*spans)] == [(PARIS, "full"), (BERN, "B-1")]


def test_without_ids_the_order_tells() -> None:
    """Gemini's API gives calls no id: the results are in the order of the requests."""
    both = (asked("book", PARIS), asked("book", BERN))
    spans = [chat(1, said=both), chat(2, assistant(*both), results((None, "B-1"), (None, "B-2")))]

    assert [(made.result, made.call_id) for made in calls(*spans)] == [("B-1", None), ("B-2", None)]


def test_an_unknown_tool_without_an_id() -> None:
    """The framework answers at the place of the request, beside calls that it executes."""
    one, other = asked("book", PARIS), asked("no_such_tool", BERN)
    unknown = {"isError": True, "content": [{"type": "text", "text": "no_such_tool is unknown"}]}
    told = (assistant(one), results((None, "B-1")), assistant(other), results((None, unknown)))
    spans = [chat(1, said=(one,)), tool(2, "book", PARIS), chat(3, *told[:2], said=(other,)), chat(4, *told)]

    made, refused = calls(*spans)

    assert (made.name, refused.name, refused.result) == ("book", "no_such_tool", unknown)
    assert refused.error == "no_such_tool is unknown"


def test_an_execution_is_of_one_of_two_same_requests_without_an_id() -> None:
    """A model that is asked once more may ask for the same call: its second answer is sent back."""
    again = asked("book", PARIS)
    sent = (assistant(again), results((None, "B-1")))

    (made,) = calls(chat(1, said=(again,)), chat(3, said=(again,)), tool(4, "book", PARIS), chat(6, *sent))

    assert made.span_id is not None


def test_ids_that_only_the_messages_have() -> None:
    """An instrumentation may leave the id out of the answer: the next request has it."""
    sent = (assistant(asked("book", PARIS, "c1")), results(("c1", "B-1")))
    spans = [chat(1, said=(asked("book", PARIS),)), chat(2, *sent)]

    assert [(made.result, made.call_id) for made in calls(*spans)] == [("B-1", "c1")]


def test_an_answer_by_another_id() -> None:
    """An instrumentation may make the id of the result up: the call keeps its own."""
    request = asked("book", PARIS, "c1")
    spans = [chat(1, said=(request,)), chat(2, assistant(request), results(("book_0", "B-1")))]

    assert [(made.result, made.call_id) for made in calls(*spans)] == [("B-1", "c1")]


def test_other_calls_in_the_messages_tell_nothing() -> None:
    """The messages may be cut, or of another loop: their last calls are not those that were asked for."""
    spans = [
        agent(1),
        chat(2, said=(asked("book", PARIS),), parent=1),
        chat(3, assistant(asked("book", BERN)), results((None, "B-2")), parent=1),
    ]

    assert [made.result for made in calls(*spans)] == [NOT_RECORDED]


def test_a_request_under_way_is_not_the_next() -> None:
    """A client's span within the framework's own is of the same request: its results are those of the call before."""
    request = asked("book", PARIS)
    one = (assistant(request), results((None, "full")))
    spans = [
        chat(1, said=(request,)),
        lasting(chat(3, *one, said=(request,)), 5),
        chat(4, *one),
        chat(9, *one, assistant(request), results((None, "B-1"))),
    ]

    assert [made.result for made in calls(*spans)] == ["full", "B-1"]


def test_a_run_waits_for_a_call_whose_id_has_an_earlier_answer() -> None:
    """The answer is to an earlier call of the same id: this one has none."""
    request = asked("book", PARIS, "0")
    spans = (
        agent(1)._replace(end_ns=0),
        chat(2, said=(request,), parent=1),
        chat(3, assistant(request), results(("0", "full")), said=(request,), parent=1),
    )
    trace = Trace(trace_id=TRACE_ID, spans=spans, close_reason=CloseReason.TIMED_OUT)
    (run,) = trajectories(trace, built_in_reader())

    assert run.completeness.paused == ("book",)


@pytest.mark.parametrize(
    ("ids", "cpu_s"),
    [([f"c{turn}" for turn in range(240)], 0.2), (["book_0"] * 240, 0.6), ([None] * 240, 0.6)],
    ids=["own", "the same", "none"],
)
def test_a_long_conversation_whose_calls_have_no_spans(ids: list[str | None], cpu_s: float) -> None:
    """Each request repeats all earlier messages: only what is new in it takes time."""
    requests = [asked("book", {"day": turn}, key) for turn, key in enumerate(ids)]
    told = [results((key, f"B-{turn}")) for turn, key in enumerate(ids)]
    sent = [message for turn in range(240) for message in (assistant(requests[turn]), told[turn])]
    spans = [chat(turn + 1, *sent[: 2 * turn], said=(request,)) for turn, request in enumerate(requests)]

    with costs_at_most(cpu_s=cpu_s):
        made = calls(*spans, chat(241, *sent))
    assert [f"B-{turn}" for turn in range(240)] == [call.result for call in made]
