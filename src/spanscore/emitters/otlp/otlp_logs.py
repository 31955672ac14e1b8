"""Scores as log events that are sent over OTLP."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber

from spanscore.emitters.otlp._encoded_values import any_value, own_envelope, pair
from spanscore.emitters.sending.backlog import EXPORT_FAILED, QueueItem, QueueLimits
from spanscore.emitters.sending.client import Client
from spanscore.emitters.sending.send_queue import SendQueue, SendSettings
from spanscore.model import Evaluation, Report
from spanscore.reports.evaluation_event import NAME, event_attributes, sentence, severity

CAPACITY: Final = 8_192
_SAMPLED: Final = 1


class OtlpLogs:
    """Sends a log event `gen_ai.evaluation.result` for each evaluation to an OTLP receiver, within a second.

    It says the same as the one that an application's own logger provider is given.

    Args:
        client: sends; the emitter's alone.
        clock: the time in nanoseconds since the Unix epoch.
        capacity: events that may wait; more are left out and counted.
    """

    def __init__(self, client: Client, clock: Callable[[], int] = time.time_ns, *, capacity: int = CAPACITY) -> None:
        self._clock: Final = clock
        self._envelope: Final = own_envelope()
        settings = SendSettings(name="otlp_logs", queue=QueueLimits(capacity=capacity), failure=EXPORT_FAILED)
        self.outbox: Final = SendQueue(client, settings)
        """Events that wait or are being sent."""

    needs_results: Final = False
    """Results of calls are sent only with `tool_content: true`."""

    @property
    def progress(self) -> tuple[int, int]:
        """The number of events queued so far, and the number sent or given up."""
        return self.outbox.progress

    def emit(self, report: Report) -> None:
        """Queue an event for each evaluation. If the queue is full, the event is dropped and counted."""
        now_ns = self._clock()
        for evaluation in report.evaluations:
            record = _record(report, evaluation, now_ns).SerializeToString()
            self.outbox.put(QueueItem("logs", record, envelope=self._envelope))

    def flush(self, timeout_s: float) -> bool:
        """Send the queued events now."""
        return self.outbox.flush(timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Send the queued events and stop sending."""
        return self.outbox.close(timeout_s)


def _record(report: Report, evaluation: Evaluation, now_ns: int) -> LogRecord:
    told = event_attributes(report, evaluation)
    grave = severity(evaluation)
    record = LogRecord(
        time_unix_nano=now_ns,
        observed_time_unix_nano=now_ns,
        severity_number=SeverityNumber.Value(f"SEVERITY_NUMBER_{grave}"),
        severity_text=grave,
        body=any_value(sentence(told)),
        attributes=[pair(*each) for each in told.items()],
        event_name=NAME,
    )
    trajectory = report.trajectory
    if trajectory.trace_id and trajectory.root_span_id:
        record.trace_id, record.span_id, record.flags = trajectory.trace_id, trajectory.root_span_id, _SAMPLED
    return record
