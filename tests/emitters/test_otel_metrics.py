from __future__ import annotations

import time
from typing import Any

import grpc
import pytest
import requests
from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, get_value
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from emitters.otlp_server import OtlpServer, serving
from emitters.reports import (
    BROKEN,
    NOT_PASSED,
    PASSED,
    ROOT_SPAN_ID,
    SKIPPED,
    TRACE_ID,
    call,
    health_report,
    report,
    trajectory,
)
from spanscore.emitters.otel_metrics import OtelMetrics
from spanscore.instruments import SCORE_INSTRUMENTS
from spanscore.metrics.meter import Meter


class InMemory:
    """A host with a meter provider of its own."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.provider = MeterProvider([self._reader], shutdown_on_exit=False)

    def points(self) -> dict[str, list[Any]]:
        """Return the data points of every metric."""
        data = self._reader.get_metrics_data()
        assert data is not None
        (resource,) = data.resource_metrics
        (scope,) = resource.scope_metrics
        assert "spanscore" == scope.scope.name
        return {metric.name: list(metric.data.data_points) for metric in scope.metrics}


@pytest.fixture
def host() -> InMemory:
    """A host."""
    return InMemory()


def test_exemplars_reach_the_receiver(otlp: OtlpServer) -> None:
    """A score arrives over OTLP in the bucket of a tenth, with the scored trace and span as its exemplar."""
    emitter = OtelMetrics.over_otlp(otlp.destination)
    emitter.emit(report(NOT_PASSED))

    assert emitter.close(10)
    (point,) = otlp.metrics()["gen_ai.evaluation.score"].histogram.data_points
    (exemplar,) = point.exemplars
    assert [step / 10 for step in range(1, 11)] == list(point.explicit_bounds)
    assert [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0] == list(point.bucket_counts)
    assert (0.25, TRACE_ID, ROOT_SPAN_ID) == (exemplar.as_double, exemplar.trace_id, exemplar.span_id)
    assert {"gen_ai.evaluation.name": "e1", "gen_ai.agent.name": "refund", "service.name": "shop"} == {
        attribute.key: attribute.value.string_value for attribute in point.attributes
    }
    assert "k" == otlp.headers[-1]["x-api-key"]


def test_sends_as_itself(otlp: OtlpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent says that it comes from spanscore, and from which instance; the environment may say otherwise."""
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.instance.id=one,host.name=h")
    monkeypatch.delenv("OTEL_SERVICE_NAME", raising=False)
    emitter = OtelMetrics.over_otlp(otlp.destination)
    emitter.emit(report(PASSED))
    emitter.close(10)

    resource = otlp.resource()
    assert ("spanscore", "one", "h") == (
        resource["service.name"],
        resource["service.instance.id"],
        resource["host.name"],
    )


def test_flush_sends_what_was_emitted(otlp: OtlpServer) -> None:
    """After a flush everything has arrived, and more can be emitted."""
    emitter = OtelMetrics.over_otlp(otlp.destination)
    for expected in (1, 2):
        emitter.emit(report(PASSED))
        assert emitter.flush(10)
        (point,) = otlp.metrics()["spanscore.evaluations"].sum.data_points
        assert expected == point.as_int
    assert emitter.close(10)


def test_failed_export_is_counted(otlp: OtlpServer) -> None:
    """A request that the receiver refuses is a failure with a reason, and the flush says so."""
    otlp.refuses = True
    emitter = OtelMetrics.over_otlp(otlp.destination)
    emitter.emit(report(PASSED))

    assert not emitter.flush(10)
    assert emitter.outbox is not None
    assert {"export_failed": 1} == emitter.outbox.failures
    emitter.close(10)


def test_receiver_that_does_not_answer_blocks_nothing(otlp: OtlpServer) -> None:
    """With a hung receiver emitting goes on, and flush and close keep their timeouts."""
    otlp.answers.clear()
    emitter = OtelMetrics.over_otlp(otlp.destination)
    emitter.emit(report(PASSED))

    began = time.monotonic()
    assert not emitter.flush(0.2)
    for _ in range(1_000):
        emitter.emit(report(PASSED))
    assert not emitter.close(0.2)
    assert time.monotonic() - began < 5


def test_unreachable_receiver_keeps_timeouts() -> None:
    """Where nobody listens, closing gives up in time."""
    with serving("http/protobuf") as gone:
        destination = gone.destination
    emitter = OtelMetrics.over_otlp(destination)
    emitter.emit(report(PASSED))

    began = time.monotonic()
    assert not emitter.close(0.3)
    assert time.monotonic() - began < 5


