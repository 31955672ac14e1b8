"""Exporters of the SDK that count what they could not send: the SDK itself only logs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData

from spanscore.outbox import Outbox

EXPORT_FAILED: Final = "export_failed"

Result = TypeVar("Result", MetricExportResult, LogRecordExportResult)


class CountedMetricExporter(MetricExporter):
    """Counts the requests with metrics that failed."""

    def __init__(self, exporter: MetricExporter, outbox: Outbox) -> None:
        super().__init__(
            preferred_temporality=exporter._preferred_temporality,  # noqa: SLF001 - as the SDK's reader asks for it
            preferred_aggregation=exporter._preferred_aggregation,  # noqa: SLF001 - as above
        )
        self._exporter: Final = exporter
        self._outbox: Final = outbox

    def export(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any) -> MetricExportResult:
        """Send metrics."""
        self._outbox.put()
        return _counted(self._outbox, 1, lambda: self._exporter.export(metrics_data, timeout_millis, **kwargs))

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Send what is held."""
        return self._exporter.force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        """Free everything."""
        self._exporter.shutdown(timeout_millis, **kwargs)


class CountedLogExporter(LogRecordExporter):
    """Counts the log records that were sent and those that were not."""

    def __init__(self, exporter: LogRecordExporter, outbox: Outbox) -> None:
        self._exporter: Final = exporter
        self._outbox: Final = outbox

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        """Send log records."""
        return _counted(self._outbox, len(batch), lambda: self._exporter.export(batch))

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what is held."""
        return self._exporter.force_flush(timeout_millis)

    def shutdown(self) -> None:
        """Free everything."""
        shutdown: Callable[[], None] = self._exporter.shutdown  # untyped in the SDK
        shutdown()


def _counted(outbox: Outbox, items: int, export: Callable[[], Result]) -> Result:
    try:
        result = export()
    except Exception as error:
        outbox.fail(type(error).__name__, items)
        raise
    finally:
        outbox.take(items)
    if result.name != "SUCCESS":
        outbox.fail(EXPORT_FAILED, items)
    return result
