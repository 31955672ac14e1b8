"""Traces that are not as traces should be: what is held, when it closes, and what is scored."""

from __future__ import annotations

import subprocess
import sys
import time
import tracemalloc
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from catalogue.bounds import costs_at_most, resident_mib
from catalogue.scoring import a_run, report_of, tool_span
from dialects.spans import TRACE_ID, span
from receivers.otlp_requests import request_of, simple_span
from receivers.receiving import PROTOBUF, over_http
from serving import DEADLINE_S, ON_ANY_PORT, serving
from spanscore.collect.held_trace import DropReason
from spanscore.collect.remembered import LateReason, RememberedIds
from spanscore.collect.settings import TraceSettings
from spanscore.collect.table import TraceTable
from spanscore.model import CloseReason, Span, Trace


def table(**settings: Any) -> TraceTable:
    """A table as `serve` has it, with these settings and otherwise the default ones."""
    return TraceTable(TraceSettings(**settings), lambda span: not span.parent_span_id)


def names(trace: Trace) -> list[str]:
    """The tools that a trace called."""
    return [call.name for call in report_of(trace.spans).trajectory.calls]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"trace_id": bytes(16)}, "invalid_trace_id"),
        ({"trace_id": b"short"}, "invalid_trace_id"),
        ({"trace_id": b"l" * 17}, "invalid_trace_id"),
        ({"span_id": bytes(8)}, "invalid_span_id"),
        ({"span_id": b"short"}, "invalid_span_id"),
        ({"span_id": b"long id.."}, "invalid_span_id"),
        ({"parent_span_id": b"x"}, "invalid_parent_span_id"),
    ],
)
def test_ids_that_are_none(fields: dict[str, bytes], reason: str) -> None:
    """A span with an id of the wrong length, or of zeros, is refused by itself, and the sender is told how many."""
    bad = simple_span(2)
    for name, value in fields.items():
        setattr(bad, name, value)
    with over_http() as receiver:
        answer = receiver.post(request_of(simple_span(1), bad).SerializeToString())
    assert (200, True) == (answer.status, b"1 of 2 spans refused" in answer.body)
    assert (1, {reason: 1}) == (len(receiver.core.spans), dict(receiver.core.refused))


def test_the_same_span_twice() -> None:
    """A client that sends a span again changes nothing, before the trace is closed and after."""
    traces = table()
    for now in (0, 1):
        traces.add(a_run(tool_span(2)), now)
    (closed,) = traces.expire(4)
    assert [] == traces.add(a_run(tool_span(2)), 5)

    assert ["search"] == names(closed)
    assert (4, {}, 0) == (traces.counts().dropped[DropReason.DUPLICATE], traces.counts().late, traces.counts().live)


def test_one_span_id_and_two_spans() -> None:
    """Both are kept and counted as a conflict; the one that ends later is the one scored."""
    traces = table()
    early, late = tool_span(2, "early"), tool_span(2, "late")._replace(end_ns=2**62)
    traces.add(a_run(late, early), 0)
    (closed,) = traces.expire(2)

    assert (3, 1, ["late"]) == (len(closed.spans), traces.counts().conflicts, names(closed))


def test_two_roots() -> None:
    """A trace closes when the last root known has ended, and what is below either root is scored."""
    traces = table(decision_delay_s=2)
    traces.add([span(1, "one"), tool_span(2, "below one")], 0)
    traces.add([span(3, "two"), tool_span(4, "below two", parent=3)], 1)

    assert [] == traces.expire(2.9)
    (closed,) = traces.expire(3)
    assert ["below one", "below two"] == names(closed)


def test_a_root_that_never_comes() -> None:
    """The trace closes 30 s after its last span, or 15 min after its first, and is scored as incomplete."""
    traces = table()
    traces.add([tool_span(2)], 0)
    assert [] == traces.expire(29)
    (closed,) = traces.expire(30)
    report = report_of(closed.spans)
    assert (CloseReason.TIMED_OUT, False) == (closed.close_reason, report.complete)

    busy = table()
    closings = [closed for second in range(0, 1_000, 20) for closed in busy.add([tool_span(second + 2)], second)]
    assert [46] == [len(closed.spans) for closed in closings]


