from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spanscore.collect.counts import Counts
from spanscore.collect.held_trace import DropReason
from spanscore.collect.remembered import LateReason
from spanscore.collect.settings import TraceSettings
from spanscore.collect.table import TraceTable
from spanscore.model import CloseReason, SharedAttributes, Span, Trace

A, B, C = (bytes([number]) * 16 for number in (1, 2, 3))
ROOT = b"rootroot"


def child(trace_id: bytes, number: int, name: str = "") -> Span:
    """A span below the root."""
    return Span(trace_id, number.to_bytes(8), ROOT, name, start_ns=1, end_ns=2)


def root(trace_id: bytes, span_id: bytes = ROOT, end_ns: int = 2) -> Span:
    """A root span, ended unless said otherwise."""
    return Span(trace_id, span_id, b"", "agent", start_ns=1, end_ns=end_ns)


def is_root(span: Span) -> bool:
    """Say whether a span has no parent."""
    return not span.parent_span_id


def table(**settings: Any) -> TraceTable:
    """A table with these settings and otherwise the default ones."""
    return TraceTable(TraceSettings(**settings), is_root)


def closed(reason: CloseReason, *spans: Span, revision: int = 0, beyond: Span | None = None) -> Trace:
    """The trace that the table is expected to return."""
    return Trace(trace_id=spans[0].trace_id, spans=spans, close_reason=reason, revision=revision, beyond=beyond)


def trace_id(number: int) -> bytes:
    """An id that counts up."""
    return number.to_bytes(16)


class TestSlices:
    def test_looks_at_one_trace_at_a_time(self) -> None:
        """Traces that are due and were not looked at stay open; the one due first is closed first."""
        traces = table(trace_timeout_s=10)
        for at, number in enumerate((3, 1, 2)):
            assert [] == traces.add([child(trace_id(number), 1)], now=at)

        for left, number in ((2, 3), (1, 1), (0, 2)):
            assert [trace_id(number)] == [trace.trace_id for trace in traces.expire_next(20) or ()]
            assert (left, left) == (traces.counts().open_traces, traces.counts().live)
        assert traces.expire_next(20) is None

    def test_a_span_joins_a_trace_that_is_due_and_open(self) -> None:
        """It is not late, and a trace without a root waits again as long as after any other span."""
        traces = table(trace_timeout_s=10, decision_delay_s=0)
        traces.add([child(A, 1), child(B, 1)], now=0)
        assert [A] == [trace.trace_id for trace in traces.expire_next(10) or ()]
        assert [] == traces.add([child(B, 2)], now=10, close_due=False)

        assert [] == traces.expire(19.9)
        assert [closed(CloseReason.TIMED_OUT, child(B, 1), child(B, 2))] == traces.expire(20)

    def test_a_trace_that_its_root_completes_is_left_open_where_asked(self) -> None:
        """What is due at once closes with the next look, with all that came until then."""
        traces = table(decision_delay_s=0)
        assert [] == traces.add([root(A)], now=1, close_due=False)
        assert [] == traces.add([child(A, 1)], now=1, close_due=False)
        assert [closed(CloseReason.ROOT_ENDED, root(A), child(A, 1))] == traces.expire(1)

    def test_spans_of_closed_traces_are_let_go_a_few_at_a_time(self) -> None:
        """Those held too long are let go of as slowly as others close, and all of them in the end."""
        traces = table(decision_delay_s=0, keep_closed_s=5)
        traces.add([root(trace_id(number)) for number in range(1, 6)], now=1)
        held = []
        assert traces.expire_next(5) is None
        while traces.expire_next(6) is not None:
            held.append(traces.counts().held_spans)
        assert [4, 3, 2, 1, 0] == held


class TestWhatIsOpen:
    def test_from_the_first_span_to_the_closing(self) -> None:
        """A trace is open from its first span on, whether others follow or not, until it is closed."""
        traces = table(trace_timeout_s=10)
        traces.add([child(A, 1), child(B, 1), child(B, 2)], now=0)

        assert (True, True, False) == tuple(map(traces.open.__contains__, (A, B, C)))
        traces.close(B)
        assert (True, False, False) == tuple(map(traces.open.__contains__, (A, B, C)))

    def test_whose_root_has_ended(self) -> None:
        """Those are told apart from the others that are open, the oldest first."""
        traces = table()
        traces.add([child(A, 1), root(B), root(C), child(C, 1)], now=0)

        assert ([A, B, C], [B, C]) == (traces.open.ids(), traces.open.ended())

    def test_a_resource_takes_up_room_in_each_trace_that_keeps_it(self) -> None:
        """Once for each run of spans that share it, on top of what the spans take."""
        resource = SharedAttributes({"service.name": "a"}, 100)
        one, two, other = (child(each, number)._replace(resource=resource) for each, number in ((A, 1), (A, 2), (B, 1)))
        traces = table(max_trace_bytes=115)
        traces.add([one, two, other], now=0, sizes=[1, 2, 4])

        assert 207 == traces.counts().held_bytes
        assert [] == traces.add([child(A, 3)], now=0, sizes=[12])
        assert [closed(CloseReason.SIZE_LIMIT, one, two, child(A, 3), beyond=child(A, 4))] == traces.add(
            [child(A, 4)], now=0, sizes=[1]
        )

    def test_when_something_is_due(self) -> None:
        """Not before a trace can be: its timeout after the first span, or its age if that is less."""
        assert table().next_due() is None
        for settings in ({"trace_timeout_s": 10}, {"max_trace_age_s": 10}):
            traces = table(**settings)
            traces.add([child(A, 1)], now=5)

            assert (15, None) == (traces.next_due(), traces.expire_next(14))
            assert [A] == [trace.trace_id for trace in traces.expire_next(15) or ()]

    def test_a_trace_that_opens_again_waits_from_then_on(self) -> None:
        """Its last span is the late one, not the one before the closing."""
        traces = table(trace_timeout_s=10)
        traces.add([child(A, 1)], now=0)
        traces.expire(10)
        traces.add([child(A, 2)], now=30)

        assert [] == traces.expire(39)
        assert [1] == [trace.revision for trace in traces.expire(40)]


