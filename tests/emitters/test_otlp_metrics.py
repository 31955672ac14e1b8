from __future__ import annotations

import threading
import time

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from deadline import DEADLINE_S
from emitters.otlp_server import OtlpServer, serving
from emitters.reports import (
    NOT_PASSED,
    PASSED,
    ROOT_SPAN_ID,
    TRACE_ID,
    report,
    trajectory,
)
from otlp_capture import InMemory, capturing
from spanscore.contracts import AtMostOnce
from spanscore.contracts.instruments.own import SPANS_RECEIVED, TRACE_SPAN_COUNT, TRACES_OPEN
from spanscore.emitters.otlp._encoded_metrics import EncodedMetrics
from spanscore.emitters.otlp.otlp_metrics import OtlpMetrics
from spanscore.emitters.sending import send_queue
from spanscore.emitters.sending.client import connect
from spanscore.metrics.accumulation import Accumulation


def test_exemplars_reach_the_receiver(otlp: OtlpServer) -> None:
    """A score arrives over OTLP in the bucket of a tenth, with the scored trace and span as its exemplar."""
    emitter = OtlpMetrics(otlp.destination.connect())
    emitter.emit(report(NOT_PASSED))

    assert emitter.close(DEADLINE_S)
    (point,) = otlp.metrics()["gen_ai.evaluation.score"].histogram.data_points
    (exemplar,) = point.exemplars
    assert [step / 10 for step in range(1, 11)] == list(point.explicit_bounds)
    assert [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0] == list(point.bucket_counts)
    assert (0.25, TRACE_ID, ROOT_SPAN_ID) == (exemplar.as_double, exemplar.trace_id, exemplar.span_id)
    assert {"gen_ai.evaluation.name": "e1", "gen_ai.agent.name": "refund", "service.name": "shop"} == {
        attribute.key: attribute.value.string_value for attribute in point.attributes
    }
    assert "k" == otlp.capture.seen[-1].headers["x-api-key"]


