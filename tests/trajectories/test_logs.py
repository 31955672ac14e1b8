"""What log records tell of calls, beside spans and without them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise, permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialects.spans import TRACE_ID, built_in_reader, call, read, span, span_id, start_ns
from spanscore.collect.settings import TraceSettings
from spanscore.collect.table import TraceTable
from spanscore.contracts import CallReading, Markers, ModelReading, Precedence, Reading
from spanscore.dialects import _content as content
from spanscore.dialects.gen_ai import GenAi
from spanscore.model import (
    LOG_RECORD,
    NO_SPAN,
    NOT_RECORDED,
    AttributeValue,
    CloseReason,
    Report,
    Span,
    ToolCall,
    Trace,
    Trajectory,
)
from spanscore.trajectories.log_records import BODY, with_body
from spanscore.trajectories.reader import DialectReader
from spanscore.trajectories.readings import Readings
from spanscore.trajectories.trajectory import trajectories
from traces import BERN, PARIS, agent, asked, lasting, model, tool

DETAILS = "gen_ai.client.inference.operation.details"


class Told:
    """An emitter whose log says that a tool was called, and whose every other record says something else."""

    precedence = Precedence.FRAMEWORK
    markers = Markers(log_names=("told.",))
    reads = frozenset({"name", "arguments", "result", "id", "error"})

    def read(self, span: Span) -> Reading | None:
        """Return what a record says."""
        held = span.attributes
        if span.name != "told.call":
            return None
        made = content.call(span, content.text(held["name"]), held.get("arguments"), held.get("result"), held.get("id"))
        return Reading(call=replace(made, error=content.text(held.get("error"))))

    def read_model(self, span: Span) -> ModelReading | None:
        """Return nothing."""
        return None


def log(name: str, attributes: Mapping[str, Any], at_ms: int, parent: int | None = None) -> Span:
    """Return a log record."""
    at_ns = start_ns(at_ms)
    above = NO_SPAN if parent is None else span_id(parent)
    identity = (hash((name, str(attributes), at_ms, parent)) % 2**63).to_bytes(8, "big")
    return Span(TRACE_ID, identity, above, name, at_ns, at_ns, LOG_RECORD, attributes=attributes, scope="the logs")


def told(name: str, at_ms: int, parent: int | None = None, **attributes: Any) -> Span:
    """Return a record that a tool was called."""
    return log("told.call", {"name": name, **attributes}, at_ms, parent)


def trajectory(*spans: Span, reason: CloseReason = CloseReason.ROOT_ENDED) -> Trajectory:
    """Read spans and records by the GenAI conventions, and as `Told` does."""
    trace = Trace(trace_id=TRACE_ID, spans=spans, close_reason=reason)
    (found,) = trajectories(trace, DialectReader([GenAi(), Told()]))
    return found


def logged(name: str, at_ms: int, arguments: Any = NOT_RECORDED, **fields: Any) -> ToolCall:
    """Return a call that only a record tells of."""
    return call(None, name, arguments, at_ms=at_ms, **fields)


def test_calls_that_only_logs_tell_of() -> None:
    """They are in the order of their times, and belong to the agent that the record was written in."""
    found = trajectory(agent(1), told("book", 9, arguments=PARIS, id="c2"), told("search", 5, 1, error="TimeoutError"))

    assert found.calls == (
        logged("search", 5, error="TimeoutError", agent="planner"),
        logged("book", 9, PARIS, call_id="c2"),
    )


def test_a_call_with_a_span_and_a_record_is_one() -> None:
    """Joined by its id, whenever the record was written, or as it was written in the span; each adds what it knows."""
    by_id = trajectory(agent(1), tool(2, "book", call_id="c1", parent=1), told("book", 90, 1, id="c1", arguments=PARIS))
    inside = trajectory(agent(1), tool(2, "book", parent=1), told("book", 3, 2, arguments=PARIS, id="c1", result="ok"))

    assert by_id.calls == (call(2, "book", PARIS, call_id="c1", agent="planner"),)
    assert inside.calls == (call(2, "book", PARIS, call_id="c1", agent="planner", result="ok"),)


def test_a_record_without_an_id_belongs_to_the_call_that_ended_nearest() -> None:
    """Each call has one record of a kind: the others are calls of their own."""
    spans = [agent(1), tool(2, "book", parent=1), lasting(tool(3, "book", parent=1, at_ms=10), 10)]
    records = [told("book", 21, 1, arguments=BERN), told("book", 4, 1, arguments=PARIS), told("book", 30, 1)]

    assert [(each.span_id, each.arguments) for each in trajectory(*spans, *records).calls] == [
        (span_id(2), PARIS),
        (span_id(3), BERN),
        (None, NOT_RECORDED),
    ]


def test_another_tool_or_other_arguments_are_another_call() -> None:
    """Whatever is near in time."""
    spans = [agent(1), tool(2, "book", PARIS, parent=1)]

    assert 2 == len(trajectory(*spans, told("search", 3, 1)).calls)
    assert 2 == len(trajectory(*spans, told("book", 3, 1, arguments=BERN)).calls)
    assert 2 == len(trajectory(agent(1), tool(2, "book", call_id="a", parent=1), told("book", 3, 1, id="b")).calls)


def test_what_the_model_said_may_stand_in_logs() -> None:
    """Content that the spans leave out: the calls that were asked for, and what they returned."""
    chats = [span(number, "chat", {"gen_ai.operation.name": "chat"}, parent=1) for number in (2, 4)]
    request = {"role": "assistant", "parts": [asked("book", PARIS, "c1")]}
    answer = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "ok"}]}
    records = [
        log(DETAILS, {"gen_ai.output.messages": [request]}, 3, 2),
        log(DETAILS, {"gen_ai.input.messages": [request, answer], "gen_ai.output.messages": []}, 5, 4),
    ]

    assert trajectory(span(1, "main"), *chats, *records).calls == (logged("book", 3, PARIS, result="ok", call_id="c1"),)
    (executed,) = trajectory(agent(1), *chats, tool(3, "book", parent=1), *records).calls
    assert (executed.span_id, executed.arguments, executed.call_id) == (span_id(3), PARIS, "c1")


def test_messages_that_are_records_of_their_own() -> None:
    """The older events of the conventions, with a body each."""
    choice = {"index": 0, "message": {"tool_calls": [{"id": "c1", "function": {"name": "book", "arguments": "{}"}}]}}
    records = [
        log("gen_ai.user.message", {"content": "hello"}, 2, 1),
        log("gen_ai.choice", choice, 3, 1),
        log("gen_ai.tool.message", {"id": "c1", "content": "ok"}, 4, 1),
    ]

    (found,) = read(agent(1), *records)
    assert found.calls == (logged("book", 3, {}, call_id="c1", result="ok", agent="planner"),)


def test_one_answer_of_a_model_says_nothing_of_what_was_done() -> None:
    """Without its result, and without an agent, a request is one step of a run that is elsewhere."""
    record = log(DETAILS, {"gen_ai.output.messages": [{"role": "assistant", "parts": [asked("book", PARIS, "c1")]}]}, 3)

    assert trajectory(record).calls == ()


def test_what_models_said_outside_of_every_trace_is_no_run() -> None:
    """Gemini CLI logs answers of its models where no span is; what was done stands in the traces."""
    said = {"gen_ai.output.messages": [{"role": "assistant", "parts": [asked("book", PARIS, "c1")]}]}
    for records, is_run in (
        ([log(DETAILS, said, 3)], False),
        ([log(DETAILS, said, 3, 7)], True),
        ([log(DETAILS, said, 3), told("book", 4)], True),
        ([log(DETAILS, said, 3), agent(1)], True),
    ):
        found = trajectory(*records)
        assert is_run == found.recognised
        assert is_run == ("it is one step of a run" in (found.unread or "it is one step of a run"))


def test_a_run_of_nothing_but_logs() -> None:
    """There is no root to wait for, so that nothing is missing; its span is that in which the record was written."""
    for reason, is_complete in ((CloseReason.TIMED_OUT, True), (CloseReason.SPAN_LIMIT, False)):
        found = trajectory(told("book", 3, 7), reason=reason)
        assert is_complete is Report(trajectory=found, evaluations=(), close_reason=reason).complete
        assert (span_id(7), True) == (found.root_span_id, found.completeness.from_logs)
    assert b"" == trajectory(told("book", 3)).root_span_id


def test_only_dialects_that_read_a_log_are_offered_it() -> None:
    """Whatever attributes it has: a dialect would take it for a span."""
    looks_like_a_call = log("other", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "book"}, 2)
    assert None is built_in_reader().read(looks_like_a_call)
    assert None is built_in_reader().read(looks_like_a_call._replace(name="told.call"))


def test_neither_a_record_nor_its_span_is_missing() -> None:
    """A record whose span did not come says nothing of the spans that did not."""
    found = trajectory(agent(1), told("book", 3, 99))
    assert (True, 0, False) == (
        found.completeness.complete,
        found.completeness.parents_missing,
        found.completeness.from_logs,
    )


def test_a_step_reads_one_span() -> None:
    """Also where records of models' messages are restored to their spans: each span may take long."""
    offered: list[str] = []

    class Noting(GenAi):
        def read(self, span: Span) -> Reading | None:
            offered.append(span.name)
            return super().read(span)

    spans = [model(number) for number in range(1, 6)]
    records = [log(DETAILS, {"gen_ai.input.messages": []}, 9, number) for number in range(1, 6)]
    read_before = [len(offered) for _ in Readings([*spans, *records], DialectReader([Noting()])).read()]

    assert [*range(1, 16)] == read_before[:15]


