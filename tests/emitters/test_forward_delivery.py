"""What is passed on arrives: through failures, within bounds, and everything is accounted for."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from emitters.reports import PASSED, report, trajectory
from otlp_capture import (
    DEADLINE_S,
    FORBIDDEN,
    INVALID,
    UNAVAILABLE,
    Capture,
    InMemory,
    Reply,
    capturing,
    partial_success,
    port_of,
    spans_of,
)
from receivers.otlp_requests import request_of, simple_span, span_id, trace_id
from spanscore import config
from spanscore.collect.table import TraceTable
from spanscore.config import parts as wiring
from spanscore.contracts import PassingOn, SendsInBackground
from spanscore.emitters.otlp._held_roots import HoldLimits
from spanscore.emitters.otlp.forward import Forward
from spanscore.emitters.otlp.forward_settings import ForwardCounts, ForwardSettings
from spanscore.emitters.otlp.trace_keeper import TraceKeeper
from spanscore.emitters.sending import send_queue
from spanscore.emitters.sending.backlog import Backlog, QueueItem, QueueLimits
from spanscore.emitters.sending.client import Accepted, Answer, Protocol, Refused, Retries, TryAgain, connect
from spanscore.emitters.sending.destination import Destination
from spanscore.emitters.sending.send_queue import Timing
from spanscore.model import Span as ReceivedSpan
from spanscore.otlp.from_protobuf import decode_protobuf
from spanscore.scoring.engine import Engine
from spanscore.scoring.keep.settings import KeepSettings

JOINED = QueueLimits(linger_s=60)
AT_ONCE = QueueLimits(linger_s=0)


class Waits:
    """Notes how long to wait, and hardly waits."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, event: threading.Event, seconds: float) -> bool:
        """Wait for the event."""
        self.seconds.append(seconds)
        return event.wait(0.001)


@contextmanager
def forwarding(
    client: Any, queue: QueueLimits = AT_ONCE, waits: Waits | None = None, **settings: Any
) -> Iterator[Forward]:
    """Give a forward emitter, and close it."""
    forward = Forward(client, ForwardSettings(queue=queue, **settings), Timing(wait=waits or Waits()))
    try:
        yield forward
    finally:
        forward.close(DEADLINE_S)


def child(trace: int, span: int = 2) -> Span:
    """Return a span that goes on at once."""
    return simple_span(trace, span, parent_span_id=span_id(99))


def request(*spans: Span) -> bytes:
    """Return a request."""
    return request_of(*spans).SerializeToString()


def roots(count: int) -> Sequence[ReceivedSpan]:
    """Return root spans as they are decoded."""
    return decode_protobuf(request(*map(simple_span, range(1, count + 1)))).spans


def numbers(spans: Sequence[Span]) -> list[int]:
    """Return the trace ids as numbers, sorted."""
    return sorted(int.from_bytes(span.trace_id, "big") for span in spans)


def test_a_trace_is_scored_and_forwarded(receiver: Capture, protocol: Protocol) -> None:
    """With the real engine: what is received comes out behind, and the root carries its score."""
    settings = config.loads("traces: {decision_delay: 0s}", "test.yaml", Path()).for_serve()
    pipeline = wiring.pipeline(settings)
    destination = Destination(endpoint=receiver.endpoint, protocol=protocol, headers={"x-api-key": "k"})
    forward = Forward(destination.connect(), ForwardSettings.for_host(PassingOn(held_roots="parentless", delay_s=0)))
    table = TraceTable(settings.traces, wiring.root_condition(settings, pipeline.reader))
    engine = Engine(table, pipeline, {"forward": forward}, time.monotonic)
    body = request(child(1), simple_span(1))

    forward.take(body)
    engine.add(decode_protobuf(body).spans)
    assert engine.close(DEADLINE_S)

    spans = {span.span_id: span for span in receiver.spans()}
    assert {span_id(1), span_id(2)} == spans.keys()
    (event,) = spans[span_id(1)].events
    told = {attribute.key: attribute.value.string_value for attribute in event.attributes}
    assert ("gen_ai.evaluation.result", "health") == (event.name, told["gen_ai.evaluation.name"])
    assert ForwardCounts(received=2, sent=2, annotated=1) == forward.counts()


