"""Scores as metrics that are sent over OTLP."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Final

from opentelemetry.sdk.environment_variables import OTEL_METRIC_EXPORT_INTERVAL

from spanscore.emitters.otlp._encoded_metrics import EncodedMetrics
from spanscore.emitters.otlp._encoded_values import own_envelope
from spanscore.emitters.sending.backlog import EXPORT_FAILED, QueueItem, QueueLimits
from spanscore.emitters.sending.client import Client
from spanscore.emitters.sending.send_queue import SendQueue, SendSettings
from spanscore.metrics.accumulation import Accumulation
from spanscore.model import Report
from spanscore.otlp.raw_requests import joined

_INTERVAL_MS: Final = 10_000  # scores are watched live; the SDK's minute is for totals
_REQUESTS: Final = 100
_REQUEST_BYTES: Final = 2**20  # well below the 4 MiB that a gRPC server takes by default


class OtlpMetrics:
    """Adds scores up and sends the sums to an OTLP receiver, with exemplars that lead to the scored trace.

    They are sent every ten seconds, or as OTEL_METRIC_EXPORT_INTERVAL says, but not more often than each second, and
    not while the sums before them are on their way.

    In place of the SDK's meter provider, whose instruments cost ten times what adding up ourselves does. After a fork,
    the child sends nothing: the sums are the parent's.

    Args:
        client: sends; the emitter's alone.
    """

    def __init__(self, client: Client) -> None:
        self.sink: Final = Accumulation()
        """A meter to which other measurements can be added."""
        self._encoded: Final = EncodedMetrics(self.sink, time.time_ns())
        self._envelope: Final = own_envelope()
        self._interval_s: Final = _interval_s()
        self._due = math.inf
        self._collecting: Final = threading.Lock()  # guards the last sums and their time: the queue's thread sends, too
        limits = QueueLimits(capacity=_REQUESTS, batch_bytes=_REQUEST_BYTES)
        settings = SendSettings(name="otlp_metrics", queue=limits, failure=EXPORT_FAILED)
        self.outbox: Final = SendQueue(client, settings, self._send_when_due)
        """Requests that wait or are being sent."""
        self._due = time.monotonic() + self._interval_s

    at_most_once: Final = True
    """A trace that was counted before a crash is not counted again after it."""
    needs_results: Final = False
    """No metric needs the results of tools."""

    def emit(self, report: Report) -> None:
        """Add the report's measurements."""
        self.sink.add(report)

    def flush(self, timeout_s: float) -> bool:
        """Send the sums now."""
        with self._collecting:
            self._send()
        return self.outbox.flush(timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Send the sums and stop sending."""
        try:
            with self._collecting:
                self._due = math.inf
                self._send()
        finally:
            in_time = self.outbox.close(timeout_s)
        return in_time

    def _send_when_due(self) -> None:
        now = time.monotonic()
        with self._collecting:
            if now >= self._due:
                self._due = now + self._interval_s
                self._send()

    def _send(self) -> None:
        for metrics in _portions(self._encoded.collect(time.time_ns())):
            self.outbox.put(QueueItem("metrics", joined((), [(self._envelope, metric) for metric in metrics])))


def _portions(metrics: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield the metrics of each request."""
    portion: list[bytes] = []
    size = 0
    for metric in metrics:
        if portion and size + len(metric) > _REQUEST_BYTES:
            yield portion
            portion, size = [], 0
        portion.append(metric)
        size += len(metric)
    if portion:
        yield portion


def _interval_s() -> float:
    try:
        interval_ms = float(os.environ.get(OTEL_METRIC_EXPORT_INTERVAL, _INTERVAL_MS))
    except ValueError:
        interval_ms = 0.0
    return (interval_ms if interval_ms > 0 else _INTERVAL_MS) / 1000
