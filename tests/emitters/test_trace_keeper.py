"""Decisions about traces, and the counts of their spans."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from emitters.raw_requests import REQUESTS, taken_apart
from emitters.reports import NOT_PASSED, PASSED, report, trajectory
from otlp_capture import DEADLINE_S, InMemory, spans_of
from receivers.otlp_requests import request_of, simple_span, span_id, trace_id
from spanscore.emitters.otlp.forward import Forward
from spanscore.emitters.otlp.forward_settings import ForwardSettings
from spanscore.emitters.otlp.trace_keeper import HUNG_AFTER_S, TraceKeeper
from spanscore.emitters.sending.backlog import QueueLimits
from spanscore.emitters.sending.send_queue import Timing
from spanscore.model import CloseReason, KeepDecision, Trace
from spanscore.scoring.keep.sampling import adjusted_count, read_state, threshold_of
from spanscore.scoring.keep.settings import KeepRule, KeepSettings, KeepWhen

HALF = KeepSettings(rules=(KeepRule(name="failing", when=KeepWhen(verdict="fail")),), default=0.5)
HIGH, LOW = 0xFF << 48, 1
"""Trace ids with a randomness above and below the threshold of a half."""


class Deciding:
    """A keeper, and the traces that are closed."""

    def __init__(self, settings: KeepSettings = HALF) -> None:
        self.closed: set[bytes] = set()
        self.keeper = TraceKeeper(settings, self.closed.__contains__, remember=1_000, longest_s=900.0)
        self.counts = self.keeper.counts

    def take(self, *spans: Span, now: float = 0.0) -> None:
        """Receive spans in one request."""
        self.keeper.take(request_of(*spans).SerializeToString(), now)

    def decide(self, trace: int, *, fails: bool = False, revision: int = 0, cut_short: bool = False) -> KeepDecision:
        """Close a trace, and decide about it."""
        self.closed.add(trace_id(trace))
        closed = Trace(
            trace_id=trace_id(trace),
            spans=(),
            close_reason=CloseReason.ROOT_ENDED,
            revision=revision,
            cut_short=cut_short,
        )
        return self.keeper.decide(closed, [report(NOT_PASSED if fails else PASSED)])


def size_of(*spans: Span) -> int:
    """Return the bytes of spans in a request."""
    return sum(len(span.SerializeToString()) for span in spans)


def test_a_decision_depends_on_the_rule_and_the_randomness() -> None:
    """A failing trace is kept, of the others a half."""
    deciding = Deciding()
    deciding.take(simple_span(HIGH), simple_span(LOW), simple_span(LOW, 2), simple_span(LOW + 1))

    assert (True, "default") == deciding.decide(HIGH)[:2]
    assert (False, "default") == deciding.decide(LOW)[:2]
    assert (True, "failing") == deciding.decide(LOW + 1, fails=True)[:2]
    assert {("default", "kept"): 1, ("default", "dropped"): 1, ("failing", "kept"): 1} == deciding.counts.traces
    assert {"kept": 2, "dropped": 2} == deciding.counts.spans
    assert size_of(simple_span(LOW), simple_span(LOW, 2)) == deciding.counts.bytes["dropped"]
    assert (0, 0) == (deciding.counts.held_spans, deciding.counts.held_bytes)


@pytest.mark.parametrize(("traces", "spans"), [(1_000, 1), (100, 10)])
def test_the_bytes_that_wait_are_those_of_memory(traces: int, spans: int) -> None:
    """Also of many traces with few small spans, which take more than their spans."""
    requests = [
        request_of(*(simple_span(trace, 1 + span) for span in range(spans))).SerializeToString()
        for trace in range(traces)
    ]
    deciding = Deciding(replace(HALF, mode="on"))
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for request in requests:
            deciding.keeper.take(request, 0.0)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before == pytest.approx(deciding.counts.held_bytes, rel=0.25)


def test_a_decision_is_final() -> None:
    """A later revision has another verdict, and the same decision; late spans follow it."""
    deciding = Deciding()
    deciding.take(simple_span(LOW), simple_span(HIGH))
    deciding.decide(LOW)
    deciding.decide(HIGH)
    deciding.take(simple_span(LOW, 2), simple_span(HIGH, 2))

    assert (False, "default") == deciding.decide(LOW, fails=True, revision=1)[:2]
    assert (True, "default") == deciding.decide(HIGH, fails=True, revision=1)[:2]
    assert {"kept": 1, "dropped": 1} == deciding.counts.late
    assert {("default", "kept"): 1, ("default", "dropped"): 1} == deciding.counts.traces


def test_late_spans_of_a_trace_that_is_not_remembered_are_kept() -> None:
    """As those of a rule that keeps all."""
    deciding = Deciding()
    deciding.decide(LOW, fails=True)
    deciding.take(simple_span(LOW, 2))
    assert {"kept": 1} == deciding.counts.late


def test_randomness_of_the_root_sampler() -> None:
    """`rv` counts, and not the trace id; late spans without it follow."""
    deciding = Deciding()
    deciding.take(
        simple_span(LOW, trace_state="ot=rv:ffffffffffffff"), simple_span(LOW, 2, trace_state="ot=rv:ffffffffffffff")
    )
    deciding.take(simple_span(HIGH, trace_state="x=y,ot=rv:00000000000000"))

    assert deciding.decide(LOW).kept
    assert not deciding.decide(HIGH).kept
    deciding.take(simple_span(LOW, 3), simple_span(HIGH, 3))
    assert {"kept": 1, "dropped": 1} == deciding.counts.late
    assert 0 == deciding.counts.inconsistent


def test_inconsistent_spans_are_counted() -> None:
    """A span that an earlier sampler would not have passed, and each span of a trace that differs."""
    deciding = Deciding()
    deciding.take(simple_span(HIGH, trace_state="ot=th:fffff"), simple_span(HIGH, 2, trace_state="ot=th:8"))
    deciding.take(simple_span(HIGH + 1, trace_state="ot=rv:ffffffffffffff"), simple_span(HIGH + 1, 2))
    deciding.decide(HIGH)
    assert 1 == deciding.counts.inconsistent
    deciding.decide(HIGH + 1)
    assert 3 == deciding.counts.inconsistent


def test_the_oldest_trace_leaves_whole() -> None:
    """If there is no room; and so do its later spans, whatever would have been decided."""
    deciding = Deciding(replace(HALF, max_bytes=(size_of(simple_span(LOW)) + 50) * 3 + 1_800))
    deciding.take(simple_span(LOW), simple_span(LOW, 2), simple_span(LOW + 1), simple_span(LOW + 2))
    assert {"max_bytes": 1} == deciding.counts.undecided
    deciding.take(simple_span(LOW, 3))

    assert (True, "") == deciding.decide(LOW)[:2]
    assert not deciding.decide(LOW + 1).kept
    assert {"kept": 3, "dropped": 1} == deciding.counts.spans
    assert 1 == deciding.counts.late["kept"]
    assert 1 == deciding.counts.held_spans


def test_what_is_not_decided_in_time_is_kept() -> None:
    """And so is what could not be scored, and what the end of the process cut short."""
    deciding = Deciding()
    deciding.take(simple_span(LOW), now=0.0)
    deciding.take(simple_span(LOW + 1), now=899.0)
    deciding.take(simple_span(LOW + 2), now=900.0)
    assert {"hung": 1} == deciding.counts.undecided
    assert deciding.decide(LOW + 1, cut_short=True).kept
    closed = Trace(trace_id=trace_id(LOW + 2), spans=(), close_reason=CloseReason.ROOT_ENDED)
    assert deciding.keeper.decide(closed, None).kept
    assert {"hung": 1, "shutdown": 1, "failed": 1} == deciding.counts.undecided
    assert {"kept": 3} == deciding.counts.spans


EVENTS = st.lists(
    st.tuples(st.sampled_from(["take", "close", "fail", "end"]), st.integers(0, 5), st.booleans()), max_size=40
)


@given(events=EVENTS, room=st.integers(1, 20))
def test_no_span_is_lost_from_the_counts(events: list[tuple[str, int, bool]], room: int) -> None:
    """Received = kept + dropped + held, at each moment; a failing trace that is decided is kept."""
    deciding = Deciding(replace(HALF, max_bytes=660 * room))
    for number, (event, which, is_high) in enumerate(events, 1):
        trace = which + (HIGH if is_high else LOW)
        known = trace_id(trace) in deciding.closed
        if event == "take":
            deciding.take(simple_span(trace, number), now=number)
        elif event == "end":
            deciding.keeper.expire(number * 100.0)
        elif not known:
            decision = deciding.decide(trace, fails=event == "fail")
            assert decision.kept or (event == "close" and not is_high)
        counts = deciding.counts
        assert counts.received == sum(counts.spans.values()) + counts.held_spans
        assert counts.held_bytes <= 660 * room


class Keeping:
    """A forward emitter with a keeper that is on, and what comes out of it."""

    def __init__(self, settings: KeepSettings = HALF, *, annotates: bool = True) -> None:
        self.client = InMemory()
        self.now = 0.0
        self.closed: set[bytes] = set()
        sending = ForwardSettings(queue=QueueLimits(batch_bytes=0, linger_s=0), annotates=annotates)
        self.forward = Forward(self.client, sending, Timing(clock=lambda: self.now))
        on = replace(settings, mode="on")
        self.keeper = TraceKeeper(on, self.closed.__contains__, remember=1_000, longest_s=900.0)
        self.forward.keep_by(self.keeper)

    def take(self, *spans: Span) -> None:
        """Receive spans in one request."""
        self.forward.take(request_of(*spans).SerializeToString())

    def close(self, *traces: int, fails: bool = False) -> None:
        """Close traces, decide about them, and emit their reports."""
        for trace in traces:
            self.closed.add(trace_id(trace))
            self.forward.closed(trace_id(trace))
            about = trajectory(trace_id=trace_id(trace), root_span_id=span_id(1))
            told = report(NOT_PASSED if fails else PASSED, about=about)
            closed = Trace(trace_id=trace_id(trace), spans=(), close_reason=CloseReason.ROOT_ENDED)
            self.forward.emit(replace(told, keep=self.forward.decide(closed, [told])))

    def sent(self) -> list[Span]:
        """Return what is passed on by now."""
        assert self.forward.flush(DEADLINE_S)
        return spans_of(self.client.taken)

    def end(self) -> list[Span]:
        """End it, and return all that was passed on."""
        self.forward.close(DEADLINE_S)
        counts = self.forward.counts()
        assert counts.received == counts.sent + counts.queued + counts.held + sum(counts.dropped.values())
        assert 0 == counts.held
        return spans_of(self.client.taken)


def tags_of(span: Span) -> dict[str, str | float]:
    """Return the attributes of the section on a span."""
    found = {each.key.removeprefix("spanscore.keep."): each.value for each in span.attributes if "keep" in each.key}
    return {key: value.string_value or value.double_value for key, value in found.items()}


def child(trace: int, span: int, **fields: object) -> Span:
    """Return a span below the root."""
    return simple_span(trace, span, parent_span_id=span_id(1), **fields)


def test_spans_wait_for_the_decision() -> None:
    """A trace is sent whole, or not at all; a failing one has the score on its root."""
    keeping = Keeping()
    keeping.take(child(HIGH, 2), child(LOW, 2), child(LOW + 1, 2))
    keeping.take(simple_span(HIGH), simple_span(LOW), simple_span(LOW + 1))
    assert [] == keeping.sent()
    assert 6 == keeping.forward.counts().held
    keeping.close(HIGH, LOW)
    keeping.close(LOW + 1, fails=True)
    spans = keeping.end()

    kept = {(trace_id(trace), span_id(span)) for trace in (HIGH, LOW + 1) for span in (1, 2)}
    assert kept == {(span.trace_id, span.span_id) for span in spans}
    assert len(spans) == 4
    assert {"sampled": 2} == keeping.forward.counts().dropped
    for span in spans:
        is_failing, is_root = span.trace_id == trace_id(LOW + 1), not span.parent_span_id
        tags: dict[str, str | float] = {"rule": "failing" if is_failing else "default"}
        assert tags | ({"adjusted_count": 1.0 if is_failing else 2.0} if is_root else {}) == tags_of(span)
        assert ("" if is_failing else "ot=th:8") == span.trace_state
        assert is_root == bool(span.events)


@pytest.mark.parametrize(
    ("state", "share", "after"),
    [
        ("", 0.5, "ot=th:8"),
        ("", 1.0, ""),
        ("a=b", 0.5, "ot=th:8,a=b"),
        ("a=b,ot=p:8;th:4", 0.5, "ot=th:8;p:8,a=b"),
        ("a=b,ot=th:c", 0.5, "a=b,ot=th:c"),
        ("ot=th:c;rv:ffffffffffffff", 1.0, "ot=th:c;rv:ffffffffffffff"),
        ("ot=rv:ffffffffffffff", 0.5, "ot=th:8;rv:ffffffffffffff"),
        ("ot=th:fffff;k:1", 0.5, "ot=k:1"),
        ("ot=th:fffff", 1.0, ""),
        ("ot=nonsense", 0.5, "ot=nonsense"),
    ],
)
def test_the_trace_state_of_kept_spans(state: str, share: float, after: str) -> None:
    """The higher threshold, first; none where it would be wrong, and then no adjusted count either."""
    keeping = Keeping(KeepSettings(default=share))
    before = simple_span(HIGH, trace_state=state)
    keeping.take(before)
    keeping.close(HIGH)
    (span,) = keeping.end()

    assert after == span.trace_state
    threshold = read_state(after).threshold
    is_wrong = keeping.keeper.counts.inconsistent
    assert is_wrong == int("th:fffff" in state or "nonsense" in state)
    expected = {} if is_wrong else {"adjusted_count": adjusted_count(threshold or 0)}
    assert {"rule": "default", **expected} == tags_of(span)
    del span.attributes[len(before.attributes) :], span.events[:]
    span.trace_state = state
    assert before == span


def test_spans_that_differ_in_randomness_lose_their_threshold() -> None:
    """What the trace stands for is not known."""
    keeping = Keeping()
    keeping.take(simple_span(HIGH, trace_state="ot=rv:ffffffffffffff;th:4"), child(HIGH, 2, trace_state="ot=th:4"))
    keeping.close(HIGH)
    assert {"ot=rv:ffffffffffffff", ""} == {span.trace_state for span in keeping.end()}
    assert 2 == keeping.keeper.counts.inconsistent


def test_late_spans_follow() -> None:
    """With the tags of the rule, as far as it is remembered."""
    keeping = Keeping()
    keeping.take(simple_span(HIGH), simple_span(LOW), simple_span(LOW + 1))
    keeping.close(HIGH, LOW)
    keeping.close(LOW + 1, fails=True)
    keeping.take(child(HIGH, 2), child(LOW, 2), child(LOW + 1, 2))
    late = [span for span in keeping.end() if span.parent_span_id]

    assert [(trace_id(HIGH), "ot=th:8", {"rule": "default"}), (trace_id(LOW + 1), "", {})] == [
        (span.trace_id, span.trace_state, tags_of(span)) for span in late
    ]


@pytest.mark.parametrize("annotates", [True, False])
def test_a_trace_that_leaves_is_as_it_came(annotates: bool) -> None:  # noqa: FBT001 - the parameter
    """Byte for byte, and so are its later spans; its root still gets the scores, if it does at all."""
    keeping = Keeping(replace(HALF, max_bytes=1), annotates=annotates)
    keeping.take(child(LOW, 2, trace_state="a=b"))
    keeping.take(simple_span(LOW))
    keeping.close(LOW)
    spans = keeping.end()

    assert child(LOW, 2, trace_state="a=b") in spans
    root = next(span for span in spans if not span.parent_span_id)
    assert annotates == bool(root.events)
    del root.events[:]
    assert simple_span(LOW) == root
    assert {"max_bytes": 1} == keeping.keeper.counts.undecided


def test_a_trace_whose_evaluation_hangs_is_kept() -> None:
    """Half a minute after it was closed."""
    keeping = Keeping()
    keeping.take(child(LOW, 2), child(LOW + 1, 2))
    keeping.closed.add(trace_id(LOW))
    keeping.forward.closed(trace_id(LOW))
    keeping.now = HUNG_AFTER_S - 1
    assert [] == keeping.sent()
    keeping.now = HUNG_AFTER_S
    assert [child(LOW, 2)] == keeping.sent()
    keeping.close(LOW)
    assert {"hung": 1} == keeping.keeper.counts.undecided
    keeping.end()


def test_what_another_process_gets_is_dropped() -> None:
    """It decides about it."""
    keeping = Keeping()
    keeping.take(child(HIGH, 2), child(HIGH + 1, 2))
    keeping.forward.give_up([trace_id(HIGH)])
    assert {"handed_over": 1} == keeping.forward.counts().dropped
    assert [child(HIGH + 1, 2)] == keeping.end()
    assert {"handed_over": 1, "kept": 1} == keeping.keeper.counts.spans


def test_a_large_trace_goes_in_several_requests() -> None:
    """Receivers take no larger ones."""
    keeping = Keeping()
    spans = [child(HIGH, number, name="n" * 400_000) for number in range(2, 8)]
    keeping.take(*spans[:3])
    keeping.take(*spans[3:])
    keeping.close(HIGH)
    assert {span.span_id for span in spans} == {span.span_id for span in keeping.end()}
    assert max(map(len, keeping.client.taken)) < 2**20 + 2_000


@given(requests=st.lists(REQUESTS, max_size=3), max_bytes=st.sampled_from([1, 1_600, 2**20]))
def test_what_is_not_decided_comes_out_as_it_went_in(requests: list[bytes], max_bytes: int) -> None:
    """Byte for byte, with its resource, its scope, their schemas and unknown fields; joined requests share theirs."""
    keeping = Keeping(replace(HALF, max_bytes=max_bytes))
    for request in requests:
        keeping.forward.take(request)
    keeping.end()
    before, after = taken_apart(requests), taken_apart(keeping.client.taken)
    assert Counter(each._replace(request=b"") for each in before.elements()) == Counter(
        each._replace(request=b"") for each in after.elements()
    )


TAKEN = st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.sampled_from(["", "a=b", "ot=th:4"])), max_size=20)


@given(taken=TAKEN, closed=st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=6))
def test_observe_says_what_on_does(taken: Iterable[tuple[int, bool, str]], closed: list[tuple[int, bool]]) -> None:
    """Trace for trace and count for count."""
    spans = [
        simple_span(which + (HIGH if is_high else LOW), number, trace_state=state)
        for number, (which, is_high, state) in enumerate(taken, 1)
    ]
    keeping, observing = Keeping(replace(HALF, max_bytes=6_000)), Deciding(replace(HALF, max_bytes=6_000))
    for place, span in enumerate(spans):
        keeping.take(span)
        observing.take(span)
        for which, is_high in closed if place == len(spans) // 2 else ():
            trace = which + (HIGH if is_high else LOW)
            if trace_id(trace) not in keeping.closed:
                keeping.close(trace)
                observing.decide(trace)
    assert keeping.keeper.counts == observing.counts
    keeping.end()
    dropped = keeping.keeper.counts.spans["dropped"]
    assert len(spans) - dropped == len(spans_of(keeping.client.taken))


def test_thresholds_are_those_of_the_specification() -> None:
    """Of a half, as used above."""
    assert 0x8 << 52 == threshold_of(0.5)
