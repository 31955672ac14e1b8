"""Scores as metrics of the application's own meter provider."""

from __future__ import annotations

from typing import Final

from spanscore.contracts.immediate import Immediate
from spanscore.in_process.handover import Handover
from spanscore.metrics.measurements import measurements
from spanscore.metrics.meter import Meter
from spanscore.model import Report
from spanscore.sdk import providers as host_providers
from spanscore.sdk.span_conversion import scored_context


class OtelMetrics(Immediate):
    """Records scores with the application's meter provider, with exemplars that lead to the scored trace.

    With the global meter provider, `handover` counts measurements after its shutdown.
    """

    def __init__(self, meter: Meter | None = None, handover: Handover | None = None) -> None:
        self.meter: Final = meter or Meter()
        self._handover: Final = handover
        self._uncertain = 0  # evaluations recorded with a provider that was shut down: its last numbers may have them

    at_most_once: Final = True
    """A trace that was counted before a crash is not counted again after it."""

    def emit(self, report: Report) -> None:
        """Record the report's measurements."""
        if self._handover is not None and host_providers.meter_provider_is_shut_down():
            if self.meter.is_over:
                self._handover.lost("metrics", len(report.evaluations))
                return
            self._uncertain += len(report.evaluations)
        context = scored_context(report.trajectory)
        for instrument, value, values in measurements(report):
            self.meter.record(instrument, value, values, context)

    def close(self, timeout_s: float) -> bool:  # noqa: ARG002 - as above
        """Report measurements that came too late."""
        if self._handover is not None and not self.meter.is_over:
            self._handover.lost("metrics", self._uncertain)
        return True
