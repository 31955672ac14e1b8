"""Requests with logs or metrics in protobuf of which a part cannot be parsed: the rest is taken, and sent on."""

from __future__ import annotations

from collections import deque
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.metrics.v1.metrics_pb2 import Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from otlp.log_requests import record
from receivers.otlp_requests import field, refusal, request_of, simple_span, trace_id
from spanscore.otlp.findings import MalformedRequest, Refusal
from spanscore.otlp.json_writing import EncodedRecords
from spanscore.otlp.readable_records import readable_logs, readable_metrics
from spanscore.otlp.slices import at_once

NAMES = ("codex.",)
TEXT = "?!?!"
NOT_UTF8 = b"\xff!?!"


def scope(*records: LogRecord, schema_url: str = "") -> ScopeLogs:
    """Return records in one scope."""
    return ScopeLogs(log_records=records, schema_url=schema_url)


def request(*resources: ResourceLogs) -> bytes:
    """Return a request in which each of those texts is replaced by bytes that are none."""
    return ExportLogsServiceRequest(resource_logs=resources).SerializeToString().replace(TEXT.encode(), NOT_UTF8)


def called(number: int, name: str = "codex.tool_result", text: str = "") -> LogRecord:
    """Return a record of the trace of that number."""
    return record(name, trace_id=trace_id(number), severity_text=text)


def readable(body: bytes) -> EncodedRecords:
    """Return what can be read of a request."""
    return at_once(readable_logs(body, NAMES))


def test_a_broken_part_costs_what_is_in_it() -> None:
    """A record, a scope and a resource; only records that may be read are lost to their runs."""
    broken = Resource(attributes=[KeyValue(key=TEXT)])
    body = request(
        ResourceLogs(scope_logs=[scope(called(1), called(2, text=TEXT), called(3, "user.login", TEXT))]),
        ResourceLogs(scope_logs=[scope(called(4), schema_url=TEXT), scope(called(5))], schema_url="a schema"),
        ResourceLogs(scope_logs=[scope(called(6), called(7)), scope(called(8))], resource=broken),
    )
    left = request(
        ResourceLogs(scope_logs=[scope(called(1))]), ResourceLogs(scope_logs=[scope(called(5))], schema_url="a schema")
    )

    found = readable(body)

    assert ExportLogsServiceRequest.FromString(left) == ExportLogsServiceRequest.FromString(found.body)
    ((reason, count, example),) = found.refused
    assert (refusal(Refusal.INVALID_UTF8), 6) == (reason, count)
    assert example.startswith("resource_logs[0].scope_logs[0].log_records[1]: ")
    assert [2, 4, 6, 7, 8] == [each.trace_id[-1] for each in found.lost]


def test_a_broken_part_with_many_records_is_left_in_steps() -> None:
    """Its records are only counted, in steps as short as those of parts that can be parsed, and up to a limit."""
    body = field(1, field(1, field(1, NOT_UTF8)) + field(2, field(2, b"") * 100_000))
    steps = count()

    with pytest.raises(MalformedRequest, match="more than 65536 records of the request are broken"):
        deque(zip(readable_logs(body, NAMES), steps, strict=False), maxlen=0)

    assert next(steps) > 100_000 // 8_192


def test_a_value_that_is_nested_too_deeply_costs_its_record() -> None:
    """Nobody who parses the request would read the others."""
    value = b""
    for _ in range(100):
        value = field(5, field(1, value))
    deep = called(2).SerializeToString() + field(5, value)
    records = field(2, called(1).SerializeToString()) + field(2, deep)

    found = readable(field(1, field(2, records)))

    assert request(ResourceLogs(scope_logs=[scope(called(1))])) == found.body
    assert [1] == [each.spans for each in found.refused]


@given(st.data())
def test_what_is_left_of_any_bytes_can_be_parsed(data: st.DataObject) -> None:
    """Each record is left, or counted as refused; a request that can be parsed stays as it is."""
    body = bytearray(request(ResourceLogs(scope_logs=[scope(called(1), called(2)), scope(called(3))])))
    place = data.draw(st.integers(0, len(body) - 1))
    body[place] = data.draw(st.integers(0, 255))
    try:
        found = readable(bytes(body))
    except MalformedRequest:
        return
    left = ExportLogsServiceRequest.FromString(found.body)
    if not found.refused:
        assert bytes(body) == found.body
    elif body.count(b"codex.tool_result") == len(NAMES) * 3:
        records = sum(len(inner.log_records) for outer in left.resource_logs for inner in outer.scope_logs)
        assert records + sum(each.spans for each in found.refused) <= 3


