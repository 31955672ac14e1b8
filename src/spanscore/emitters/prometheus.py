"""Scores as metrics that Prometheus scrapes."""

from __future__ import annotations

from typing import Final

from spanscore.emitters._sender import within
from spanscore.metrics.exposition import Exposition, MetricsServer, Origin
from spanscore.metrics.measurements import measurements
from spanscore.model import Report


class Prometheus:
    """Adds scores up for Prometheus, with exemplars that lead to the scored trace.

    Args:
        exposition: the metrics page.
        server: serves the page, where nothing else does; closed with the emitter.
    """

    def __init__(self, exposition: Exposition, server: MetricsServer | None = None) -> None:
        self._exposition: Final = exposition
        self._server: Final = server

    def emit(self, report: Report) -> None:
        """Add the report's measurements."""
        origin = Origin.of(report.trajectory)
        for instrument, value, values in measurements(report):
            self._exposition.record(instrument, value, values, origin)

    def flush(self, timeout_s: float) -> bool:  # noqa: ARG002 - nothing waits
        """Do nothing: the page always shows what was emitted."""
        return True

    def close(self, timeout_s: float) -> bool:
        """Stop serving the page, where it is ours to serve."""
        return self._server is None or within(timeout_s, self._server.close)
