"""Spans and log records of this process, handed over while a context is open."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from weakref import WeakKeyDictionary

from opentelemetry import _logs, trace
from opentelemetry.sdk._logs import LoggerProvider, LogRecordProcessor, ReadWriteLogRecord
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

from spanscore.errors import InputError
from spanscore.sdk.identity import SCOPE
from spanscore.sdk.providers import is_stand_in


class _Tap(SpanProcessor, LogRecordProcessor):
    """Hands the spans or log records of one provider to the current takers. Nothing waits in it."""

    def __init__(self) -> None:
        self.takers: tuple[Callable[[Any], object], ...] = ()

    def on_end(self, span: ReadableSpan) -> None:
        if span.instrumentation_scope is None or span.instrumentation_scope.name != SCOPE:
            self._give(span)

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        self._give(log_record)

    def _give(self, item: object) -> None:
        for take in self.takers:
            take(item)


# The SDK has no way to take a processor out again: each provider has one, whoever listens and however often. A provider
# of spans and of log records has two.
_span_taps: Final[WeakKeyDictionary[Any, _Tap]] = WeakKeyDictionary()
_log_taps: Final[WeakKeyDictionary[Any, _Tap]] = WeakKeyDictionary()
_lock: Final = threading.Lock()


@contextmanager
def captured_spans(take: Callable[[ReadableSpan], object], provider: trace.TracerProvider | None) -> Iterator[None]:
    """Hand over every span that ends while the context is open, on the thread on which it ends.

    Args:
        take: takes each span. Must neither wait nor raise.
        provider: makes the spans; by default the global one, which is created if there is none.

    Raises:
        InputError: the provider takes no span processors.
    """
    if provider is None and is_stand_in(trace.get_tracer_provider()):
        trace.set_tracer_provider(TracerProvider())
    provider = trace.get_tracer_provider() if provider is None else provider
    with _captured(take, provider, "add_span_processor", _span_taps):
        yield


@contextmanager
def captured_logs(take: Callable[[ReadWriteLogRecord], object], provider: Any | None) -> Iterator[None]:
    """Hand over every log record that is emitted meanwhile, as `captured_spans` does."""
    if provider is None and is_stand_in(_logs.get_logger_provider()):
        _logs.set_logger_provider(LoggerProvider(shutdown_on_exit=False))
    provider = _logs.get_logger_provider() if provider is None else provider
    with _captured(take, provider, "add_log_record_processor", _log_taps):
        yield


@contextmanager
def _captured(
    take: Callable[[Any], object], provider: Any, method: str, taps: WeakKeyDictionary[Any, _Tap]
) -> Iterator[None]:
    """Have the tap of a provider, which is added to it by this method the first time, hand over what it gets."""
    add: Callable[[object], object] | None = getattr(provider, method, None)
    if add is None:
        kind = f"{type(provider).__module__}.{type(provider).__qualname__}"
        message = f"cannot record what {kind} makes: it has no {method}; give a provider of the OpenTelemetry SDK"
        raise InputError(message)
    with _lock:
        if provider not in taps:
            taps[provider] = _Tap()
            add(taps[provider])
        tap = taps[provider]
        tap.takers = (*tap.takers, take)
    try:
        yield
    finally:
        with _lock:
            tap.takers = tuple(each for each in tap.takers if each is not take)
