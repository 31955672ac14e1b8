"""Writes spans as OTLP trace requests, the way exporters do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Status
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

Value: TypeAlias = str | int | list[str]
Attributes: TypeAlias = list[tuple[str, Value]]

SCOPES: Final = ("opentelemetry.instrumentation.psycopg", "opentelemetry.instrumentation.httpx", "shop.agents")
"""The instrumentation scopes, in the order in which a request holds them: the one with the roots last."""

_FLAGS: Final = 0x101  # sampled, and the parent is known not to be remote


class WorkloadSpan(NamedTuple):
    """One span to be written."""

    trace_id: bytes
    span_id: bytes
    parent_span_id: bytes
    name: str
    kind: int
    start_ns: int
    end_ns: int
    attributes: Attributes
    service: str
    scope: str
    failed: bool


def protobuf_request(spans: Iterable[WorkloadSpan]) -> bytes:
    """Return a serialized ExportTraceServiceRequest."""
    request = ExportTraceServiceRequest()
    for service, scopes in _grouped(spans).items():
        resource_spans = request.resource_spans.add()
        resource_spans.resource.attributes.extend(_pairs(_resource(service)))
        for scope, found in scopes.items():
            scope_spans = resource_spans.scope_spans.add()
            scope_spans.scope.name = scope
            for span in found:
                _add(scope_spans, span)
    return request.SerializeToString()


def _grouped(spans: Iterable[WorkloadSpan]) -> dict[str, dict[str, list[WorkloadSpan]]]:
    grouped: dict[str, dict[str, list[WorkloadSpan]]] = {}
    for span in spans:
        grouped.setdefault(span.service, {scope: [] for scope in SCOPES})[span.scope].append(span)
    return {service: {scope: found for scope, found in scopes.items() if found} for service, scopes in grouped.items()}


def _resource(service: str) -> Attributes:
    return [
        ("service.name", service),
        ("service.version", "4.2.0"),
        ("service.instance.id", f"{service}-7c9d8b6f5"),
        ("deployment.environment.name", "production"),
        ("telemetry.sdk.language", "python"),
        ("telemetry.sdk.name", "opentelemetry"),
        ("telemetry.sdk.version", "1.45.2"),
        ("host.name", "node-3"),
    ]


def _add(scope_spans: ScopeSpans, span: WorkloadSpan) -> None:
    message: SpanMessage = scope_spans.spans.add(
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_span_id=span.parent_span_id,
        name=span.name,
        kind=SpanMessage.SpanKind.ValueType(span.kind),
        start_time_unix_nano=span.start_ns,
        end_time_unix_nano=span.end_ns,
        attributes=_pairs(span.attributes),
        flags=_FLAGS,
    )
    message.status.SetInParent()  # SDKs write the status also where it is unset
    if span.failed:
        message.status.code = Status.STATUS_CODE_ERROR


def _pairs(attributes: Attributes) -> list[KeyValue]:
    return [KeyValue(key=key, value=_value(value)) for key, value in attributes]


def _value(value: Value) -> AnyValue:
    if isinstance(value, str):
        return AnyValue(string_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    return AnyValue(array_value=ArrayValue(values=[AnyValue(string_value=item) for item in value]))
