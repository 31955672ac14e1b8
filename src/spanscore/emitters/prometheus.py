"""Scores as metrics that Prometheus scrapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Self

from spanscore.contracts import Host
from spanscore.contracts.immediate import Immediate
from spanscore.contracts.settings import Endpoint, ListenAddress
from spanscore.emitters.sending.in_time import within
from spanscore.errors import OutputError
from spanscore.messages.faults import reason_of
from spanscore.metrics.exposition import Exposition, MetricsServer
from spanscore.model import Report

_ENDPOINT: Final = Endpoint("localhost", 9464)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusExporter:
    """Serves score metrics, own metrics and health to be scraped."""

    endpoint: ListenAddress = _ENDPOINT
    """host:port of /metrics, /livez and /readyz."""


class Prometheus(Immediate):
    """A page for Prometheus.

    Adds scores up for Prometheus, with exemplars that lead to the scored trace.

    Args:
        exposition: the metrics page.
        server: serves the page, where nothing else does; closed with the emitter.
    """

    Settings: ClassVar = PrometheusExporter

    def __init__(self, exposition: Exposition, server: MetricsServer | None = None) -> None:
        self.sink: Final = exposition
        """The page, on which further measurements can go."""
        self._server: Final = server

    @classmethod
    def configured(cls, settings: PrometheusExporter, host: Host) -> Self:
        """Return one that serves its page, unless the program does."""
        exposition, (name, port) = Exposition(), settings.endpoint
        try:
            return cls(exposition, exposition.serve_in_thread(name, port) if host.listens else None)
        except OSError as error:
            raise OutputError(f"endpoint: cannot listen on {name}:{port}: {reason_of(error)}") from error

    at_most_once: Final = True
    """A trace that was counted before a crash is not counted again after it."""
    needs_results: Final = False
    """No metric needs the results of tools."""

    def emit(self, report: Report) -> None:
        """Add the report's measurements."""
        self.sink.add(report)

    def close(self, timeout_s: float) -> bool:
        """Stop serving the page, if this emitter serves it."""
        return self._server is None or within(timeout_s, self._server.close)
