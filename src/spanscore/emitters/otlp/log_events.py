"""Scores as log events."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Self, assert_never

from opentelemetry._logs import LoggerProvider, LogRecord, SeverityNumber, get_logger_provider

from spanscore.model import Failed, Outcome, Report, Score, Skipped
from spanscore.reports.evaluation_event import NAME
from spanscore.sdk import providers as host_providers
from spanscore.sdk.evaluation_event import attributes
from spanscore.sdk.identity import SCOPE, scope_version
from spanscore.sdk.scored_span import scored_context
from spanscore.sending.destination import Destination, logger_provider
from spanscore.sending.handover import Handover
from spanscore.sending.outbox import Outbox
from spanscore.sending.sender import Sender


class LogEvents:
    """Writes a log event `gen_ai.evaluation.result` for each evaluation, in the context of the evaluated span.

    Its severity is WARN where the trajectory did not pass, ERROR where the evaluator went wrong, else INFO.

    Args:
        provider: makes the logger; by default the global one, which may be set later.
        sender: sends what the provider holds, where that is ours.
        clock: the time in nanoseconds since the Unix epoch.
        handover: is told what came when the global logger provider was shut down, where that is used.
    """

    def __init__(
        self,
        provider: LoggerProvider | None = None,
        sender: Sender | None = None,
        clock: Callable[[], int] = time.time_ns,
        handover: Handover | None = None,
    ) -> None:
        self._logger: Final = (provider or get_logger_provider()).get_logger(SCOPE, scope_version())
        self._sender: Final = sender
        self._clock: Final = clock
        self._handover: Final = handover

    @classmethod
    def over_otlp(cls, destination: Destination) -> Self:
        """Return an emitter with a logger provider of its own that sends to an OTLP receiver."""
        return cls(*logger_provider(destination))

    @property
    def outbox(self) -> Outbox | None:
        """What is on its way; None with the host's provider."""
        return None if self._sender is None else self._sender.outbox

    @property
    def progress(self) -> tuple[int, int]:
        """How many events were queued so far, and how many of them are sent or given up; none with the host's."""
        return (0, 0) if self._sender is None else self._sender.outbox.progress

    def emit(self, report: Report) -> None:
        """Queue an event for each evaluation. Where the queue is full, the event is left out and counted."""
        if self._handover is not None and host_providers.logger_provider_is_shut_down():
            self._handover.lost("logs", len(report.evaluations))
            return
        now_ns = self._clock()
        context = scored_context(report.trajectory)
        outbox = self.outbox
        for evaluation in report.evaluations:
            if outbox is not None and not outbox.put():
                continue
            severity = _severity(evaluation.outcome)
            told = attributes(report, evaluation)
            record = LogRecord(
                timestamp=now_ns,
                observed_timestamp=now_ns,
                context=context,
                severity_number=severity,
                severity_text=severity.name,
                body=_sentence(told),
                attributes=told,
                event_name=NAME,
            )
            self._logger.emit(record)

    def flush(self, timeout_s: float) -> bool:
        """Send the queued events now."""
        return self._sender is None or self._sender.flush(timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Send the queued events and stop sending."""
        return self._sender is None or self._sender.close(timeout_s)


def _severity(outcome: Outcome) -> SeverityNumber:
    match outcome:
        case Score(_, passed):
            return SeverityNumber.INFO if passed else SeverityNumber.WARN
        case Skipped():
            return SeverityNumber.INFO
        case Failed():
            return SeverityNumber.ERROR
        case _:
            assert_never(outcome)


def _sentence(told: Mapping[str, Any]) -> str:
    """Return what a viewer of logs shows for the event: most show nothing but the body."""
    verdict = f"{told['gen_ai.evaluation.name']}: {told['gen_ai.evaluation.score.label']}"
    explanation = told["gen_ai.evaluation.explanation"]
    return f"{verdict}. {explanation}" if explanation else verdict
