"""spanscore inside an agent's process: a span processor."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Final, Self

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from spanscore.emitters.sending.in_time import in_time
from spanscore.in_process.byte_budget import record_bytes
from spanscore.in_process.forks import in_forked_child
from spanscore.in_process.held_sdk_roots import HeldSdkRoots
from spanscore.in_process.runtime import Runtime
from spanscore.in_process.span_events import annotated
from spanscore.in_process.timeouts import DEFAULT_TIMEOUT_MS, last_scoring_s, seconds
from spanscore.messages.faults import fault
from spanscore.model import Report
from spanscore.sdk.identity import SCOPE, is_of_an_export
from spanscore.sdk.log_conversion import context_of, log_span, name_of
from spanscore.sdk.span_conversion import is_local_root
from spanscore.trajectories.wanted import log_names

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import ReadWriteLogRecord
    from opentelemetry.trace import TracerProvider

    from spanscore.config import Config

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
        config: Config | str | os.PathLike[str] | None = None,
        *,
        tracer_provider: TracerProvider | None = None,
        wraps: SpanProcessor | None = None,
    ) -> None:
        from spanscore.in_process import embedded_engine  # noqa: PLC0415 - YAML and pydantic only where a configuration is read

        self.passes_on: Final = wraps is not None
        """Whether this processor sends spans on."""
        self._wraps: Final = wraps
        self._held: Final = HeldSdkRoots()
        self._has_ended = False
        self._told: Final[set[str]] = set()
        settings = embedded_engine.for_process(embedded_engine.configured(config), root_takes_events=wraps is not None)
        self._log_names: Final = log_names(settings.dialects)
        process = os.getpid()
        self._runtime: Final = Runtime(
            lambda dropped: embedded_engine.process_engine(
                settings, tracer_provider, dropped=dropped, is_fork=os.getpid() != process, catch_up=self._catch_up
            ),
            self._release if wraps is not None else None,
            max_bytes=embedded_engine.queue_bytes(settings),
        )
        self._ended: Final = self._runtime.ended
        if wraps is None and type(self).on_end is ScoringSpanProcessor.on_end:
            self.on_end = self._ended  # type: ignore[method-assign,assignment]  # a call less that the agent pays for
        in_forked_child(self._held.clear)  # the roots that wait for their scores are the parent's to pass on

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

    @property
    def is_fed(self) -> bool:
        """Whether any span arrived in this process."""
        return self._runtime.has_begun

    def on_log(self, record: ReadWriteLogRecord) -> None:
        """Queue a log record that a dialect reads; `ScoringLogRecordProcessor` calls this. Neither waits nor raises."""
        read = partial(log_span, record, self._log_names)
        self._runtime.logged(read, context_of(record.log_record), record_bytes(record))

    def reads(self, record: ReadWriteLogRecord) -> bool:
        """Return whether a dialect reads a log record."""
        return name_of(record.log_record, self._log_names) is not None

    def on_start(self, span: Span | None, parent_context: Context | None = None) -> None:
        """Note that a span is running: its trace is not scored before it ends."""
        if span is None:  # no caller's mistake may end the agent
            return
        if self._wraps is not None:
            self._contained(self._wraps.on_start, span, parent_context)
        context = span.context
        if context is not None and not self._is_ours(span):
            self._runtime.started(context)
            parent = span.parent
            if parent is None or parent.is_remote:
                self._runtime.stay_ahead()

    def on_end(self, span: ReadableSpan | None) -> None:
        """Queue a span that has ended. Neither waits nor raises."""
        if span is None:
            return
        wrapped = self._wraps
        if wrapped is None:
            self._ended(span)
            return
        context = span.context
        if context is None or not context.is_valid or not context.trace_flags.sampled or self._is_ours(span):
            self._contained(wrapped.on_end, span)
        elif is_local_root(span):
            self._held.hold(span)
            is_queued = self._ended(span)
            if self._has_ended or not is_queued:  # it may have been queued after the last look at the queue
                self._pass_on(self._held.take(context.trace_id), ())
        else:
            self._ended(span)
            self._contained(wrapped.on_end, span)

    def force_flush(self, timeout_millis: float | None = DEFAULT_TIMEOUT_MS) -> bool:
        """Score and send what has ended, and return whether that was done within the timeout."""
        timeout_s = seconds(timeout_millis)
        deadline = time.monotonic() + timeout_s
        done = self._runtime.flush(timeout_s)
        wrapped = self._wraps
        if wrapped is None:
            return done
        left_s = max(0.0, deadline - time.monotonic())
        return in_time(left_s, lambda: wrapped.force_flush(int(left_s * 1000))) and done

    def shutdown(self, timeout_millis: float | None = None) -> None:
        """Score and send everything, open traces too, within the timeout. May be called twice.

        Without a timeout, that takes at most 10 seconds, and with a wrapped processor 30. Scoring takes at most half of
        the time if there is one.
        """
        deadline = time.monotonic() + seconds(timeout_millis)
        self._runtime.close(last_scoring_s(timeout_millis, passes_on=self.passes_on))
        wrapped = self._wraps
        if wrapped is not None:
            in_time(max(0.0, deadline - time.monotonic()), lambda: self._end(wrapped))

    def _catch_up(self, timeout_s: float) -> None:
        self._runtime.catch_up(timeout_s)

    def _is_ours(self, span: ReadableSpan) -> bool:
        if get_ident() == self._runtime.thread_id or (span.parent is None and is_of_an_export()):
            return True
        scope = span.instrumentation_scope
        return scope is not None and scope.name == SCOPE

    def _contained(self, action: Callable[..., object], *arguments: object) -> None:
        """Call the wrapped processor; its errors must not reach the agent, and each kind is logged once."""
        try:
            action(*arguments)
        except KeyboardInterrupt:
            raise  # it may be the user's
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is not the agent's
            if type(error).__name__ not in self._told:
                self._told.add(type(error).__name__)
                _LOGGER.error("the span processor behind failed: %s", fault(error))  # noqa: TRY400 - see fault

    def _end(self, wrapped: SpanProcessor) -> None:
        self._has_ended = True
        self._pass_on(self._held.take_all(), ())
        wrapped.shutdown()

    def _release(self, trace_id: bytes, reports: Sequence[Report]) -> None:
        self._pass_on(self._held.take(int.from_bytes(trace_id, "big")), reports)

    def _pass_on(self, roots: Iterable[ReadableSpan], reports: Sequence[Report]) -> None:
        for root in roots:
            try:
                passed_on = annotated(root, reports)
            except Exception as error:  # noqa: BLE001 - the root is the application's, and goes on without scores
                passed_on = root
                _LOGGER.error("a root span has no scores: %s", fault(error))  # noqa: TRY400 - see fault
            if self._wraps is not None:
                self._contained(self._wraps.on_end, passed_on)
