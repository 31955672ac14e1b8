"""Scores as OpenTelemetry metrics."""

from __future__ import annotations

from typing import Final, Self

from spanscore.emitters._otlp import Destination, meter_provider
from spanscore.emitters._scored_span import scored_context
from spanscore.emitters._sender import Sender
from spanscore.metrics.measurements import measurements
from spanscore.metrics.meter import Meter
from spanscore.model import Report
from spanscore.outbox import Outbox


class OtelMetrics:
    """Records scores as OpenTelemetry metrics, with exemplars that lead to the scored trace.

    With the host's own meter provider, the metrics go where the host's go, and are the host's to flush.

    Args:
        meter: records; by default with the global meter provider.
        sender: sends what the meter's provider holds, where that is ours.
    """

    def __init__(self, meter: Meter | None = None, sender: Sender | None = None) -> None:
        self.meter: Final = meter or Meter()
        self._sender: Final = sender

    @classmethod
    def over_otlp(cls, destination: Destination) -> Self:
        """Return an emitter with a meter provider of its own that sends to an OTLP receiver."""
        provider, sender = meter_provider(destination)
        return cls(Meter(provider), sender)

    @property
    def outbox(self) -> Outbox | None:
        """What is on its way; None with the host's provider."""
        return None if self._sender is None else self._sender.outbox

    def emit(self, report: Report) -> None:
        """Record the report's measurements."""
        context = scored_context(report.trajectory)
        for instrument, value, values in measurements(report):
            self.meter.record(instrument, value, values, context)

    def flush(self, timeout_s: float) -> bool:
        """Send the metrics now."""
        return self._sender is None or self._sender.flush(timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Send the metrics and stop sending."""
        return self._sender is None or self._sender.close(timeout_s)
