"""Where the standalone receiver sends scores, and what it measures of itself, built as configured."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, TypeAlias

from spanscore import wiring
from spanscore.config import Config
from spanscore.contracts import Emitter
from spanscore.emitters.console import Console
from spanscore.emitters.jsonl import Jsonl
from spanscore.emitters.otlp.forward import Forward, ForwardSettings
from spanscore.emitters.otlp.log_events import LogEvents
from spanscore.emitters.otlp.metrics import OtlpMetrics
from spanscore.emitters.prometheus import Prometheus
from spanscore.errors import SpanscoreError
from spanscore.metrics.exposition import Exposition
from spanscore.metrics.telemetry import Sink
from spanscore.otlp.raw_requests import Roots
from spanscore.sending.destination import Destination

_log = logging.getLogger(__name__)


class OutputError(SpanscoreError):
    """An exporter cannot be started. The message names its configuration key."""


Instead: TypeAlias = Callable[[str, OutputError], Emitter]
"""Returns what takes the place of the exporter of that name, which cannot be started, or raises the error."""


def no_other(_name: str, error: OutputError) -> NoReturn:
    """Have nothing take the place of an exporter: without it, nothing starts."""
    raise error


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """What scores and own metrics go to."""

    emitters: Mapping[str, Emitter] = field(default_factory=dict)
    """By name."""
    sinks: tuple[Sink, ...] = ()
    """Where measurements of our own work go."""
    exposition: Exposition | None = None
    """The metrics page, where one is served."""


def outputs(config: Config, *, owns_terminal: bool = True, instead: Instead = no_other) -> Outputs:
    """Return the outputs of a configuration that `Config.for_serve` completed.

    Args:
        config: the configuration.
        owns_terminal: nobody but spanscore writes to the terminal.
        instead: what takes the place of one that cannot be started.

    Raises:
        OutputError: one of them cannot be started, and nothing takes its place.
    """
    exporters = config.exporters
    if exporters is None:
        return Outputs()
    emitters: dict[str, Emitter] = {}
    sinks: list[Sink] = []
    exposition = None
    if exporters.prometheus is not None:
        exposition = Exposition()
        sinks.append(exposition)
        emitters["prometheus"] = Prometheus(exposition)
    if exporters.jsonl is not None:
        try:
            emitters["jsonl"] = _jsonl(exporters.jsonl.path)
        except OutputError as error:
            emitters["jsonl"] = instead("jsonl", error)
    if exporters.console is not None:
        emitters["console"] = Console(owns_terminal=owns_terminal)
    destination = _destination(config)
    if exporters.otlp is not None and destination is not None:
        if "metrics" in exporters.otlp.signals:
            metrics = OtlpMetrics(destination)
            sinks.append(metrics.sums)
            emitters["otlp_metrics"] = metrics
        if "logs" in exporters.otlp.signals:
            emitters["otlp_logs"] = LogEvents.over_otlp(destination)
    return Outputs(emitters=emitters, sinks=tuple(sinks), exposition=exposition)


def forward(config: Config) -> Forward | None:
    """Return what sends on all that the standalone receiver takes in; None where there is nowhere to send it.

    Raises:
        ConfigError: it cannot be sent there.
    """
    destination = _destination(config)
    if config.annotate == "child_span" and not _sends_spans(config):
        _log.warning("annotate: 'child_span' has no effect: no spans are sent on, which takes exporters.otlp")
    if destination is None:
        return None
    held: Roots = "none"
    if config.annotate == "root_event":
        held = "remote_parent" if config.traces.root == "remote_parent" else "parentless"
    child_spans = config.annotate == "child_span" and _sends_spans(config)
    return Forward.over_otlp(
        destination, ForwardSettings.for_traces(wiring.trace_settings(config), held, child_spans=child_spans)
    )


def _sends_spans(config: Config) -> bool:
    otlp = config.exporters.otlp if config.exporters is not None else None
    return otlp is not None and "traces" in otlp.signals


def _destination(config: Config) -> Destination | None:
    otlp = config.exporters.otlp if config.exporters is not None else None
    if otlp is None:
        return None
    headers = {name: secret.reveal() for name, secret in otlp.headers.items()}
    return Destination(endpoint=otlp.endpoint, protocol=otlp.protocol, headers=headers)


def _jsonl(path: Path) -> Jsonl:
    try:
        return Jsonl(path)
    except OSError as error:
        message = f"exporters.jsonl.path: cannot write to {path}: {(error.strerror or str(error)).lower()}"
        raise OutputError(message) from error
