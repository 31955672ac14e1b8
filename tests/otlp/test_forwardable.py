from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from fuzzing.otlp_json import odd_request
from receivers.otlp_requests import REQUESTS, field, request_of, simple_span, span_id, to_json, trace_id
from receivers.receiving import JSON, over_http
from spanscore.otlp.findings import MalformedRequest
from spanscore.otlp.forwardable import accepting_only
from spanscore.otlp.from_json import decode_document, decode_json
from spanscore.otlp.from_protobuf import decode_protobuf
from spanscore.otlp.json_names import parse_request
from spanscore.otlp.json_writing import accepted_only_from_json
from spanscore.otlp.slices import at_once


def sent_on(request: ExportTraceServiceRequest) -> ExportTraceServiceRequest:
    """Return what is sent on of a request that came as protobuf."""
    body = request.SerializeToString()
    return ExportTraceServiceRequest.FromString(at_once(accepting_only(body, decode_protobuf(body).spans)))


def sent_on_from_json(body: bytes | Any) -> ExportTraceServiceRequest:
    """Return what is sent on of a request that came as JSON, or is that already parsed."""
    spans = (decode_json(body) if isinstance(body, bytes) else decode_document(body)).spans
    return ExportTraceServiceRequest.FromString(accepted_only_from_json(body, spans).body)


def without_refused(request: ExportTraceServiceRequest) -> ExportTraceServiceRequest:
    """Return a request with its good spans only, and without envelopes that are empty then."""
    kept = ExportTraceServiceRequest()
    for resource_spans in request.resource_spans:
        outer = ResourceSpans(resource=resource_spans.resource, schema_url=resource_spans.schema_url)
        if not resource_spans.HasField("resource"):
            outer.ClearField("resource")
        for scope_spans in resource_spans.scope_spans:
            inner = ScopeSpans(scope=scope_spans.scope, schema_url=scope_spans.schema_url)
            if not scope_spans.HasField("scope"):
                inner.ClearField("scope")
            inner.spans.extend(span for span in scope_spans.spans if decode_protobuf(of(span)).spans)
            if inner.spans:
                outer.scope_spans.append(inner)
        if outer.scope_spans:
            kept.resource_spans.append(outer)
    return kept


def of(span: Span) -> bytes:
    """Return a request with one span."""
    return request_of(span).SerializeToString()


@given(request=REQUESTS)
def test_the_accepted_spans_are_sent_on_with_every_field(request: Any) -> None:
    """Of any request exactly the good spans are sent on, with all that the sender wrote, in whichever encoding."""
    expected = without_refused(request)

    assert expected == sent_on(request)
    assert expected == sent_on_from_json(to_json(request))


@given(seed=st.integers(0, 2**32 - 1))
def test_json_is_sent_on_as_protobuf_itself_reads_it(seed: int) -> None:
    """However a JSON request is written, what is sent on of it is what protobuf's own reading of JSON finds in it."""
    body = odd_request(random.Random(seed)) or b"{}"
    try:
        expected = sent_on_from_json(parse_request(body))
    except MalformedRequest:
        return

    assert expected == sent_on_from_json(body)


def test_a_refused_span_with_the_ids_of_a_good_one_is_taken_out() -> None:
    """What is sent on is what was accepted, though only its links tell the two apart."""
    refused, good = simple_span(1), simple_span(1)
    refused.links.add(trace_id=bytes(16), span_id=bytes(9))
    request = request_of(refused, good)

    assert request_of(good) == sent_on(request)
    assert request_of(good) == sent_on_from_json(to_json(request))


UNKNOWN = b"\x9a\x06\x01x"  # field 99, with a text


def test_unknown_fields_are_sent_on() -> None:
    """Fields of a later OTLP are kept on every level when a refused span is taken out."""
    good = field(2, simple_span(1).SerializeToString() + UNKNOWN)
    bad = field(2, simple_span(0).SerializeToString() + UNKNOWN)

    def around(spans: bytes) -> bytes:
        return field(1, field(2, spans + UNKNOWN) + UNKNOWN) + UNKNOWN

    body = around(good + bad)
    assert around(good) == at_once(accepting_only(body, decode_protobuf(body).spans))


