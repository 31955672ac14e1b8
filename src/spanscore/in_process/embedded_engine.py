"""The engine inside an application's process, built as configured."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spanscore import config as configuration
from spanscore.config import Config
from spanscore.config import parts as wiring
from spanscore.config.outputs import connected_engine, outputs
from spanscore.contracts import Emitter, Host
from spanscore.contracts.instruments.own import EXPORT_FAILURES
from spanscore.emitters.otlp import OtlpExporter
from spanscore.errors import OutputError
from spanscore.in_process.handover import Handover, LogEvents, NotStarted, OtelMetrics
from spanscore.in_process.span_events import SpanEvents
from spanscore.metrics.meter import Meter
from spanscore.metrics.telemetry import OwnTelemetry
from spanscore.scoring.engine import Engine
from spanscore.sdk import providers as host_providers

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider


CONFIG_VARIABLE: Final = "SPANSCORE_CONFIG"
"""The variable with the path of the configuration file, if none is given in code."""

_LOGGER: Final = logging.getLogger(__name__)


def configured(config: Config | str | os.PathLike[str] | None = None) -> Config:
    """Return a configuration: the one given, that of the file given or named in SPANSCORE_CONFIG, else the default.

    Raises:
        ConfigError: the configuration is wrong.
    """
    if isinstance(config, Config):
        return config
    path = config or os.environ.get(CONFIG_VARIABLE)
    return configuration.load(Path(path)) if path else configuration.default()


def for_process(config: Config, *, root_takes_events: bool, delays: bool = True) -> Config:
    """Return the configuration with the defaults inside a process.

    The front door can put events on the root span if it passes that on, and may be able to wait after a root's end.
    """
    for section in ("receivers", "monitors", "keep"):
        if getattr(config, section):
            _LOGGER.warning("spanscore: `%s` has no effect inside an application; it is for `spanscore serve`", section)
    whole = config.for_process()
    if root_takes_events and "annotate" not in config.given:
        whole = replace(whole, annotate="root_event")
    if whole.annotate == "root_event" and not root_takes_events:
        whole = replace(whole, annotate="child_span")  # a span that has ended takes no events
    return whole if delays else replace(whole, traces=replace(whole.traces, decision_delay_s=0.0))


def queue_bytes(config: Config) -> int:
    """Return the most bytes that may wait in the queue of a processor."""
    return config.traces.max_bytes // 4


def process_engine(
    config: Config,
    tracer_provider: TracerProvider | None = None,
    *,
    dropped: Mapping[str, int] | None = None,
    is_fork: bool = False,
    catch_up: Callable[[float], object] | None = None,
) -> Engine:
    """Return an engine for `Config.for_process`.

    Scores go to the application's own meter and logger providers unless the configuration names an OTLP receiver, and
    wherever else it says. An exporter that cannot be started is logged, and what it misses counted: another process of
    the same application may have its port.

    Args:
        config: what `for_process` returned.
        tracer_provider: makes the span that carries the scores, where there is one; by default the global one.
        dropped: the counts of spans that do not reach the engine, if it has a thread of its own; None if it runs on the
            thread of its caller.
        is_fork: the parent process serves the metrics page; this one scores without.
        catch_up: scores what is waiting, within so many seconds: called from another thread before the application's
            meter provider collects for the last time.
    """
    out = outputs(config, Host(owns_terminal=False, listens=not is_fork), _not_started)
    emitters: dict[str, Emitter] = dict(out.emitters)
    sinks = list(out.sinks)
    handover = Handover(lambda: _is_seen_without(config, tracer_provider))
    if config.of(OtlpExporter) is None:
        metrics = OtelMetrics(Meter(catch_up=catch_up), handover)
        sinks.append(metrics.meter)
        # Events first: a program may wait for one, while metrics are collected now and then.
        emitters.update(logs=LogEvents(handover=handover), metrics=metrics, handover=handover)
    if config.annotate == "child_span":
        emitters["span_events"] = SpanEvents(tracer_provider)
    telemetry = OwnTelemetry(sinks)
    # On a thread of our own no interrupt is the user's.
    pipeline = wiring.pipeline(config) if dropped is None else wiring.pipeline(config, passed_on=())
    traces = config.traces
    if dropped is not None:  # the rest is for what waits, and for what has waited and is being taken in
        traces = replace(traces, max_bytes=max(1, traces.max_bytes - 2 * queue_bytes(config)))
    engine = connected_engine(replace(config, traces=traces), pipeline, emitters, telemetry, dropped=dropped)
    for emitter in emitters.values():
        if isinstance(emitter, Handover | NotStarted):
            telemetry.observe(EXPORT_FAILURES, emitter.failures.copy)  # it may grow while it is read
    return engine


def _not_started(name: str, error: OutputError) -> NotStarted:
    _LOGGER.error("spanscore: %s; it gets no scores", error)
    return NotStarted(name)


def _is_seen_without(config: Config, tracer_provider: TracerProvider | None) -> bool:
    """Return whether scores go somewhere without the application's meter and logger providers."""
    if config.exporters or config.annotate == "root_event":
        return True
    return config.annotate == "child_span" and host_providers.takes_spans(tracer_provider)
