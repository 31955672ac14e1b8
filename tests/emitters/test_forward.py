"""When root spans are passed on, and with what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from emitters.reports import BROKEN, NOT_PASSED, PASSED, SKIPPED, report, trajectory
from otlp_capture import DEADLINE_S, InMemory, spans_of
from receivers.otlp_requests import field, request_of, simple_span, span_id, trace_id
from spanscore import model
from spanscore.collect.settings import TraceSettings
from spanscore.collect.table import TraceTable
from spanscore.contracts import PassingOn
from spanscore.emitters.otlp._held_roots import HoldLimits
from spanscore.emitters.otlp.forward import Forward
from spanscore.emitters.otlp.forward_settings import ForwardCounts, ForwardSettings
from spanscore.emitters.sending.backlog import QueueLimits
from spanscore.emitters.sending.destination import Destination
from spanscore.emitters.sending.send_queue import Timing
from spanscore.errors import ConfigError
from spanscore.model import CloseReason, Report, Unit
from spanscore.reports.evaluation_event import event_attributes, event_time_ns, span_attributes

IN_ORDER = QueueLimits(batch_bytes=0, linger_s=0)


class Clock:
    """Stands still until it is set."""

    now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


class Behind:
    """A forward emitter, and what comes out of it."""

    def __init__(self, hold: HoldLimits | None = None, **settings: str) -> None:
        self.client = InMemory()
        self.clock = Clock()
        self.forward = Forward(
            self.client,
            ForwardSettings(hold=hold or HoldLimits(), queue=IN_ORDER, **settings),
            Timing(clock=self.clock),
        )

    def take(self, *spans: Span) -> None:
        """Receive spans in one request."""
        self.forward.take(request_of(*spans).SerializeToString())

    def sent(self) -> list[Span]:
        """Return what is passed on by now."""
        assert self.forward.flush(DEADLINE_S)
        return spans_of(self.client.taken)


@pytest.fixture
def behind() -> Iterator[Behind]:
    """Hold back the roots without a parent."""
    yield from _behind()


@pytest.fixture
def behind_remote() -> Iterator[Behind]:
    """Hold back the roots with a remote parent too."""
    yield from _behind(roots="remote_parent")


@pytest.fixture
def behind_none() -> Iterator[Behind]:
    """Hold back nothing."""
    yield from _behind(roots="none")


@pytest.fixture
def behind_few() -> Iterator[Behind]:
    """Hold back two roots at most."""
    yield from _behind(HoldLimits(max_roots=2))


def _behind(hold: HoldLimits | None = None, **settings: str) -> Iterator[Behind]:
    behind = Behind(hold, **settings)
    yield behind
    behind.forward.close(DEADLINE_S)


def root(trace: int, span: int = 1, **fields: object) -> Span:
    """Return a root span."""
    return simple_span(trace, span, **fields)


def child(trace: int, span: int, **fields: object) -> Span:
    """Return a span below another."""
    return simple_span(trace, span, parent_span_id=span_id(99), **fields)


def scored(trace: int, span: int = 1, *outcomes: model.Outcome) -> Report:
    """Return a report about a span."""
    about = trajectory(trace_id=trace_id(trace), root_span_id=span_id(span))
    return report(*(outcomes or (PASSED,)), about=about)


def labels(span: Span) -> list[str]:
    """Return the labels of the scores that the span carries."""
    return [
        each.value.string_value
        for event in span.events
        for each in event.attributes
        if each.key == "gen_ai.evaluation.score.label"
    ]


def with_scores(span: Span, about: Report) -> Span:
    """Return the span with the verdict and the events of the report."""
    annotated = Span.FromString(span.SerializeToString())
    for key, value in span_attributes(about).items():
        annotated.attributes.add(key=key).value.string_value = value
    for evaluation in about.evaluations:
        event = annotated.events.add(
            name="gen_ai.evaluation.result",
            time_unix_nano=event_time_ns(span.start_time_unix_nano, span.end_time_unix_nano),
        )
        for key, value in event_attributes(about, evaluation).items():
            kind = {str: "string_value", bool: "bool_value", int: "int_value", float: "double_value"}[type(value)]
            setattr(event.attributes.add(key=key).value, kind, value)
    return annotated


def test_a_root_waits_for_its_scores(behind: Behind) -> None:
    """The other spans go on at once; the root goes on with an event for each evaluation, whatever its outcome."""
    behind.take(child(1, 2), root(1), child(1, 3))

    assert [child(1, 2), child(1, 3)] == behind.sent()

    about = scored(1, 1, PASSED, NOT_PASSED, SKIPPED, BROKEN)
    behind.forward.emit(about)
    assert with_scores(root(1), about) == behind.sent()[-1]
    assert 4 == len(behind.sent()[-1].events)


def test_a_root_keeps_its_own_events(behind: Behind) -> None:
    """The scores come behind what the span has."""
    own = root(1, events=[Span.Event(name="retry", time_unix_nano=1)])
    behind.take(own)
    behind.forward.emit(scored(1))

    assert [with_scores(own, scored(1))] == behind.sent()


def test_text_that_cannot_be_encoded_is_replaced(behind: Behind) -> None:
    """Half a surrogate pair in an explanation costs no span."""
    behind.take(root(1))
    behind.forward.emit(scored(1, 1, model.Score(1.0, passed=True, explanation="\ud83d")))

    (sent,) = behind.sent()
    assert "?" in [attribute.value.string_value for attribute in sent.events[0].attributes]


def test_a_trace_without_evaluations_is_passed_on(behind: Behind) -> None:
    """Where no evaluator applied, the root goes on as it is."""
    behind.take(root(1))
    behind.forward.emit(report(about=scored(1).trajectory))

    assert [root(1)] == behind.sent()


def test_without_annotation_nothing_is_held(behind_none: Behind) -> None:
    """With `none`, every span goes on at once as it is, scored or not."""
    behind_none.take(root(1), child(1, 2))
    behind_none.forward.emit(scored(1))

    assert [root(1), child(1, 2)] == behind_none.sent()


@pytest.mark.parametrize(
    ("flags", "held"), [(0, False), (0x01, False), (0x101, False), (0x201, False), (0x301, True), (0x300, True)]
)
def test_a_remote_parent(behind: Behind, behind_remote: Behind, *, flags: int, held: bool) -> None:
    """A span whose parent is said to be remote is a root only where that is asked for."""
    for each in (behind, behind_remote):
        each.take(child(1, 1, flags=flags))

    assert [child(1, 1, flags=flags)] == behind.sent()
    assert int(held) == behind_remote.forward.counts().held

    behind_remote.forward.emit(scored(1))
    expected = child(1, 1, flags=flags)
    assert [with_scores(expected, scored(1)) if held else expected] == behind_remote.sent()


def test_a_remote_parent_said_before_other_fields(behind_remote: Behind) -> None:
    """Flags count wherever they are written, and so does their absence."""
    remote = child(1, 1, flags=0x301).SerializeToString() + Span(dropped_links_count=1).SerializeToString()
    behind_remote.forward.take(field(1, field(2, field(2, remote))))
    behind_remote.take(child(2, 1, status=Status(message="\x85\x01\0\3\0\0")))

    assert 1 == behind_remote.forward.counts().held
    assert [2] == [span.trace_id[-1] for span in behind_remote.sent()]


@pytest.mark.parametrize("size", [0, 50, 100, 1_000, 16_000, 17_000, 3_000_000])
def test_spans_of_any_size(behind: Behind, size: int) -> None:
    """However long a span is, its neighbours are found."""
    spans = [child(1, 1, name="x" * size), root(1, 2, name="x" * size), child(1, 3)]
    behind.take(*spans)

    assert [spans[0], spans[2]] == behind.sent()
    assert 1 == behind.forward.counts().held


def test_a_root_that_cannot_be_read_is_not_held(behind: Behind) -> None:
    """What a receiver took in is passed on, whatever we make of it."""
    garbled = root(1).SerializeToString() + field(5, b"\xff")
    behind.forward.take(field(1, field(2, field(2, garbled))))

    assert behind.forward.flush(DEADLINE_S)
    assert [field(1, field(2, field(2, garbled)))] == behind.client.taken


def test_a_parent_of_zeros_is_none(behind: Behind) -> None:
    """A root may say so with zeros."""
    zeros = root(1, parent_span_id=bytes(8))
    behind.take(zeros)
    behind.forward.emit(scored(1))

    assert [with_scores(zeros, scored(1))] == behind.sent()


def test_a_root_that_has_not_ended_is_not_held(behind: Behind) -> None:
    """It closes no trace, and will be sent again when it has."""
    behind.take(root(1, end_time_unix_nano=0))

    assert [root(1, end_time_unix_nano=0)] == behind.sent()


def test_a_root_that_came_twice_goes_on_twice(behind: Behind) -> None:
    """A client's retry is passed on like any other request: both have the scores, whichever is kept."""
    behind.take(root(1))
    behind.take(root(1))
    behind.forward.emit(scored(1))

    assert [with_scores(root(1), scored(1))] * 2 == behind.sent()