def test_spans_that_protobuf_cannot_parse_are_taken_out() -> None:
    """A string that is not UTF-8, in a span or in what is around it, costs what is below it and no other span."""
    bad = field(5, b"\xff")
    resource = field(1, field(1, field(1, b"\xff")))
    good = ResourceSpans(
        resource=Resource(attributes=[KeyValue(key="service.name", value=AnyValue(string_value="shop"))]),
        scope_spans=[ScopeSpans(scope=InstrumentationScope(name="agent"), spans=[simple_span(1)])],
    ).SerializeToString()
    same_spans = field(2, field(2, simple_span(1).SerializeToString()))
    body = field(1, resource + same_spans) + field(1, field(2, field(2, bad))) + field(1, good)

    assert field(1, good) == at_once(accepting_only(body, decode_protobuf(body).spans))


def nested(levels: int) -> str:
    """Return JSON of an attribute value that nests so deep."""
    return '{"arrayValue":{"values":[' * levels + '{"intValue":"1"}' + "]}}" * levels


@pytest.mark.parametrize("member", [f'"attributes":[{{"key":"a","value":{nested(60)}}}]', '"traceState":5'])
def test_json_that_protobuf_cannot_hold_is_not_sent_on(member: str) -> None:
    """A span that is taken but would make the whole request unreadable behind is left out there."""
    good = json.loads(to_json(request_of(simple_span(1))))
    odd = {"traceId": trace_id(2).hex(), "spanId": span_id(2).hex()} | json.loads(f"{{{member}}}")
    good["resourceSpans"][0]["scopeSpans"][0]["spans"].insert(0, odd)
    decoded = decode_document(good)

    assert (2, request_of(simple_span(1))) == (
        len(decoded.spans),
        ExportTraceServiceRequest.FromString(accepted_only_from_json(good, decoded.spans).body),
    )


@pytest.mark.parametrize("member", ["resource", "scope"])
def test_a_resource_that_protobuf_cannot_hold_costs_its_spans(member: str) -> None:
    """They are not sent on without it, as of another service. A wrong schema URL costs only itself."""
    value: dict[str, Any] = {"stringValue": "x"}
    for _ in range(70):
        value = {"arrayValue": {"values": [value]}}
    around = {"attributes": [{"key": "deep", "value": value}]}
    requests = [json.loads(to_json(request_of(simple_span(number)))) for number in (1, 2)]
    good, bad = (request["resourceSpans"][0] for request in requests)
    (bad if member == "resource" else bad["scopeSpans"][0])[member] = around
    good["schemaUrl"] = 7
    body = {"resourceSpans": [bad, good]}
    decoded = decode_document(body)
    sent = accepted_only_from_json(body, decoded.spans)

    assert (2, request_of(simple_span(1))) == (len(decoded.spans), ExportTraceServiceRequest.FromString(sent.body))
    assert [("too_deep", 1)] == [(each.reason, each.spans) for each in sent.left_out]
    assert [trace_id(2)] == [span.trace_id for span in sent.lost]


def test_a_field_that_nobody_judges_costs_only_its_span() -> None:
    """In a large span, a number of too many digits is found only where it is written."""
    spans = [simple_span(1, name="x" * 300_000), simple_span(2)]
    body = to_json(request_of(*spans)).replace(b'"name"', b'"traceState":%b,"name"' % (b"9" * 5_000), 1)
    decoded = decode_json(body)

    assert 2 == len(decoded.spans)
    assert request_of(spans[1]) == ExportTraceServiceRequest.FromString(
        accepted_only_from_json(body, decoded.spans).body
    )


LOGS = (
    '{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"traceId":"%032X","body":{"stringValue":"x"},"trace_ids":""}]}]}]}'
)
METRICS = '{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m","gauge":{"dataPoints":[{"asInt":"5"}]}}]}]}]}'


def test_metrics_and_logs_in_json_are_sent_on_in_protobuf() -> None:
    """Metrics and logs that come as JSON go on as protobuf; what is no such request is refused."""
    with over_http(others=True) as receiver:
        assert 200 == receiver.post((LOGS % 7).encode(), JSON, "/v1/logs").status
        assert 200 == receiver.post(METRICS.encode(), JSON, "/v1/metrics").status
        assert 400 == receiver.post(b'{"resourceLogs":5}', JSON, "/v1/logs").status
        assert (
            400
            == receiver.post(
                b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"traceId":"x"}]}]}]}', JSON, "/v1/logs"
            ).status
        )
        (_, logs), (_, metrics) = receiver.core.others_sent_on

    (record,) = ExportLogsServiceRequest.FromString(logs).resource_logs[0].scope_logs[0].log_records
    assert (trace_id(7), "x") == (record.trace_id, record.body.string_value)
    (metric,) = ExportMetricsServiceRequest.FromString(metrics).resource_metrics[0].scope_metrics[0].metrics
    assert ("m", 5) == (metric.name, metric.gauge.data_points[0].as_int)