SPANS = (agent(1), tool(2, "book", call_id="c1", parent=1), tool(4, "search", parent=1), tool(6, "book", parent=1))
RECORDS = (
    told("book", 3, 1, id="c1", arguments=PARIS),
    told("search", 5, 1, arguments=BERN),
    told("book", 7, 1, arguments=BERN),
    told("fly", 8, 1),
)


@given(st.permutations(SPANS + RECORDS))
def test_the_order_of_arrival_changes_nothing(arrived: list[Span]) -> None:
    """Records before, between or behind the spans."""
    assert trajectory(*SPANS, *RECORDS).calls == trajectory(*arrived).calls


@given(st.data())
def test_batches_repetition_and_lateness_change_nothing(data: st.DataObject) -> None:
    """However they are cut into requests, how often each is sent, and whether the root has ended by then."""
    root, *others = SPANS
    sent = [root._replace(parent_span_id=b""), *others, *RECORDS]
    arrived = data.draw(st.permutations(sent + data.draw(st.lists(st.sampled_from(sent), max_size=6))))
    cuts = data.draw(st.lists(st.integers(0, len(arrived)), max_size=4).map(sorted))
    table = TraceTable(TraceSettings(decision_delay_s=0.0), lambda each: not each.parent_span_id)

    closed = []
    for at_s, (start, end) in enumerate(pairwise([0, *cuts, len(arrived)])):
        closed += table.add(arrived[start:end], float(at_s))
    closed += table.drain()

    whole, last = trajectory(*sent), trajectory(*closed[-1].spans)
    assert whole.calls == last.calls
    assert {span.span_id for span in sent} == {span.span_id for span in closed[-1].spans}


