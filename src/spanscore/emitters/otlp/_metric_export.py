"""The thread that sends sums of ours over OTLP every few seconds."""

from __future__ import annotations

import logging
import threading
import time
from typing import Final

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, attach, set_value
from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult

from spanscore.emitters.otlp._metrics_data import MetricsSource
from spanscore.sending.outbox import Outbox
from spanscore.sending.sender import within

EXPORT_FAILED: Final = "export_failed"

_log = logging.getLogger(__name__)


class MetricExport:
    """Sends what a source collects.

    In place of the SDK's meter provider, whose instruments cost ten times what adding up ourselves does, and whose
    reader goes on with a request that it is told to give up. After a fork, the child sends nothing: the sums are the
    parent's.

    Args:
        source: what to send.
        exporter: sends.
        interval_s: how often.
    """

    def __init__(self, source: MetricsSource, exporter: MetricExporter, interval_s: float) -> None:
        self.outbox: Final = Outbox(1)
        self._source: Final = source
        self._exporter: Final = exporter
        self._interval_s: Final = interval_s
        self._closing: Final = threading.Event()
        self._sending: Final = threading.Lock()  # guards the source: one request after the other
        self._thread: Final = threading.Thread(target=self._run, name="spanscore-metrics", daemon=True)
        self._thread.start()

    def flush(self, timeout_s: float) -> bool:
        """Send the sums of now, and return whether that was done within the timeout."""
        failures = self.outbox.failures
        return within(timeout_s, self._export) and failures == self.outbox.failures

    def close(self, timeout_s: float) -> bool:
        """Send the sums of now, and stop sending; a request under way is given up at the timeout."""
        self._closing.set()
        deadline = time.monotonic() + timeout_s
        sent = self.flush(timeout_s)
        stopped = within(max(_STOPPING_S, deadline - time.monotonic()), self._exporter.shutdown)
        return sent and stopped

    def _run(self) -> None:
        # Nothing that we send may be traced and come back to us.
        attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))  # noqa: FBT003 - OpenTelemetry's signature
        while not self._closing.wait(self._interval_s):
            try:
                self._export()
            except Exception:  # noqa: BLE001 - the next request may work
                _log.exception("metrics could not be sent")

    def _export(self) -> None:
        with self._sending:
            data = self._source.collect(time.time_ns())
            if data is None:
                return
            self.outbox.put()
            try:
                result = self._exporter.export(data)
            except Exception as error:
                self.outbox.fail(type(error).__name__)
                raise
            finally:
                self.outbox.take()
            if result is not MetricExportResult.SUCCESS:
                self.outbox.fail(EXPORT_FAILED)


_STOPPING_S: Final = 0.05
