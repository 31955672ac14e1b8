"""Sums of ours as the data that the SDK's metric exporters send."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from opentelemetry.sdk.metrics import Counter, Exemplar, Histogram, ObservableCounter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.metrics.export import Histogram as HistogramData
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from spanscore.instruments.instrument import Instrument, InstrumentKind
from spanscore.metrics.accumulation import Accumulation, Collected, Exemplary, Snapshot
from spanscore.metrics.series import Labels
from spanscore.sdk.identity import SCOPE, scope_version

Temporalities = Mapping[type, AggregationTemporality]
"""What an exporter prefers for which of the SDK's instruments; the others are cumulative."""

_NOTHING: Final = Snapshot(0.0, (), ())


class _Times(NamedTuple):
    start_ns: int
    now_ns: int


class MetricsSource:
    """Collects sums, since the beginning or since the last time, as an exporter prefers.

    Args:
        accumulation: the sums.
        resource: who sends them.
        temporalities: what the exporter prefers.
        start_ns: when adding up began.
    """

    def __init__(
        self, accumulation: Accumulation, resource: Resource, temporalities: Temporalities, start_ns: int
    ) -> None:
        self._accumulation: Final = accumulation
        self._resource: Final = resource
        self._temporalities: Final = temporalities
        self._start_ns: Final = start_ns
        self._last_ns = start_ns
        self._last: dict[str, Collected] = {}

    def collect(self, now_ns: int) -> MetricsData | None:
        """Return the sums; None while there are none."""
        metrics = [metric for each in self._accumulation.collected() if (metric := self._metric(each, now_ns))]
        self._last_ns = now_ns
        if not metrics:
            return None
        scope = InstrumentationScope(SCOPE, scope_version())
        of_scope = ScopeMetrics(scope=scope, metrics=metrics, schema_url="")
        of_resource = ResourceMetrics(resource=self._resource, scope_metrics=[of_scope], schema_url="")
        return MetricsData(resource_metrics=[of_resource])

    def _metric(self, collected: Collected, now_ns: int) -> Metric | None:
        instrument = collected.instrument
        if instrument.kind is InstrumentKind.GAUGE:
            data: Gauge | Sum | HistogramData = Gauge(list(_looked_up(collected, _Times(now_ns, now_ns))))
        else:
            temporality = self._temporality(collected)
            is_delta = temporality is AggregationTemporality.DELTA
            if is_delta:
                collected = self._since_the_last_time(collected)
            times = _Times(self._last_ns if is_delta else self._start_ns, now_ns)
            if instrument.kind is InstrumentKind.HISTOGRAM:
                data = HistogramData(list(_histograms(collected, times)), temporality)
            else:
                data = Sum([*_sums(collected, times), *_looked_up(collected, times)], temporality, is_monotonic=True)
        if not data.data_points:
            return None
        return Metric(name=instrument.name, description=instrument.description, unit=instrument.unit, data=data)

    def _temporality(self, collected: Collected) -> AggregationTemporality:
        if collected.instrument.kind is InstrumentKind.HISTOGRAM:
            of_sdk: type = Histogram
        else:
            of_sdk = ObservableCounter if collected.numbers else Counter
        return self._temporalities.get(of_sdk, AggregationTemporality.CUMULATIVE)

    def _since_the_last_time(self, collected: Collected) -> Collected:
        last = self._last.get(collected.instrument.name, Collected(collected.instrument, {}, {}))
        self._last[collected.instrument.name] = collected
        differences = {
            labels: _difference(now, last.series.get(labels, _NOTHING)) for labels, now in collected.series.items()
        }
        return Collected(
            collected.instrument,
            {labels: difference for labels, difference in differences.items() if difference is not None},
            {labels: number - last.numbers.get(labels, 0) for labels, number in collected.numbers.items()},
        )


def _difference(now: Snapshot, last: Snapshot) -> Snapshot | None:
    """Return what was added; None where nothing was."""
    if now == last:
        return None
    counts = tuple(map(int.__sub__, now.counts, last.counts or (0,) * len(now.counts)))
    before = last.origins or (None,) * len(now.origins)
    origins = tuple(new if new is not old else None for new, old in zip(now.origins, before, strict=True))
    return Snapshot(now.total - last.total, counts, origins)


def _sums(collected: Collected, times: _Times) -> Iterator[NumberDataPoint]:
    for labels, snapshot in collected.series.items():
        exemplars = [_exemplar(origin) for origin in snapshot.origins if origin is not None]
        yield NumberDataPoint(_attributes(collected.instrument, labels), *times, int(snapshot.total), exemplars)


def _looked_up(collected: Collected, times: _Times) -> Iterator[NumberDataPoint]:
    for labels, number in collected.numbers.items():
        yield NumberDataPoint(_attributes(collected.instrument, labels), *times, number)


def _histograms(collected: Collected, times: _Times) -> Iterator[HistogramDataPoint]:
    instrument = collected.instrument
    for labels, snapshot in collected.series.items():
        yield HistogramDataPoint(
            attributes=_attributes(instrument, labels),
            start_time_unix_nano=times.start_ns,
            time_unix_nano=times.now_ns,
            count=sum(snapshot.counts),
            sum=snapshot.total,
            bucket_counts=snapshot.counts,
            explicit_bounds=instrument.boundaries,
            min=None,  # type: ignore[arg-type]  # OTLP can do without, and a sum since the beginning has none worth it
            max=None,  # type: ignore[arg-type]  # as above
            exemplars=[_exemplar(origin) for origin in snapshot.origins if origin is not None],
        )


def _attributes(instrument: Instrument, labels: Labels) -> dict[str, str]:
    return {attribute: value for attribute, value in zip(instrument.attributes, labels, strict=True) if value}


def _exemplar(origin: Exemplary) -> Exemplar:
    where, value = origin
    return Exemplar(
        filtered_attributes={},
        value=value,
        time_unix_nano=int(where.time_s * 1e9),
        span_id=int(where.labels["span_id"], 16) if where.labels["span_id"] else None,
        trace_id=int(where.labels["trace_id"], 16) if where.labels["trace_id"] else None,
    )
