"""The second names that OTLP/JSON is read by, and requests whose fields have none that is known."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality

from conformance.random_requests import random_resource_spans
from examples import at_most
from fuzzing.otlp_json import snake_case
from otlp.json_spans import SPAN, request
from receivers.otlp_requests import to_json
from receivers.receiving import JSON, Receiver, over_http
from spanscore.otlp.encoding import Encoding
from spanscore.otlp.findings import MalformedRequest
from spanscore.otlp.forwardable import narrowed
from spanscore.otlp.from_json import decode_json, decoding_odd
from spanscore.otlp.json_names import parse_request, renaming, with_json_names
from spanscore.otlp.json_writing import accepted_only_from_json, logs_to_protobuf, writing_metrics
from spanscore.otlp.slices import at_once

_ENUMS = {
    "kind": ["SPAN_KIND_UNSPECIFIED", "SPAN_KIND_INTERNAL", "SPAN_KIND_SERVER", "SPAN_KIND_CLIENT"],
    "code": ["STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"],
}


def respelled(value: Any, rng: random.Random) -> Any:
    """Return a document with some of its names, and some of the numbers of enumerations, written in the other way."""
    if isinstance(value, list):
        return [respelled(each, rng) for each in value]
    if not isinstance(value, dict):
        return value
    written = {}
    for key, inner in value.items():
        names = _ENUMS.get(key, [])
        has_name = isinstance(inner, int) and inner < len(names) and rng.random() < 0.5
        name = snake_case(key) if rng.random() < 0.5 else key
        written[name] = names[inner] if has_name else respelled(inner, rng)
    return written


@given(seed=st.integers(0, 2**32 - 1))
@at_most(100)
def test_both_names_mean_the_same(seed: int) -> None:
    """However names and numbers are written, a request is read, sent on and stored as if written properly."""
    rng = random.Random(seed)
    written = to_json(ExportTraceServiceRequest(resource_spans=[random_resource_spans(seed)]))
    body = written if isinstance(written, bytes) else written.encode()
    other = json.dumps(respelled(json.loads(body), rng)).encode()
    expected = decode_json(body)

    assert expected == decode_json(other) == decode_json(other.decode())
    assert expected == at_once(decoding_odd(Raw(with_json_names(other)), max_spans=None, wanted=None, at_once=64))
    assert accepted_only_from_json(body, expected.spans).body == accepted_only_from_json(other, expected.spans).body
    ids = {span.trace_id for span in expected.spans}
    assert expected.spans == decode_json(narrowed(other, Encoding.JSON, ids)).spans


def test_a_large_request_is_renamed_in_steps() -> None:
    """A request of any size is read by its second names, a part at a time."""
    text = {"key": "k", "value": {"string_value": "x" * 1_000_000}}
    spans = [SPAN | {"attributes": [text]}] * 4
    body = json.dumps({"resource_spans": [{"scope_spans": [{"spans": spans}]}]}).encode()

    assert len(list(renaming(body))) > 1
    assert decode_json(with_json_names(request(*spans))) == decode_json(body)


@pytest.mark.parametrize(
    ("written", "renamed"),
    [
        ('{"trace_id": 1, "traceId" : 2}', '{"traceId" : 1, "traceId" : 2}'),
        ('{"span_id"\n:"trace_id"}', '{"spanId" \n:"trace_id"}'),
        ('{"a": "say \\"trace_id\\": 1", "some_id": 2, "trace_id ": 3}', None),
        ('["trace_id", "span_id"]', None),
    ],
)
def test_only_names_of_fields_are_renamed(written: str, renamed: str | None) -> None:
    """Texts stay as they are, unknown names too, and all else stays at its place."""
    assert (renamed or written) == with_json_names(written) == with_json_names(written.encode()).decode()
    assert renamed is not None or with_json_names(written) is written


def test_of_both_names_the_last_counts() -> None:
    """As of two equal names."""
    for names in (("name", "endTimeUnixNano", "end_time_unix_nano"), ("name", "end_time_unix_nano", "endTimeUnixNano")):
        fields = {name: str(number) for number, name in enumerate(names)}
        written = {key: value for key, value in SPAN.items() if key not in names} | fields
        assert [2] == [span.end_ns for span in decode_json(request(written)).spans]


def test_logs_have_second_names() -> None:
    """Records are read by both names of their fields, and by the names of severities."""
    for name, number in SeverityNumber.items():
        record = {"trace_id": "0A" * 16, "severity_number": name, "event_name": "e", "time_unix_nano": "5"}
        document = {"resource_logs": [{"scope_logs": [{"log_records": [record]}]}]}
        body, refused, _ = logs_to_protobuf(parse_request(json.dumps(document)))
        (written,) = ExportLogsServiceRequest.FromString(body).resource_logs[0].scope_logs[0].log_records
        expected = LogRecord(trace_id=b"\n" * 16, severity_number=number, event_name="e", time_unix_nano=5)
        assert ((), expected) == (refused, written)


def metrics(temporality: str) -> str:
    """Return a request with one metric."""
    points = f'"aggregation_temporality": "{temporality}", "is_monotonic": true, "data_points": [{{"as_int": "5"}}]'
    return f'{{"resource_metrics": [{{"scope_metrics": [{{"metrics": [{{"name": "m", "sum": {{{points}}}}}]}}]}}]}}'


def test_metrics_have_second_names() -> None:
    """Metrics are read by both names of their fields, and by the names of temporalities; other texts are refused."""
    for name, number in AggregationTemporality.items():
        written = ExportMetricsServiceRequest.FromString(at_once(writing_metrics(metrics(name).encode())).body)
        (metric,) = written.resource_metrics[0].scope_metrics[0].metrics
        assert (number, True, 5) == (
            metric.sum.aggregation_temporality,
            metric.sum.is_monotonic,
            metric.sum.data_points[0].as_int,
        )
    (refused,) = at_once(writing_metrics(metrics("DELTA").encode())).refused
    assert "aggregationTemporality must be an integer or one of AGGREGATION" in refused.example


PATHS = {"Spans": "/v1/traces", "Logs": "/v1/logs", "Metrics": "/v1/metrics"}
LEAST = {"Spans": "spans", "Logs": "logRecords", "Metrics": "metrics"}


@pytest.fixture(scope="module")
def receiver() -> Any:
    """Serve all tests; what is taken is sent on."""
    with over_http(others=True, spans_onward=True) as receiver:
        yield receiver


@pytest.mark.parametrize("signal", PATHS)
def test_a_request_without_a_known_field_is_refused(receiver: Receiver, signal: str) -> None:
    """A request in JSON of which nothing would be kept is 400; the message names its keys and the allowed one."""
    levels = {
        '{"a\\n": 1, "b": 2}': f"the request has no 'resource{signal}', but 'a\ufffd', 'b'",
        f'{{"resource{signal}": [{{}}, {{"x": []}}]}}': f"resource{signal}[1] has no 'scope{signal}', but 'x'",
        f'{{"resource{signal}": [{{"scope{signal}": [{{"items": []}}]}}]}}': (
            f"resource{signal}[0].scope{signal}[0] has no '{LEAST[signal]}', but 'items'"
        ),
    }
    for body, message in levels.items():
        reply = receiver.post(body.encode(), JSON, PATHS[signal])
        assert (400, message) == (reply.status, reply.error[1])
    many = {f"{number}{'x' * 10_000}": None for number in range(1_000)}
    assert len(receiver.post(json.dumps(many).encode(), JSON, PATHS[signal]).error[1]) < 300


@pytest.mark.parametrize("signal", PATHS)
def test_an_empty_request_is_a_success(receiver: Receiver, signal: str) -> None:
    """Nothing was sent, so that nothing is lost; a later OTLP may have more around it."""
    around = '{"resource": {}, "schemaUrl": "x"}'
    bodies = (
        "",
        "{}",
        f'{{"resource{signal}": null, "more": 1}}',
        f'{{"resource{signal}": []}}',
        f'{{"resource{signal}": [{around}, {{"scope{signal}": null, "more": 1}}]}}',
        f'{{"resource{signal}": [{{"scope{signal}": [{{"scope": {{}}}}, {{"{LEAST[signal]}": [], "more": 1}}]}}]}}',
    )
    for body in bodies:
        reply = receiver.post(body.encode(), JSON, PATHS[signal])
        assert (200, b"{}") == (reply.status, reply.body)


@pytest.mark.parametrize("filler", ['{"scopeSpans":[]}', '{"resource":{}}', "{}"])
def test_the_way_through_a_large_request_is_checked(filler: str) -> None:
    """However large a request without spans is, what leads nowhere in it is found."""
    body = f'{{"more": "\\ud83d\\ude00", "resourceSpans": [{f"{filler}," * 16_500}{{"scopeSpan": []}}]}}'.encode()

    with pytest.raises(MalformedRequest, match=r"resourceSpans\[16500\] has no 'scopeSpans', but 'scopeSpan'"):
        decode_json(body)
    with pytest.raises(MalformedRequest, match=r"resourceSpans\[16500\] has no"):
        decode_json(body.replace(b"\\ude00", b""))
