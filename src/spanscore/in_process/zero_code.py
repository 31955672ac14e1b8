"""The front door without code: `OTEL_TRACES_EXPORTER=spanscore`, or the exporter `spanscore` of OTEL_CONFIG_FILE.

A variable may be set by a person who does not know the application. So errors of the configuration are logged, scoring
is off, and the application and its other exporters continue.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Sequence
from typing import Final

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from spanscore.errors import SpanscoreError
from spanscore.in_process.exporter import ScoringSpanExporter
from spanscore.in_process.processor import ScoringSpanProcessor
from spanscore.in_process.timeouts import DEFAULT_TIMEOUT_MS
from spanscore.messages.faults import fault

_LOGGER: Final = logging.getLogger(__name__)
_PROVIDERS: Final[weakref.WeakSet[TracerProvider]] = weakref.WeakSet()
"""Providers that have our processor."""


class ZeroCodeExporter(SpanExporter):
    """Scores the traces of the application, as the file in SPANSCORE_CONFIG says, else tool-call health.

    The SDK makes it after it has set the global tracer provider. It adds a `ScoringSpanProcessor` there, which scores
    a trace when its root ends, and not only when a batch is full; what is then exported to it, it lets go. Where there
    is no such provider yet, or the spans are of another one, it scores what is exported.

    It never raises.

    Args:
        config: the configuration file, where the SDK's own file (OTEL_CONFIG_FILE) names it.
        settings: what a distribution may give to exporters; there is nothing else to set.
    """

    passes_on: Final = False
    """Whether this exporter sends spans on."""

    def __init__(self, config: str | None = None, **settings: object) -> None:  # noqa: ARG002 - see above
        self._config: Final = config
        self._processor: ScoringSpanProcessor | None = None
        self._scores: ScoringSpanExporter | None = None
        _contained(self._start)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Score the spans where no processor does."""
        if self._scores is None and self._processor is not None and not self._processor.is_fed:
            self._processor = None
            _contained(self._score_exports)  # they are of another provider than the global one
        return SpanExportResult.SUCCESS if self._scores is None else self._scores.export(spans)

    def force_flush(self, timeout_millis: float | None = DEFAULT_TIMEOUT_MS) -> bool:
        """Send the scores where no processor does."""
        return self._scores is None or self._scores.force_flush(timeout_millis)

    def shutdown(self) -> None:
        """Score and send everything where no processor does."""
        if self._scores is not None:
            self._scores.shutdown()

    def _start(self) -> None:
        provider = trace.get_tracer_provider()
        if isinstance(provider, TracerProvider) and provider not in _PROVIDERS:
            self._processor = ScoringSpanProcessor(self._config, tracer_provider=provider)
            provider.add_span_processor(self._processor)
            _PROVIDERS.add(provider)
        else:
            self._score_exports()

    def _score_exports(self) -> None:
        self._scores = ScoringSpanExporter(config=self._config)


def _contained(start: Callable[[], None]) -> None:
    try:
        start()
    except SpanscoreError as error:
        mistakes = "; ".join(str(error).splitlines())
        _LOGGER.error("spanscore is off: %s", mistakes)  # noqa: TRY400 - a user made it: no traceback helps
    except Exception as error:  # noqa: BLE001 - whatever it is, it is not the application's
        _LOGGER.error("spanscore is off: %s", fault(error))  # noqa: TRY400 - see fault