class TestDecisionDelay:
    def test_closes_after_the_delay(self) -> None:
        """A trace closes `decision_delay_s` after its root has ended, with its spans in the order of arrival."""
        traces = table(decision_delay_s=2)

        assert [] == traces.add([child(A, 1), root(A)], now=10)
        assert 12 == traces.next_due()
        assert [] == traces.expire(11.9)
        assert [closed(CloseReason.ROOT_ENDED, child(A, 1), root(A))] == traces.expire(12)
        assert traces.next_due() is None

    def test_root_first(self) -> None:
        """A root that arrives before its children closes the trace all the same."""
        traces = table(decision_delay_s=2)
        traces.add([root(A)], now=0)
        traces.add([child(A, 1)], now=1)

        assert [closed(CloseReason.ROOT_ENDED, root(A), child(A, 1))] == traces.expire(3)

    def test_late_children_restart_it(self) -> None:
        """Every span after the root restarts the delay, however many come at once."""
        traces = table(decision_delay_s=2)
        traces.add([root(A)], now=0)
        traces.add([child(A, number) for number in range(20)], now=1)
        traces.add([child(A, 20)], now=2.5)

        assert [] == traces.expire(4.4)
        assert 22 == len(traces.expire(4.5)[0].spans)

    def test_restarts_end_after_five_delays(self) -> None:
        """A trickle of children puts the closing off to five delays after the root, not for ever."""
        traces = table(decision_delay_s=2)
        traces.add([root(A)], now=0)

        closings = [traces.add([child(A, second)], now=second) for second in range(1, 11)]

        assert [10] == [second for second, closing in enumerate(closings, start=1) if closing]

    def test_zero(self) -> None:
        """Without a delay the trace closes in the call that brings its root, after the other spans of that call."""
        traces = table(decision_delay_s=0)
        traces.add([child(A, 1)], now=0)

        assert [closed(CloseReason.ROOT_ENDED, child(A, 1), root(A), child(A, 2))] == traces.add(
            [root(A), child(A, 2)], now=1
        )

    def test_add_closes_what_is_due(self) -> None:
        """Adding spans of one trace closes another that is due."""
        traces = table(decision_delay_s=2)
        traces.add([root(A)], now=0)

        assert [closed(CloseReason.ROOT_ENDED, root(A))] == traces.add([child(B, 1)], now=2)

    def test_unended_root(self) -> None:
        """A root that was exported before it ended does not start the delay."""
        traces = table(decision_delay_s=0, trace_timeout_s=30)

        assert [] == traces.add([root(A, end_ns=0)], now=0)
        assert 30 == traces.next_due()

    def test_several_roots(self) -> None:
        """Of several roots, the last one known within the delay counts."""
        traces = table(decision_delay_s=2)
        traces.add([root(A, b"rootone!")], now=0)
        traces.add([root(A, b"roottwo!")], now=1.5)

        assert [] == traces.expire(3)
        assert [2] == [len(trace.spans) for trace in traces.expire(3.5)]

    def test_what_a_root_is(self) -> None:
        """The caller says what a root is."""
        traces = TraceTable(TraceSettings(decision_delay_s=0), is_root=lambda span: span.name == "agent run")

        assert [] == traces.add([root(A)], now=0)
        assert [CloseReason.ROOT_ENDED] == [t.close_reason for t in traces.add([child(A, 1, "agent run")], now=0)]


