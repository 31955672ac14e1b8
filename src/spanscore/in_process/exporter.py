"""spanscore inside an agent's process: an exporter around an exporter."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from spanscore.emitters.sending.in_time import in_time
from spanscore.in_process.exit_hook import EXIT_S, ExitHook, Standby
from spanscore.in_process.forks import in_forked_child
from spanscore.in_process.span_events import annotated
from spanscore.in_process.timeouts import DEFAULT_TIMEOUT_MS, last_scoring_s, seconds
from spanscore.messages.faults import fault
from spanscore.model import Report
from spanscore.sdk import providers as host_providers
from spanscore.sdk.identity import SCOPE
from spanscore.sdk.span_conversion import Converter

if TYPE_CHECKING:
    from spanscore.config import Config
    from spanscore.scoring.engine import Engine

_ANSWERS_S: Final = 30.0
"""Seconds that an export waits for evaluators in other processes, each of which has its own limit."""

_LOGGER: Final = logging.getLogger(__name__)


class ScoringSpanExporter(SpanExporter):
    """Scores traces on their way to an exporter; the root span carries its scores as events.

        exporter = ScoringSpanExporter(OTLPSpanExporter(), "spanscore.yaml")
        provider.add_span_processor(BatchSpanProcessor(exporter))

    A trace is scored when its root is exported; spans exported later cause a new revision. Works on the caller's
    thread, which is the batch processor's.

    At the interpreter's end the spans that wait in the batch processor are fetched from there in time: where the global
    tracer provider is the one that they come from. Without an exporter behind it, it only scores.

    Args:
        delegate: the exporter behind, if any.
        config: the configuration; by default that of the file in SPANSCORE_CONFIG, else tool-call health.

    Raises:
        ConfigError: the configuration is wrong.
    """

    def __init__(
        self, delegate: SpanExporter | None = None, config: Config | str | os.PathLike[str] | None = None
    ) -> None:
        from spanscore.in_process import embedded_engine  # noqa: PLC0415 - YAML and pydantic only where a configuration is read

        self.passes_on: Final = delegate is not None
        """Whether this exporter sends spans on."""
        self._delegate: Final = delegate
        settings = embedded_engine.for_process(
            embedded_engine.configured(config), root_takes_events=self.passes_on, delays=False
        )
        self._annotates: Final = settings.annotate == "root_event"
        process = os.getpid()
        self._make_engine: Final[Callable[[], Engine]] = lambda: embedded_engine.process_engine(
            settings, is_fork=os.getpid() != process, catch_up=self._catch_up
        )
        self._engine: Engine | None = self._make_engine()
        self._converted: Final = Converter()
        self._lock = threading.Lock()  # guards the engine: a simple span processor exports from any thread
        self._closed = False
        self._standby: Standby | None = Standby()
        ExitHook(self._catch_up).come_first()
        self._exit_hook = ExitHook(self._end)
        self._exit_hook.stay_ahead()
        in_forked_child(self._forget)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Score what the spans complete and pass all of them on. A failure of ours fails no export."""
        self._exit_hook.stay_ahead()
        outgoing = list(spans)
        try:
            outgoing = self._scored(outgoing)
        except Exception as error:  # noqa: BLE001 - as above
            _LOGGER.error("spans could not be scored: %s", fault(error))  # noqa: TRY400 - see fault
        return SpanExportResult.SUCCESS if self._delegate is None else self._delegate.export(outgoing)

    def force_flush(self, timeout_millis: float | None = DEFAULT_TIMEOUT_MS) -> bool:
        """Send the scores, have the exporter behind send its spans, and return whether that was done in time."""
        deadline = time.monotonic() + seconds(timeout_millis)
        done = self._finish(deadline, lambda engine, left_s: engine.flush(left_s))
        delegate = self._delegate
        if delegate is None:
            return done
        left_s = max(0.0, deadline - time.monotonic())
        return in_time(left_s, lambda: delegate.force_flush(int(left_s * 1000))) and done

    def shutdown(self, timeout_millis: float | None = None) -> None:
        """Score the traces that have no root yet, send everything, and shut the exporter behind down.

        The timeouts are those of `ScoringSpanProcessor.shutdown`.
        """
        began = time.monotonic()
        deadline = began + seconds(timeout_millis)
        if not self._closed:
            self._finish(began + last_scoring_s(timeout_millis, passes_on=self.passes_on), self._close)
        if self._delegate is not None:
            in_time(max(0.0, deadline - time.monotonic()), self._delegate.shutdown)

    def _forget(self) -> None:
        """Leave the parent's traces to the parent; a thread that does not exist in this process may hold its lock."""
        self._engine = self._standby = None
        self._lock = threading.Lock()
        self._exit_hook = ExitHook(self._end)

    def _catch_up(self, timeout_s: float = EXIT_S) -> None:
        """Have the spans that wait for us handed over: scores then go to providers that are not shut down yet."""
        self._on_standby(timeout_s, lambda: host_providers.flush_spans_to(self))

    def _end(self) -> None:
        """Score everything, open traces too."""
        deadline = time.monotonic() + EXIT_S
        self._catch_up()
        self._on_standby(max(0.0, deadline - time.monotonic()), lambda: self._finish(deadline, _score_all))

    def _on_standby(self, timeout_s: float, action: Callable[[], object]) -> None:
        if not self._closed:
            self._standby = self._standby or Standby()  # a forked child has none before its first export
            self._standby.run(timeout_s, action)

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
        if self._standby is not None:
            self._standby.close()
        engine.drain()
        return engine.close(timeout_s)

    def _scored(self, spans: list[ReadableSpan]) -> list[ReadableSpan]:
        theirs = [
            span for span in spans if span.instrumentation_scope is None or span.instrumentation_scope.name != SCOPE
        ]
        if not theirs:
            # The span that carries the scores: behind a simple processor it is exported while they are emitted, on a
            # thread that has the lock.
            return spans
        with self._lock:
            if self._closed:
                return spans
            engine = self._engine = self._engine or self._make_engine()
            self._standby = self._standby or Standby()
            sized = list(filter(None, (self._converted(span, engine.tallies.refused) for span in theirs)))
            reports = (
                *engine.add([span for span, _ in sized], [size for _, size in sized]),
                *engine.expire(),
                *engine.queue.settle_all(_ANSWERS_S),
            )
        if not reports or not self._annotates:
            return spans
        by_trace: defaultdict[int, list[Report]] = defaultdict(list)
        for report in reports:
            by_trace[int.from_bytes(report.trajectory.trace_id, "big")].append(report)
        return [annotated(span, by_trace.get(span.context.trace_id, ())) for span in spans]


def _score_all(engine: Engine, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    engine.drain()
    engine.queue.settle_all(timeout_s)
    engine.finish_conversations(deadline)
    return engine.flush(timeout_s)
