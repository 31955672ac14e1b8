"""Our accumulated measurements as metrics in protobuf."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final, NamedTuple

from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AGGREGATION_TEMPORALITY_CUMULATIVE,
    AGGREGATION_TEMPORALITY_DELTA,
    Exemplar,
    Histogram,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
    Sum,
)
from opentelemetry.sdk.environment_variables import OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE

from spanscore.contracts.instruments.instrument import Instrument, InstrumentKind
from spanscore.emitters.otlp._encoded_values import pair
from spanscore.metrics.accumulation import Accumulation, Collected, Snapshot
from spanscore.metrics.series import Labels

_NOTHING: Final = Snapshot(0.0, (), ())


class _Times(NamedTuple):
    start_ns: int
    now_ns: int


class EncodedMetrics:
    """Encodes sums, since the beginning or since the last time.

    Which of both is as OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE says: `cumulative`, `delta` or `lowmemory`.

    Args:
        accumulation: the sums.
        start_ns: when adding up began.
    """

    def __init__(self, accumulation: Accumulation, start_ns: int) -> None:
        self._accumulation: Final = accumulation
        self._preference: Final = os.environ.get(OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE, "").strip().lower()
        self._start_ns = self._last_ns = start_ns
        self._last: dict[str, Collected] = {}

    def collect(self, now_ns: int) -> list[bytes]:
        """Return each metric that there are sums of.

        After the clock was set back, the sums began now at the latest: no point may start after its own time.
        """
        self._start_ns, self._last_ns = min(self._start_ns, now_ns), min(self._last_ns, now_ns)
        metrics = [metric for each in self._accumulation.collected() if (metric := self._metric(each, now_ns))]
        self._last_ns = now_ns
        return [metric.SerializeToString() for metric in metrics]

    def _metric(self, collected: Collected, now_ns: int) -> Metric | None:
        instrument = collected.instrument
        metric = Metric(name=instrument.name, description=instrument.description, unit=instrument.unit)
        if instrument.kind is InstrumentKind.GAUGE:
            metric.gauge.data_points.extend(_numbers(collected, _Times(now_ns, now_ns)))
            return metric if metric.gauge.data_points else None
        is_delta = self._preference == "delta" or (self._preference == "lowmemory" and not collected.numbers)
        if is_delta:
            collected = self._since_the_last_time(collected)
        times = _Times(self._last_ns if is_delta else self._start_ns, now_ns)
        data: Histogram | Sum
        if instrument.kind is InstrumentKind.HISTOGRAM:
            data = metric.histogram
            data.data_points.extend(_histograms(collected, times))
        else:
            data = metric.sum
            data.is_monotonic = True
            data.data_points.extend(_numbers(collected, times))
        data.aggregation_temporality = AGGREGATION_TEMPORALITY_DELTA if is_delta else AGGREGATION_TEMPORALITY_CUMULATIVE
        return metric if data.data_points else None

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
    """Return the difference; None if there is none."""
    if now == last:
        return None
    counts = tuple(map(int.__sub__, now.counts, last.counts or (0,) * len(now.counts)))
    before = last.origins or (None,) * len(now.origins)
    origins = tuple(new if new is not old else None for new, old in zip(now.origins, before, strict=True))
    return Snapshot(now.total - last.total, counts, origins)


def _numbers(collected: Collected, times: _Times) -> Iterator[NumberDataPoint]:
    for labels, snapshot in collected.series.items():
        point = _number(collected.instrument, labels, int(snapshot.total), times)
        point.exemplars.extend(_exemplars(snapshot))
        yield point
    for labels, number in collected.numbers.items():
        yield _number(collected.instrument, labels, number, times)


def _number(instrument: Instrument, labels: Labels, number: float, times: _Times) -> NumberDataPoint:
    point = NumberDataPoint(
        attributes=_attributes(instrument, labels), start_time_unix_nano=times.start_ns, time_unix_nano=times.now_ns
    )
    if isinstance(number, int):
        point.as_int = number
    else:
        point.as_double = number
    return point


def _histograms(collected: Collected, times: _Times) -> Iterator[HistogramDataPoint]:
    """Yield the points without their least and largest value: a sum since the beginning has none worth it."""
    for labels, snapshot in collected.series.items():
        yield HistogramDataPoint(
            attributes=_attributes(collected.instrument, labels),
            start_time_unix_nano=times.start_ns,
            time_unix_nano=times.now_ns,
            count=sum(snapshot.counts),
            sum=snapshot.total,
            bucket_counts=snapshot.counts,
            explicit_bounds=collected.instrument.boundaries,
            exemplars=_exemplars(snapshot),
        )


def _attributes(instrument: Instrument, labels: Labels) -> list[KeyValue]:
    return [pair(attribute, value) for attribute, value in zip(instrument.attributes, labels, strict=False) if value]


def _exemplars(snapshot: Snapshot) -> Iterator[Exemplar]:
    for where, value in filter(None, snapshot.origins):
        yield Exemplar(
            as_double=value, time_unix_nano=int(where.time_s * 1e9), span_id=where.span_id, trace_id=where.trace_id
        )
