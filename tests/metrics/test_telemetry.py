from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from spanscore import config
from spanscore.collect.settings import TraceSettings
from spanscore.collect.table import TraceTable
from spanscore.config import parts as wiring
from spanscore.contracts import Emitter
from spanscore.contracts.instruments.own import OWN_INSTRUMENTS, SCORE_LATENCY, STORAGE_SIZE
from spanscore.emitters.sending.outbox import Outbox
from spanscore.metrics.exposition import Exposition
from spanscore.metrics.meter import Meter
from spanscore.metrics.telemetry import OwnTelemetry
from spanscore.model import Report, Span
from spanscore.scoring.engine import Engine


class Sending:
    """An emitter that queues, and whose receiver is often down."""

    def __init__(self) -> None:
        self.outbox = Outbox(2)

    def emit(self, report: Report) -> None:
        """Queue."""
        self.outbox.put()
        self.outbox.fail("export_failed", 3)

    def flush(self, timeout_s: float) -> bool:
        """Send."""
        self.outbox.take(self.outbox.size)
        return True

    close = flush


class Refusing:
    """An emitter that cannot."""

    def emit(self, report: Report) -> None:
        """Raise."""
        raise OSError

    def flush(self, timeout_s: float) -> bool:
        """Succeed."""
        return True

    close = flush


def engine(telemetry: OwnTelemetry, **emitters: Emitter) -> Engine:
    """Return an engine that scores as without a configuration, and whose clock stands still."""
    settings = TraceSettings(decision_delay_s=0, num_traces=2)
    pipeline = wiring.pipeline(config.default())
    table = TraceTable(settings, lambda span: not span.parent_span_id)
    return Engine(table, pipeline, emitters, lambda: 0.0, measure=telemetry.measure)


def trace(number: int, *, root: bool = True) -> Iterator[Span]:
    """Yield two spans of a trace."""
    trace_id = number.to_bytes(16)
    yield Span(trace_id, b"child".rjust(8), b"rootroot", "x", 1, 2)
    if root:
        yield Span(trace_id, b"rootroot", b"", "agent", 1, 2)


def prometheus(exposition: Exposition) -> dict[str, dict[tuple[str, ...], float]]:
    """Return the numbers on the page: by name, then by label values."""
    numbers: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(exposition.page("application/openmetrics-text")[1].decode()):
        for sample in family.samples:
            numbers.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return numbers


def exported(reader: InMemoryMetricReader) -> dict[str, dict[tuple[Any, ...], Any]]:
    """Return the data points that the SDK exports: by name, then by attribute values."""
    data = reader.get_metrics_data()
    assert data is not None
    (resource,) = data.resource_metrics
    (scope,) = resource.scope_metrics
    return {
        metric.name: {tuple((point.attributes or {}).values()): point for point in metric.data.data_points}
        for metric in scope.metrics
    }


def test_what_became_of_spans_and_traces() -> None:
    """Every span received is accounted for, by what became of it and why; so is every trace."""
    exposition = Exposition()
    telemetry = OwnTelemetry([exposition])
    watched = engine(telemetry)
    telemetry.watch(watched)
    watched.add([*trace(1), *trace(2, root=False), *trace(2, root=False)])
    watched.add([Span((1).to_bytes(16), b"latelate", b"rootroot", "x", 1, 2)])
    watched.add([*trace(3, root=False), *trace(4, root=False)])
    watched.tallies.refused["invalid_trace_id"] += 2
    watched.tallies.dropped["queue_full"] += 1

    numbers = prometheus(exposition)
    late = numbers["spanscore_spans_late_total"]
    dropped = numbers["spanscore_spans_dropped_total"]
    parts = [
        numbers["spanscore_spans_closed_total"][()],
        numbers["spanscore_spans_live"][()],
        *late.values(),
        *dropped.values(),
        *numbers["spanscore_spans_refused_total"].values(),
    ]
    assert 10 == numbers["spanscore_spans_received_total"][()] == sum(parts)
    assert {("duplicate",): 1, ("conflict",): 0, ("handed_over",): 0, ("queue_full",): 1} == dropped
    assert {("rescored",), ("ignored",), ("over_limit",), ("not_kept",)} == late.keys()
    assert {"root_ended", "timed_out", "span_limit", "size_limit", "evicted", "shutdown"} == {
        reason for (reason,) in numbers["spanscore_traces_closed_total"]
    }
    assert 2 == numbers["spanscore_traces_open"][()]
    assert (watched.counts().closed["evicted"], 1) == (
        numbers["spanscore_traces_closed_total"][("evicted",)],
        numbers["spanscore_traces_closed_total"][("root_ended",)],
    )


