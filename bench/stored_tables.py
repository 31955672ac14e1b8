"""Recordings as the tables that the Collector's ClickHouse exporter writes, for tests of stored spans."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from spanscore.model import Span
from spanscore.otlp.encoding import Logs
from spanscore.otlp.findings import Findings
from spanscore.otlp.protobuf_values import read_attributes
from spanscore.recordings.files import Recording

KINDS = ("Unspecified", "Internal", "Server", "Client", "Producer", "Consumer")
STATUS_CODES = ("Unset", "Ok", "Error")
TIME = pa.timestamp("ns")
MAP = pa.map_(pa.string(), pa.string())


def as_text(value: Any) -> str:
    """Return a value as the Collector writes it as text."""
    if isinstance(value, float) and math.isfinite(value):
        return format(value, ".16g")
    made = as_json(value)
    if made is None:
        return ""
    return made if isinstance(made, str) else json.dumps(made, ensure_ascii=False, separators=(",", ":"))


def as_json(value: Any) -> Any:
    """Return a value as JSON has it."""
    match value:
        case bytes():
            return b64encode(value).decode()
        case float() if not math.isfinite(value):
            return str(value)
        case list() | tuple():
            return [as_json(each) for each in value]
        case dict():
            return {key: as_json(each) for key, each in value.items()}
        case _:
            return value


def mapping(attributes: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return attributes as `Map(String, String)`."""
    return [(key, as_text(value)) for key, value in attributes.items()]


def json_object(attributes: Mapping[str, Any]) -> str:
    """Return attributes as JSON text."""
    return json.dumps(as_json(dict(attributes)), ensure_ascii=False)


def attribute_type(form: str) -> tuple[Any, Any]:
    """Return the type of a column of attributes, and the function that makes its values."""
    return (MAP, mapping) if form == "map" else (pa.string(), json_object)


def span_table(spans: Iterable[Span], form: str = "map") -> pa.Table:
    """Return `otel_traces` with these spans, in their order; `form` is `map` or `json`."""
    kind, made = attribute_type(form)
    spans = list(spans)
    columns = {
        "Timestamp": pa.array([each.start_ns for each in spans], pa.int64()).cast(TIME),
        "TraceId": pa.array([each.trace_id.hex() for each in spans], pa.string()),
        "SpanId": pa.array([each.span_id.hex() for each in spans], pa.string()),
        "ParentSpanId": pa.array([each.parent_span_id.hex() for each in spans], pa.string()),
        "TraceState": pa.array([""] * len(spans), pa.string()),
        "SpanName": pa.array([each.name for each in spans], pa.string()),
        "SpanKind": pa.array([KINDS[each.kind] for each in spans], pa.string()),
        "ServiceName": pa.array([as_text(each.resource.get("service.name")) for each in spans], pa.string()),
        "ResourceAttributes": pa.array([made(each.resource) for each in spans], kind),
        "ScopeName": pa.array([each.scope for each in spans], pa.string()),
        "SpanAttributes": pa.array([made(each.attributes) for each in spans], kind),
        "Duration": pa.array([(each.end_ns - each.start_ns) % 2**64 for each in spans], pa.uint64()),
        "StatusCode": pa.array([STATUS_CODES[each.status_code] for each in spans], pa.string()),
        "StatusMessage": pa.array([each.status_message for each in spans], pa.string()),
        "Events.Timestamp": pa.array([[event.time_ns for event in each.events] for each in spans], pa.list_(TIME)),
        "Events.Name": pa.array([[event.name for event in each.events] for each in spans], pa.list_(pa.string())),
        "Events.Attributes": pa.array(
            [[made(event.attributes) for event in each.events] for each in spans], pa.list_(kind)
        ),
    }
    return pa.table(columns)


def log_table(bodies: Iterable[bytes], form: str = "map") -> pa.Table:
    """Return `otel_logs` with the records of these requests; `form` is `map` or `json`."""
    kind, made = attribute_type(form)
    rows: list[dict[str, Any]] = []
    for body in bodies:
        for outer in ExportLogsServiceRequest.FromString(body).resource_logs:
            for scope in outer.scope_logs:
                for record in scope.log_records:
                    (text,) = read_attributes([KeyValue(key="body", value=record.body)], Findings()).values()
                    rows.append(
                        {
                            "Timestamp": record.time_unix_nano or record.observed_time_unix_nano,
                            "TraceId": record.trace_id.hex(),
                            "SpanId": record.span_id.hex(),
                            "Body": as_text(text),
                            "ResourceAttributes": made(read_attributes(outer.resource.attributes, Findings())),
                            "ScopeName": scope.scope.name,
                            "LogAttributes": made(read_attributes(record.attributes, Findings())),
                            "EventName": record.event_name,
                        }
                    )
    text = pa.string()
    types = [TIME, text, text, text, kind, text, kind, text]
    names = [
        *("Timestamp", "TraceId", "SpanId", "Body", "ResourceAttributes", "ScopeName", "LogAttributes", "EventName")
    ]
    return pa.Table.from_pylist(rows, schema=pa.schema(list(zip(names, types, strict=True))))


def recorded_tables(path: Path, form: str = "map") -> tuple[pa.Table, pa.Table]:
    """Return the spans and the log records of a recording as tables, in their order of arrival."""
    spans, logs = _recorded(path)
    return span_table(spans, form), log_table(logs, form)


@lru_cache(maxsize=1)  # both forms of a recording are asked for
def _recorded(path: Path) -> tuple[list[Span], list[bytes]]:
    spans: list[Span] = []
    logs: list[bytes] = []
    for document in Recording([path]).documents():
        for decoded, source in zip(document.requests, document.sources, strict=True):
            if isinstance(source, Logs):
                logs.append(source.body)
            else:
                spans += decoded.spans
    return spans, logs
