from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from opentelemetry._logs import SeverityNumber
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

from deadline import DEADLINE_S
from emitters.otlp_server import OtlpServer
from emitters.reports import (
    BROKEN,
    NOT_PASSED,
    PASSED,
    ROOT_SPAN_ID,
    SKIPPED,
    TRACE_ID,
    call,
    health_report,
    report,
    trajectory,
)
from spanscore.emitters.otlp.log_events import LogEvents
from spanscore.model import Report, Score
from spanscore.reports.evaluation_event import event_attributes

NOW_NS = 1_700_000_000_000_000_000


def emitted(*reports: Report) -> list[Any]:
    """Return what the host's logger provider gets."""
    exporter = InMemoryLogRecordExporter()
    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    emitter = LogEvents(provider, clock=lambda: NOW_NS)
    for each in reports:
        emitter.emit(each)
    assert emitter.close(0)
    return [each.log_record for each in exporter.get_finished_logs()]


def test_event() -> None:
    """An evaluation is an event of the conventions' name, in the context of the evaluated span."""
    one = report(NOT_PASSED)

    (record,) = emitted(one)

    assert "gen_ai.evaluation.result" == record.event_name
    assert event_attributes(one, one.evaluations[0]) == dict(record.attributes)
    assert (int.from_bytes(TRACE_ID), int.from_bytes(ROOT_SPAN_ID), 1) == (
        record.trace_id,
        record.span_id,
        record.trace_flags,
    )
    assert (NOW_NS, NOW_NS) == (record.timestamp, record.observed_timestamp)
    assert "e1: fail. 1 of 4 calls." == record.body


def test_severity() -> None:
    """An evaluation that did not pass is a warning, an evaluator that went wrong an error, all else information."""
    records = emitted(report(PASSED, NOT_PASSED, SKIPPED, BROKEN))

    assert [SeverityNumber.INFO, SeverityNumber.WARN, SeverityNumber.INFO, SeverityNumber.ERROR] == [
        record.severity_number for record in records
    ]
    assert ["INFO", "WARN", "INFO", "ERROR"] == [record.severity_text for record in records]


def test_revisions_are_events_of_their_own() -> None:
    """A new revision of a trace is told again, under another id."""
    first, second = emitted(report(PASSED), report(PASSED, revision=1))

    assert [0, 1] == [each.attributes["spanscore.revision"] for each in (first, second)]
    assert first.attributes["spanscore.evaluation.id"] != second.attributes["spanscore.evaluation.id"]


def test_holds_neither_arguments_nor_results() -> None:
    """What a tool was given and what it answered is in no event."""
    secret = "4111 1111 1111 1111"
    told = emitted(health_report(call("pay", arguments={"card": secret}, result=secret)))

    assert secret not in repr([(record.body, dict(record.attributes)) for record in told])


def test_events_reach_the_receiver(otlp: OtlpServer) -> None:
    """Events arrive over OTLP with their name, ids, severity and headers."""
    emitter = LogEvents.over_otlp(otlp.destination)
    emitter.emit(report(PASSED, NOT_PASSED))

    assert emitter.close(DEADLINE_S)
    first, second = otlp.log_records()
    assert ("gen_ai.evaluation.result", TRACE_ID, ROOT_SPAN_ID, 1, 9, "INFO") == (
        first.event_name,
        first.trace_id,
        first.span_id,
        first.flags,
        first.severity_number,
        first.severity_text,
    )
    assert 13 == second.severity_number
    assert "k" == otlp.headers[-1]["x-api-key"]
    assert "spanscore" == otlp.resource()["service.name"]


def test_texts_that_utf_8_cannot_encode(otlp: OtlpServer) -> None:
    """Half of a surrogate pair in a name or an explanation costs neither its own event nor the others of a batch."""
    emitter = LogEvents.over_otlp(otlp.destination)
    emitter.emit(report(Score(0.0, passed=False, explanation="'\ud800'"), about=trajectory(agent="\udfff")))
    emitter.emit(report(PASSED))

    assert emitter.close(DEADLINE_S)
    assert ["e1: fail. '?'", "e1: pass. All of it."] == [each.body.string_value for each in otlp.log_records()]


def test_full_queue_is_counted(otlp: OtlpServer) -> None:
    """With a hung receiver events queue up to a bound; each one beyond is left out and counted, and nothing waits."""
    otlp.answers.clear()
    emitter = LogEvents.over_otlp(otlp.destination)
    many = report(*[PASSED] * 1_000)
    for _ in range(10):
        emitter.emit(many)

    outbox = emitter.outbox
    assert outbox is not None
    assert ({"queue_full": 10_000 - outbox.capacity}, outbox.capacity) == (outbox.failures, outbox.size)

    otlp.answers.set()
    assert emitter.flush(DEADLINE_S)
    assert outbox.capacity == len(otlp.log_records())
    emitter.close(DEADLINE_S)


def test_failed_export_is_counted(otlp: OtlpServer) -> None:
    """Every event of a request that the receiver refuses is a failure with a reason."""
    otlp.refuses = True
    emitter = LogEvents.over_otlp(otlp.destination)
    emitter.emit(report(PASSED, NOT_PASSED))

    assert not emitter.flush(DEADLINE_S)
    assert emitter.outbox is not None
    assert ({"export_failed": 2}, 0) == (emitter.outbox.failures, emitter.outbox.size)
    emitter.close(DEADLINE_S)


def test_receiver_that_does_not_answer_keeps_timeouts(otlp: OtlpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a hung receiver flush and close end when their time is up, and not with the request."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", str(2 * DEADLINE_S))
    otlp.answers.clear()
    emitter = LogEvents.over_otlp(otlp.destination)
    emitter.emit(report(PASSED))

    began = time.monotonic()
    assert not emitter.flush(0.2)
    assert not emitter.close(0.2)
    assert time.monotonic() - began < DEADLINE_S


def test_without_a_host() -> None:
    """Without a logger provider of its own and of the host, nothing happens."""
    emitter = LogEvents()
    emitter.emit(replace(report(PASSED), revision=3))

    assert emitter.flush(0)
    assert emitter.close(0)


@pytest.mark.parametrize("evaluations", [0, 1])
def test_as_many_events_as_evaluations(evaluations: int) -> None:
    """A trajectory that no evaluator applied to has no event."""
    assert evaluations == len(emitted(report(*[PASSED] * evaluations)))
