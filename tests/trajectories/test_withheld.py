"""Calls that wait or were refused are no calls of the run, wherever the trace says so."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalogue.bounds import costs_at_most
from dialects.spans import START_NS, TRACE_ID, built_in_dialects, calls, exception, span
from examples import at_most
from spanscore.contracts import CallRequest, Markers, ModelReading, Precedence, Reading
from spanscore.model import CloseReason, Span, Trace, Trajectory
from spanscore.trajectories.explained import Explanation, explained
from spanscore.trajectories.reader import DialectReader
from spanscore.trajectories.trajectory import trajectories
from traces import PARIS, agent, asked, having, lasting, model, tool

REFUND: Final = {"order_id": "A-1", "amount": 40}
HALF: Final = {"order_id": "A-1", "amount": 20}
INTERRUPT: Final = (exception("langgraph.errors.GraphInterrupt", "()"),)
RESULT: Final = "gen_ai.tool.call.result"


class Telling:
    """Reads what a test writes into a span: names and ids of calls that wait or were refused."""

    precedence = Precedence.FRAMEWORK
    markers = Markers(attributes=frozenset({"waits", "refused", "ends_asking"}))
    reads = frozenset({"waits", "refused", "ends_asking"})

    def read(self, span: Span) -> Reading | None:
        """Return what the test says."""
        told = {key: tuple(_request(each) for each in _texts(span, key)) for key in ("waits", "refused")}
        return Reading(**told, ends_asking="ends_asking" in span.attributes)

    def read_model(self, span: Span) -> ModelReading | None:
        """Return nothing."""
        return None


def _texts(span: Span, key: str) -> list[str]:
    told = span.attributes.get(key)
    return [str(each) for each in told] if isinstance(told, list) else []


def _request(told: str) -> CallRequest:
    name, _, call_id = told.partition(" ")
    return CallRequest(name=name, call_id=call_id or None)


READER: Final = DialectReader([*built_in_dialects(), Telling()])


def made(*spans: Span) -> list[str]:
    """Return the names of the calls of a trace."""
    trace = Trace(trace_id=TRACE_ID, spans=spans, close_reason=CloseReason.ROOT_ENDED)
    (run,) = trajectories(trace, READER)
    return [call.name for call in run.calls]


def runs(*spans: Span) -> tuple[Trajectory, ...]:
    """Return the runs of a trace."""
    return trajectories(Trace(trace_id=TRACE_ID, spans=spans, close_reason=CloseReason.ROOT_ENDED), READER)


def withheld(*spans: Span) -> list[tuple[str, str]]:
    """Return the calls of a trace that its run tells as not made."""
    (run,) = runs(*spans)
    return [tuple(call) for call in run.withheld]


def explanation(*spans: Span) -> Explanation:
    """Return what is explained of a trace."""
    trace = Trace(trace_id=TRACE_ID, spans=spans, close_reason=CloseReason.ROOT_ENDED)
    return explained(trace, trajectories(trace, READER), READER)


def done(number: int, name: str, arguments: Any = None, call_id: str | None = None, **fields: Any) -> Span:
    """An execution with a result."""
    return having(tool(number, name, arguments, call_id, **fields), {RESULT: "done"})


def whole(spanned: Span) -> Span:
    """A root that lasts as long as the trace."""
    return lasting(spanned, 1_000)


ROOT: Final = whole(agent(1))
LOOKUP: Final = asked("lookup", PARIS, "c1")
ASKED: Final = asked("refund", REFUND, "c2")


def test_a_call_that_waits_is_not_made_and_its_request_is_not_left_over() -> None:
    """Its span is the only one that stands for it."""
    spans = (ROOT, model(2, ASKED, parent=1), tool(3, "refund", REFUND, "c2", parent=1, events=INTERRUPT))
    assert calls(*spans) == []
    told = explanation(*spans)
    assert (told.not_made, told.waits, told.refused) == ((), (), ())
    assert "waits" in told.spans[2].role


def test_a_call_that_waited_and_is_executed_afterwards_is_one_call() -> None:
    """By its id; where one of both has none, by the tool and its arguments."""
    waiting = tool(3, "refund", REFUND, "c2", parent=1, events=INTERRUPT)
    for call_id in ("c2", None):
        executed = done(5, "refund", REFUND, call_id, parent=1)
        (call,) = calls(ROOT, model(2, ASKED, parent=1), waiting, model(4, parent=1), executed)
        assert (call.span_id, call.call_id, call.error) == (executed.span_id, "c2", None)
    (first, second) = calls(
        ROOT, waiting, done(5, "refund", REFUND, "c3", parent=1), done(6, "refund", {}, "c2", parent=1)
    )
    assert (first.call_id, second.call_id) == ("c3", "c2")


def test_another_call_of_the_tool_does_not_make_the_one_that_waits() -> None:
    """Neither one before it, nor one with other arguments."""
    waiting = tool(5, "refund", REFUND, parent=1, events=INTERRUPT)
    others = done(3, "refund", REFUND, parent=1), done(6, "refund", {"order_id": "A-2"}, parent=1)
    assert [call.span_id for call in calls(ROOT, waiting, *others)] == [each.span_id for each in others]
    assert explanation(ROOT, waiting, *others).spans[2].role.startswith("no call yet: refund")


def test_a_call_of_which_nothing_is_recorded_does_not_make_the_one_that_waits() -> None:
    """Neither has a name, arguments or an id."""
    nameless = {"gen_ai.operation.name": "execute_tool"}
    waiting = span(3, "tool", nameless, parent=1, events=INTERRUPT)
    made = span(4, "tool", nameless, parent=1)
    assert [call.span_id for call in calls(ROOT, waiting, made)] == [made.span_id]


def test_the_call_of_an_agent_that_waits_waits_too() -> None:
    """If its span has ended, it has no result, or an empty one; the span around both says that the run waits."""
    root = having(whole(agent(1)), {"ends_asking": True})
    for result, expected in (("", []), ("Ask a person.", ["ask"])):
        around = having(whole(tool(2, "ask", {}, "c1", parent=1)), {RESULT: result})
        assert expected == made(root, around, model(3, ASKED, parent=2))


def test_a_span_names_the_call_that_waits() -> None:
    """The execution below or beside it that has no result, else the request."""
    root = whole(having(agent(1), {"waits": ["refund c2"]}))
    spans = root, model(2, LOOKUP, ASKED, parent=1), done(3, "lookup", PARIS, "c1", parent=1)
    assert made(*spans) == ["lookup"]
    assert made(*spans, tool(4, "refund", REFUND, "c2", parent=1)) == ["lookup"]
    assert explanation(*spans).waits == ("refund",)
    # With a result it was executed.
    assert made(*spans, done(4, "refund", REFUND, "c2", parent=1)) == ["lookup", "refund"]


def test_a_span_that_names_no_call_means_the_last_answer() -> None:
    """Those of its calls that have no result."""
    root = whole(having(agent(1), {"waits": [""]}))
    first = root, model(2, LOOKUP, parent=1), done(3, "lookup", PARIS, "c1", parent=1)
    second = model(4, ASKED, asked("audit", {}, "c3"), parent=1), done(5, "audit", {}, "c3", parent=1)
    assert made(*first, *second) == ["lookup", "audit"]
    assert explanation(*first, *second).waits == ("refund",)
    assert explanation(root).waits == ("",)


def test_a_run_without_an_executed_call_does_not_bring_back_what_waits() -> None:
    """Else what models ask for is all that there is to know."""
    assert made(ROOT, model(2, ASKED, parent=1)) == ["refund"]
    for told in ({"waits": [""]}, {"waits": ["refund c2"]}, {"refused": ["refund c2"]}, {"ends_asking": True}):
        assert made(whole(having(agent(1), told)), model(2, ASKED, parent=1)) == []


def test_a_run_that_ends_asking_waits_only_for_what_has_no_result() -> None:
    """An answer that asks for tools at the end of a run is no pause where all of them are executed."""
    root = whole(having(agent(1), {"ends_asking": True}))
    spans = root, model(2, LOOKUP, parent=1), done(3, "lookup", PARIS, "c1", parent=1)
    assert made(*spans) == ["lookup"]
    assert explanation(*spans).waits == ()
    assert explanation(root).waits == ()


def test_a_refused_call_that_was_answered_is_not_brought_back() -> None:
    """A framework answers for a tool that it does not run: with an error of the tool, or with a refusal."""
    spans = ROOT, model(2, LOOKUP, ASKED, parent=1), done(3, "lookup", PARIS, "c1", parent=1)
    for told, names in (
        ("no such tool", ["lookup", "refund"]),
        ("The tool call was denied.", ["lookup"]),
        ("User rejected the tool call for `refund` with id c2. The tool was not executed.", ["lookup"]),
        ({"error": "This tool call is rejected."}, ["lookup"]),
        ({"type": "execution-denied", "reason": "no"}, ["lookup"]),
    ):
        assert made(*spans, model(4, told={"c1": "done", "c2": told}, parent=1)) == names
    refused = model(4, told={"c1": "done", "c2": "The tool call was denied."}, parent=1)
    assert explanation(*spans, refused).refused == ("refund",)


def test_a_run_tells_each_call_that_was_not_made() -> None:
    """By its own span, by another one, or by what a model was told; once, and not where it was made afterwards."""
    first = ROOT, model(2, LOOKUP, ASKED, parent=1), done(3, "lookup", PARIS, "c1", parent=1)
    waiting = tool(4, "refund", REFUND, "c2", parent=1, events=INTERRUPT)
    refused = model(5, told={"c1": "done", "c2": "The tool call was denied."}, parent=1)
    assert withheld(*first) == []
    assert withheld(*first, waiting) == [("refund", "waits")]
    assert withheld(*first, refused) == [("refund", "refused")]
    assert withheld(*first, waiting, done(6, "refund", REFUND, "c2", parent=1)) == []
    assert withheld(whole(having(agent(1), {"waits": ["refund c2"]})), *first[1:]) == [("refund", "waits")]
    assert withheld(whole(having(agent(1), {"waits": [""]}))) == [("", "waits")]


@pytest.mark.parametrize("call_id", ["c2", None])
def test_a_call_with_a_span_was_made_whatever_a_model_was_sent(call_id: str | None) -> None:
    """A refusal would be in its span."""
    spans = ROOT, model(2, ASKED, parent=1), done(4, "refund", REFUND, call_id, parent=1)
    told = model(5, told={"c2": "The tool call was denied."}, parent=1)
    assert (made(*spans, told), withheld(*spans, told)) == (["refund"], [])


def test_a_refused_call_that_a_model_asks_for_again_was_refused() -> None:
    """Also if the span of the execution has no id, so that it may be of either request."""
    denied = {"c2": "The tool call was denied."}
    asking = model(2, ASKED, parent=1), model(3, asked("refund", REFUND, "c3"), told=denied, parent=1)
    spans = *asking, done(4, "refund", REFUND, parent=1), model(5, told={**denied, "c3": "done"}, parent=1)
    assert withheld(ROOT, *spans) == [("refund", "refused")]


def test_a_refused_call_that_is_executed_afterwards_was_made() -> None:
    """Where a person changes their mind in the same trace."""
    refusing = having(tool(3, "refund", REFUND, "c2", parent=1), {RESULT: "The tool call was denied."})
    (call,) = calls(ROOT, model(2, ASKED, parent=1), refusing, done(6, "refund", REFUND, "c2", parent=1))
    assert call.result == "done"


def test_two_sightings_of_a_call_that_waits_are_one() -> None:
    """Of one instrumentation below the other: what one of them says holds for both."""
    outer = lasting(tool(3, "refund", REFUND, "c2", parent=1, scope="a"), 5)
    inner = tool(4, "refund", REFUND, "c2", parent=3, scope="b", events=INTERRUPT)
    assert calls(ROOT, outer, inner) == []


def test_a_pause_of_a_sub_agent_is_its_own() -> None:
    """The call that started it waits as well where its span says so, and else is made."""
    started = lasting(done(3, "delegate", PARIS, "c1", parent=1), 50)
    below = whole(agent(4, "specialist", parent=3)), model(5, ASKED, parent=4)
    waiting = tool(6, "refund", REFUND, "c2", parent=4, events=INTERRUPT)
    assert made(ROOT, model(2, asked("delegate", PARIS, "c1"), parent=1), started, *below, waiting) == ["delegate"]
    both = started._replace(events=INTERRUPT)
    assert made(ROOT, model(2, asked("delegate", PARIS, "c1"), parent=1), both, *below, waiting) == []


def test_ten_thousand_pauses_are_read() -> None:
    """In time that grows with their number: a sender can make them up."""
    step = having(agent(1), {"waits": ["refund", ""], "refused": ["audit c9"]})
    spans = [replaced(step, number) for number in range(2, 10_002)]
    assert made(ROOT, model(10_003, ASKED, parent=1), *spans) == []


def test_many_calls_that_wait_within_each_other() -> None:
    """In time that grows with their number: within 1 s."""
    deferral = {"pydantic_ai.tool.deferral.name": "CallDeferred"}
    deferred = [having(tool(2, f"pay_{number}", {}, f"c{number}", parent=1), deferral) for number in range(2_000)]
    calls_within = [replaced(each, number) for number, each in enumerate(deferred, 2)]
    with costs_at_most(cpu_s=1):
        assert made(ROOT, *calls_within) == []


def test_many_pauses_beside_many_requests() -> None:
    """The 10,000 requests are looked at once for all 8,000 pauses: within 1 s."""
    pauses = [having(agent(number, parent=1), {"ends_asking": True}) for number in range(2, 8_002)]
    asking = [model(number, *[asked("lookup")] * 2_000, parent=1) for number in range(9_000, 9_005)]
    with costs_at_most(cpu_s=1):
        assert made(agent(1), *pauses, *asking) == ["lookup"] * 10_000


def replaced(spanned: Span, number: int) -> Span:
    """The same span with another id, below the one before it."""
    ids = {"span_id": number.to_bytes(8, "big"), "parent_span_id": (number - 1).to_bytes(8, "big")}
    return spanned._replace(start_ns=START_NS + number, end_ns=START_NS + 20_000, **ids)


@given(order=st.permutations(range(6)))
@at_most(50)
def test_the_order_of_arrival_changes_nothing(order: list[int]) -> None:
    """What waits is a function of the spans."""
    spans = (
        whole(having(agent(1), {"waits": ["refund c2"]})),
        model(2, LOOKUP, ASKED, parent=1),
        done(3, "lookup", PARIS, "c1", parent=1),
        tool(4, "refund", REFUND, "c2", parent=1, events=INTERRUPT),
        model(5, asked("audit", {}, "c3"), parent=1),
        done(6, "audit", {}, "c3", parent=1),
    )
    assert made(*(spans[place] for place in order)) == ["lookup", "audit"]


def refused(call_id: str) -> list[dict[str, Any]]:
    """The messages of a turn that LangChain ends with a person's refusal."""
    marked = {"additional_kwargs": {"lc_source": "hitl_interrupt_decision"}}
    return [
        {"role": "user", "content": "refund A-1"},
        {"role": "assistant", "parts": [asked("lookup", PARIS, "c1")]},
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
        {"role": "assistant", "parts": [asked("refund", REFUND, call_id)]},
        {"role": "tool", "tool_call_id": call_id, "content": "Not now.", "status": "error", **marked},
    ]


