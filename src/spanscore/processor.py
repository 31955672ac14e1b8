"""spanscore inside an agent's process: a span processor, and an exporter around an exporter."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Final, Self

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from spanscore.emitters._sender import within
from spanscore.emitters.span_events import annotated
from spanscore.faults import fault
from spanscore.identity import SCOPE
from spanscore.model import Report
from spanscore.runtime import Runtime, in_forked_child, is_of_an_export
from spanscore.sdk_spans import Converter, is_local_root

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from spanscore.config import Config
    from spanscore.engine import Engine

CONFIG_VARIABLE: Final = "SPANSCORE_CONFIG"
"""Names the configuration file where none is given in code."""

DEFAULT_TIMEOUT_MS: Final = 30_000

_ANSWERS_S: Final = 30.0
"""How long an export waits for evaluators that run elsewhere, each of which has its own limit."""

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
        self._told: Final[set[str]] = set()
        settings = embedding.for_process(config or configured(), root_takes_events=wraps is not None)
        process = os.getpid()
        self._runtime: Final = Runtime(
            lambda: embedding.process_engine(settings, tracer_provider, is_fork=os.getpid() != process),
            self._release if wraps is not None else None,
        )
        self._ended: Final = self._runtime.ended
        in_forked_child(self._forget)

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
            self._contained(self._wraps.on_start, span, parent_context)
        context = span.context
        if context is not None and not self._is_ours(span):
            self._runtime.started(context)

    def on_end(self, span: ReadableSpan) -> None:
        """Queue a span that has ended. Neither waits nor raises."""
        if self._wraps is None:
            self._ended(span)
        else:
            self._pass_or_hold(span, self._wraps)

    def force_flush(self, timeout_millis: int = DEFAULT_TIMEOUT_MS) -> bool:
        """Score and send what has ended, and return whether that was done within the timeout."""
        deadline = time.monotonic() + timeout_millis / 1000
        done = self._runtime.flush(timeout_millis / 1000)
        wrapped = self._wraps
        if wrapped is None:
            return done
        left_s = max(0.0, deadline - time.monotonic())
        return in_time(left_s, lambda: wrapped.force_flush(int(left_s * 1000))) and done

    def shutdown(self, timeout_millis: int = DEFAULT_TIMEOUT_MS) -> None:
        """Score and send everything, open traces too, within the timeout. May be called twice."""
        deadline = time.monotonic() + timeout_millis / 1000
        self._runtime.close(timeout_millis / 1000)
        if self._wraps is not None:
            in_time(max(0.0, deadline - time.monotonic()), lambda: self._end(self._wraps))

    def _forget(self) -> None:
        """Leave the roots that wait for their scores to the parent, which passes them on."""
        self._held.clear()

    def _is_ours(self, span: ReadableSpan) -> bool:
        if get_ident() == self._runtime.thread_id or (span.parent is None and is_of_an_export()):
            return True
        scope = span.instrumentation_scope
        return scope is not None and scope.name == SCOPE

    def _contained(self, action: Callable[..., object], *arguments: object) -> None:
        """Call the processor behind; what it raises must not reach the agent, and is logged once of each kind."""
        try:
            action(*arguments)
        except KeyboardInterrupt:
            raise  # it may be the user's
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is not the agent's
            if type(error).__name__ not in self._told:
                self._told.add(type(error).__name__)
                _LOGGER.error("the span processor behind failed: %s", fault(error))  # noqa: TRY400 - see fault

    def _end(self, wrapped: SpanProcessor | None) -> bool:
        for trace_id in list(self._held):
            self._pass_on(trace_id, ())
        if wrapped is not None:
            wrapped.shutdown()
        return True

    def _pass_or_hold(self, span: ReadableSpan, wrapped: SpanProcessor) -> None:
        context = span.context
        if context is None or not context.trace_flags.sampled or self._is_ours(span):
            self._contained(wrapped.on_end, span)
        elif is_local_root(span):
            self._hold(span)
        else:
            self._runtime.ended(span)
            self._contained(wrapped.on_end, span)

    def _hold(self, root: ReadableSpan) -> None:
        trace_id = root.context.trace_id
        self._held.setdefault(trace_id, []).append(root)
        if not self._runtime.ended(root):
            self._pass_on(trace_id, ())

    def _release(self, trace_id: bytes, reports: Sequence[Report]) -> None:
        self._pass_on(int.from_bytes(trace_id, "big"), reports)

    def _pass_on(self, trace_id: int, reports: Sequence[Report]) -> None:
        for root in self._held.pop(trace_id, ()):
            if self._wraps is not None:
                self._contained(self._wraps.on_end, annotated(root, reports))


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
        process = os.getpid()
        self._make_engine: Final[Callable[[], Engine]] = lambda: embedding.process_engine(
            settings, is_fork=os.getpid() != process
        )
        self._engine: Engine | None = self._make_engine()
        self._converted: Final = Converter()
        self._lock = threading.Lock()  # guards the engine: a simple span processor exports from any thread
        self._closed = False
        in_forked_child(self._forget)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Score what the spans complete and pass all of them on. A failure of ours fails no export."""
        outgoing = list(spans)
        try:
            outgoing = self._scored(outgoing)
        except Exception as error:  # noqa: BLE001 - as above
            _LOGGER.error("spans could not be scored: %s", fault(error))  # noqa: TRY400 - see fault
        return SpanExportResult.SUCCESS if self._delegate is None else self._delegate.export(outgoing)

    def force_flush(self, timeout_millis: int = DEFAULT_TIMEOUT_MS) -> bool:
        """Send the scores, have the exporter behind send its spans, and return whether that was done in time."""
        deadline = time.monotonic() + timeout_millis / 1000
        done = self._finish(deadline, lambda engine, left_s: engine.flush(left_s))
        delegate = self._delegate
        if delegate is None:
            return done
        left_s = max(0.0, deadline - time.monotonic())
        return in_time(left_s, lambda: delegate.force_flush(int(left_s * 1000))) and done

    def shutdown(self, timeout_millis: int = DEFAULT_TIMEOUT_MS) -> None:
        """Score the traces that have no root yet, send everything, and shut the exporter behind down."""
        deadline = time.monotonic() + timeout_millis / 1000
        if not self._closed:
            self._finish(deadline, self._close)
        if self._delegate is not None:
            in_time(max(0.0, deadline - time.monotonic()), self._delegate.shutdown)

    def _forget(self) -> None:
        """Leave the parent's traces to the parent; its lock may be held by a thread that is not there."""
        self._engine = None
        self._lock = threading.Lock()

    def _finish(self, deadline: float, action: Callable[[Engine, float], bool]) -> bool:
        if not self._lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
            return False
        try:
            engine = self._engine
            return engine is None or action(engine, max(0.0, deadline - time.monotonic()))
        finally:
            self._lock.release()

    def _close(self, engine: Engine, timeout_s: float) -> bool:
        self._closed = True
        engine.drain()
        return engine.close(timeout_s)

    def _scored(self, spans: list[ReadableSpan]) -> list[ReadableSpan]:
        theirs = [
            span for span in spans if span.instrumentation_scope is None or span.instrumentation_scope.name != SCOPE
        ]
        with self._lock:
            if self._closed:
                return spans
            engine = self._engine = self._engine or self._make_engine()
            reports = (
                *engine.add(list(map(self._converted, theirs))),
                *engine.expire(),
                *engine.settle_all(_ANSWERS_S),
            )
        if not reports or not self._annotates:
            return spans
        found = _by_trace(reports)
        return [annotated(span, found.get(span.context.trace_id, ())) for span in spans]


def _by_trace(reports: Iterable[Report]) -> dict[int, list[Report]]:
    """Return the reports by the SDK's number of their trace."""
    found: dict[int, list[Report]] = {}
    for report in reports:
        found.setdefault(int.from_bytes(report.trajectory.trace_id, "big"), []).append(report)
    return found


def in_time(timeout_s: float, action: Callable[[], object]) -> bool:
    """Run what is not ours and may hang, and return whether it ended well within the timeout."""
    answers: list[object] = []
    return within(timeout_s, lambda: answers.append(action())) and answers[0] is not False


def configured(config: Config | str | os.PathLike[str] | None = None) -> Config:
    """Return a configuration: the one given, that of the file given or named in SPANSCORE_CONFIG, else the default."""
    from spanscore import config as configuration  # noqa: PLC0415 - as above

    if isinstance(config, configuration.Config):
        return config
    path = config or os.environ.get(CONFIG_VARIABLE)
    return configuration.load(Path(path)) if path else configuration.default()
