"""What a healthy agent does not send: spans that spanscore refuses, or that come late or twice."""

from __future__ import annotations

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub
from opentelemetry.proto.trace.v1.trace_pb2 import Span


def send_oddities(address: str, scored_trace_id: str) -> None:
    """Send to spanscore a span that is not OTLP, and a span of a trace that is closed: once, and once more."""
    late = Span(trace_id=bytes.fromhex(scored_trace_id), span_id=b"lateones", parent_span_id=b"nowhere.", name="late")
    wrong = Span(trace_id=b"too short", span_id=b"wrongone", name="wrong")
    with grpc.insecure_channel(address) as channel:
        stub = TraceServiceStub(channel)  # type: ignore[no-untyped-call] # generated
        for span in (late, late):
            stub.Export(_request(span), timeout=10)
        try:
            stub.Export(_request(wrong), timeout=10)
        except grpc.RpcError as error:
            assert error.code() is grpc.StatusCode.INVALID_ARGUMENT, error  # noqa: PT017 - not a test: it need not fail
        else:
            message = "a span with a trace id of nine bytes was accepted"
            raise AssertionError(message)


def _request(span: Span) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.append(span)
    return request