def test_each_agent_run_has_its_scores(behind: Behind) -> None:
    """Where a trace has several trajectories, each root gets its own scores, in whatever order they come."""
    behind.take(root(1, 1), root(1, 2), root(1, 3))
    for span in (2, 1):
        behind.forward.emit(scored(1, span))
    behind.forward.emit(scored(2))

    assert [
        with_scores(root(1, 2), scored(1, 2)),
        with_scores(root(1, 1), scored(1, 1)),
        root(1, 3),
    ] == behind.sent()


def test_what_is_left_of_a_scored_trace_goes_on_with_the_next_request(behind: Behind) -> None:
    """Roots that are evaluated by nobody are not held any longer when the trace's reports are all there."""
    behind.take(root(1, 1), root(1, 2))
    behind.forward.emit(scored(1, 1))
    behind.take(child(5, 1))
    behind.take(root(1, 4))
    behind.take(child(5, 2))

    assert [with_scores(root(1, 1), scored(1, 1)), root(1, 2), child(5, 1), child(5, 2)] == behind.sent()
    assert {"not_evaluated": 1} == behind.forward.counts().unannotated

    behind.forward.emit(scored(1, 4))
    assert with_scores(root(1, 4), scored(1, 4)) == behind.sent()[-1]


def test_a_score_without_a_root_changes_nothing(behind: Behind) -> None:
    """The root of a trace may never have come, or be gone already."""
    behind.forward.emit(scored(1))
    behind.take(root(1))
    behind.forward.emit(scored(1))
    behind.forward.emit(scored(1))

    assert [with_scores(root(1), scored(1))] == behind.sent()