class TestTimeout:
    def test_since_the_last_span(self) -> None:
        """A trace whose root does not come is closed `trace_timeout_s` after its last span."""
        traces = table(trace_timeout_s=30)
        traces.add([child(A, 1)], now=0)
        traces.add([child(A, 2)], now=20)

        assert [] == traces.expire(30)
        assert 50 == traces.next_due()
        assert [closed(CloseReason.TIMED_OUT, child(A, 1), child(A, 2))] == traces.expire(50)

    def test_max_age(self) -> None:
        """A trace that never falls silent is closed `max_trace_age_s` after its first span."""
        traces = table(trace_timeout_s=30, max_trace_age_s=100)

        closings = [traces.add([child(A, second)], now=second) for second in range(0, 101, 10)]

        assert [CloseReason.TIMED_OUT] == [trace.close_reason for trace in closings[-1]]
        assert not any(closings[:-1])

    def test_max_age_cuts_the_delay(self) -> None:
        """The age limit holds during the delay, too; the root has ended, so that is the reason."""
        traces = table(decision_delay_s=10, max_trace_age_s=15, trace_timeout_s=15)
        traces.add([child(A, 1)], now=0)
        traces.add([root(A)], now=10)

        assert [closed(CloseReason.ROOT_ENDED, child(A, 1), root(A))] == traces.expire(15)

    def test_clock_goes_backwards(self) -> None:
        """A time earlier than the last one counts as the last one."""
        traces = table(decision_delay_s=2)
        traces.add([root(A)], now=100)
        traces.add([root(B)], now=0)

        assert 102 == traces.next_due()
        assert [] == traces.expire(50)
        assert [A, B] == [trace.trace_id for trace in traces.expire(102)]

    def test_span_times_close_nothing(self) -> None:
        """The times in the spans have no influence: a sender's clock may be off by years."""
        traces = table(decision_delay_s=2)
        past, future = root(A)._replace(start_ns=1, end_ns=2), root(B)._replace(start_ns=2**63, end_ns=2**63 + 1)

        assert [] == traces.add([past, future], now=0)
        assert [A, B] == [trace.trace_id for trace in traces.expire(2)]


class TestLimits:
    def test_span_limit(self) -> None:
        """The span beyond `span_limit` closes the trace; it and all further ones are late, and nothing opens again."""
        traces = table(span_limit=2)
        assert [] == traces.add([child(A, 1), child(A, 2)], now=0)

        assert [closed(CloseReason.SPAN_LIMIT, child(A, 1), child(A, 2))] == traces.add([child(A, 3)], now=1)
        assert [] == traces.add([child(A, 4), root(A)], now=2)
        assert [] == traces.drain()
        assert {LateReason.OVER_LIMIT: 3} == traces.counts().late

    def test_exactly_at_the_span_limit(self) -> None:
        """A trace of exactly `span_limit` spans is complete."""
        traces = table(span_limit=2, decision_delay_s=0)

        assert [closed(CloseReason.ROOT_ENDED, child(A, 1), root(A))] == traces.add([child(A, 1), root(A)], now=0)

    def test_repeated_span_at_the_limit(self) -> None:
        """A span that is sent again does not count towards the limit."""
        traces = table(span_limit=2)

        assert [] == traces.add([child(A, 1), child(A, 2), child(A, 2), child(A, 1)], now=0)

    def test_size_limit(self) -> None:
        """The span that would take a trace beyond `max_trace_bytes` closes it."""
        traces = table(max_trace_bytes=100)
        assert [] == traces.add([child(A, 1), child(A, 2)], now=0, sizes=[60, 40])

        (full,) = traces.add([child(A, 3)], 1, sizes=[1])
        assert closed(CloseReason.SIZE_LIMIT, child(A, 1), child(A, 2)) == full
        assert child(A, 3) == full.beyond
        assert [] == traces.add([child(A, 4)], now=2, sizes=[0])
        assert [] == traces.drain()
        assert {LateReason.OVER_LIMIT: 2} == traces.counts().late

    def test_one_large_span(self) -> None:
        """A single span may be larger than `max_trace_bytes`: it is already there, and it may be the whole trace."""
        traces = table(max_trace_bytes=100, decision_delay_s=0)

        assert [closed(CloseReason.ROOT_ENDED, root(A))] == traces.add([root(A)], now=0, sizes=[500])

    def test_late_span_for_a_full_trace(self) -> None:
        """A complete trace that has no room for a late span is not scored again."""
        traces = table(span_limit=2, max_trace_bytes=100, decision_delay_s=0)
        traces.add([child(A, 1), root(A), root(B)], now=0, sizes=[1, 1, 60])

        assert [] == traces.add([child(A, 2), child(B, 1)], now=1, sizes=[1, 50])
        assert [] == traces.drain()
        assert {LateReason.OVER_LIMIT: 2} == traces.counts().late

    def test_late_span_that_just_fits(self) -> None:
        """A late span that takes its trace to `max_trace_bytes` is scored with the others."""
        traces = table(max_trace_bytes=100, decision_delay_s=0, revision_delay_s=0)
        traces.add([root(A)], now=0, sizes=[60])

        assert [closed(CloseReason.ROOT_ENDED, root(A), child(A, 1), revision=1)] == traces.add(
            [child(A, 1)], now=1, sizes=[40]
        )

    def test_sizes_must_match(self) -> None:
        """As many sizes as spans, or none."""
        with pytest.raises(ValueError, match="shorter"):
            table().add([child(A, 1), child(A, 2)], now=0, sizes=[1])

    @pytest.mark.parametrize("name", ["num_traces", "span_limit", "max_trace_bytes", "max_bytes", "remember_traces"])
    def test_bounds_are_positive(self, name: str) -> None:
        """A bound below 1 is refused by name."""
        with pytest.raises(ValueError, match=f"^{name} must be at least 1, not 0$"):
            table(**{name: 0})


