from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from opentelemetry._logs import SeverityNumber
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

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
)
from spanscore.in_process.handover import LogEvents
from spanscore.model import Report
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
