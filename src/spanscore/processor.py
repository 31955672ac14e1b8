"""spanscore inside an agent's process: a span processor, and an exporter around an exporter."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, Context, get_value
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from spanscore.identity import SCOPE
from spanscore.model import Report
from spanscore.runtime import Runtime
from spanscore.sdk_spans import converted, is_local_root, with_events

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from spanscore.config import Config

CONFIG_VARIABLE: Final = "SPANSCORE_CONFIG"
"""Names the configuration file where none is given in code."""

DEFAULT_TIMEOUT_MS: Final = 30_000

_LOGGER: Final = logging.getLogger(__name__)


class ScoringSpanProcessor(SpanProcessor):
    """Scores the traces that end in this process. Add it to the tracer provider.

        provider.add_span_processor(ScoringSpanProcessor.from_config("spanscore.yaml"))

    `on_end` only queues: nothing that spanscore, an evaluator or an exporter does can slow or break the agent. Spans
    that are not sampled are ignored, and so are those of our own exports.

    Args:
        config: the configuration; by default that of the file in SPANSCORE_CONFIG, else tool-call health.
        tracer_provider: makes the child span that carries the scores; by default the global one.
        wraps: a processor that takes every span from this one instead of from the provider; a root span reaches it
            when it is scored, and carries its scores as events.

    Raises:
        ConfigError: the configuration is wrong.
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        tracer_provider: TracerProvider | None = None,
        wraps: SpanProcessor | None = None,
    ) -> None:
        from spanscore import embedding  # noqa: PLC0415 - YAML and pydantic only where a configuration is read

        self._wraps: Final = wraps
        self._held: dict[int, list[ReadableSpan]] = {}
        settings = embedding.for_process(config or configured(), root_takes_events=wraps is not None)
        process = os.getpid()
        self._runtime: Final = Runtime(
            lambda: embedding.process_engine(settings, tracer_provider, is_fork=os.getpid() != process),
            self._release if wraps is not None else None,
        )

    @classmethod
    def from_config(
        cls,
        path: str | os.PathLike[str],
        *,
        tracer_provider: TracerProvider | None = None,
        wraps: SpanProcessor | None = None,
    ) -> Self:
        """Return a processor with the configuration of a file.

        Raises:
            ConfigError: the configuration is wrong; the message has a line for every error.
        """
        from spanscore.config import load  # noqa: PLC0415 - as above

        return cls(load(Path(path)), tracer_provider=tracer_provider, wraps=wraps)

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Note that a span is running: its trace is not scored before it ends."""
        if self._wraps is not None:
            self._wraps.on_start(span, parent_context)
        context = span.context
        if context is not None and context.trace_flags.sampled and not self._is_ours(span):
            started = (context.trace_id.to_bytes(16, "big"), context.span_id.to_bytes(8, "big"))
            self._runtime.submit(started, urgent=False)

    def on_end(self, span: ReadableSpan) -> None:
        """Queue a span that has ended. Neither waits nor raises."""
        context = span.context
        if context is None or not context.trace_flags.sampled or self._is_ours(span):
            if self._wraps is not None:
                self._wraps.on_end(span)
            return
        root = is_local_root(span)
        if self._wraps is None:
            self._runtime.submit(span, urgent=root)
        elif not root:
            self._runtime.submit(span, urgent=False)
            self._wraps.on_end(span)
        else:
            self._hold(span)

    def force_flush(self, timeout_millis: int = DEFAULT_TIMEOUT_MS) -> bool:
        """Score and send what has ended, and return whether that was done within the timeout."""
        deadline = time.monotonic() + timeout_millis / 1000
        done = self._runtime.flush(timeout_millis / 1000)
        if self._wraps is None:
            return done
        left_ms = max(0, int((deadline - time.monotonic()) * 1000))
        return self._wraps.force_flush(left_ms) and done

    def shutdown(self, timeout_millis: int = DEFAULT_TIMEOUT_MS) -> None:
        """Score and send everything, open traces too, within the timeout. May be called twice."""
        self._runtime.close(timeout_millis / 1000)
        for trace_id in list(self._held):
            self._pass_on(trace_id, ())
        if self._wraps is not None:
            self._wraps.shutdown()

    def _is_ours(self, span: ReadableSpan) -> bool:
        scope = span.instrumentation_scope
        if scope is not None and scope.name == SCOPE:
            return True
        if threading.get_ident() == self._runtime.thread_id:
            return True
        # A span that an export of ours causes on another thread has no parent there.
        return span.parent is None and bool(get_value(_SUPPRESS_INSTRUMENTATION_KEY))

    def _hold(self, root: ReadableSpan) -> None:
        trace_id = root.context.trace_id
        self._held.setdefault(trace_id, []).append(root)
        if not self._runtime.submit(root, urgent=True):
            self._pass_on(trace_id, ())

    def _release(self, reports: tuple[Report, ...]) -> None:
        by_trace: dict[int, list[Report]] = {}
        for report in reports:
            by_trace.setdefault(int.from_bytes(report.trajectory.trace_id, "big"), []).append(report)
        for trace_id, found in by_trace.items():
            self._pass_on(trace_id, found)

    def _pass_on(self, trace_id: int, reports: Sequence[Report]) -> None:
        for root in self._held.pop(trace_id, ()):
            if self._wraps is not None:
                self._wraps.on_end(annotated(root, reports))


class ScoringSpanExporter(SpanExporter):
    """Scores traces on their way to an exporter; the root span carries its scores as events.

        exporter = ScoringSpanExporter(OTLPSpanExporter(), "spanscore.yaml")
        provider.add_span_processor(BatchSpanProcessor(exporter))

    A trace is scored when its root is exported; spans exported later cause a new revision. Works on the caller's
    thread, which is the batch processor's.

    Without an exporter behind it, it only scores: so `OTEL_TRACES_EXPORTER=spanscore,otlp` adds scoring to an agent
    without a line of code.

    Args:
        delegate: the exporter behind, if any.
        config: the configuration; by default that of the file in SPANSCORE_CONFIG, else tool-call health.

    Raises:
        ConfigError: the configuration is wrong.
    """

    def __init__(
        self, delegate: SpanExporter | None = None, config: Config | str | os.PathLike[str] | None = None
    ) -> None:
        from spanscore import embedding  # noqa: PLC0415 - as above

        self._delegate: Final = delegate
        settings = embedding.for_process(configured(config), root_takes_events=delegate is not None, delays=False)
        self._annotates: Final = settings.annotate == "root_event"
        self._engine: Final = embedding.process_engine(settings)
        self._lock: Final = threading.Lock()  # a simple span processor exports from any thread
        self._closed = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Score what the spans complete and pass all of them on. A failure of ours fails no export."""
        outgoing = list(spans)
        try:
            outgoing = self._scored(outgoing)
        except Exception:
            _LOGGER.exception("spans could not be scored")
        return SpanExportResult.SUCCESS if self._delegate is None else self._delegate.export(outgoing)

    def force_flush(self, timeout_millis: int = DEFAULT_TIMEOUT_MS) -> bool:
        """Send the scores, and have the exporter behind send its spans."""
        with self._lock:
            done = self._engine.flush(timeout_millis / 1000)
        return (self._delegate is None or self._delegate.force_flush(timeout_millis)) and done

    def shutdown(self) -> None:
        """Score the traces that have no root yet, send everything, and shut the exporter behind down."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._engine.drain()
                self._engine.close(DEFAULT_TIMEOUT_MS / 1000)
        if self._delegate is not None:
            self._delegate.shutdown()

    def _scored(self, spans: list[ReadableSpan]) -> list[ReadableSpan]:
        theirs = [
            span for span in spans if span.instrumentation_scope is None or span.instrumentation_scope.name != SCOPE
        ]
        with self._lock:
            if self._closed:
                return spans
            reports = (*self._engine.add([converted(span) for span in theirs]), *self._engine.expire())
        if not reports or not self._annotates:
            return spans
        by_trace: dict[int, list[Report]] = {}
        for report in reports:
            by_trace.setdefault(int.from_bytes(report.trajectory.trace_id, "big"), []).append(report)
        return [
            annotated(span, by_trace[span.context.trace_id]) if span.context.trace_id in by_trace else span
            for span in spans
        ]


def annotated(span: ReadableSpan, reports: Sequence[Report]) -> ReadableSpan:
    """Return the span with the events of the reports that are about it."""
    from spanscore.emitters.span_events import span_events  # noqa: PLC0415 - only where spans are annotated

    span_id = span.context.span_id.to_bytes(8, "big")
    events = [
        event
        for report in reports
        if report.trajectory.root_span_id == span_id
        for event in span_events(report, span.end_time or 0)
    ]
    return with_events(span, events) if events else span


def configured(config: Config | str | os.PathLike[str] | None = None) -> Config:
    """Return a configuration: the one given, that of the file given or named in SPANSCORE_CONFIG, else the default."""
    from spanscore import config as configuration  # noqa: PLC0415 - as above

    if isinstance(config, configuration.Config):
        return config
    path = config or os.environ.get(CONFIG_VARIABLE)
    return configuration.load(Path(path)) if path else configuration.default()