class TestEviction:
    def test_oldest_goes(self) -> None:
        """When `num_traces` are open, one more closes the oldest as evicted."""
        traces = table(num_traces=2)
        assert [] == traces.add([child(A, 1), child(B, 1)], now=0)

        assert [closed(CloseReason.EVICTED, child(A, 1))] == traces.add([child(C, 1)], now=1)
        assert 2 == traces.counts().open_traces

    def test_single_spans_go_first(self) -> None:
        """Traces of a single span are evicted before an older one that has grown, if they take more than a quarter."""
        traces = table(num_traces=4)
        traces.add([child(A, 1), child(A, 2), child(B, 1), child(C, 1)], now=0)

        closings = traces.add([child(trace_id(10), 1), child(trace_id(11), 1)], now=1)

        assert [B] == [trace.trace_id for trace in closings]

    def test_grown_traces_do_not_lock_newcomers_out(self) -> None:
        """In a table full of grown traces the oldest of them go: a new trace gets the time to grow, too."""
        traces = table(num_traces=4)
        grown = [trace_id(number) for number in range(1, 5)]
        traces.add([child(name, number) for name in grown for number in (1, 2)], now=0)

        closings = [traces.add([child(trace_id(number), 1)], now=1) for number in (5, 6, 7)]

        assert [[trace_id(1)], [trace_id(2)], [trace_id(5)]] == [
            [trace.trace_id for trace in closing] for closing in closings
        ]

    def test_reopened_trace_is_young(self) -> None:
        """A trace that a late span opened again is not the oldest."""
        traces = table(num_traces=2, decision_delay_s=2)
        traces.add([root(A)], now=0)
        traces.expire(2)
        traces.add([child(B, 1), child(B, 2), child(A, 1)], now=3)

        assert [B] == [trace.trace_id for trace in traces.add([child(C, 1)], now=3)]

    def test_a_trace_opened_again_is_younger_than_those_opened_meanwhile(self) -> None:
        """The one that gives way is the one that was opened first, a new trace or again."""
        traces = table(num_traces=4, decision_delay_s=0)
        traces.add([child(A, 1), root(A)], now=0)
        traces.add([child(B, 1)], now=1)
        traces.add([child(A, 2)], now=1)
        for name in (C, trace_id(4)):
            traces.add([child(name, 1), child(name, 2)], now=1)

        assert [closed(CloseReason.EVICTED, child(B, 1))] == traces.add([child(trace_id(5), 1)], now=1)

    def test_repeated_span_is_no_growth(self) -> None:
        """Sending a single span twice does not protect its trace."""
        traces = table(num_traces=4)
        traces.add([child(A, 1), child(A, 1), child(B, 1), child(B, 2), child(C, 1)], now=0)

        closings = traces.add([child(trace_id(10), 1), child(trace_id(11), 1)], now=1)

        assert [A] == [trace.trace_id for trace in closings]

    def test_flood(self) -> None:
        """A flood of invented trace ids evicts none of the real traces, and the table stays within its bound."""
        traces = table(num_traces=40, decision_delay_s=2, late_spans="ignore")
        real = [trace_id(number) for number in range(20)]
        traces.add([child(name, number) for name in real for number in (1, 2)], now=0)
        invented = (trace_id(number) for number in range(1000, 10**9))

        for number in range(3, 50):
            traces.add([child(name, number) for name in real], now=number)
            for _ in range(10):
                traces.add([child(next(invented), 1) for _ in range(10)], now=number)
                assert traces.counts().open_traces <= 40
        traces.add([root(name) for name in real], now=50)
        reasons = [trace.close_reason for trace in traces.expire(52) if trace.trace_id in real]

        assert [CloseReason.ROOT_ENDED] * 20 == reasons

    def test_evicted_trace_may_be_completed(self) -> None:
        """The rest of a trace that was evicted too early makes a complete revision."""
        traces = table(num_traces=1, decision_delay_s=0)
        traces.add([child(A, 1)], now=0)
        assert [closed(CloseReason.EVICTED, child(A, 1))] == traces.add([root(B)], now=1)[:1]

        assert [closed(CloseReason.ROOT_ENDED, child(A, 1), root(A), revision=1)] == [
            *traces.add([root(A)], now=2),
            *traces.expire(4),
        ]

    def test_trace_that_is_to_give_way(self) -> None:
        """A trace that the caller has no room for is closed as it is, and may be completed; others stay."""
        traces = table(decision_delay_s=0)
        traces.add([child(A, 1), child(B, 1)], now=0)

        assert [closed(CloseReason.EVICTED, child(A, 1)), None, None] == [
            traces.close(A, CloseReason.EVICTED),
            traces.close(A, CloseReason.EVICTED),
            traces.close(C, CloseReason.EVICTED),
        ]
        assert (1, 1) == (traces.counts().live, traces.counts().in_closed)
        assert [closed(CloseReason.ROOT_ENDED, child(A, 1), root(A), revision=1)] == [
            *traces.add([root(A)], now=2),
            *traces.expire(4),
        ]

    def test_bytes_of_all_traces(self) -> None:
        """Beyond `max_bytes`, spans of closed traces are let go first, then the oldest open traces are closed."""
        traces = table(max_bytes=100, decision_delay_s=0)
        traces.add([root(A)], now=0, sizes=[40])
        assert [] == traces.add([child(B, 1)], now=0, sizes=[50])
        assert [] == traces.add([child(C, 1)], now=0, sizes=[50])

        assert [closed(CloseReason.EVICTED, child(B, 1))] == traces.add([child(C, 2)], now=1, sizes=[1])
        assert 51 == traces.counts().held_bytes
        assert [] == traces.add([child(A, 1)], now=1)
        assert {LateReason.NOT_KEPT: 1} == traces.counts().late


