"""Requests with logs, as senders write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

TRACE_ID = bytes(range(16))
SPAN_ID = bytes(range(1, 9))


def any_value(value: Any) -> AnyValue:
    """Return a value as OTLP writes it."""
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case str():
            return AnyValue(string_value=value)
        case Mapping():
            return AnyValue(kvlist_value=KeyValueList(values=pairs(value)))
        case _:
            return AnyValue(array_value=ArrayValue(values=map(any_value, value)))


def pairs(attributes: Mapping[str, Any]) -> list[KeyValue]:
    """Return attributes as OTLP writes them."""
    return [KeyValue(key=key, value=any_value(value)) for key, value in attributes.items()]


def record(name: str, attributes: Mapping[str, Any] | None = None, *, body: Any = None, **fields: Any) -> LogRecord:
    """Return a record with the name of its event in the field for it."""
    given = {"trace_id": TRACE_ID, "span_id": SPAN_ID, "time_unix_nano": 7} | fields
    made = LogRecord(event_name=name, attributes=pairs(attributes or {}), **given)
    if body is not None:
        made.body.CopyFrom(any_value(body))
    return made


def logs(records: Sequence[LogRecord], *, service: str = "agent", scope: str = "a scope") -> ExportLogsServiceRequest:
    """Return a request with records of one scope."""
    inner = ScopeLogs(scope=InstrumentationScope(name=scope), log_records=records)
    resource = Resource(attributes=pairs({"service.name": service}))
    return ExportLogsServiceRequest(resource_logs=[ResourceLogs(resource=resource, scope_logs=[inner])])