def test_a_root_that_nobody_scores_goes_on_after_a_time(behind: Behind) -> None:
    """A root whose trace was closed long ago, or dropped, is passed on as it is."""
    behind.take(root(1))
    behind.clock.now += HoldLimits().hold_s - 1
    behind.take(root(2))

    assert [] == behind.sent()

    behind.clock.now += 1
    assert [root(1)] == behind.sent()
    assert {"expired": 1} == behind.forward.counts().unannotated
    assert 1 == behind.forward.counts().held


def test_a_root_that_another_receiver_gets_too_is_not_passed_on(behind: Behind) -> None:
    """Where a trace is given up, its root is dropped: it comes with its scores from the one that has it next."""
    behind.take(root(1), child(1, 2), root(2))
    behind.forward.give_up([root(1).trace_id])
    behind.forward.emit(scored(2))

    assert [root(2).span_id] == [span.span_id for span in behind.sent() if not span.parent_span_id]
    assert {"handed_over": 1} == behind.forward.counts().dropped
    assert 0 == behind.forward.counts().held


def test_nobody_has_to_ask_for_a_root_that_waits_too_long() -> None:
    """The emitter looks at its clock by itself."""
    for behind in _behind(HoldLimits(hold_s=0)):
        behind.take(root(1))
        behind.forward.take_other("logs", b"")

        assert [root(1)] == behind.client.spans(1)