def sent(number: int, *messages: dict[str, Any], asks: tuple[dict[str, Any], ...] = ()) -> Span:
    """A request to a model with these messages."""
    return having(model(number, *asks, parent=1), {"gen_ai.input.messages": json.dumps(messages)})


@pytest.mark.parametrize("refused_id", ["c1", "c2"])
@pytest.mark.parametrize("again", ["c1", "c2", "c3"])
def test_a_refusal_in_an_earlier_turn_is_not_of_a_call_that_waits(refused_id: str, again: str) -> None:
    """Some clients count the calls of each turn, or of each answer, from the same number."""
    turns = [*refused(refused_id), {"role": "assistant", "content": "No."}, {"role": "user", "content": "and half?"}]
    request = asked("refund", HALF, again)
    waiting = having(span(3, "approval", parent=1), {"waits": [f"refund {again}"]})

    assert withheld(ROOT, sent(2, *turns, asks=(request,)), waiting) == [("refund", "waits")]
    answer = {**refused(again)[-1], "content": "Neither."}
    asking = {"role": "assistant", "parts": [request]}
    assert withheld(ROOT, sent(2, *turns, asks=(request,)), waiting, sent(4, *turns, asking, answer)) == [
        ("refund", "refused")
    ]


def test_a_call_before_a_pause_was_made_if_another_one_of_its_id_was_refused() -> None:
    """The mark of the refusal has its place."""
    (run,) = runs(ROOT, sent(2, *refused("c1")))

    assert [("lookup", True)] == [(call.name, call.restored) for call in run.calls]
    assert [("refund", "refused")] == [tuple(call) for call in run.withheld]


