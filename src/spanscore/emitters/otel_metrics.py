"""Scores as metrics of the application's own meter provider."""

from __future__ import annotations

from typing import Final

from spanscore.emitters._scored_span import scored_context
from spanscore.metrics.measurements import measurements
from spanscore.metrics.meter import Meter
from spanscore.model import Report


class OtelMetrics:
    """Records scores with the application's meter provider, with exemplars that lead to the scored trace.

    The metrics go where the application's go, and are the application's to flush.

    Args:
        meter: records; by default with the global meter provider.
    """

    def __init__(self, meter: Meter | None = None) -> None:
        self.meter: Final = meter or Meter()

    at_most_once: Final = True
    """What was counted before a crash is not counted again after it."""

    def emit(self, report: Report) -> None:
        """Record the report's measurements."""
        context = scored_context(report.trajectory)
        for instrument, value, values in measurements(report):
            self.meter.record(instrument, value, values, context)

    def flush(self, timeout_s: float) -> bool:  # noqa: ARG002 - nothing waits here
        """Do nothing: the measurements are with the meter provider already."""
        return True

    def close(self, timeout_s: float) -> bool:  # noqa: ARG002 - as above
        """Do nothing: the meter provider is the application's."""
        return True
