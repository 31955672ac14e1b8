"""Hands scores to the application's providers, counts the ones that do not arrive, and logs that once."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Final, Literal

from opentelemetry._logs import LoggerProvider, LogRecord, SeverityNumber, get_logger_provider

from spanscore.contracts.immediate import Immediate
from spanscore.metrics.measurements import measurements
from spanscore.metrics.meter import Meter
from spanscore.metrics.series import Values
from spanscore.model import Report
from spanscore.reports.evaluation_event import NAME, event_attributes, sentence, severity
from spanscore.sdk import providers as host_providers
from spanscore.sdk.identity import SCOPE, scope_version
from spanscore.sdk.span_conversion import scored_context

SHUT_DOWN: Final = "shut_down"
NOT_STARTED: Final = "not_started"

_LOGGER: Final = logging.getLogger(__name__)


class NotStarted(Immediate):
    """Takes the place of an exporter that could not be started: the application must not end for its sake."""

    def __init__(self, name: str) -> None:
        self.failures: Final[Counter[Values]] = Counter()
        """Reports that were not sent, by emitter and reason."""
        self._key: Final = (name, NOT_STARTED)

    def emit(self, report: Report) -> None:  # noqa: ARG002 - it goes nowhere
        """Count a report."""
        self.failures[self._key] += 1


class Handover(Immediate):
    """Watches the hand-over of scores to the application's providers.

    If no provider takes scores, the first score logs it: providers may be set after spanscore was. If the application
    has shut its providers down before the last traces were scored, the end logs how many scores were lost.
    `goes_elsewhere` returns whether scores also have another destination than these providers.
    """

    def __init__(self, goes_elsewhere: Callable[[], bool]) -> None:
        self.failures: Final[Counter[Values]] = Counter()
        """Evaluations that could not be handed over, by emitter and reason."""
        self._goes_elsewhere: Final = goes_elsewhere
        self._is_judged = False

    def lost(self, name: Literal["metrics", "logs"], evaluations: int) -> None:
        """Count evaluations that a provider could not be given."""
        if evaluations:
            self.failures[name, SHUT_DOWN] += evaluations

    def emit(self, report: Report) -> None:
        """Log a warning with the first score if scores go nowhere."""
        if self._is_judged or not report.evaluations:
            return
        self._is_judged = True
        if host_providers.takes_metrics() or host_providers.takes_logs() or self._goes_elsewhere():
            return
        _LOGGER.warning(
            "spanscore: scores go nowhere: the application has no meter provider or logger provider that exports; "
            "set one, or add `exporters: {console: {}}`, otlp or prometheus to the configuration"
        )

    def close(self, timeout_s: float) -> bool:  # noqa: ARG002 - as above
        """Log how many evaluations were lost."""
        if self.failures:
            _LOGGER.warning(
                "spanscore: the application shut its providers down before its last traces were scored: %d evaluations "
                "are in no metric, %d in no log event; shut its tracer provider down first, or have it flush before",
                self.failures["metrics", SHUT_DOWN],
                self.failures["logs", SHUT_DOWN],
            )
        return True


class LogEvents(Immediate):
    """Writes a log event `gen_ai.evaluation.result` for each evaluation, in the context of the evaluated span.

    Its severity is WARN where the trajectory did not pass, ERROR if the evaluator had an error, else INFO.

    Args:
        provider: makes the logger; by default the global one, which may be set later.
        clock: the time in nanoseconds since the Unix epoch.
        handover: counts events after the shutdown of the global logger provider, if that is used.
    """

    def __init__(
        self,
        provider: LoggerProvider | None = None,
        clock: Callable[[], int] = time.time_ns,
        handover: Handover | None = None,
    ) -> None:
        self._logger: Final = (provider or get_logger_provider()).get_logger(SCOPE, scope_version())
        self._clock: Final = clock
        self._handover: Final = handover

    def emit(self, report: Report) -> None:
        """Write an event for each evaluation."""
        if self._handover is not None and host_providers.logger_provider_is_shut_down():
            self._handover.lost("logs", len(report.evaluations))
            return
        now_ns = self._clock()
        context = scored_context(report.trajectory)
        for evaluation in report.evaluations:
            grave = severity(evaluation)
            told = event_attributes(report, evaluation)
            record = LogRecord(
                timestamp=now_ns,
                observed_timestamp=now_ns,
                context=context,
                severity_number=SeverityNumber[grave],
                severity_text=grave,
                body=sentence(told),
                attributes=told,
                event_name=NAME,
            )
            self._logger.emit(record)


class OtelMetrics(Immediate):
    """Records scores with the application's meter provider, with exemplars that lead to the scored trace.

    With the global meter provider, `handover` counts measurements after its shutdown.
    """

    def __init__(self, meter: Meter | None = None, handover: Handover | None = None) -> None:
        self.meter: Final = meter or Meter()
        self._handover: Final = handover
        self._uncertain = 0  # evaluations recorded with a provider that was shut down: its last numbers may have them

    at_most_once: Final = True
    """A trace that was counted before a crash is not counted again after it."""

    def emit(self, report: Report) -> None:
        """Record the report's measurements."""
        if self._handover is not None and host_providers.meter_provider_is_shut_down():
            if self.meter.is_over:
                self._handover.lost("metrics", len(report.evaluations))
                return
            self._uncertain += len(report.evaluations)
        context = scored_context(report.trajectory)
        for instrument, value, values in measurements(report):
            self.meter.record(instrument, value, values, context)

    def close(self, timeout_s: float) -> bool:  # noqa: ARG002 - as above
        """Report measurements that came too late."""
        if self._handover is not None and not self.meter.is_over:
            self._handover.lost("metrics", self._uncertain)
        return True