def test_too_many_roots_displace_the_oldest(behind_few: Behind) -> None:
    """What is held is bounded in number: the oldest goes on without its scores."""
    behind_few.take(root(1), root(2), root(3))

    assert [root(1)] == behind_few.sent()
    assert {"displaced": 1} == behind_few.forward.counts().unannotated
    assert 2 == behind_few.forward.counts().held


def test_too_large_roots_displace_the_oldest() -> None:
    """What is held is bounded in bytes; a root that is larger than that is not held at all."""
    small = [root(number, name="x" * 600) for number in (1, 2)]
    large = root(3, name="x" * 2000)
    for behind in _behind(HoldLimits(max_bytes=1000)):
        behind.take(*small)
        assert small[:1] == behind.sent()

        behind.take(large)
        assert [*small, large] == behind.sent()


def test_at_the_end_nothing_is_held(behind: Behind) -> None:
    """Closing passes on the roots that still wait; what comes later is dropped and counted."""
    behind.take(root(1), child(1, 2))

    assert behind.forward.close(DEADLINE_S)
    behind.take(root(2), child(2, 2))
    behind.forward.emit(scored(1))

    assert [child(1, 2), root(1)] == spans_of(behind.client.taken)
    assert (
        ForwardCounts(received=4, sent=2, dropped={"shut_down": 2}, unannotated={"shut_down": 1})
        == behind.forward.counts()
    )
    assert behind.forward.close(DEADLINE_S)


def test_metrics_and_logs_pass_through(behind: Behind) -> None:
    """They are sent on as they are, each signal by itself, and are not counted as spans."""
    behind.forward.take_other("metrics", b"m1")
    behind.forward.take_other("logs", b"l1")
    behind.forward.take_other("logs", b"l2")
    assert behind.forward.flush(DEADLINE_S)

    assert [("metrics", b"m1"), ("logs", b"l1"), ("logs", b"l2")] == behind.client.sent
    assert ForwardCounts() == behind.forward.counts()


@given(
    arrivals=st.lists(st.tuples(st.floats(0, 3), st.booleans()), max_size=30),
    delay_s=st.sampled_from([0.0, 0.5, 2.0]),
)
def test_roots_are_held_longer_than_their_trace_is_open(arrivals: list[tuple[float, bool]], delay_s: float) -> None:
    """However many late children come behind the last root, its trace is scored before the root goes on without."""
    settings = TraceSettings(decision_delay_s=delay_s)
    hold_s = ForwardSettings.for_host(PassingOn(held_roots="parentless", delay_s=settings.longest_delay_s)).hold.hold_s
    table = TraceTable(settings, lambda span: not span.parent_span_id)
    now = came = 0.0
    closed = table.add([_span(0, b"")], now)
    for number, (wait_s, _) in enumerate(arrivals, 1):
        now += wait_s
        closed += table.expire(min(now, came + hold_s))
        if closed:
            break
        assert now < came + hold_s
        closed = table.add([_span(number, span_id(0))], now)
    assert closed or table.expire(came + hold_s)


def _span(number: int, parent_span_id: bytes) -> model.Span:
    return model.Span(trace_id(1), span_id(number), parent_span_id, "work", 1, 2)


def test_a_wrong_endpoint_is_found_at_once() -> None:
    """The configuration's mistake is told before anything is received."""
    with pytest.raises(ConfigError):
        Forward(Destination(endpoint="localhost:4317", protocol="grpc").connect())


