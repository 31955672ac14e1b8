"""The metrics as Prometheus scrapes them: OpenMetrics with exemplars, or the classic text format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from threading import Thread
from typing import Final
from wsgiref.simple_server import WSGIServer

from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, SERVICE_NAMESPACE, SERVICE_VERSION
from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar
from prometheus_client.utils import floatToGoString

from spanscore.contracts.instruments.instrument import OUTCOME, Instrument, InstrumentKind
from spanscore.metrics.accumulation import Accumulation, Collected, Exemplary, Snapshot
from spanscore.metrics.series import MAX_SERIES, Labels
from spanscore.sdk.identity import resource

CONTENT_TYPE_CLASSIC: Final = "text/plain; version=0.0.4; charset=utf-8"

_VERDICTS: Final = ("pass", "fail")
_UNITS: Final = {"s": "seconds", "By": "bytes"}
_FAMILIES: Final[Mapping[InstrumentKind, type[CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily]]] = {
    InstrumentKind.COUNTER: CounterMetricFamily,
    InstrumentKind.GAUGE: GaugeMetricFamily,
    InstrumentKind.HISTOGRAM: HistogramMetricFamily,
}
_IDENTITY: Final = (SERVICE_NAMESPACE, SERVICE_NAME, SERVICE_INSTANCE_ID, SERVICE_VERSION)


class Exposition(Accumulation, Collector):
    """Adds measurements up for Prometheus.

    A registry of its own, so that nothing of the host's is served and nothing of ours is registered with it. Not made
    of prometheus_client's own counters and histograms: those write into the host's files where PROMETHEUS_MULTIPROC_DIR
    is set, and expose a `_created` series beside every other.

    Measurements may come from any thread, and pages be asked for from any other.
    """

    def __init__(self) -> None:
        super().__init__()
        self._registry: Final = CollectorRegistry()
        self._registry.register(self)
        self._target: Final = _target()

    def page(self, accept: str | None) -> tuple[str, bytes]:
        """Return the content type and the body of the page: OpenMetrics where the Accept header allows it."""
        if openmetrics.CONTENT_TYPE_LATEST.partition(";")[0] in (accept or ""):
            generate: Callable[[CollectorRegistry], bytes] = openmetrics.generate_latest
            return openmetrics.CONTENT_TYPE_LATEST, generate(self._registry)
        return CONTENT_TYPE_CLASSIC, generate_latest(self._registry)

    def serve_in_thread(self, host: str, port: int) -> MetricsServer:
        """Serve the page on every path, on a daemon thread.

        Raises:
            OSError: the address cannot be listened on.
        """
        return MetricsServer(*start_http_server(port, host, self._registry))

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the page."""
        yield self._target
        yield from map(_metric, self.collected())


class MetricsServer:
    """A server that answers scrapes until it is closed."""

    def __init__(self, server: WSGIServer, thread: Thread) -> None:
        self._server: Final = server
        self._thread: Final = thread
        self.port: Final[int] = server.server_port

    def close(self) -> None:
        """Stop serving and free the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def prometheus_name(instrument: Instrument) -> str:
    """Return the name of the metric in Prometheus, by the conventions for OpenTelemetry metrics."""
    words = [instrument.name.replace(".", "_")]
    if instrument.unit in _UNITS:
        words.append(_UNITS[instrument.unit])
    if instrument.kind is InstrumentKind.COUNTER:
        words.append("total")
    return "_".join(words)


def prometheus_label(attribute: str) -> str:
    """Return the name of the label that holds an attribute."""
    return attribute.replace(".", "_")


def _target() -> Metric:
    """Return `target_info`: which replica this is, as a metric of its own instead of a label of every series."""
    ours = resource().attributes
    labels = {prometheus_label(key): str(ours[key]) for key in _IDENTITY if key in ours}
    return InfoMetricFamily("target", "The process that is measured.", value=labels)


def _metric(collected: Collected) -> Metric:
    instrument = collected.instrument
    labels = tuple(map(prometheus_label, instrument.attributes))
    metric = _FAMILIES[instrument.kind](
        prometheus_name(instrument), instrument.description, labels=labels, unit=_UNITS.get(instrument.unit, "")
    )
    if isinstance(metric, HistogramMetricFamily):
        bounds = tuple(map(floatToGoString, (*instrument.boundaries, float("inf"))))
        for values, snapshot in collected.series.items():
            metric.add_metric(values, _buckets(bounds, snapshot), snapshot.total)
        return metric
    if isinstance(metric, CounterMetricFamily):
        for values in _not_begun(collected):
            metric.add_metric(values, 0)
        for values, snapshot in collected.series.items():
            origin = snapshot.origins[0]
            metric.add_metric(values, snapshot.total, exemplar=None if origin is None else _exemplar(origin))
    for values, number in collected.numbers.items():
        metric.add_metric(values, number)
    return metric


def _not_begun(collected: Collected) -> Iterator[Labels]:
    """Yield zero series of verdicts that have not occurred, for series of the other verdict.

    Prometheus ignores the first value of a new series: it would miss the first failing run of each.
    """
    attributes = collected.instrument.attributes
    if OUTCOME not in attributes or len(collected.series) > MAX_SERIES // len(_VERDICTS):
        return
    place = attributes.index(OUTCOME)
    begun = [
        {(*labels[:place], verdict, *labels[place + 1 :]): None for labels in collected.series} for verdict in _VERDICTS
    ]
    yield from (labels for each in begun for labels in each if labels not in collected.series)


def _buckets(bounds: tuple[str, ...], snapshot: Snapshot) -> list[tuple[str, float] | tuple[str, float, Exemplar]]:
    cumulative = zip(bounds, accumulate(snapshot.counts), snapshot.origins, strict=True)
    return [
        (bound, count) if origin is None else (bound, count, _exemplar(origin)) for bound, count, origin in cumulative
    ]


def _exemplar(origin: Exemplary) -> Exemplar:
    where, value = origin
    return Exemplar({"trace_id": where.trace_id.hex(), "span_id": where.span_id.hex()}, value, where.time_s)
