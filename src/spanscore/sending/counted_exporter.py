"""An exporter of the SDK that counts what it could not send: the SDK itself only logs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult

from spanscore.sending.outbox import Outbox

EXPORT_FAILED: Final = "export_failed"


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


def _counted(outbox: Outbox, items: int, export: Callable[[], LogRecordExportResult]) -> LogRecordExportResult:
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
