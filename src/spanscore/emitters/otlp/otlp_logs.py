"""Scores as log events that are sent over OTLP."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber

from spanscore.emitters.alarm_event import ALARM_EVENT, alarm_attributes, alarm_sentence
from spanscore.emitters.otlp._encoded_scores import encoded_events
from spanscore.emitters.otlp._encoded_values import encoded_pairs, encoded_text, own_envelope
from spanscore.emitters.sending.backlog import EXPORT_FAILED, QueueItem, QueueLimits
from spanscore.emitters.sending.client import Client
from spanscore.emitters.sending.send_queue import SendQueue, SendSettings
from spanscore.model import Report
from spanscore.model.alarms import MonitorAlarm
from spanscore.reports.evaluation_event import NAME, sentence, severity

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
        records = encoded_records(report, self._clock())
        self.outbox.put(*[QueueItem("logs", record, envelope=self._envelope) for record in records])

    def alarm(self, alarm: MonitorAlarm) -> None:
        """Queue an event for an alarm that begins or ends."""
        self.outbox.put(QueueItem("logs", encoded_alarm(alarm, self._clock()), envelope=self._envelope))

    def flush(self, timeout_s: float) -> bool:
        """Send the queued events now."""
        return self.outbox.flush(timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Send the queued events and stop sending."""
        return self.outbox.close(timeout_s)


def encoded_records(report: Report, now_ns: int) -> Iterator[bytes]:
    """Yield a log record in protobuf for each evaluation."""
    shared = LogRecord(time_unix_nano=now_ns, observed_time_unix_nano=now_ns, event_name=NAME)
    trajectory = report.trajectory
    if trajectory.trace_id and trajectory.root_span_id and not report.dropped:
        shared.trace_id, shared.span_id, shared.flags = trajectory.trace_id, trajectory.root_span_id, _SAMPLED
    of_run = shared.SerializeToString()
    for evaluation, told, attributes in encoded_events(report, LogRecord.ATTRIBUTES_FIELD_NUMBER):
        body = encoded_text(LogRecord.BODY_FIELD_NUMBER, sentence(told))
        yield of_run + _encoded_severity(severity(evaluation)) + body + attributes


def encoded_alarm(alarm: MonitorAlarm, now_ns: int) -> bytes:
    """Return a log record in protobuf for an alarm that begins or ends."""
    head = LogRecord(time_unix_nano=now_ns, observed_time_unix_nano=now_ns, event_name=ALARM_EVENT)
    body = encoded_text(LogRecord.BODY_FIELD_NUMBER, alarm_sentence(alarm))
    attributes = encoded_pairs(LogRecord.ATTRIBUTES_FIELD_NUMBER, alarm_attributes(alarm))
    return head.SerializeToString() + _encoded_severity("INFO" if alarm.is_over else "WARN") + body + attributes


@cache
def _encoded_severity(grave: str) -> bytes:
    number = SeverityNumber.Value(f"SEVERITY_NUMBER_{grave}")
    return LogRecord(severity_number=number, severity_text=grave).SerializeToString()
