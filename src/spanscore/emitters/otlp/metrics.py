"""Scores as metrics that are sent over OTLP."""

from __future__ import annotations

import time
from typing import Final

from spanscore.emitters.otlp._metric_export import MetricExport
from spanscore.emitters.otlp._metrics_data import MetricsSource
from spanscore.metrics.accumulation import Accumulation, Origin
from spanscore.metrics.measurements import measurements
from spanscore.model import Report
from spanscore.sdk.identity import resource
from spanscore.sending.destination import Destination, metric_exporter, metric_interval_s
from spanscore.sending.outbox import Outbox


class OtlpMetrics:
    """Adds scores up and sends the sums to an OTLP receiver, with exemplars that lead to the scored trace.

    They are sent every ten seconds, or as OTEL_METRIC_EXPORT_INTERVAL says.

    Args:
        destination: the receiver.
    """

    def __init__(self, destination: Destination) -> None:
        exporter = metric_exporter(destination)
        self.sink: Final = Accumulation()
        """Where further measurements can go along."""
        preferred = exporter._preferred_temporality or {}  # noqa: SLF001 - as the SDK's reader asks for it
        source = MetricsSource(self.sink, resource(), preferred, time.time_ns())
        self._export: Final = MetricExport(source, exporter, metric_interval_s())

    @property
    def outbox(self) -> Outbox:
        """What is on its way."""
        return self._export.outbox

    def emit(self, report: Report) -> None:
        """Add the report's measurements."""
        self.sink.record_all(measurements(report), Origin.of(report.trajectory))

    def flush(self, timeout_s: float) -> bool:
        """Send the sums now."""
        return self._export.flush(timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Send the sums and stop sending."""
        return self._export.close(timeout_s)
