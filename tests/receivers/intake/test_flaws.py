"""The log names the senders of spans, records and data points that are refused, each of them once."""

from __future__ import annotations

import asyncio
import json
import logging

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from receivers.otlp_requests import field, request_of, simple_span, texts, to_json
from receivers.receiving import JSON, PROTOBUF, Core, over_grpc, over_http
from serving import DEADLINE_S
from spanscore.otlp.encoding import Encoding
from spanscore.receivers.intake.intake import Intake

METRICS = field(1, field(1, b"\x0a\x18\x0a\x0cservice.name\x12\x08\x0a\x06a shop") + field(2, field(2, b"\x0a\x05")))


_RESOURCE = {"attributes": [{"key": "service.name", "value": {"stringValue": "a shop"}}]}
_RECORDS = [{"body": {"stringValue": "good"}, "severityNumber": 1}, {"body": []}]
LOGS = json.dumps({"resourceLogs": [{"resource": _RESOURCE, "scopeLogs": [{"logRecords": _RECORDS}]}]}).encode()


def spans(*services: str) -> ExportTraceServiceRequest:
    """Return a request with a good span, and a span without a trace id, of each service."""
    request = ExportTraceServiceRequest()
    for service in services:
        (resource_spans,) = request_of(simple_span(1), simple_span(0)).resource_spans
        resource_spans.resource.attributes.extend(texts({"host.name": "a host", "service.name": service}))
        request.resource_spans.append(resource_spans)
    return request


@pytest.mark.parametrize(
    ("content_type", "path", "written"),
    [
        (PROTOBUF, "traces", spans("a shop").SerializeToString()),
        (JSON, "traces", to_json(spans("a shop"))),
        (JSON, "traces", to_json(spans("a shop"), indent=2)),
        (PROTOBUF, "metrics", METRICS),
        (JSON, "logs", LOGS),
    ],
)
def test_over_http(caplog: pytest.LogCaptureFixture, content_type: str, path: str, written: bytes) -> None:
    """By the names of services in the request, and by the address and the User-Agent."""
    with over_http(others=True) as receiver:
        receiver.post(written, content_type, f"/v1/{path}", User_Agent="an SDK")

    (line,) = [each.getMessage() for each in caplog.records if " refused: " in each.getMessage()]
    assert "; resources of the request: service.name 'a shop'; sent from 127.0.0.1:" in line
    assert line.endswith(" (an SDK)")


def test_over_grpc(caplog: pytest.LogCaptureFixture) -> None:
    """As over HTTP."""
    with over_grpc() as receiver, grpc.insecure_channel(receiver.grpc) as channel:
        export = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
        export(spans("a shop").SerializeToString(), timeout=DEADLINE_S)

    (line,) = [each.getMessage() for each in caplog.records if " refused: " in each.getMessage()]
    assert "; resources of the request: service.name 'a shop'; sent from 127.0.0.1:" in line
    assert "(grpc-python/" in line


def test_each_service_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """Up to a number of services, of which the first few of a request are named."""

    async def take() -> None:
        intake = Intake(lambda taken, sizes: Core().accept(taken, sum(sizes)))
        for services in [("a",), ("b",), ("a",), ("a", "b", "c", "d", "e"), ("d",), *((f"s{n}",) for n in range(200))]:
            body = spans(*services).SerializeToString()
            intake.accept(await intake.decode(body, Encoding.PROTOBUF))

    asyncio.run(take())
    warned = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]

    named = ["'a'", "'b'", "'a', 'b', 'c', ...", "'d'", *(f"'s{n}'" for n in range(96))]
    assert named == [line.rpartition(": service.name ")[2] for line in warned]


def test_content_is_not_taken_for_the_name_of_a_service(caplog: pytest.LogCaptureFixture) -> None:
    """Not even if it looks like an attribute with that name."""
    caplog.set_level(logging.DEBUG)
    request = spans("a shop")
    (span, _) = request.resource_spans[0].scope_spans[0].spans
    given = span.attributes.add(key="gen_ai.tool.call.arguments").value.kvlist_value.values.add(key="service.name")
    given.value.string_value = "a secret"
    span.attributes.add(key="service.name").value.string_value = "a secret"
    request.resource_spans[0].ClearField("resource")
    with over_http() as receiver:
        for written, kind in (request.SerializeToString(), PROTOBUF), (to_json(request), JSON):
            receiver.post(written, kind)

    lines = [each.getMessage() for each in caplog.records if " refused: " in each.getMessage()]
    assert 2 == len(lines)
    assert "secret" not in caplog.text