def test_a_receiver_that_is_killed_and_comes_back_misses_nothing(protocol: Protocol) -> None:
    """While it is away, spans and scores wait; then all of them arrive, once."""
    with capturing(protocol) as receiver:
        client = connect(receiver.endpoint, protocol)
        forward = Forward(client, ForwardSettings(queue=AT_ONCE), Timing(wait=Waits()))
        forward.take(request(child(1), simple_span(1)))
        assert forward.flush(DEADLINE_S)
    for number in range(2, 30):
        forward.take(request(child(number), simple_span(number)))
    for number in range(1, 30):
        about = trajectory(trace_id=trace_id(number), root_span_id=span_id(1))
        forward.emit(report(PASSED, about=about))
    with capturing(protocol, receiver, port_of(receiver)):
        assert forward.close(DEADLINE_S)

    spans = receiver.spans()
    assert sorted([*range(1, 30), *range(1, 30)]) == numbers(spans)
    assert list(range(1, 30)) == numbers([span for span in spans if span.events])
    assert ForwardCounts(received=58, sent=58, annotated=29) == forward.counts()
    assert {} == forward.outbox.failures


def test_the_receivers_delay_is_kept(receiver: Capture, protocol: Protocol) -> None:
    """A receiver that asks for time gets it, and then the same request."""
    receiver.replies += [
        Reply(http=503, grpc=grpc.StatusCode.UNAVAILABLE, retry_delay_s=17),
        Reply(http=429, grpc=grpc.StatusCode.RESOURCE_EXHAUSTED, retry_delay_s=42),
        UNAVAILABLE,
    ]
    waits = Waits()
    with forwarding(connect(receiver.endpoint, protocol), waits=waits) as forward:
        forward.take(request(child(1)))
        assert forward.flush(DEADLINE_S)

    assert [17, 42] == waits.seconds[:2]
    assert 3 == len(waits.seconds)
    assert 1 == len({each.body for each in receiver.seen})
    assert [1] == numbers(receiver.spans())


def test_a_request_that_is_refused_is_not_sent_again(receiver: Capture, protocol: Protocol) -> None:
    """It is dropped and counted by what the receiver said; those behind it go on."""
    receiver.replies += [INVALID]
    with forwarding(connect(receiver.endpoint, protocol)) as forward:
        forward.take(request(child(1), child(2)))
        assert not forward.flush(DEADLINE_S)
        forward.take(request(child(3)))
        assert forward.flush(DEADLINE_S)

        reason = "http_400" if protocol == "http/protobuf" else "grpc_invalid_argument"
        assert ForwardCounts(received=3, sent=1, dropped={reason: 2}) == forward.counts()
        assert {reason: 1} == forward.outbox.failures


def test_rejected_spans_are_counted(receiver: Capture, protocol: Protocol) -> None:
    """A partial success is no reason to send again."""
    receiver.replies += [partial_success(1, "too old"), partial_success(5, "liar"), partial_success(0, "careful")]
    with forwarding(connect(receiver.endpoint, protocol)) as forward:
        for number in (1, 2, 3):
            forward.take(request(child(number), child(number, 3)))
            forward.flush(DEADLINE_S)

        assert ForwardCounts(received=6, sent=3, dropped={"rejected": 3}) == forward.counts()
        assert {"rejected": 3} == forward.outbox.failures
    assert 3 == len(receiver.seen)


def test_a_bad_request_costs_only_itself() -> None:
    """Where requests were joined and the receiver refuses them for what they hold, each is sent by itself."""
    bad = Refused(reason="http_400", about_content=True)
    client = InMemory([bad, Accepted(), bad, TryAgain(reason="http_503"), Accepted()])
    with forwarding(client, JOINED) as forward:
        for number in (1, 2, 3):
            forward.take(request(child(number)))
        assert not forward.flush(DEADLINE_S)

        assert [1, 3] == numbers(spans_of(client.taken))
        assert ForwardCounts(received=3, sent=2, dropped={"http_400": 1}) == forward.counts()
    assert 5 == len(client.sent)


def test_who_is_not_let_in_is_told_once() -> None:
    """Where the receiver refuses us, joined requests are not sent one by one."""
    client = InMemory([Refused(reason="http_401")])
    with forwarding(client, JOINED) as forward:
        for number in (1, 2, 3):
            forward.take(request(child(number)))
        assert not forward.flush(DEADLINE_S)

        assert ForwardCounts(received=3, dropped={"http_401": 3}) == forward.counts()
    assert 1 == len(client.sent)