class TestDuplicates:
    def test_in_an_open_trace(self) -> None:
        """A span that is sent again changes nothing but a counter; it does not restart the delay either."""
        traces = table(decision_delay_s=2)
        traces.add([child(A, 1), root(A)], now=0)
        traces.add([child(A, 1), root(A)], now=1)

        assert [closed(CloseReason.ROOT_ENDED, child(A, 1), root(A))] == traces.expire(2)
        assert {DropReason.DUPLICATE: 2} == traces.counts().dropped

    def test_after_the_closing(self) -> None:
        """A span of a closed trace that is sent again does not cause a revision."""
        traces = table(decision_delay_s=0)
        traces.add([child(A, 1), root(A)], now=0)

        assert [] == traces.add([child(A, 1), root(A)], now=1)
        assert [] == traces.drain()
        assert {DropReason.DUPLICATE: 2} == traces.counts().dropped

    def test_of_a_late_span(self) -> None:
        """A late span that is sent again is in the revision once."""
        traces = table(decision_delay_s=2)
        traces.add([root(A)], now=0)
        traces.expire(2)
        traces.add([child(A, 1), child(A, 1)], now=3)

        assert [closed(CloseReason.ROOT_ENDED, root(A), child(A, 1), revision=1)] == traces.expire(5)

    def test_conflict(self) -> None:
        """Spans that share an id but not their content are both kept, each of them once."""
        traces = table()
        one, two = child(A, 1, "one"), child(A, 1, "two")
        traces.add([one, two, one, two], now=0)

        assert [closed(CloseReason.SHUTDOWN, one, two)] == traces.drain()
        assert 1 == traces.counts().conflicts
        assert {DropReason.DUPLICATE: 2} == traces.counts().dropped

    def test_many_conflicts(self) -> None:
        """At most eight versions of a span are kept: each further one would have to be compared with all of them."""
        traces = table()
        versions = [child(A, 1, str(version)) for version in range(10)]
        traces.add(versions, now=0)

        assert [closed(CloseReason.SHUTDOWN, *versions[:8])] == traces.drain()
        assert {DropReason.CONFLICT: 2} == traces.counts().dropped

    def test_same_span_id_in_two_traces(self) -> None:
        """Span ids only count within their trace."""
        traces = table()
        traces.add([child(A, 1), child(B, 1)], now=0)

        assert [A, B] == [trace.trace_id for trace in traces.drain()]


