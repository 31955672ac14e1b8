from __future__ import annotations

import time

import pytest

from deadline import DEADLINE_S
from emitters.otlp_server import OtlpServer
from emitters.reports import NOT_PASSED, PASSED, ROOT_SPAN_ID, TRACE_ID, report, trajectory
from otlp_capture import InMemory
from spanscore.emitters.otlp.otlp_logs import CAPACITY, OtlpLogs
from spanscore.emitters.sending.client import Accepted, TryAgain
from spanscore.model import Score
from spanscore.reports.evaluation_event import event_attributes


def test_events_reach_the_receiver(otlp: OtlpServer) -> None:
    """Events arrive over OTLP with their name, ids, severity and headers."""
    emitter = OtlpLogs(otlp.destination.connect())
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
    assert "k" == otlp.capture.seen[-1].headers["x-api-key"]
    assert "spanscore" == otlp.resource()["service.name"]


def test_as_the_applications_own(otlp: OtlpServer) -> None:
    """An event says what an application's logger provider is told: the same attributes, text and time."""
    one = report(NOT_PASSED)
    emitter = OtlpLogs(otlp.destination.connect(), lambda: 1_700_000_000_000_000_000)
    emitter.emit(one)

    assert emitter.close(DEADLINE_S)
    (record,) = otlp.log_records()
    assert "e1: fail. 1 of 4 calls." == record.body.string_value
    assert {1_700_000_000_000_000_000} == {record.time_unix_nano, record.observed_time_unix_nano}
    assert event_attributes(one, one.evaluations[0]) == {
        each.key: getattr(each.value, each.value.WhichOneof("value")) for each in record.attributes
    }


def test_without_a_trace(otlp: OtlpServer) -> None:
    """A trajectory without ids, as one built by hand, is told in no context."""
    emitter = OtlpLogs(otlp.destination.connect())
    emitter.emit(report(PASSED, about=trajectory(root_span_id=b"")))

    assert emitter.close(DEADLINE_S)
    (record,) = otlp.log_records()
    assert (b"", b"", 0) == (record.trace_id, record.span_id, record.flags)


def test_a_receiver_that_is_away_for_a_while_misses_nothing() -> None:
    """Events wait until they are taken, and only then count as sent."""
    client = InMemory([TryAgain(reason="unreachable")])
    client.hold()
    emitter = OtlpLogs(client)
    emitter.emit(report(PASSED, NOT_PASSED))
    assert (2, 0) == emitter.progress
    client.go_on()

    assert emitter.flush(DEADLINE_S)
    assert (2, 2) == emitter.progress
    assert (2, 1, {}) == (len(client.sent), len(client.taken), emitter.outbox.failures)
    emitter.close(DEADLINE_S)


def test_what_the_receiver_rejects_is_counted() -> None:
    """Also where it took the request."""
    emitter = OtlpLogs(InMemory([Accepted(rejected=1, message="too old")]))
    emitter.emit(report(PASSED, NOT_PASSED))

    assert not emitter.flush(DEADLINE_S)
    assert {"rejected": 1} == emitter.outbox.failures
    emitter.close(DEADLINE_S)


def test_what_no_request_can_have_is_not_counted() -> None:
    """A receiver that claims to have rejected more records than there are: a sum of two such fits into no metric."""
    emitter = OtlpLogs(InMemory([Accepted(rejected=2**63 - 1)] * 2))
    for _ in range(2):
        emitter.emit(report(PASSED))
        assert not emitter.flush(DEADLINE_S)

    assert 0 < emitter.outbox.failures["rejected"] < 2**20
    emitter.close(DEADLINE_S)


def test_texts_that_utf_8_cannot_encode(otlp: OtlpServer) -> None:
    """Half of a surrogate pair in a name or an explanation costs neither its own event nor the others of a batch."""
    emitter = OtlpLogs(otlp.destination.connect())
    emitter.emit(report(Score(0.0, passed=False, explanation="'\ud800'"), about=trajectory(agent="\udfff")))
    emitter.emit(report(PASSED))

    assert emitter.close(DEADLINE_S)
    assert ["e1: fail. '?'", "e1: pass. All of it."] == [each.body.string_value for each in otlp.log_records()]


@pytest.mark.parametrize("capacity", [1_000, pytest.param(CAPACITY, marks=pytest.mark.full_size)])
def test_full_queue_is_counted(otlp: OtlpServer, capacity: int) -> None:
    """With a hung receiver events queue up to a bound; each one beyond is left out and counted, and nothing waits."""
    otlp.capture.hold()
    emitter = OtlpLogs(otlp.destination.connect(), capacity=capacity)
    many = report(*[PASSED] * (capacity // 4))
    for _ in range(5):
        emitter.emit(many)

    outbox = emitter.outbox
    assert ({"queue_full": capacity // 4}, capacity) == (outbox.failures, outbox.size)

    otlp.capture.go_on()
    assert emitter.flush(DEADLINE_S)
    assert capacity <= len(otlp.log_records())  # a request that was not answered in time is sent once more
    emitter.close(DEADLINE_S)


def test_how_many_events_may_wait() -> None:
    """By default 8,192, until they are sent."""
    emitter = OtlpLogs(InMemory([]))
    assert 8_192 == CAPACITY == emitter.outbox.capacity
    emitter.close(DEADLINE_S)


def test_failed_export_is_counted(otlp: OtlpServer) -> None:
    """Every event of a request that the receiver refuses is a failure with a reason."""
    otlp.refuse()
    emitter = OtlpLogs(otlp.destination.connect())
    emitter.emit(report(PASSED, NOT_PASSED))

    assert not emitter.flush(DEADLINE_S)
    assert ({"export_failed": 2}, 0) == (emitter.outbox.failures, emitter.outbox.size)
    emitter.close(DEADLINE_S)


def test_receiver_that_does_not_answer_keeps_timeouts(otlp: OtlpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a hung receiver flush and close end when their time is up, and not with the request."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", str(2 * DEADLINE_S))
    otlp.capture.hold()
    emitter = OtlpLogs(otlp.destination.connect())
    emitter.emit(report(PASSED))

    began = time.monotonic()
    assert not emitter.flush(0.2)
    assert not emitter.close(0.2)
    assert time.monotonic() - began < DEADLINE_S
