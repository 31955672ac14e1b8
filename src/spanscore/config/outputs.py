"""Builds the configured emitters of scores and of our own metrics, and the engine that feeds them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, TypeAlias

from spanscore.collect.held_trace import MOST_DELAYS
from spanscore.collect.table import TraceTable
from spanscore.config import Config
from spanscore.config.parts import conversations, root_condition
from spanscore.contracts import Emitter, Host, PassingOn, Roots, SendsMetrics, Sink
from spanscore.contracts.plugins import find
from spanscore.emitters.otlp.forward import Forward
from spanscore.emitters.otlp.trace_keeper import TraceKeeper
from spanscore.errors import ConfigError, OutputError
from spanscore.metrics.exposition import Exposition
from spanscore.metrics.telemetry import OwnTelemetry
from spanscore.scoring.engine import Engine
from spanscore.scoring.pipeline import Pipeline

_DECIDED_WITHIN_S: Final = 30.0
"""After a trace is closed: far longer than evaluations take."""

_log = logging.getLogger(__name__)

Instead: TypeAlias = Callable[[str, OutputError], Emitter]
"""Returns a replacement for the exporter of that name, which cannot be started, or raises the error."""


def no_other(_name: str, error: OutputError) -> NoReturn:
    """Have nothing take the place of an exporter: without it, nothing starts."""
    raise error


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """The emitters of scores and of our own metrics."""

    emitters: Mapping[str, Emitter] = field(default_factory=dict)
    """By name."""

    @property
    def sinks(self) -> tuple[Sink, ...]:
        """The meters of our own metrics."""
        return tuple(each.sink for each in self.emitters.values() if isinstance(each, SendsMetrics))

    @property
    def exposition(self) -> Exposition | None:
        """The metrics page, where there is one."""
        return next((sink for sink in self.sinks if isinstance(sink, Exposition)), None)

    @property
    def onward(self) -> Forward | None:
        """The emitter that sends received requests on; None if none is configured."""
        return next((each for each in self.emitters.values() if isinstance(each, Forward)), None)


def outputs(config: Config, host: Host, instead: Instead = no_other) -> Outputs:
    """Return the outputs of a complete configuration.

    Raises:
        OutputError: one of them cannot be started, and has no replacement.
        ConfigError: nothing can be sent where the configuration says.
    """
    emitters: dict[str, Emitter] = {}
    for name, settings in config.exporters.items():
        try:
            plugin: Any = find("emitters", name)
            built = plugin.configured(settings, host)
        except ConfigError:
            raise
        except OutputError as error:
            emitters[name] = instead(name, OutputError(f"exporters.{name}.{error}"))
        except Exception as error:  # noqa: BLE001 - a plug-in's own code runs
            emitters[name] = instead(name, OutputError(f"exporters.{name}: {type(error).__name__}: {error}"))
        else:
            emitters |= built if isinstance(built, Mapping) else {name: built}
    return Outputs(emitters=emitters)


def serving(config: Config) -> Host:
    """Return the properties of the standalone receiver for emitters."""
    child_spans = config.annotate == "child_span" and config.sends_spans
    if config.annotate == "child_span" and not child_spans:
        _log.warning("annotate: 'child_span' has no effect: no spans are sent on, which takes exporters.otlp")
    held: Roots = "none"
    annotates = config.annotate == "root_event"
    if annotates or config.keep is not None:
        held = "remote_parent" if config.traces.root == "remote_parent" else "parentless"
    passing = PassingOn(
        held_roots=held,
        annotates=annotates,
        child_spans=child_spans,
        waiting_bytes=0 if config.keep is None else config.keep.max_bytes,
        delay_s=config.traces.longest_delay_s,
    )
    return Host(passes_on=passing)


def connected_engine(  # noqa: PLR0913 - the parts of a live process
    config: Config,
    pipeline: Pipeline,
    emitters: Mapping[str, Emitter],
    telemetry: OwnTelemetry,
    *,
    onward: Forward | None = None,
    dropped: Mapping[str, int] | None = None,
) -> Engine:
    """Return the engine of a live process, whose own metrics go to `telemetry`.

    `onward` sends the spans on of the traces that the section `keep` keeps; `dropped` counts spans that never reach
    the engine.
    """
    traces = config.traces
    table = TraceTable(traces, root_condition(config, pipeline.reader))
    keep = None
    if config.keep is not None and onward is not None:
        roots: Roots = "remote_parent" if traces.root == "remote_parent" else "parentless"
        onward.keep_by(
            TraceKeeper(
                config.keep,
                table.past.__contains__,
                remember=traces.remember_traces,
                longest_s=traces.max_trace_age_s + MOST_DELAYS * traces.longest_delay_s + _DECIDED_WITHIN_S,
                roots=roots,
            )
        )
        keep = onward
    built = Engine(
        table,
        pipeline,
        emitters,
        time.monotonic,
        measure=telemetry.measure,
        dropped=dropped,
        conversations=conversations(config, pipeline),
        keep=keep,
    )
    telemetry.watch(built)
    return built