class TestLateSpans:
    def test_rescore(self) -> None:
        """A late span closes the trace once more, with all its spans and the next revision, after the same delay."""
        traces = table(decision_delay_s=2)
        traces.add([root(A)], now=0)
        traces.expire(2)

        assert [] == traces.add([child(A, 1)], now=10)
        assert 12 == traces.next_due()
        assert [closed(CloseReason.ROOT_ENDED, root(A), child(A, 1), revision=1)] == traces.expire(12)
        traces.add([child(A, 2)], now=20)
        assert [closed(CloseReason.ROOT_ENDED, root(A), child(A, 1), child(A, 2), revision=2)] == traces.expire(22)

    def test_late_root(self) -> None:
        """The root of a trace that timed out completes it."""
        traces = table(decision_delay_s=2, trace_timeout_s=5)
        traces.add([child(A, 1)], now=0)
        assert [closed(CloseReason.TIMED_OUT, child(A, 1))] == traces.expire(5)
        traces.add([root(A)], now=8)

        assert [closed(CloseReason.ROOT_ENDED, child(A, 1), root(A), revision=1)] == traces.expire(10)

    def test_rootless(self) -> None:
        """A late span of a trace without a root waits for the root again, rather than for a fresh score of a part."""
        traces = table(decision_delay_s=2, trace_timeout_s=5)
        traces.add([child(A, 1)], now=0)
        traces.expire(5)
        traces.add([child(A, 2)], now=8)

        assert [] == traces.expire(12)
        assert [closed(CloseReason.TIMED_OUT, child(A, 1), child(A, 2), revision=1)] == traces.expire(13)

    def test_gathered_without_a_delay(self) -> None:
        """Where the decision delay is 0, `revision_delay_s` gathers late spans: each revision reads the whole trace."""
        traces = table(decision_delay_s=0, revision_delay_s=2)
        traces.add([root(A)], now=0)
        traces.add([child(A, 1)], now=1)
        traces.add([child(A, 2)], now=2)

        assert [closed(CloseReason.ROOT_ENDED, root(A), child(A, 1), child(A, 2), revision=1)] == traces.expire(4)

    def test_ignore(self) -> None:
        """With `ignore` a late span is only counted, and no span of a closed trace is held."""
        traces = table(decision_delay_s=0, late_spans="ignore")
        traces.add([root(A)], now=0, sizes=[10])

        assert [] == traces.add([child(A, 1)], now=1)
        assert [] == traces.drain()
        assert (
            Counts(received=2, in_closed=1, late={LateReason.IGNORED: 1}, closed={CloseReason.ROOT_ENDED: 1})
            == traces.counts()
        )

    @pytest.mark.parametrize("forget", [True, False])
    def test_too_late(self, forget: bool) -> None:  # noqa: FBT001 - pytest passes parameters by name
        """After `keep_closed_s` a late span is only counted, whether or not `expire` was called meanwhile."""
        traces = table(decision_delay_s=0, keep_closed_s=60)
        traces.add([root(A)], now=0)
        if forget:
            traces.expire(60)

        assert [] == traces.add([child(A, 1)], now=60)
        assert ({LateReason.NOT_KEPT: 1}, [child(A, 1)]) == (traces.counts().late, traces.too_late)
        assert [] == traces.drain()

    def test_spans_of_closed_traces_are_bounded(self) -> None:
        """Beyond `keep_closed_spans`, the trace closed first is let go."""
        traces = table(decision_delay_s=0, keep_closed_spans=2)
        for name in (A, B, C):
            traces.add([root(name)], now=0)

        traces.add([child(A, 1), child(C, 1)], now=1)

        assert {LateReason.NOT_KEPT: 1} == traces.counts().late
        assert [C] == [trace.trace_id for trace in traces.drain()]

    def test_as_many_spans_are_held_as_the_bound_says(self) -> None:
        """Exactly `keep_closed_spans` stay, of a trace that a limit closed its mark counts as one."""
        traces = table(decision_delay_s=0, keep_closed_spans=2, span_limit=1)
        traces.add([root(A), child(B, 1), child(B, 2)], now=0)

        assert (2, 0) == (traces.counts().held_spans, traces.counts().held_bytes)
        traces.add([root(A), child(B, 3)], now=1)
        assert {LateReason.OVER_LIMIT: 2} == traces.counts().late

    def test_revisions_take_up_no_room_for_ids(self) -> None:
        """Traces that are scored again and again displace none from the memory for ids."""
        traces = table(decision_delay_s=0, revision_delay_s=0, remember_traces=1, keep_closed_s=1)
        traces.add([root(trace_id(number)) for number in range(20)], now=0)
        for revision in range(5):
            traces.add([child(trace_id(number), revision) for number in range(1, 20)], now=0)
        assert 95 == traces.counts().revisions

        traces.expire(10)
        assert [] == traces.add([root(trace_id(0))], now=10)
        assert {LateReason.RESCORED: 95, LateReason.NOT_KEPT: 1} == traces.counts().late

    def test_revisions_are_bounded(self) -> None:
        """A trace is scored again `max_revisions` times; spans that come later still are only counted."""
        traces = table(decision_delay_s=1, max_revisions=2)
        traces.add([root(A)], now=0)
        for number in (1, 2, 3):
            traces.expire(number * 10)
            traces.add([child(A, number)], now=number * 10 + 1)

        assert [] == traces.expire(50)
        assert 2 == traces.counts().revisions
        assert {LateReason.RESCORED: 2, LateReason.NOT_KEPT: 1} == traces.counts().late

    def test_not_beyond_the_age_limit(self) -> None:
        """A trace older than `max_trace_age_s` does not open again."""
        traces = table(decision_delay_s=0, trace_timeout_s=5, max_trace_age_s=20, keep_closed_s=60)
        traces.add([root(A)], now=0)

        assert [] == traces.add([child(A, 1)], now=20)
        assert {LateReason.NOT_KEPT: 1} == traces.counts().late

    def test_remembered_after_a_revision(self) -> None:
        """A trace that was open for a revision longer than the memory for ids reaches is remembered all the same."""
        traces = table(decision_delay_s=0, remember_traces=1)
        traces.add([child(A, 1)], now=0)
        traces.close(A)
        traces.add([child(A, 2)], now=1)
        traces.add([root(trace_id(number)) for number in range(200)], now=2)
        assert [A] == [trace.trace_id for trace in traces.expire(40)]
        traces.expire(200)

        assert [] == traces.add([root(A)], now=200)
        assert {LateReason.RESCORED: 1, LateReason.NOT_KEPT: 1} == traces.counts().late

    def test_restart(self) -> None:
        """A trace id that is remembered from before a restart is not taken for a new trace."""
        traces = table()
        traces.remember(A)

        traces.add([root(A)], now=0)

        assert [] == traces.drain()
        assert Counts(received=1, late={LateReason.NOT_KEPT: 1}) == traces.counts()