def test_small_requests_go_together() -> None:
    """What comes within a moment is joined, up to a size: a larger request goes by itself."""
    client = InMemory()
    size = len(request(child(1)))
    with forwarding(client, QueueLimits(linger_s=60, batch_bytes=3 * size)) as forward:
        for number in range(1, 8):
            forward.take(request(child(number)))
        forward.take(request(*(child(number) for number in range(8, 20))))
        assert forward.flush(DEADLINE_S)

    assert list(range(1, 20)) == numbers(spans_of(client.taken))
    assert all(len(body) <= 3 * size or len(spans_of([body])) == 12 for body in client.taken)
    assert 4 == len(client.taken)


def test_signals_are_not_joined() -> None:
    """Each request holds one signal."""
    client = InMemory()
    with forwarding(client, JOINED) as forward:
        forward.take_other("metrics", b"\x0a\x00")
        forward.take(request(child(1)))
        forward.take(request(child(2)))
        forward.take_other("logs", b"\x0a\x00")
        assert forward.flush(DEADLINE_S)

    assert [
        ("metrics", b"\x0a\x00"),
        ("traces", request(child(1)) + request(child(2))),
        ("logs", b"\x0a\x00"),
    ] == client.sent


def test_what_comes_is_sent_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request wakes the thread that sends; it need not look by itself."""
    monkeypatch.setattr(send_queue, "_IDLE_S", 10 * DEADLINE_S)
    client = InMemory()
    with forwarding(client) as forward:
        for number in range(1, 11):
            forward.take(request(child(number)))
            client.spans(number)


def test_what_comes_waits_for_company() -> None:
    """A small request lingers, so that others can go with it; a full load goes at once."""
    backlog = Backlog(QueueLimits(linger_s=3, batch_bytes=10))
    assert backlog.due() is None

    backlog.put(QueueItem("traces", b"12345"), 100)
    backlog.put(QueueItem("traces", b"1234"), 102)
    assert 103 == backlog.due()

    backlog.put(QueueItem("traces", b"1"), 102.5)
    assert -math.inf == backlog.due()
    assert 3 == len(backlog.take())
    assert backlog.due() is None


@pytest.mark.parametrize("queue", [QueueLimits(capacity=2), QueueLimits(capacity_bytes=506)])
def test_the_queue_is_bounded(queue: QueueLimits) -> None:
    """What does not fit is dropped and counted, and what waits is not lost for it."""
    client = InMemory()
    client.hold()
    with forwarding(client, queue) as forward:
        for number in range(1, 6):
            forward.take(request(child(number)))

        assert ForwardCounts(received=5, queued=2, dropped={"queue_full": 3}) == forward.counts()
        assert (2, {"queue_full": 3}) == (forward.outbox.size, forward.outbox.failures)
        assert 0.5 < forward.outbox.fullness <= 1.0
        client.go_on()
        assert forward.flush(DEADLINE_S)
        assert [1, 2] == numbers(spans_of(client.taken))
        assert 0.0 == forward.outbox.fullness


def test_a_flood_of_large_requests_leaves_room_for_small_ones() -> None:
    """While a quarter of the queue or less is left, a request may take half of that, in bytes and in spans.

    So requests that come again and again as large as they may be never fill it, and small ones always have room.
    """
    client = InMemory()
    client.hold()
    large = request(*[child(number) for number in range(1_000)])
    one = request(child(1))
    with forwarding(client, QueueLimits(capacity_bytes=10 * len(large), linger_s=0)) as forward:
        taken = 0
        while forward.has_room(len(large), decode_protobuf(large).spans):
            forward.take(large)
            taken += 1
        assert 7 <= taken <= 9
        size = len(large)
        while size > 1_000:
            size = size // 2
            while forward.has_room(size):
                forward.take_other("logs", b"x" * size)
        assert forward.has_room(len(one), decode_protobuf(one).spans)
        assert {} == forward.outbox.failures
        client.go_on()


def test_a_refusal_lasts_until_its_request_would_have_room() -> None:
    """Smaller requests that are taken meanwhile do not end it."""
    client = InMemory()
    client.hold()
    large = request(*[child(number) for number in range(1_000)])
    with forwarding(client, QueueLimits(capacity_bytes=2 * len(large), linger_s=0)) as forward:
        assert forward.has_room(len(large))
        forward.take(large)
        assert not forward.is_refusing
        assert not forward.has_room(len(large))
        assert forward.has_room(1_000)
        assert forward.is_refusing
        client.go_on()
        assert forward.flush(DEADLINE_S)
        assert not forward.is_refusing


def test_roots_of_a_request_have_room_before_it_is_taken() -> None:
    """Each root may be sent by itself, so that a request with too many of them is not taken while others wait."""
    client = InMemory()
    client.hold()
    queue = QueueLimits(capacity=100, linger_s=0)
    with forwarding(client, queue, hold=HoldLimits(max_roots=10)) as forward:
        assert forward.has_room(10_000, roots(200))
        forward.take(request(*[simple_span(trace) for trace in range(1, 41)]))
        assert not forward.has_room(10_000, roots(61))
        assert not forward.has_room(10_000, roots(40))
        assert forward.has_room(10_000, roots(20))
        client.go_on()


def test_spans_that_go_on_with_their_request_take_no_room_of_their_own() -> None:
    """A request is one item of the queue, however many spans it has that are not held back."""
    children = decode_protobuf(request(*map(child, range(1, 200)))).spans
    cases: Sequence[tuple[dict[str, Any], Sequence[ReceivedSpan]]] = (({}, children), ({"roots": "none"}, roots(200)))
    for settings, spans in cases:
        client = InMemory()
        client.hold()
        with forwarding(client, QueueLimits(capacity=100, linger_s=0), **settings) as forward:
            forward.take(request(child(1)))
            has_room = forward.has_room(10_000, spans)
            client.go_on()
            assert has_room


def test_roots_of_a_remote_parent_have_room_before_they_are_taken() -> None:
    """With `root: remote_parent`, spans of a parent in another process count as roots."""
    client = InMemory()
    client.hold()
    with forwarding(client, QueueLimits(capacity=100, linger_s=0), roots="remote_parent") as forward:
        forward.take(request(child(1)))
        remote = [simple_span(trace, parent_span_id=span_id(9), flags=0x300) for trace in range(1, 101)]
        has_room = forward.has_room(10_000, decode_protobuf(request(*remote)).spans)
        client.go_on()
        assert not has_room


def test_requests_that_have_room_are_never_dropped() -> None:
    """The memory of items counts: each root may be one."""
    client = InMemory()
    client.hold()
    body = request(*map(simple_span, range(1, 21)))
    queue = QueueLimits(capacity_bytes=20 * len(body), linger_s=0)
    with forwarding(client, queue, hold=HoldLimits(max_roots=1)) as forward:
        taken = 0
        while forward.has_room(len(body), roots(20)):
            forward.take(body)
            taken += 1
        client.go_on()
        forward.close(DEADLINE_S)
        assert ({}, 7) == (forward.outbox.failures, taken)


@pytest.mark.full_size
def test_traces_that_wait_for_their_decision_refuse_nobody() -> None:
    """Only `max_bytes` bounds them, however small they are: the queue has room for an item of each of their spans."""
    settings = KeepSettings(mode="on", default=0.5)
    passing = PassingOn(held_roots="parentless", waiting_bytes=settings.max_bytes)
    forward = Forward(InMemory(), ForwardSettings.for_host(passing))
    keeper = TraceKeeper(settings, lambda _: False, remember=1_000, longest_s=900.0)
    forward.keep_by(keeper)
    for first in (1, 60_001):
        forward.take(request(*[simple_span(trace) for trace in range(first, first + 60_000)]))
        assert forward.has_room(5_000_000, roots(60_000))
    forward.outbox.close(0)


def test_a_receiver_that_is_away_for_a_day_misses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """However long that is, spans wait, and the queue says for how long nothing could be sent, and why."""
    caplog.set_level(logging.INFO, "spanscore")
    seen: list[tuple[float, str]] = []

    class Away(InMemory):
        def send(self, signal: Any, body: bytes) -> Answer:
            """Note the delay so far, a quarter of a day after the last attempt."""
            seen.append(forward.outbox.delay)
            now[0] += 21_600
            return super().send(signal, body)

    now = [0.0]
    client = Away([TryAgain(reason="unreachable", problem="Connection refused")] * 4)
    forward = Forward(client, ForwardSettings(queue=AT_ONCE), Timing(clock=lambda: now[0], wait=Waits()))
    forward.take(request(child(1)))
    assert forward.flush(DEADLINE_S)
    assert (0.0, "") == forward.outbox.delay
    forward.close(DEADLINE_S)

    assert [1] == numbers(spans_of(client.taken))
    assert [(0.0, ""), *((quarter * 21_600, "unreachable") for quarter in range(4))] == seen
    assert {} == forward.outbox.failures
    told = [record.getMessage() for record in caplog.records]
    assert [
        "forward: cannot send now (unreachable: Connection refused): trying again until it can",
        "forward: sending again",
    ] == told


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            Refused(reason="http_400", message="too old"),
            "forward: not sent: the receiver refused it (http_400) too old",
        ),
        (TryAgain(reason="unreachable"), "forward: not sent: (retries_exhausted) unreachable"),
    ],
)
def test_only_what_the_receiver_refused_is_called_so(
    answer: Answer, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The message about a request that was given up does not say that it was refused."""
    now = count(step=50)
    settings = ForwardSettings(queue=AT_ONCE, retries=Retries(max_elapsed_s=120))
    forward = Forward(InMemory([answer] * 9), settings, Timing(clock=lambda: next(now), wait=Waits()))
    forward.take(request(child(1)))
    assert not forward.flush(DEADLINE_S)
    forward.close(DEADLINE_S)

    assert told in [record.getMessage() for record in caplog.records]


