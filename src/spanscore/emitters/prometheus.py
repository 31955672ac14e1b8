"""Scores as metrics that Prometheus scrapes."""

from __future__ import annotations

from typing import Final

from spanscore.metrics.accumulation import Origin
from spanscore.metrics.exposition import Exposition, MetricsServer
from spanscore.metrics.measurements import measurements
from spanscore.model import Report
from spanscore.sending.in_time import within


class Prometheus:
    """Adds scores up for Prometheus, with exemplars that lead to the scored trace.

    Args:
        exposition: the metrics page.
        server: serves the page, where nothing else does; closed with the emitter.
    """

    def __init__(self, exposition: Exposition, server: MetricsServer | None = None) -> None:
        self._exposition: Final = exposition
        self._server: Final = server

    at_most_once: Final = True
    """What was counted before a crash is not counted again after it."""

    def emit(self, report: Report) -> None:
        """Add the report's measurements."""
        self._exposition.record_all(measurements(report), Origin.of(report.trajectory))

    def flush(self, timeout_s: float) -> bool:  # noqa: ARG002 - nothing waits
        """Do nothing: the page always shows what was emitted."""
        return True

    def close(self, timeout_s: float) -> bool:
        """Stop serving the page, where it is ours to serve."""
        return self._server is None or within(timeout_s, self._server.close)
