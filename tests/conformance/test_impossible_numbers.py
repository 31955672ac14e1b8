"""Times and numbers that cannot be, over every door: what is taken goes on as it came, and is scored."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from conformance.doors import AS_JSON, GRPC, HTTP, INVALID_ARGUMENT, OK, Chain, Door, Told, chain, numbers, over_http
from receivers.otlp_requests import request_of, simple_span, span_id, to_json, trace_id
from receivers.receiving import JSON
from spanscore.model import CloseReason, Report, Score
from spanscore.reports.serialization import report_line

WRAPPED = 2**64 - 1
"""What a sender's -1 becomes in a field that has no sign."""

DOUBLES = [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308, -1.0]


def report_on(chain: Chain, number: int, before: int, count: int = 1) -> Report:
    """Return the last report on a trace, once there are so many more than before."""
    emitted = chain.running.reports.wait_for(before + count)
    return [each for each in emitted if each.trajectory.trace_id == trace_id(number)][-1]


def doubles(*values: float) -> list[KeyValue]:
    """Return the attributes of a tool call, with these numbers one by one and as a list."""
    listed = ArrayValue(values=[AnyValue(double_value=value) for value in values])
    return [
        KeyValue(key="gen_ai.operation.name", value=AnyValue(string_value="execute_tool")),
        KeyValue(key="gen_ai.tool.name", value=AnyValue(string_value="search")),
        *(KeyValue(key=f"n{place}", value=AnyValue(double_value=value)) for place, value in enumerate(values)),
        KeyValue(key="list", value=AnyValue(array_value=listed)),
        KeyValue(key="gen_ai.tool.call.arguments", value=AnyValue(array_value=listed)),
    ]


def bits(spans: Sequence[Span]) -> list[list[bytes]]:
    """Return the doubles of the spans as they are on the wire: NaN equals nothing."""
    return [
        [struct.pack("<d", pair.value.double_value) for pair in span.attributes if pair.value.HasField("double_value")]
        for span in spans
    ]


@pytest.mark.parametrize(
    ("start", "end"),
    [(0, 0), (5, 0), (0, 5), (9, 5), (WRAPPED, WRAPPED), (WRAPPED, 5), (5, WRAPPED), (2**63, 2**63 - 1), (1, 2**63)],
)
def test_times_that_cannot_be(shared: Chain, door: Door, start: int, end: int) -> None:
    """A tool call with any times is taken, sent on with them, and scored; its duration is finite and not negative."""
    number, before = next(numbers), len(shared.running.reports.emitted)
    call = simple_span(
        number,
        2,
        start_time_unix_nano=start,
        end_time_unix_nano=end,
        parent_span_id=span_id(1),
        attributes=doubles(1.0),
    )
    assert Told(OK) == door.send(shared.running, request_of(call))
    assert Told(OK) == door.send(shared.running, request_of(simple_span(number)))
    sent = next(span for span in shared.sent_on(number, 2) if span.span_id == span_id(2))
    report = report_on(shared, number, before)

    assert (start, end) == (sent.start_time_unix_nano, sent.end_time_unix_nano)
    assert [max(0, end - start) / 1e6] == [each.duration_ms for each in report.trajectory.calls]
    assert [Score] == [type(each.outcome) for each in report.evaluations]
    assert CloseReason.ROOT_ENDED is report.close_reason


@pytest.mark.parametrize("field", ["startTimeUnixNano", "endTimeUnixNano"])
@pytest.mark.parametrize("raw", ["-1", -1, "-0.5", "NaN", "Infinity", "-Infinity", 2**64, str(2**64), 1e300, "0x10"])
def test_json_has_times_that_protobuf_has_not(shared: Chain, field: str, raw: object) -> None:
    """A time that is negative, infinite or too large refuses its span alone, as `invalid_time`."""
    number = next(numbers)
    request = json.loads(to_json(request_of(simple_span(number, 2), simple_span(number))))
    request["resourceSpans"][0]["scopeSpans"][0]["spans"][0][field] = raw
    told = over_http(shared.running, json.dumps(request).encode(), JSON)

    assert (OK, 1) == (told.code, told.rejected)
    assert "1 for invalid_time" in told.message
    assert [span_id(1)] == [span.span_id for span in shared.sent_on(number)]


@pytest.mark.parametrize("raw", [b"NaN", b"Infinity", b"-Infinity", b"1e999"])
def test_json_has_no_infinite_numbers(shared: Chain, raw: bytes) -> None:
    """Written without quotes they make a document that is no JSON, and too large a number is no time: refused."""
    body = to_json(request_of(simple_span(next(numbers))))
    told = over_http(shared.running, body.replace(b'"endTimeUnixNano": "2"', b'"endTimeUnixNano": ' + raw), JSON)

    assert INVALID_ARGUMENT == told.code
    assert ("invalid_time" if raw == b"1e999" else f"{raw.decode()} is not JSON") in told.message


def test_doubles_that_are_no_numbers(shared: Chain, door: Door) -> None:
    """They are sent on bit by bit, and the score of the trace is JSON that any reader can read."""
    number, before = next(numbers), len(shared.running.reports.emitted)
    call = simple_span(number, 2, parent_span_id=span_id(1), attributes=doubles(*DOUBLES))
    root = simple_span(number)
    root.attributes.extend(doubles(*DOUBLES)[2:])
    assert Told(OK) == door.send(shared.running, request_of(call, root))
    report = report_on(shared, number, before)

    expected = [struct.pack("<d", value) for value in DOUBLES]
    assert [expected, expected] == bits(shared.sent_on(number, 2))
    assert ["search"] == [each.name for each in report.trajectory.calls]
    assert [Score] == [type(each.outcome) for each in report.evaluations]

    def fail(constant: str) -> None:
        raise AssertionError(constant)

    json.loads(report_line(report), parse_constant=fail)


@pytest.mark.parametrize("then", [GRPC, HTTP, AS_JSON], ids=lambda door: door.name)
def test_a_span_with_nan_that_is_sent_again(door: Door, then: Door) -> None:
    """Over whatever door it comes the second time, it is the same span: dropped as a duplicate, no other version."""
    call = simple_span(1, 2, parent_span_id=span_id(1), attributes=doubles(*DOUBLES))
    with chain() as running:
        for each in (door, then):
            assert Told(OK) == each.send(running.running, request_of(call))
        assert Told(OK) == door.send(running.running, request_of(simple_span(1)))
        running.running.reports.wait_for(1)
        counts = running.running.service.engine.counts()

    assert (0, {"duplicate": 1}, 2) == (counts.conflicts, dict(counts.dropped), counts.in_closed)


def test_64_bits_are_what_they_are(shared: Chain) -> None:
    """A NaN with another payload goes on with it."""
    number = next(numbers)
    payload = 0x7FF8_0000_DEAD_BEEF
    odd = struct.unpack("<d", struct.pack("<Q", payload))[0]
    assert Told(OK) == GRPC.send(shared.running, request_of(simple_span(number, attributes=doubles(odd))))

    assert [[struct.pack("<Q", payload)]] == bits(shared.sent_on(number))