class TestClosing:
    def test_drain(self) -> None:
        """Draining closes every trace, oldest first; where the root has ended, that is the reason."""
        traces = table(decision_delay_s=2)
        traces.add([child(A, 1), root(B), child(C, 1), child(A, 2)], now=0)

        assert [
            closed(CloseReason.SHUTDOWN, child(A, 1), child(A, 2)),
            closed(CloseReason.ROOT_ENDED, root(B)),
            closed(CloseReason.SHUTDOWN, child(C, 1)),
        ] == traces.drain()
        assert [] == traces.drain()
        assert traces.next_due() is None

    def test_cut_short(self) -> None:
        """What is closed before it is due says so, also where its root has ended: more of it may be on its way."""
        traces = table(decision_delay_s=2)
        traces.add([child(A, 1), root(B), root(C)], now=0)

        cut = [replace(closed(CloseReason.SHUTDOWN, span), cut_short=True) for span in (root(C), child(A, 1), root(B))]
        assert cut[:1] == traces.cut_short([C, C, trace_id(9)])
        assert cut[1:] == traces.cut_short()
        assert [] == traces.cut_short()
        assert {CloseReason.SHUTDOWN: 3} == traces.counts().closed

    def test_which_late_spans_opened_again(self) -> None:
        """Traces that were closed before are told from new ones."""
        traces = table(decision_delay_s=0)
        traces.add([root(A), child(B, 1)], now=0)
        traces.add([child(A, 1)], now=1)

        assert ([B, A], [A]) == (traces.open.ids(), traces.open.reopened())

    def test_close(self) -> None:
        """A recording that knows where a trace ends closes it, whole or not."""
        traces = table(decision_delay_s=2)
        traces.add([child(A, 1), root(B)], now=0)

        assert closed(CloseReason.SHUTDOWN, child(A, 1)) == traces.close(A)
        assert closed(CloseReason.ROOT_ENDED, root(B)) == traces.close(B)
        assert traces.close(A) is None
        assert traces.close(C) is None


class TestAnnouncedSpans:
    def test_waits_for_open_children(self) -> None:
        """A trace whose root ended before an announced child, as in streaming, closes when the child has ended."""
        traces = table(decision_delay_s=0)
        traces.started(A, ROOT, now=0)
        traces.started(A, child(A, 1).span_id, now=1)
        assert [] == traces.add([root(A)], now=2)

        assert [closed(CloseReason.ROOT_ENDED, root(A), child(A, 1))] == traces.add([child(A, 1)], now=9)

    def test_does_not_wait_for_ever(self) -> None:
        """A child that never ends holds the trace up for `trace_timeout_s` after the last span."""
        traces = table(decision_delay_s=0, trace_timeout_s=30)
        traces.started(A, b"neverend", now=0)
        traces.add([root(A)], now=2)

        assert [closed(CloseReason.ROOT_ENDED, root(A))] == traces.expire(32)

    def test_announcement_restarts_the_wait(self) -> None:
        """A span that starts after the root has ended keeps the trace open as a span that ended does."""
        traces = table(decision_delay_s=0, trace_timeout_s=30)
        traces.started(A, b"neverend", now=0)
        traces.add([root(A)], now=2)
        traces.started(A, b"latecome", now=20)

        assert [] == traces.expire(49)
        assert [closed(CloseReason.ROOT_ENDED, root(A))] == traces.expire(50)

    def test_not_awaited_twice(self) -> None:
        """A revision does not wait for a child that never ended."""
        traces = table(decision_delay_s=2, trace_timeout_s=30)
        traces.started(A, b"neverend", now=0)
        traces.add([root(A)], now=2)
        traces.expire(32)
        traces.add([child(A, 1)], now=33)

        assert [closed(CloseReason.ROOT_ENDED, root(A), child(A, 1), revision=1)] == traces.expire(35)

    def test_announcements_are_bounded(self) -> None:
        """No more than `span_limit` spans of a trace are awaited at a time."""
        traces = table(decision_delay_s=0, span_limit=1)
        traces.started(A, ROOT, now=0)
        traces.started(A, b"neverend", now=0)

        assert [closed(CloseReason.ROOT_ENDED, root(A))] == traces.add([root(A)], now=1)

    def test_what_was_only_announced_gives_way_unseen(self) -> None:
        """There is nothing to score of it, so that none counts as scored in part."""
        traces = table(num_traces=1)
        traces.started(A, ROOT, now=0)
        traces.started(B, ROOT, now=1)
        assert [] == [*traces.evicted]
        traces.add([child(B, 1)], now=2)
        traces.started(A, ROOT, now=3)

        assert {"num_traces": 1} == traces.evicted

    def test_slow_step(self) -> None:
        """A trace whose root is known to run is not given up in a long pause."""
        traces = table(trace_timeout_s=30, max_trace_age_s=900)
        traces.started(A, ROOT, now=0)
        traces.add([child(A, 1)], now=1)

        assert [] == traces.expire(899)
        assert [closed(CloseReason.TIMED_OUT, child(A, 1))] == traces.expire(900)

    def test_root_not_announced(self) -> None:
        """When all announced spans have ended and no root came, the timeout runs as usual."""
        traces = table(trace_timeout_s=30)
        traces.started(A, child(A, 1).span_id, now=0)
        traces.add([child(A, 1)], now=100)

        assert [] == traces.expire(129)
        assert [closed(CloseReason.TIMED_OUT, child(A, 1))] == traces.expire(130)

    def test_nothing_came(self) -> None:
        """A trace of which no span arrived is forgotten without a score, and is new when a span does come."""
        traces = table(max_trace_age_s=900, decision_delay_s=0)
        traces.started(A, ROOT, now=0)

        assert [] == traces.expire(900)
        assert Counts() == traces.counts()
        assert [closed(CloseReason.ROOT_ENDED, root(A))] == traces.add([root(A)], now=901)

    def test_closed_trace(self) -> None:
        """An announcement does not open a closed trace; the span itself does."""
        traces = table(decision_delay_s=0)
        traces.add([root(A)], now=0)

        assert [] == traces.started(A, b"latecome", now=1)
        assert traces.next_due() is None

    def test_takes_a_place(self) -> None:
        """An announced trace counts as open, so that announcements are bounded as well."""
        traces = table(num_traces=2)
        traces.add([child(A, 1)], now=0)
        traces.started(B, ROOT, now=0)

        assert [closed(CloseReason.EVICTED, child(A, 1))] == traces.started(C, ROOT, now=0)
        assert 2 == traces.counts().open_traces