def test_a_root_before_its_children() -> None:
    """Each child that follows puts the closing off by 2 s, but never beyond 10 s after the root."""
    traces = table()
    traces.add([span(1, "run")], 0)
    closings = [(second, trace) for second in range(1, 20) for trace in traces.add([tool_span(second + 1)], second)]

    second, closed = closings[0]
    assert (10, 10) == (second, len(names(closed)))


def test_a_span_after_the_close() -> None:
    """It is counted as late, and makes one more score with revision 1; what was closed never opens silently."""
    traces = table()
    traces.add(a_run(tool_span(2, "in time")), 0)
    assert [0] == [closed.revision for closed in traces.expire(2)]
    traces.add([tool_span(3, "late")], 30)
    (again,) = traces.expire(32)

    assert (1, ["in time", "late"]) == (again.revision, names(again))
    assert {LateReason.RESCORED: 1} == traces.counts().late
    traces.add([tool_span(4, "much later")], 32 + 60)
    assert [] == traces.expire(10**6)
    assert {LateReason.RESCORED: 1, LateReason.NOT_KEPT: 1} == traces.counts().late


def test_a_root_after_the_timeout() -> None:
    """A root that comes when the trace was given up makes a revision, which is then complete."""
    traces = table()
    traces.add([tool_span(2)], 0)
    traces.expire(30)
    traces.add([span(1, "run")], 40)
    (again,) = traces.expire(42)

    assert (1, CloseReason.ROOT_ENDED, 2) == (again.revision, again.close_reason, len(again.spans))


@pytest.mark.parametrize("length", [1, 2, 20_000])
def test_parents_that_form_a_cycle(length: int) -> None:
    """Spans that are each other's, or their own, ancestors are scored once each: 20,000 of them within 6 s."""
    spans = [tool_span(2 + number, f"tool {number}", parent=2 + (number + 1) % length) for number in range(length)]
    with costs_at_most(cpu_s=6, mib=192):
        report = report_of(spans)
    assert length == len(report.trajectory.calls)


def test_a_chain_of_a_hundred_thousand() -> None:
    """Spans below each other, 100,000 deep, are read without recursion: within 8 s and 256 MiB."""
    spans = [span(1, "run"), *(span(number, "step", {"a": 1}, parent=number - 1) for number in range(2, 100_001))]
    with costs_at_most(cpu_s=8, mib=256):
        report = report_of([*spans, tool_span(100_001, parent=100_000)])
    assert (1, True) == (len(report.trajectory.calls), report.complete)


