"""The state of the application's own providers: whether they take telemetry, and still do.

OpenTelemetry's API does not expose it, so this reads private attributes of the SDK, without changes. If they are
missing, such as in another SDK, a provider counts as working: there is no false alarm, and nothing is held back.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from opentelemetry import metrics, trace
from opentelemetry._logs import _internal as _logs
from opentelemetry._logs import get_logger_provider
from opentelemetry.metrics import _internal as _metrics
from opentelemetry.trace import TracerProvider

_API: Final = ("opentelemetry.metrics", "opentelemetry._logs", "opentelemetry.trace")
"""The modules of stand-in providers, which do nothing, or wait for the real one."""
_LOG_PROCESSORS: Final = ("_multi_log_record_processor", "_log_record_processors")
_SPAN_PROCESSORS: Final = ("_active_span_processor", "_span_processors")


def global_meter_provider() -> object:
    """Return the meter provider that the application has set, None if there is none.

    Unlike OpenTelemetry's own function, this creates no provider from the environment.
    """
    return _global(_metrics, "_METER_PROVIDER", metrics.get_meter_provider)


def global_logger_provider() -> object:
    """Return the logger provider that the application has set, None if there is none; as for metrics."""
    return _global(_logs, "_LOGGER_PROVIDER", get_logger_provider)


def is_stand_in(provider: object) -> bool:
    """Return whether a provider is one of the API's own, that does nothing or waits for the real one."""
    return type(provider).__module__.startswith(_API)


def takes_metrics() -> bool:
    """Return whether the application has a meter provider, and that a reader."""
    return _takes(metrics.get_meter_provider(), "_measurement_consumer", "_reader_storages")


def takes_logs() -> bool:
    """Return whether the application has a logger provider, and that a processor."""
    return _takes(get_logger_provider(), *_LOG_PROCESSORS)


def takes_spans(provider: TracerProvider | None = None) -> bool:
    """Return whether the application has a tracer provider, by default the global one, and that an exporter.

    Our own exporters and processors that send no spans on have `passes_on` False.
    """
    provider = provider or trace.get_tracer_provider()
    processors = _seen(provider, *_SPAN_PROCESSORS) or ()
    passing_on = (getattr(_exporter(each), "passes_on", True) for each in processors)
    return _takes(provider, *_SPAN_PROCESSORS) and (not processors or any(passing_on))


def meter_provider_is_shut_down() -> bool:
    """Return whether the application has shut its meter provider down: it then drops measurements."""
    return _seen(metrics.get_meter_provider(), "_shutdown") is True


def logger_provider_is_shut_down() -> bool:
    """Return whether the application has shut its logger provider down: it then drops log records."""
    processors = _seen(get_logger_provider(), *_LOG_PROCESSORS) or ()
    return any(True in {_seen(each, "_shutdown"), _seen(each, "_batch_processor", "_shutdown")} for each in processors)


def flush_spans_to(exporter: object) -> None:
    """Have the global tracer provider hand over the spans that wait for an exporter, with all others where need be."""
    provider: Any = trace.get_tracer_provider()
    processors = _seen(provider, *_SPAN_PROCESSORS) or ()
    flushes: list[Callable[[], object]] = [each.force_flush for each in processors if _exporter(each) is exporter]
    if not flushes and hasattr(provider, "force_flush"):  # the exporter may be behind another one
        flushes = [provider.force_flush]
    for flush in flushes:
        flush()


def _global(module: ModuleType, name: str, get: Callable[[], object]) -> object:
    if hasattr(module, name):
        return getattr(module, name)
    try:  # another release of the API
        provider = get()
    except Exception:  # noqa: BLE001 - what the environment names may fail to load: not on the agent's thread
        return None
    return None if is_stand_in(provider) else provider


def _exporter(processor: object) -> object:
    """Return the exporter of a processor of the SDK, or the processor itself."""
    return getattr(processor, "span_exporter", processor)


def _takes(provider: object, *names: str) -> bool:
    if is_stand_in(provider):
        return False
    taking = _seen(provider, *names)
    return taking is None or bool(taking)


def _seen(seen: object, *names: str) -> Any:
    for name in names:
        seen = getattr(seen, name, None)
    return seen