def test_a_call_waits_whose_id_was_refused_before_the_pause() -> None:
    """The model asks once more for what a person has refused, with the same id."""
    request = asked("refund", HALF, "c1")
    waiting = having(span(3, "approval", parent=1), {"waits": [""]})
    (run,) = runs(ROOT, sent(2, *refused("c1"), asks=(request,)), waiting)

    assert [("refund", "waits"), ("refund", "refused")] == [tuple(call) for call in run.withheld]


def test_a_call_of_the_last_answer_waits_by_its_id() -> None:
    """A gateway may have given the tool another name."""
    waiting = having(span(4, "approval", parent=1), {"waits": ["refund c1"]})
    model = sent(2, asks=(asked("refund", HALF, "c1"),))
    spans = (ROOT, model, tool(3, "shop_refund", None, "c1", parent=1), waiting)

    assert ([], [("shop_refund", "waits")]) == (made(*spans), withheld(*spans))


def test_a_call_that_waits_is_not_a_call_of_another_tool_with_its_id() -> None:
    """Without content no execution shows that it has ended."""
    waiting = having(span(3, "approval", parent=1), {"waits": ["refund c1"]})
    spans = (ROOT, tool(2, "lookup", None, "c1", parent=1), waiting)

    assert (["lookup"], [("refund", "waits")]) == (made(*spans), withheld(*spans))