def test_a_request_that_nobody_takes_is_given_up() -> None:
    """After a time that was set it is dropped, and the next one has its turn."""
    now = count(step=50)
    client = InMemory([TryAgain(reason="http_503")] * 3)
    settings = ForwardSettings(queue=AT_ONCE, retries=Retries(max_elapsed_s=120))
    forward = Forward(client, settings, Timing(clock=lambda: next(now), wait=Waits()))
    forward.take(request(child(1)))
    forward.flush(DEADLINE_S)
    client.answers.clear()
    forward.take(request(child(2)))
    forward.close(DEADLINE_S)

    assert ForwardCounts(received=2, sent=1, dropped={"retries_exhausted": 1}) == forward.counts()


def test_closing_keeps_its_timeout(receiver: Capture, protocol: Protocol) -> None:
    """With a receiver that does not answer, closing does not wait for it, says so, and drops what is left."""
    receiver.hold()
    client = connect(receiver.endpoint, protocol, timeout_s=2 * DEADLINE_S)
    forward = Forward(client, ForwardSettings(queue=AT_ONCE), Timing(wait=Waits()))
    forward.take(request(child(1)))
    receiver.wait_for_requests(1)
    forward.take(request(child(2)))
    began = time.monotonic()

    assert not forward.flush(0.05)
    assert not forward.close(0.05)

    assert time.monotonic() - began < DEADLINE_S  # for which the receiver holds the answer back
    assert ForwardCounts(received=2, dropped={"shut_down": 2}) == forward.counts()
    assert 0 == forward.outbox.size
    for thread in threading.enumerate():
        if thread.name == "spanscore-forward":
            thread.join(DEADLINE_S)
            assert not thread.is_alive()
    assert 1 == len(receiver.seen)