def test_our_own_requests_are_not_traced(behind: Behind) -> None:
    """Instrumentation of HTTP and gRPC clients is told to look away: our spans would come back to us for ever."""
    behind.take(child(1, 1))
    behind.sent()

    assert {True} == behind.client.suppressed


def test_scores_in_a_span_of_their_own() -> None:
    """Roots go on at once; the scores follow in a short span below the evaluated one, with the same id each time."""
    behind = Behind(roots="none", child_spans=True)
    root = simple_span(1)
    behind.take(root)
    assert [root] == behind.sent()
    scored = report(PASSED, NOT_PASSED, about=trajectory(trace_id=root.trace_id, root_span_id=root.span_id))
    behind.forward.emit(scored)
    behind.forward.emit(scored)
    behind.forward.emit(report(about=trajectory()))
    _, child, again = behind.sent()

    assert (child.trace_id, child.parent_span_id, child.name) == (root.trace_id, root.span_id, "evaluate refund")
    assert [dict(event_attributes(scored, each)) for each in scored.evaluations] == [
        {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in event.attributes}
        for event in child.events
    ]
    assert child.span_id == again.span_id
    assert ForwardCounts(received=1, sent=1) == behind.forward.counts()
    behind.forward.close(DEADLINE_S)


@pytest.mark.parametrize("reason", [reason for reason in CloseReason if reason is not CloseReason.ROOT_ENDED])
def test_scores_of_a_trace_without_a_root(behind: Behind, reason: CloseReason) -> None:
    """They follow in a span below its topmost one, which went on at once as it has a parent, and is counted once."""
    topmost = child(1, 7)
    behind.take(topmost)
    assert [topmost] == behind.sent()
    without_root = replace(scored(1, 7, NOT_PASSED), close_reason=reason)
    behind.forward.emit(without_root)
    behind.forward.emit(replace(without_root, trajectory=replace(without_root.trajectory, unit=Unit.AGENT)))
    behind.forward.emit(scored(1, 7, NOT_PASSED))
    _, *below = behind.sent()

    assert [(topmost.trace_id, topmost.span_id)] == [(span.trace_id, span.parent_span_id) for span in below]
    assert [[1, ["fail"]]] == [[len(span.events), labels(span)] for span in below]
    assert ForwardCounts(received=1, sent=1) == behind.forward.counts()


def test_a_root_behind_its_scores(behind: Behind) -> None:
    """A trace that was closed without its root is scored again when the root comes: that one carries its scores."""
    behind.forward.emit(replace(scored(1, 7), close_reason=CloseReason.TIMED_OUT))
    behind.take(late := root(1))
    again = replace(scored(1), close_reason=CloseReason.TIMED_OUT, revision=1)
    behind.forward.emit(again)
    first, second = behind.sent()

    assert (span_id(7), with_scores(late, again)) == (first.parent_span_id, second)


def test_no_event_lies_outside_of_its_root(behind: Behind) -> None:
    """Of a thousand traces, whose roots start and end at any nanosecond, also after rounding to microseconds."""
    random = Random(13)
    roots = []
    for number in range(1, 1_001):
        start = 1_790_000_000_000_000_000 + random.randrange(10**12)
        roots.append(root(number, start_time_unix_nano=start, end_time_unix_nano=start + random.randrange(10**7)))
    behind.take(*roots)
    for number in range(1, 1_001):
        behind.forward.emit(scored(number, 1, PASSED, NOT_PASSED))

    sent = behind.sent()
    assert (1_000, 2_000) == (len(sent), sum(len(span.events) for span in sent))
    for span in sent:
        start, duration = (
            nanoseconds // 1_000
            for nanoseconds in (span.start_time_unix_nano, span.end_time_unix_nano - span.start_time_unix_nano)
        )
        for event in span.events:
            assert span.start_time_unix_nano <= event.time_unix_nano <= span.end_time_unix_nano
            assert start <= event.time_unix_nano // 1_000 <= start + duration
