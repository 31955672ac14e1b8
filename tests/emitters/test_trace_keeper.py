"""Decisions about traces, and the counts of their spans."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from emitters.reports import NOT_PASSED, PASSED, report
from receivers.otlp_requests import request_of, simple_span, trace_id
from spanscore.emitters.otlp.trace_keeper import TraceKeeper
from spanscore.keep.settings import KeepRule, KeepSettings, KeepWhen
from spanscore.model import CloseReason, KeepDecision, Trace

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
    return len(request_of(*spans).resource_spans[0].scope_spans[0].SerializeToString())


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
    deciding = Deciding(replace(HALF, max_bytes=size_of(simple_span(LOW)) * 3))
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
    deciding = Deciding(replace(HALF, max_bytes=60 * room))
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
        assert counts.held_bytes <= 60 * room
