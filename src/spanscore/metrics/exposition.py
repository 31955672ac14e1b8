"""The metrics as Prometheus scrapes them: OpenMetrics with exemplars, or the classic text format."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from threading import Lock, Thread
from typing import Final, TypeAlias, assert_never
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar
from prometheus_client.utils import floatToGoString

from spanscore.instruments import OWN_INSTRUMENTS, SCORE_INSTRUMENTS, Instrument, InstrumentKind
from spanscore.metrics.series import Labels, Read, SeriesTable, Values, looked_up, name_limits
from spanscore.model import Trajectory

CONTENT_TYPE_CLASSIC: Final = "text/plain; version=0.0.4; charset=utf-8"

_UNITS: Final = {"s": "seconds", "By": "bytes"}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a measurement comes from: the exemplar that leads from a metric to a trace."""

    labels: dict[str, str]
    time_s: float

    @classmethod
    def of(cls, trajectory: Trajectory) -> Origin:
        """Return the scored trace and the span in it."""
        ids = {"trace_id": trajectory.trace_id.hex(), "span_id": trajectory.root_span_id.hex()}
        return cls(ids, time.time())


class Exposition(Collector):
    """Adds measurements up for Prometheus.

    A registry of its own, so that nothing of the host's is served and nothing of ours is registered with it. Not made
    of prometheus_client's own counters and histograms: they cost ten times as much for each measurement, write into
    the host's files where PROMETHEUS_MULTIPROC_DIR is set, and expose a `_created` series beside every other.

    Measurements may come from any thread, and pages be asked for from any other.
    """

    def __init__(self) -> None:
        limits = name_limits()
        instruments = (*SCORE_INSTRUMENTS, *OWN_INSTRUMENTS)
        self._families: Final = {instrument.name: _Family(instrument, limits) for instrument in instruments}
        self._lock: Final = Lock()  # guards the families: a page must not show half of a measurement
        self._registry: Final = CollectorRegistry()
        self._registry.register(self)

    def record(self, instrument: Instrument, value: float, values: Values = (), origin: Origin | None = None) -> None:
        """Add a measurement to a counter or a histogram."""
        with self._lock:
            self._families[instrument.name].table.at(values).add(value, origin)

    def observe(self, instrument: Instrument, read: Read) -> None:
        """Have a counter's or a gauge's numbers looked up for each page, in place of what was looked up before."""
        self._families[instrument.name].read = read

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
        for family in self._families.values():
            with self._lock:
                series = {labels: series.snapshot() for labels, series in family.table.series.items()}
            yield family.metric(series)


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


_Exemplary: TypeAlias = tuple[Origin, float]
"""What an exemplar is made of; making one for every measurement would cost more than all the rest."""


class _Sum:
    __slots__ = ("origin", "value")

    def __init__(self) -> None:
        self.value = 0.0
        self.origin: _Exemplary | None = None

    def add(self, value: float, origin: Origin | None) -> None:
        self.value += value
        if origin is not None and value:
            self.origin = (origin, value)

    def snapshot(self) -> _Snapshot:
        return _Snapshot(self.value, (), (self.origin,))


class _Histogram:
    __slots__ = ("boundaries", "counts", "origins", "total")

    def __init__(self, boundaries: tuple[float, ...]) -> None:
        self.boundaries = boundaries
        self.counts = [0] * (len(boundaries) + 1)
        self.origins: list[_Exemplary | None] = [None] * (len(boundaries) + 1)
        self.total = 0.0

    def add(self, value: float, origin: Origin | None) -> None:
        bucket = bisect_left(self.boundaries, value)
        self.counts[bucket] += 1
        self.total += value
        if origin is not None:
            self.origins[bucket] = (origin, value)

    def snapshot(self) -> _Snapshot:
        return _Snapshot(self.total, tuple(self.counts), tuple(self.origins))


@dataclass(frozen=True, slots=True)
class _Snapshot:
    total: float
    counts: tuple[int, ...]
    origins: tuple[_Exemplary | None, ...]


class _Family:
    """One metric of the page."""

    def __init__(self, instrument: Instrument, limits: Mapping[str, Callable[[str], str]]) -> None:
        self._instrument: Final = instrument
        self._name: Final = prometheus_name(instrument)
        self._unit: Final = _UNITS.get(instrument.unit, "")
        self._description: Final = instrument.description
        self._label_names: Final = tuple(map(prometheus_label, instrument.attributes))
        self._bounds: Final = tuple(map(floatToGoString, (*instrument.boundaries, float("inf"))))
        self.table: Final[SeriesTable[_Sum | _Histogram]] = SeriesTable(instrument, self._new, limits)
        self.read: Read = dict

    def metric(self, series: Mapping[Labels, _Snapshot]) -> Metric:
        match self._instrument.kind:
            case InstrumentKind.HISTOGRAM:
                return self._histogram(series)
            case InstrumentKind.COUNTER:
                return self._counter(series)
            case InstrumentKind.GAUGE:
                return self._gauge()
            case _:
                assert_never(self._instrument.kind)

    def _histogram(self, series: Mapping[Labels, _Snapshot]) -> Metric:
        metric = HistogramMetricFamily(self._name, self._description, labels=self._label_names, unit=self._unit)
        for labels, snapshot in series.items():
            metric.add_metric(labels, self._buckets(snapshot), snapshot.total)
        return metric

    def _counter(self, series: Mapping[Labels, _Snapshot]) -> Metric:
        metric = CounterMetricFamily(self._name, self._description, labels=self._label_names, unit=self._unit)
        for labels, snapshot in series.items():
            origin = snapshot.origins[0]
            metric.add_metric(labels, snapshot.total, exemplar=None if origin is None else _exemplar(origin))
        for labels, number in looked_up(self.read).items():
            metric.add_metric(labels, number)
        return metric

    def _gauge(self) -> Metric:
        metric = GaugeMetricFamily(self._name, self._description, labels=self._label_names, unit=self._unit)
        for labels, number in looked_up(self.read).items():
            metric.add_metric(labels, number)
        return metric

    def _new(self, labels: Labels) -> _Sum | _Histogram:
        del labels
        boundaries = self._instrument.boundaries
        return _Histogram(boundaries) if self._instrument.kind is InstrumentKind.HISTOGRAM else _Sum()

    def _buckets(self, snapshot: _Snapshot) -> list[tuple[str, float] | tuple[str, float, Exemplar]]:
        cumulative = zip(self._bounds, accumulate(snapshot.counts), snapshot.origins, strict=True)
        return [
            (bound, count) if origin is None else (bound, count, _exemplar(origin))
            for bound, count, origin in cumulative
        ]


def _exemplar(origin: _Exemplary) -> Exemplar:
    where, value = origin
    return Exemplar(where.labels, value, where.time_s)
