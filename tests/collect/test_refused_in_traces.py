"""Spans that a receiver refused: a trace knows how many it lacks, and nothing else of them."""

from __future__ import annotations

from typing import Any

import pytest

from spanscore.collect.settings import TraceSettings
from spanscore.collect.table import TraceTable
from spanscore.model import DROPPED, CloseReason, Span, Trace, refused_span

A, B = (bytes([number]) * 16 for number in (1, 2))


def span(trace_id: bytes, number: int) -> Span:
    """A span with a parent that is not there."""
    return Span(trace_id, number.to_bytes(8), b"rootroot", "", start_ns=1, end_ns=2)


def refused(trace_id: bytes, number: int, name: str = "") -> Span:
    """What stands for a refused span."""
    return refused_span(trace_id, bytes([number]), name)


def table(**settings: Any) -> TraceTable:
    """A table in which no span is a root."""
    return TraceTable(TraceSettings(**{"trace_timeout_s": 10, "max_trace_age_s": 50} | settings), lambda _: False)


def lacking(traces: list[Trace]) -> list[tuple[int, int, int, int]]:
    """The spans of traces, those refused, those dropped of these, and the revision."""
    return [(len(trace.spans), trace.refused, trace.dropped, trace.revision) for trace in traces]


def test_each_is_known_once_and_counted_by_who_refused_it() -> None:
    """It is neither received nor live here; a trace is told how many it lacks, and how many of them were dropped."""
    traces = table()
    traces.add([refused(A, 1), span(A, 1), refused(A, 2, DROPPED), refused(A, 1), refused(B, 1)], 0)
    traces.add([span(A, 2), refused(A, 2), refused(A, 3)], 1)

    assert (2, 2, 2) == (traces.counts().received, traces.counts().live, traces.counts().open_traces)
    assert [(2, 3, 1, 0)] == lacking(traces.expire(11))
    assert (2, 2, 0) == (traces.counts().received, traces.counts().in_closed, traces.counts().live)
    assert {} == traces.counts().dropped == traces.counts().late


def test_a_trace_waits_for_spans_after_a_refused_one() -> None:
    """As after any other span; where no span came at all, as long as a trace may be open."""
    traces = table()
    traces.add([span(A, 1), refused(B, 1)], 0)
    traces.add([refused(A, 1)], 8)

    assert [] == traces.expire(17)
    assert [(1, 1, 0, 0)] == lacking(traces.expire(18))
    assert 50 == traces.next_due()
    assert [Trace(trace_id=B, spans=(), close_reason=CloseReason.TIMED_OUT)] == traces.expire(50)
    assert {CloseReason.TIMED_OUT: 1} == traces.counts().closed


def test_a_span_behind_refused_ones_has_the_trace_wait_no_longer_than_others() -> None:
    """The time-out counts from then on."""
    traces = table()
    traces.add([refused(A, 1)], 0)
    traces.add([span(A, 1)], 20)

    assert [] == traces.expire(29)
    assert traces.next_due() == 30
    assert [(1, 1, 0, 0)] == lacking(traces.expire(30))


@pytest.mark.parametrize(("late_spans", "revisions"), [("rescore", [(1, 1, 0, 1)]), ("ignore", [])])
def test_a_closed_trace_opens_again(late_spans: str, revisions: list[Any]) -> None:
    """It is told in a further revision, if late spans are."""
    traces = table(late_spans=late_spans)
    traces.add([span(A, 1)], 0)
    traces.expire(10)
    traces.add([refused(A, 1)], 11)

    assert revisions == lacking(traces.drain())
    assert (1, 1) == (traces.counts().received, traces.counts().in_closed)
    assert {} == +traces.counts().late


def test_they_take_up_room_until_the_trace_is_gone() -> None:
    """As many as a trace may have spans; further ones make no difference."""
    traces = table(span_limit=3, keep_closed_s=5)
    sizes = [10, 1, 2, 4, 8]
    traces.add([span(A, 1), *(refused(A, number) for number in range(4))], 0, sizes)

    assert 17 == traces.counts().held_bytes
    assert [(1, 3, 0, 0)] == lacking(traces.expire(10))
    assert 17 == traces.counts().held_bytes
    traces.expire(15)
    assert 0 == traces.counts().held_bytes


def test_a_trace_of_refused_spans_alone_gives_way_unnoticed() -> None:
    """No trace with a span was evicted; whoever asks for it is told that it ended."""
    traces = table(num_traces=1)
    traces.add([refused(A, 1)], 0)

    assert [Trace(trace_id=A, spans=(), close_reason=CloseReason.EVICTED)] == traces.add([span(B, 1)], 1)
    assert not traces.evicted
    traces.add([span(A, 1)], 2)
    assert {"num_traces": 1} == traces.evicted