def test_closing_keeps_its_timeout_while_the_receiver_is_away(protocol: Protocol) -> None:
    """Closing tries to the end, and not as long as it would with more time."""
    with capturing(protocol) as gone:
        endpoint = gone.endpoint
    forward = Forward(connect(endpoint, protocol))
    forward.take(request(child(1)))
    began = time.monotonic()

    assert not forward.close(0.2)

    assert 0.2 <= time.monotonic() - began < DEADLINE_S
    assert ForwardCounts(received=1, dropped={"shut_down": 1}) == forward.counts()


def test_a_receiver_that_comes_back_while_we_close_gets_everything() -> None:
    """At the end there is no time for long waits: what was put off is tried at once, and often."""
    client = InMemory([TryAgain(reason="unreachable", after_s=60)] * 4)
    waits = Waits()
    with forwarding(client, waits=waits, retries=Retries(initial_s=100, max_s=100)) as forward:
        forward.take(request(child(1)))
        assert forward.close(DEADLINE_S)

    assert [1] == numbers(spans_of(client.taken))
    assert 0.5 == waits.seconds[-1]


def test_a_fault_costs_one_request(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever goes wrong in sending, what comes behind is sent."""

    class Broken(InMemory):
        def send(self, signal: Any, body: bytes) -> Answer:
            """Fail the first time."""
            if not self.sent:
                self.sent.append((signal, body))
                message = "no such thing"
                raise LookupError(message)
            return super().send(signal, body)

    client = Broken()
    with forwarding(client) as forward:
        forward.take(request(child(1)))
        assert not forward.flush(DEADLINE_S)
        forward.take(request(child(2)))
        assert forward.flush(DEADLINE_S)

        assert ForwardCounts(received=2, sent=1, dropped={"LookupError": 1}) == forward.counts()


def test_what_is_said_once_is_not_repeated(protocol: Protocol, caplog: pytest.LogCaptureFixture) -> None:
    """A receiver that refuses, or is away, fills no log; and no log shows a header or a span."""
    caplog.set_level(logging.DEBUG, "spanscore")
    with capturing(protocol) as receiver:
        receiver.replies += [FORBIDDEN, FORBIDDEN, FORBIDDEN, UNAVAILABLE, UNAVAILABLE]
        with forwarding(connect(receiver.endpoint, protocol, {"authorization": "canary-1"})) as forward:
            for number in range(1, 6):
                forward.take(request(simple_span(number, parent_span_id=span_id(9), name="canary-2")))
                forward.flush(DEADLINE_S)

    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert 2 == len(warnings)
    assert "canary" not in caplog.text


def test_telemetry_finds_the_queue() -> None:
    """The queue's size, its capacity and what failed are where own metrics look for them."""
    with forwarding(InMemory(), QueueLimits(capacity=7)) as forward:
        assert isinstance(forward, SendsInBackground)
        assert (0, 7, {}) == (forward.outbox.size, forward.outbox.capacity, forward.outbox.failures)


_ANSWERS = st.sampled_from(
    [
        Accepted(),
        Accepted(rejected=1, message="too old"),
        Accepted(rejected=2**40),
        TryAgain(reason="http_503"),
        TryAgain(reason="unreachable", after_s=1),
        Refused(reason="http_400", about_content=True),
        Refused(reason="http_500"),
    ]
)
_ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), max_size=4)),
        st.tuples(st.just("score"), st.tuples(st.integers(1, 4), st.integers(1, 3))),
        st.tuples(st.just("flush"), st.none()),
        st.tuples(st.just("pass_on"), st.none()),
    ),
    max_size=25,
)


