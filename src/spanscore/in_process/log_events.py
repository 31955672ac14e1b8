"""Scores as log events of the application's own logger provider."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from opentelemetry._logs import LoggerProvider, LogRecord, SeverityNumber, get_logger_provider

from spanscore.contracts.immediate import Immediate
from spanscore.in_process.handover import Handover
from spanscore.model import Report
from spanscore.reports.evaluation_event import NAME, event_attributes, sentence, severity
from spanscore.sdk import providers as host_providers
from spanscore.sdk.identity import SCOPE, scope_version
from spanscore.sdk.span_conversion import scored_context


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
