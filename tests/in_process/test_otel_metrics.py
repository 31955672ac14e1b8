from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

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
from spanscore.contracts.instruments.instrument import SCORE_INSTRUMENTS
from spanscore.in_process.handover import OtelMetrics
from spanscore.metrics.meter import Meter
from spanscore.model import Completeness


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


def test_with_the_hosts_provider(host: InMemory) -> None:
    """The host's meter provider gets every instrument of the table, with its boundaries and with exemplars."""
    emitter = OtelMetrics(Meter(host.provider))
    continued = Completeness(resumed=True)
    emitter.emit(health_report(call("a"), call("b", error="ValueError: no"), completeness=continued))
    emitter.emit(report(about=trajectory(completeness=Completeness(paused=("a",)))))

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


def test_reasons(host: InMemory) -> None:
    """Failing runs count by reason, which has its own value from the fifth run on."""
    emitter = OtelMetrics(Meter(host.provider))
    for _ in range(6):
        emitter.emit(report(NOT_PASSED))

    assert {("_other", 4), ("e1: failed", 2)} == {
        (point.attributes["spanscore.fail_reason"], point.value) for point in host.points()["spanscore.fail_reasons"]
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
