"""Spans and log records of this process, handed over while a context is open."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeVar
from weakref import WeakKeyDictionary

from opentelemetry import _logs, trace
from opentelemetry.sdk._logs import LoggerProvider, LogRecordProcessor, ReadWriteLogRecord
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

from spanscore.errors import InputError
from spanscore.sdk.identity import SCOPE
from spanscore.sdk.providers import is_stand_in

T = TypeVar("T")
TapsT = TypeVar("TapsT")


class _Taps(Generic[T]):
    """Hands the spans or log records of a provider to the current listener."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._takers: tuple[Callable[[T], object], ...] = ()

    def give(self, item: T) -> None:
        for take in self._takers:
            take(item)

    @contextmanager
    def open_to(self, take: Callable[[T], object]) -> Iterator[None]:
        with self._lock:
            self._takers = (*self._takers, take)
        try:
            yield
        finally:
            with self._lock:
                self._takers = tuple(each for each in self._takers if each is not take)


class _SpanTaps(_Taps[ReadableSpan], SpanProcessor):
    def on_end(self, span: ReadableSpan) -> None:
        if span.instrumentation_scope is None or span.instrumentation_scope.name != SCOPE:
            self.give(span)


class _LogTaps(_Taps[ReadWriteLogRecord], LogRecordProcessor):
    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        self.give(log_record)

    def shutdown(self) -> None:
        """Do nothing: nothing waits."""

    def force_flush(self, timeout_millis: int = 0) -> bool:  # noqa: ARG002 - nothing waits
        return True


# The SDK has no way to take a processor out again: each provider has one, whoever listens and however often.
_spans: Final[WeakKeyDictionary[Any, _SpanTaps]] = WeakKeyDictionary()
_logs_of: Final[WeakKeyDictionary[Any, _LogTaps]] = WeakKeyDictionary()
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
    if provider is None:
        provider = trace.get_tracer_provider()
        if is_stand_in(provider):
            trace.set_tracer_provider(TracerProvider())
            provider = trace.get_tracer_provider()
    with _added_once(provider, "add_span_processor", _spans, _SpanTaps).open_to(take):
        yield


@contextmanager
def captured_logs(take: Callable[[ReadWriteLogRecord], object], provider: Any | None) -> Iterator[None]:
    """Hand over every log record that is emitted meanwhile, as `captured_spans` does."""
    if provider is None:
        provider = _logs.get_logger_provider()
        if is_stand_in(provider):
            _logs.set_logger_provider(LoggerProvider(shutdown_on_exit=False))
            provider = _logs.get_logger_provider()
    with _added_once(provider, "add_log_record_processor", _logs_of, _LogTaps).open_to(take):
        yield


def _added_once(provider: Any, method: str, known: WeakKeyDictionary[Any, TapsT], new: Callable[[], TapsT]) -> TapsT:
    """Return the taps of a provider, which are added to it by this method the first time."""
    add: Callable[[object], object] | None = getattr(provider, method, None)
    if add is None:
        kind = f"{type(provider).__module__}.{type(provider).__qualname__}"
        message = f"cannot record what {kind} makes: it has no {method}; give a provider of the OpenTelemetry SDK"
        raise InputError(message)
    with _lock:
        if provider not in known:
            known[provider] = new()
            add(known[provider])
    return known[provider]