def test_each_record_beside_spans_is_one_call_more_or_none() -> None:
    """Of four records three are of calls with spans."""
    names = [each.name for each in trajectory(*SPANS, *RECORDS).calls]
    assert ["book", "search", "book", "fly"] == names
    for some in permutations(RECORDS, 2):
        assert 3 + (RECORDS[3] in some) == len(trajectory(*SPANS, *some).calls)


def test_the_reading_of_a_record_of_a_tool() -> None:
    """What a dialect says of a record is what it says of a span."""
    assert isinstance(Told().read(told("book", 1)), Reading)
    assert CallReading(name="book") == Told().read(told("book", 1)).call  # type: ignore[union-attr]


@pytest.mark.parametrize("operation", [{"gen_ai.operation.name": "execute_tool"}, {"gen_ai.tool.call.id": "c1"}])
def test_the_details_of_a_tool_are_no_request_to_a_model(operation: dict[str, str]) -> None:
    """They are what its span leaves out."""
    held = {"gen_ai.tool.name": "book", "gen_ai.tool.call.arguments": PARIS, **operation}

    (found,) = read(agent(1), tool(2, "book", call_id="c1", parent=1), log(DETAILS, held, 3, 2), model_calls=True)

    assert [("book", PARIS, span_id(2))] == [(each.name, each.arguments, each.span_id) for each in found.calls]
    assert found.model_calls == ()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (None, {"key": 1}),
        ("text", {BODY: "text", "key": 1}),
        ({"key": 2, "other": 3}, {"key": 1, "other": 3}),
    ],
)
def test_a_body_is_among_the_attributes(body: AttributeValue, expected: dict[str, AttributeValue]) -> None:
    """A mapping by its keys, behind the attributes of the record; another value by a key of its own."""
    assert expected == with_body({"key": 1}, body)