def test_sends_as_itself(otlp: OtlpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent says that it comes from spanscore, and from which instance; the environment may say otherwise."""
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.instance.id=one,host.name=h")
    monkeypatch.delenv("OTEL_SERVICE_NAME", raising=False)
    emitter = OtlpMetrics(otlp.destination.connect())
    emitter.emit(report(PASSED))
    emitter.close(DEADLINE_S)

    resource = otlp.resource()
    assert ("spanscore", "one", "h") == (
        resource["service.name"],
        resource["service.instance.id"],
        resource["host.name"],
    )


def test_flush_sends_what_was_emitted(otlp: OtlpServer) -> None:
    """After a flush everything has arrived, and more can be emitted."""
    emitter = OtlpMetrics(otlp.destination.connect())
    for expected in (1, 2):
        emitter.emit(report(PASSED))
        assert emitter.flush(DEADLINE_S)
        (point,) = otlp.metrics()["spanscore.evaluations"].sum.data_points
        assert expected == point.as_int
    assert emitter.close(DEADLINE_S)


def test_what_was_counted_before_a_crash_is_not_counted_again(otlp: OtlpServer) -> None:
    """It says so, as whoever counts has to: a trace whose events are sent again is not told to it again."""
    emitter = OtlpMetrics(otlp.destination.connect())
    assert isinstance(emitter, AtMostOnce)
    assert emitter.at_most_once
    assert emitter.close(DEADLINE_S)


def test_failed_export_is_counted(otlp: OtlpServer) -> None:
    """A request that the receiver refuses is a failure with a reason, and the flush says so."""
    otlp.refuse()
    emitter = OtlpMetrics(otlp.destination.connect())
    emitter.emit(report(PASSED))

    assert not emitter.flush(DEADLINE_S)
    assert {"export_failed": 1} == emitter.outbox.failures
    emitter.close(DEADLINE_S)


def test_receiver_that_does_not_answer_blocks_nothing(otlp: OtlpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a hung receiver emitting goes on, and flush and close end when their time is up, not with the request."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", str(2 * DEADLINE_S))
    otlp.capture.hold()
    emitter = OtlpMetrics(otlp.destination.connect())
    emitter.emit(report(PASSED))

    began = time.monotonic()
    assert not emitter.flush(0.2)
    for _ in range(1_000):
        emitter.emit(report(PASSED))
    assert not emitter.close(0.2)
    assert time.monotonic() - began < DEADLINE_S


def test_unreachable_receiver_keeps_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody listens, closing gives up when its time is up, and not with the retries."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", str(2 * DEADLINE_S))
    with serving("http/protobuf") as gone:
        destination = gone.destination
    emitter = OtlpMetrics(destination.connect())
    emitter.emit(report(PASSED))

    began = time.monotonic()
    assert not emitter.close(0.3)
    assert time.monotonic() - began < DEADLINE_S


def test_our_own_requests_are_not_traced() -> None:
    """Instrumentation of HTTP and gRPC clients is told to look away."""
    client = InMemory()
    emitter = OtlpMetrics(client)
    emitter.emit(report(PASSED))
    assert emitter.flush(DEADLINE_S)
    assert emitter.close(DEADLINE_S)

    assert ["metrics", "metrics"] == [signal for signal, _ in client.sent]
    assert {True} == client.suppressed


def test_the_receiver_may_want_differences(otlp: OtlpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the environment prefers it, each request holds what was added since the one before, and when that was."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta")
    emitter = OtlpMetrics(otlp.destination.connect())
    ends = []
    for outcomes in ((PASSED, NOT_PASSED), (PASSED,), (PASSED, PASSED)):
        emitter.emit(report(*outcomes))
        assert emitter.flush(DEADLINE_S)
        metrics = otlp.metrics()
        assert [1] * len(outcomes) == [point.as_int for point in metrics["spanscore.evaluations"].sum.data_points]
        (point, *_) = metrics["gen_ai.evaluation.score"].histogram.data_points
        assert (1, 1.0, 1) == (point.count, point.sum, len(point.exemplars))
        ends.append((point.start_time_unix_nano, point.time_unix_nano))
    assert ends[0][1] == ends[1][0]
    assert ends[1][1] == ends[2][0]
    assert emitter.close(DEADLINE_S)


def test_nothing_goes_on_after_an_impatient_close() -> None:
    """Closed without any time to send, no thread goes on trying."""
    before = set(threading.enumerate())
    with serving("http/protobuf") as gone:
        destination = gone.destination
    emitter = OtlpMetrics(destination.connect())
    emitter.emit(report(PASSED))
    assert not emitter.close(0)
    for thread in set(threading.enumerate()) - before:
        thread.join(DEADLINE_S)

    assert not set(threading.enumerate()) - before


def test_own_measurements_go_along(otlp: OtlpServer) -> None:
    """What else is counted and looked up is in the same request: counters with their start, gauges without."""
    emitter = OtlpMetrics(otlp.destination.connect())
    emitter.sink.observe(SPANS_RECEIVED, lambda: {(): 7})
    emitter.sink.observe(TRACES_OPEN, lambda: {(): 3})
    emitter.sink.record(TRACE_SPAN_COUNT, 4)
    assert emitter.close(DEADLINE_S)
    metrics = otlp.metrics()

    assert {"spanscore.spans.received", "spanscore.traces.open", "spanscore.trace.span_count"} == set(metrics)
    (received,) = metrics["spanscore.spans.received"].sum.data_points
    assert (7, True) == (received.as_int, 0 < received.start_time_unix_nano < received.time_unix_nano)
    assert [3] == [point.as_int for point in metrics["spanscore.traces.open"].gauge.data_points]
    assert [4.0] == [point.sum for point in metrics["spanscore.trace.span_count"].histogram.data_points]


@pytest.mark.parametrize("preference", ["cumulative", "delta"])
def test_no_point_starts_after_its_own_time(preference: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the clock is set back while we run."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", preference)
    accumulation = Accumulation()
    encoded = EncodedMetrics(accumulation, 9_000)
    times = []
    for now in (9_500, 4_000, 4_500):
        accumulation.record(TRACE_SPAN_COUNT, 4)
        (metric,) = map(Metric.FromString, encoded.collect(now))
        (point,) = metric.histogram.data_points
        times.append((point.start_time_unix_nano, point.time_unix_nano))

    assert [(9_000, 9_500), (4_000, 4_000), (4_000, 4_500)] == times


def test_sums_are_sent_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has to ask for it; what goes wrong while they are put together costs one turn."""
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "1")
    monkeypatch.setattr(send_queue, "_IDLE_S", 0.001)
    faults = [LookupError()]

    def read() -> dict[tuple[str, ...], float]:
        if faults:
            raise faults.pop()
        return {(): 3}

    with capturing("http/protobuf") as receiver:
        emitter = OtlpMetrics(connect(receiver.endpoint))
        emitter.sink.observe(TRACES_OPEN, read)
        receiver.wait_for_requests(3)
        assert emitter.close(DEADLINE_S)

    assert not faults
    assert {"/v1/metrics"} == {each.path for each in receiver.seen}


def test_many_series_are_sent_in_several_requests() -> None:
    """Each is small enough for any receiver, and together they have all of the metrics, once."""
    client = InMemory()
    emitter = OtlpMetrics(client)
    for number in range(2_000):
        emitter.emit(report(PASSED, NOT_PASSED, about=trajectory(agent=f"agent {number}")))
    assert emitter.close(DEADLINE_S)

    requests = [ExportMetricsServiceRequest.FromString(body) for body in client.taken]
    names = [
        metric.name
        for request in requests
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    ]
    assert len(requests) > 1
    assert all(len(body) < 2**22 for body in client.taken)
    assert len(set(names)) == len(names)