@given(
    actions=_ACTIONS,
    answers=st.lists(_ANSWERS, max_size=20),
    capacity=st.integers(1, 6),
    max_roots=st.integers(1, 4),
    batch_bytes=st.sampled_from([0, 200, 2**20]),
)
def test_everything_is_accounted_for(
    actions: list[Any], answers: list[Answer], capacity: int, max_roots: int, batch_bytes: int
) -> None:
    """At every moment of rest: received = sent + queued + held + dropped; and at the end nothing is queued or held."""
    client = InMemory(answers)
    queue = QueueLimits(capacity=capacity, batch_bytes=batch_bytes, linger_s=0)
    received = 0
    with forwarding(client, queue, hold=HoldLimits(max_roots=max_roots)) as forward:
        for action, what in actions:
            if action == "take":
                received += len(what)
                forward.take(request(*(simple_span(*ids) if ids[1] == 1 else child(*ids) for ids in what)))
            elif action == "score":
                about = trajectory(trace_id=trace_id(what[0]), root_span_id=span_id(what[1]))
                forward.emit(report(PASSED, about=about))
            elif action == "flush":
                forward.flush(DEADLINE_S)
            else:
                forward.take_other("logs", b"")
            counts = forward.counts()
            assert received == counts.received
            assert received == counts.sent + counts.queued + counts.held + sum(counts.dropped.values())
        forward.close(DEADLINE_S)
        counts = forward.counts()
    assert (0, 0) == (counts.queued, counts.held)
    assert received == counts.sent + sum(counts.dropped.values())
    assert counts.sent <= len(spans_of(client.taken))