@pytest.mark.parametrize(
    "body",
    [
        b"\x0a\x05no",
        request_of(simple_span(1)).SerializeToString(),
        field(1, field(2, field(2, field(3, b"\xff")) + b"\0")),
        field(15, b"\xff") + b"\x0a",
    ],
)
def test_what_is_no_request_is_malformed(body: bytes) -> None:
    """Bytes whose parts cannot be told apart, and spans."""
    with pytest.raises(MalformedRequest, match=r"^not an ExportLogsServiceRequest in protobuf$"):
        readable(body)


def test_the_parts_of_a_broken_request_are_limited() -> None:
    """They are taken apart in Python, in steps."""
    records = field(2, field(3, NOT_UTF8)) + field(2, b"") * 500_000
    with pytest.raises(MalformedRequest, match=r"^the request is broken, and has more than 500000 parts$"):
        readable(field(1, field(2, records)))


def gauge(name: str, points: int = 1) -> Metric:
    """Return a metric."""
    return Metric(name=name, gauge=Gauge(data_points=[NumberDataPoint(as_int=number) for number in range(points)]))


def test_a_broken_metric_costs_itself() -> None:
    """The others are left; what is refused is counted by its data points."""
    scopes = [
        ScopeMetrics(metrics=[gauge("a"), gauge(TEXT, points=3)]),
        ScopeMetrics(metrics=[gauge("b")], schema_url=TEXT),
    ]
    metrics = ExportMetricsServiceRequest(resource_metrics=[ResourceMetrics(scope_metrics=scopes)])
    left = ExportMetricsServiceRequest(
        resource_metrics=[ResourceMetrics(scope_metrics=[ScopeMetrics(metrics=[gauge("a")])])]
    )

    found = at_once(readable_metrics(metrics.SerializeToString().replace(TEXT.encode(), NOT_UTF8)))

    assert left == ExportMetricsServiceRequest.FromString(found.body)
    ((reason, count, example),) = found.refused
    assert (Refusal.INVALID_UTF8, 4) == (reason, count)
    assert example.startswith("resource_metrics[0].scope_metrics[0].metrics[1]: ")


@pytest.mark.parametrize(
    "content",
    [
        field(2, field(1, NOT_UTF8) + b"\x78\0" * 100_000),
        field(2, field(1, NOT_UTF8) + field(5, b"\x78\0" * 100_000)),
        field(2, field(5, field(1, b"") * 100_000) + b"\x0a\1\xff"),
        field(1, field(1, NOT_UTF8)) + field(2, field(5, b"") * 1_000) * 100,
    ],
    ids=["unknown fields", "unknown fields of its kind", "data points", "metrics of a scope"],
)
def test_a_broken_metric_is_counted_in_steps(content: bytes) -> None:
    """Of as many fields as a step has elsewhere, though nobody knows them."""
    body = field(1, field(2, content) + field(2, field(2, gauge("good").SerializeToString())))

    assert sum(1 for _ in readable_metrics(body)) > 100_000 // 8_192


def test_a_broken_metric_of_too_many_fields_costs_itself() -> None:
    """Such a metric counts once where the fields of its data points are more than a request may have."""
    good = field(2, gauge("good").SerializeToString())
    body = field(1, field(2, good + field(2, field(1, NOT_UTF8) + b"\x78\0" * 500_000)))

    found = at_once(readable_metrics(body))

    assert (field(1, field(2, good)), 1) == (found.body, found.refused[0].spans)


def test_of_a_request_of_only_broken_metrics_nothing_is_left() -> None:
    """They are counted; a request that is broken and has no metric is none."""
    body, ((reason, count, example),), _ = at_once(readable_metrics(field(1, field(2, field(2, field(1, NOT_UTF8))))))
    assert (b"", Refusal.INVALID_UTF8, 1) == (body, reason, count)
    assert example.startswith("resource_metrics[0].scope_metrics[0].metrics[0]: ")
    with pytest.raises(MalformedRequest, match=r"^not an ExportMetricsServiceRequest in protobuf$"):
        at_once(readable_metrics(field(1, field(2, field(1, field(1, NOT_UTF8))))))