def test_exports_over_http_are_not_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instrumentations are told to leave the requests of our own exports alone, when sent and when flushed."""
    told: list[object] = []
    send = requests.Session.send

    def instrumented(self: requests.Session, *args: Any, **kwargs: Any) -> requests.Response:
        told.append(get_value(_SUPPRESS_INSTRUMENTATION_KEY))
        return send(self, *args, **kwargs)

    monkeypatch.setattr(requests.Session, "send", instrumented)
    with serving("http/protobuf") as server:
        emitter = OtelMetrics.over_otlp(server.destination)
        emitter.emit(report(PASSED))
        assert emitter.flush(10)
        assert emitter.close(10)

    assert [True, True] == told


def test_exports_over_grpc_are_not_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for gRPC, whose instrumentation intercepts the channel."""
    told: list[object] = []
    insecure_channel = grpc.insecure_channel

    class Interceptor(grpc.UnaryUnaryClientInterceptor):
        def intercept_unary_unary(self, proceed: Any, details: Any, request: Any) -> Any:
            told.append(get_value(_SUPPRESS_INSTRUMENTATION_KEY))
            return proceed(details, request)

    monkeypatch.setattr(
        "opentelemetry.exporter.otlp.proto.grpc.exporter.insecure_channel",
        lambda *args, **kwargs: grpc.intercept_channel(insecure_channel(*args, **kwargs), Interceptor()),
    )
    with serving("grpc") as server:
        emitter = OtelMetrics.over_otlp(server.destination)
        emitter.emit(report(PASSED))
        assert emitter.close(10)

    assert [True] == told


def test_with_the_hosts_provider(host: InMemory) -> None:
    """The host's meter provider gets every instrument of the table, with its boundaries and with exemplars."""
    OtelMetrics(Meter(host.provider)).emit(health_report(call("a"), call("b", error="ValueError: no")))

    points = host.points()
    assert {instrument.name for instrument in SCORE_INSTRUMENTS} == set(points)
    for instrument in SCORE_INSTRUMENTS:
        for point in points[instrument.name]:
            assert set(point.attributes) <= set(instrument.attributes)
            assert instrument.boundaries == tuple(getattr(point, "explicit_bounds", ()))
            assert {(int.from_bytes(TRACE_ID), int.from_bytes(ROOT_SPAN_ID))} == {
                (exemplar.trace_id, exemplar.span_id) for exemplar in point.exemplars
            }


def test_the_hosts_provider_is_the_hosts_to_close(host: InMemory) -> None:
    """Closing the emitter leaves the host's meter provider in use."""
    emitter = OtelMetrics(Meter(host.provider))
    emitter.emit(report(PASSED))

    assert emitter.flush(0)
    assert emitter.close(0)
    assert 1 == host.points()["gen_ai.evaluation.score"][0].count


def test_outcomes(host: InMemory) -> None:
    """Every evaluation counts by its outcome; only scores are in the histogram."""
    OtelMetrics(Meter(host.provider)).emit(report(PASSED, NOT_PASSED, SKIPPED, BROKEN))

    points = host.points()
    assert {("e1", "pass", 1), ("e2", "fail", 1), ("e3", "skipped", 1), ("e4", "failed", 1)} == {
        (point.attributes["gen_ai.evaluation.name"], point.attributes["spanscore.outcome"], point.value)
        for point in points["spanscore.evaluations"]
    }
    assert {("e1", 1.0), ("e2", 0.25)} == {
        (point.attributes["gen_ai.evaluation.name"], point.sum) for point in points["gen_ai.evaluation.score"]
    }


def test_without_a_trace(host: InMemory) -> None:
    """A trajectory without ids, as one built by hand, is measured without an exemplar."""
    OtelMetrics(Meter(host.provider)).emit(report(PASSED, about=trajectory(trace_id=b"", root_span_id=b"")))

    (point,) = host.points()["gen_ai.evaluation.score"]
    assert (1, []) == (point.count, list(point.exemplars))


def test_many_names_stay_below_the_hosts_limit(host: InMemory) -> None:
    """A flood of agent names never makes the SDK itself merge series, which would take the evaluators' names away."""
    emitter = OtelMetrics(Meter(host.provider))
    for number in range(2_500):
        emitter.emit(report(PASSED, about=trajectory(agent=f"agent {number}")))

    points = host.points()["gen_ai.evaluation.score"]
    assert len(points) <= 2_000
    assert {"e1"} == {point.attributes["gen_ai.evaluation.name"] for point in points}
    assert 2_500 == sum(point.count for point in points)