class TestResumed:
    def test_what_was_away_waits_anew(self) -> None:
        """After a time in which no span could come, traces are no older than before, and late children have time."""
        traces = table(decision_delay_s=2, trace_timeout_s=10, max_trace_age_s=20)
        traces.add([child(B, 1)], now=0)
        traces.add([child(A, 1), root(A)], now=1.5)
        traces.expire(3)
        traces.resumed(100)

        assert 102 == traces.next_due()
        assert [] == traces.add([child(A, 2), child(B, 2)], now=101.5)
        assert [closed(CloseReason.ROOT_ENDED, child(A, 1), root(A), child(A, 2))] == traces.expire(103.5)
        traces.add([child(B, 3)], now=110)
        assert [closed(CloseReason.TIMED_OUT, *(child(B, number) for number in (1, 2, 3)))] == traces.expire(117)

    def test_no_delay_is_put_off_for_ever(self) -> None:
        """However often the process is away, five delays after its root's end, by its own age, a trace is closed."""
        traces = table(decision_delay_s=2)
        traces.add([root(A)], now=0)
        for at in range(1, 10):
            assert [] == traces.expire(at)
            traces.resumed(at)

        assert 10 == traces.next_due()

    def test_without_open_traces(self) -> None:
        """Nothing waits, and time goes on."""
        traces = table(decision_delay_s=0)
        traces.resumed(5)
        assert [closed(CloseReason.ROOT_ENDED, root(A))] == traces.add([root(A)], now=1)
        assert 5 == traces.add([root(B)], now=0)[0].root_received_at


class TestGiveUp:
    def test_a_trace_that_is_given_up_is_not_scored(self) -> None:
        """It leaves the table without being closed, and its spans are counted as handed over."""
        traces = table(decision_delay_s=2)
        traces.add([child(A, 1), root(A), child(B, 1)], now=0, sizes=[10, 20, 5])
        traces.give_up([A, C])

        expected = Counts(
            received=3, live=1, dropped={DropReason.HANDED_OVER: 2}, open_traces=1, closed={}, held_bytes=5
        )
        assert expected == traces.counts()
        assert [closed(CloseReason.TIMED_OUT, child(B, 1))] == traces.expire(100)

    def test_it_may_come_again(self) -> None:
        """A trace that was given up is a new one when its spans come again, the same spans included."""
        traces = table(decision_delay_s=2)
        traces.add([child(A, 1), root(A)], now=0)
        traces.give_up([A])
        traces.add([child(A, 1), root(A)], now=10)

        assert [closed(CloseReason.ROOT_ENDED, child(A, 1), root(A))] == traces.expire(12)

    def test_what_was_scored_of_it_stays_scored(self) -> None:
        """Where late spans had opened a trace again, only these are handed over; later ones count as late."""
        traces = table(decision_delay_s=2)
        traces.add([root(A)], now=0)
        traces.expire(2)
        traces.add([child(A, 1)], now=3)
        traces.give_up([A])
        traces.add([child(A, 1)], now=4)

        counts = traces.counts()
        assert (1, 0, {LateReason.NOT_KEPT: 1}) == (counts.in_closed, counts.live, counts.late)
        assert {DropReason.HANDED_OVER: 1} == counts.dropped


def test_counts() -> None:
    """Every span is counted under exactly one of closed, live, late and dropped."""
    traces = table(decision_delay_s=2)
    traces.add([child(A, 1), root(A), root(A), child(B, 1)], now=0, sizes=[10, 20, 20, 5])
    traces.expire(2)
    traces.add([child(A, 2), child(B, 1, "again")], now=3, sizes=[7, 8])

    assert (
        Counts(
            received=6,
            in_closed=2,
            live=3,
            dropped={DropReason.DUPLICATE: 1},
            conflicts=1,
            open_traces=2,
            closed={CloseReason.ROOT_ENDED: 1},
            held_bytes=50,
        )
        == traces.counts()
    )
    traces.drain()
    assert (
        Counts(
            received=6,
            in_closed=4,
            late={LateReason.RESCORED: 1},
            dropped={DropReason.DUPLICATE: 1},
            conflicts=1,
            closed={CloseReason.ROOT_ENDED: 1, CloseReason.SHUTDOWN: 1},
            revisions=1,
            held_spans=5,
            held_bytes=50,
        )
        == traces.counts()
    )
