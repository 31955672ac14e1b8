"""Rules 85 to 93: spans that are odd, and spans that are none."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from conformance.doors import AS_JSON, OK, Chain, Door, Told, chain, numbers, over_grpc, over_http
from receivers.otlp_requests import decoded_span, refusal, request_of, simple_span, span_id, trace_id
from spanscore.model import Report, Score, Skipped
from spanscore.otlp.findings import Refusal

TOOL = KeyValue(key="openinference.span.kind", value=AnyValue(string_value="TOOL"))
TOOL_NAME = KeyValue(key="tool.name", value=AnyValue(string_value="search"))


def rejected(door: Door, span: Span) -> str:
    """Send a span beside a good one: it must be the only one refused. Return why."""
    with door.run() as receiver:
        told = door.send(receiver, request_of(span, simple_span(1)))
        assert (OK, 1, [decoded_span(1)]) == (told.code, told.rejected, receiver.core.spans)
        (reason,) = receiver.core.refused
        assert f"1 of 2 spans refused: 1 for {reason}" in told.message
        return reason


def reports(chain: Chain, trace: int, count: int = 1) -> Sequence[Report]:
    """Return the reports on a trace, once there are that many in all."""
    emitted = chain.running.reports.wait_for(count)
    return [report for report in emitted if report.trajectory.trace_id == trace_id(trace)]


@pytest.mark.parametrize("number", [b"", b"1" * 15, b"1" * 17, bytes(16)], ids=["none", "short", "long", "zeros"])
def test_085_a_trace_id_has_sixteen_bytes(door: Door, number: bytes) -> None:
    """Not all of them 0: such a span is rejected as `invalid_trace_id`."""
    span = simple_span(1, 2)
    span.trace_id = number
    assert "invalid_trace_id" == rejected(door, span)


@pytest.mark.parametrize("number", [b"", b"1" * 7, b"1" * 9, bytes(8)], ids=["none", "short", "long", "zeros"])
def test_086_a_span_id_has_eight_bytes(door: Door, number: bytes) -> None:
    """Not all of them 0: such a span is rejected as `invalid_span_id`."""
    span = simple_span(1, 2)
    span.span_id = number
    assert "invalid_span_id" == rejected(door, span)


def test_087_a_parent_of_zeros_is_none(door: Door) -> None:
    """Such a span is a root, with a warning; any other wrong length rejects the span."""
    with door.run() as receiver:
        told = door.send(receiver, request_of(simple_span(1, parent_span_id=bytes(8))))
        assert (OK, 0, True) == (told.code, told.rejected, "zero_parent_span_id" in told.message)
        assert [b""] == [span.parent_span_id for span in receiver.core.spans]
    for length in (7, 9):
        assert "invalid_parent_span_id" == rejected(door, simple_span(1, 2, parent_span_id=b"1" * length))


@pytest.mark.parametrize("send", [over_grpc, over_http])
def test_088_invalid_text_costs_its_span_only(shared: Chain, send: Door) -> None:
    """If a string is not UTF-8, the other spans of the request are taken."""
    number = next(numbers)
    bad = simple_span(number, 3, name="bad--text")
    body = request_of(simple_span(number, 1), bad, simple_span(number, 2)).SerializeToString()
    told = send(shared.running, body.replace(b"bad--text", b"bad\xff\xfetext"))  # type: ignore[operator]

    assert (OK, 1, True) == (told.code, told.rejected, refusal(Refusal.INVALID_UTF8) in told.message)
    assert [span_id(1), span_id(2)] == [span.span_id for span in shared.sent_on(number, 2)]


def test_089_a_span_may_have_no_name(door: Door) -> None:
    """It is called `unknown`."""
    with door.run() as receiver:
        assert Told(OK) == door.send(receiver, request_of(simple_span(1, name="")))
        assert [decoded_span(1)._replace(name="unknown")] == receiver.core.spans


def test_090_a_span_may_end_before_it_begins(shared: Chain, door: Door) -> None:
    """It is forwarded unchanged; to evaluators such a call took no time."""
    number = next(numbers)
    times = {"start_time_unix_nano": 9, "end_time_unix_nano": 5}
    span = simple_span(number, attributes=[TOOL, TOOL_NAME], **times)
    before = len(shared.running.reports.emitted)
    assert Told(OK) == door.send(shared.running, request_of(span))

    assert [(9, 5)] == [(sent.start_time_unix_nano, sent.end_time_unix_nano) for sent in shared.sent_on(number)]
    (report,) = reports(shared, number, before + 1)
    assert [0] == [call.duration_ms for call in report.trajectory.calls]


def test_091_a_span_that_has_not_ended_closes_nothing(door: Door) -> None:
    """A root is taken without its end; its trace closes when it comes again with one."""
    with chain() as running:
        unfinished = simple_span(1, end_time_unix_nano=0)
        assert Told(OK) == door.send(running.running, request_of(unfinished))
        assert Told(OK) == door.send(running.running, request_of(simple_span(2)))
        assert [trace_id(2)] == [report.trajectory.trace_id for report in running.running.reports.wait_for(1)]
        assert Told(OK) == door.send(running.running, request_of(simple_span(1)))
        emitted = running.running.reports.wait_for(2)
        assert [trace_id(2), trace_id(1)] == [report.trajectory.trace_id for report in emitted]


def test_092_a_time_may_be_in_no_calendar(shared: Chain, door: Door) -> None:
    """The largest number of 64 bits is a time like any other."""
    number = next(numbers)
    times = {"start_time_unix_nano": 2**64 - 2, "end_time_unix_nano": 2**64 - 1}
    before = len(shared.running.reports.emitted)
    assert Told(OK) == door.send(shared.running, request_of(simple_span(number, **times)))
    assert [2**64 - 1] == [span.end_time_unix_nano for span in shared.sent_on(number)]
    assert 1 == len(reports(shared, number, before + 1))


def test_093_dropped_attributes_are_no_failure() -> None:
    """Evaluators that compare arguments skip a tool span that misses attributes."""
    evaluators = "{arguments: {type: tool_call_args, tool_calls: [{name: search, args: {q: x}}]}}"
    arguments = KeyValue(key="input.value", value=AnyValue(string_value='{"q": "y"}'))
    with chain(evaluators=evaluators) as running:
        whole = simple_span(1, attributes=[TOOL, TOOL_NAME, arguments])
        dropped = simple_span(2, attributes=[TOOL, TOOL_NAME], dropped_attributes_count=1)
        for span in (whole, dropped):
            assert Told(OK) == AS_JSON.send(running.running, request_of(span))
        outcomes = [report.evaluations[0].outcome for report in running.running.reports.wait_for(2)]
    assert [Score, Skipped] == [type(outcome) for outcome in outcomes]