@pytest.mark.parametrize("span_limit", [1_000, pytest.param(10_000, marks=pytest.mark.full_size)])
def test_a_trace_of_a_million_spans(span_limit: int) -> None:
    """10,000 spans are held and scored as a part; the rest is counted, not kept: within 10 s and 64 MiB.

    So it is with a tenth of both.
    """
    traces = table(span_limit=span_limit)
    closed: list[Trace] = []
    with costs_at_most(cpu_s=10, mib=64):
        for start in range(0, span_limit + 1_000, 1_000):
            batch = [
                Span(TRACE_ID, number.to_bytes(8, "big"), b"root----", "s", 1, 2)
                for number in range(start, start + 1_000)
            ]
            closed += traces.add(batch, 1.0)
        for _ in range(start // 1_000 + 1, span_limit // 10):
            closed += traces.add(batch, 1.0)
    assert [(CloseReason.SPAN_LIMIT, span_limit)] == [(trace.close_reason, len(trace.spans)) for trace in closed]
    assert {LateReason.OVER_LIMIT: 99 * span_limit} == traces.counts().late
    assert 100 * span_limit == traces.counts().received
    assert [] == traces.drain()
    assert 10_000 == TraceSettings().span_limit


def test_senders_whose_clocks_are_wrong() -> None:
    """Calls are ordered by their start, then by arrival, and no time in a span closes or keeps open anything."""
    hour_ns = 3_600 * 10**9
    skewed = [
        tool_span(2, "third", at_ms=5),
        tool_span(3, "first")._replace(start_ns=0, end_ns=1),
        tool_span(4, "second")._replace(start_ns=span(1, "run").start_ns - hour_ns),
        tool_span(5, "last")._replace(start_ns=2**64 - 1, end_ns=2**64 - 1),
    ]
    traces = table()
    traces.add(a_run(*skewed), 0)
    assert [] == traces.expire(1.9)
    (closed,) = traces.expire(2)
    assert ["first", "second", "third", "last"] == names(closed)


@pytest.mark.parametrize(
    ("start_ns", "end_ns", "duration_ms"), [(10, 5, 0), (10, 10, 0), (0, 2**64 - 1, (2**64 - 1) / 1e6)]
)
def test_durations_that_cannot_be(start_ns: int, end_ns: int, duration_ms: float) -> None:
    """A negative duration counts as none; a huge one is only large; the run is scored either way."""
    report = report_of(a_run(tool_span(2)._replace(start_ns=start_ns, end_ns=end_ns)))
    assert ([duration_ms], "pass") == ([call.duration_ms for call in report.trajectory.calls], report.label)


def test_a_wall_clock_that_jumps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A day back or forth on the wall clock closes no trace early, late, or twice."""
    days = iter([-1, 1, -1, 1] * 10_000)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + next(days) * 86_400)
    monkeypatch.setattr(time, "time_ns", lambda: int(time.time() * 1e9))
    with serving(ON_ANY_PORT + "traces: {decision_delay: 50ms, trace_timeout: 1h}\n") as running:
        for number in (1, 2):
            request = urllib.request.Request(
                f"{running.http}/v1/traces",
                request_of(simple_span(number)).SerializeToString(),
                {"Content-Type": PROTOBUF},
            )
            urllib.request.urlopen(request, timeout=DEADLINE_S).close()
            running.reports.wait_for(number)
    assert [CloseReason.ROOT_ENDED] * 2 == [report.close_reason for report in running.reports.emitted]


HONEST_SPANS = 10
HONEST = 300


def honest() -> Iterator[tuple[int, Span]]:
    """Yield the spans of traces that each take a while, many of them at once, with the moment of each."""
    for number in range(HONEST):
        trace_id = b"honest" + number.to_bytes(10, "big")
        for step in range(HONEST_SPANS):
            is_last = step == HONEST_SPANS - 1
            yield (
                number * 4 + step * 20,
                Span(trace_id, (step + 1).to_bytes(8, "big"), b"" if is_last else b"rootroot", "s", 1, 2),
            )


def test_a_flood_of_traces() -> None:
    """While 50,000 invented traces of one span each pass by, 99 % of the others close whole, and memory stays flat."""
    traces = table(num_traces=1_000, decision_delay_s=0.01)
    moments: dict[int, list[Span]] = {}
    for moment, each in honest():
        moments.setdefault(moment, []).append(each)
    last = max(moments)
    per_moment = 50_000 // last + 1
    invented = 0
    whole = 0
    at_start = at_end = 0.0
    for moment in range(last + 1):
        flood = [
            Span((1 << 120 | invented + number).to_bytes(16, "big"), bytes(7) + b"\x01", b"rootroot", "s", 1, 2)
            for number in range(per_moment)
        ]
        invented += per_moment
        closed = traces.add([*flood, *moments.get(moment, ())], moment * 0.01)
        whole += sum(trace.trace_id.startswith(b"honest") and len(trace.spans) == HONEST_SPANS for trace in closed)
        if moment == last // 2:  # by then, all that has a bound has reached it
            at_start = resident_mib()
    at_end = resident_mib()

    assert invented >= 50_000
    assert whole >= 0.99 * HONEST
    assert at_end - at_start <= 4
    counts = traces.counts()
    assert counts.received == counts.in_closed + counts.live + sum(counts.late.values()) + sum(counts.dropped.values())


def test_more_closed_ids_than_are_remembered() -> None:
    """Of 20,000 remembered ids the latest 20,000 are known. They take 18 bytes each, however many are added."""
    tracemalloc.start()  # counts exactly; the process has a MiB more or less, by what else it did before
    try:
        ids = RememberedIds(20_000)
        empty, _ = tracemalloc.get_traced_memory()
        for number in range(50_000):
            ids.add(number.to_bytes(16, "big"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert empty <= 20_000
    assert peak <= 18 * 20_000
    assert all(number.to_bytes(16, "big") in ids for number in range(30_000, 50_000, 10))


def test_ids_made_to_collide() -> None:
    """Python's hash of ids is keyed anew in each process, so that nobody can choose ids that collide."""
    program = "import spanscore.collect.remembered; print(hash(bytes(range(16))))"
    hashes = {
        subprocess.run(
            [sys.executable, "-c", program], check=True, capture_output=True, text=True, env={}, timeout=DEADLINE_S
        ).stdout
        for _ in range(2)
    }
    assert 2 == len(hashes)