def test_both_sinks_say_the_same() -> None:
    """What Prometheus scrapes is what the OpenTelemetry SDK exports."""
    exposition, reader = Exposition(), InMemoryMetricReader()
    telemetry = OwnTelemetry([exposition, Meter(MeterProvider([reader], shutdown_on_exit=False))])
    watched = engine(telemetry, sending=Sending(), refusing=Refusing())
    telemetry.watch(watched)
    telemetry.observe(STORAGE_SIZE, lambda: {(): 4096})
    watched.add([*trace(1), *trace(2)])

    scraped, points = prometheus(exposition), exported(reader)
    assert 4096 == scraped["spanscore_storage_size_bytes"][()] == points["spanscore.storage.size"][()].value
    assert 4 == scraped["spanscore_spans_closed_total"][()] == points["spanscore.spans.closed"][()].value
    assert {("root_ended",): 2}.items() <= {
        key: point.value for key, point in points["spanscore.traces.closed"].items()
    }.items()
    assert 2 == scraped["spanscore_evaluation_duration_seconds_count"][()]
    assert 2 == points["spanscore.evaluation.duration"][()].count
    assert 4 == scraped["spanscore_trace_span_count_sum"][()] == points["spanscore.trace.span_count"][()].sum


def test_emitters() -> None:
    """Queues show how full they are, and whatever could not be sent is counted by emitter and reason."""
    exposition = Exposition()
    telemetry = OwnTelemetry([exposition])
    watched = engine(telemetry, sending=Sending(), refusing=Refusing())
    telemetry.watch(watched)
    telemetry.watch_queue("spans", Outbox(500))
    for number in range(3):
        watched.add(list(trace(number + 1)))

    numbers = prometheus(exposition)
    assert {("sending",): 2, ("spans",): 0} == numbers["spanscore_queue_size"]
    assert {("sending",): 2, ("spans",): 500} == numbers["spanscore_queue_capacity"]
    assert {
        ("sending", "queue_full"): 1,
        ("sending", "export_failed"): 9,
        ("refusing", "OSError"): 3,
    } == numbers["spanscore_export_failures_total"]


def test_own_measurements() -> None:
    """What the engine measures is in histograms, with the boundaries of the table."""
    exposition = Exposition()
    telemetry = OwnTelemetry([exposition])
    telemetry.measure(SCORE_LATENCY, 0.004)

    buckets = prometheus(exposition)["spanscore_score_latency_seconds_bucket"]
    assert {("0.001",): 0, ("0.005",): 1}.items() <= buckets.items()


def test_several_engines_are_added_up() -> None:
    """Where a process has more than one engine, the metrics are of all of them."""
    exposition = Exposition()
    telemetry = OwnTelemetry([exposition])
    for _ in range(2):
        watched = engine(telemetry)
        telemetry.watch(watched)
        watched.add(list(trace(1)))

    assert 4 == prometheus(exposition)["spanscore_spans_received_total"][()]


def test_newer_telemetry_takes_over() -> None:
    """Where sinks are given to another telemetry, they show the numbers of that one."""
    exposition, reader = Exposition(), InMemoryMetricReader()
    sinks = [exposition, Meter(MeterProvider([reader], shutdown_on_exit=False))]
    for number in (1, 2):
        telemetry = OwnTelemetry(sinks)
        telemetry.observe(STORAGE_SIZE, lambda number=number: {(): number})

    assert sinks == list(telemetry.sinks)
    assert 2 == prometheus(exposition)["spanscore_storage_size_bytes"][()]
    assert 2 == exported(reader)["spanscore.storage.size"][()].value


def test_every_instrument_is_exported() -> None:
    """No instrument of the table is forgotten."""
    reader = InMemoryMetricReader()
    telemetry = OwnTelemetry([Meter(MeterProvider([reader], shutdown_on_exit=False))])
    watched = engine(telemetry, sending=Sending())
    telemetry.watch(watched)
    for instrument in OWN_INSTRUMENTS:
        if instrument.boundaries:
            telemetry.measure(instrument, 1)
        else:
            telemetry.observe(instrument, lambda attributes=instrument.attributes: {("x",) * len(attributes): 1})

    assert {instrument.name for instrument in OWN_INSTRUMENTS} == set(exported(reader))
