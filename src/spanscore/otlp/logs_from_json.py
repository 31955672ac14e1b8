"""OTLP/JSON with logs, written as protobuf by the rules that hold for spans: a bad record costs only itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from spanscore.model import Span
from spanscore.otlp import json_rules as rules
from spanscore.otlp.findings import Findings, MalformedRequest, Refusal, Refused, SpanRefused, told_of_id
from spanscore.otlp.forwardable import from_json
from spanscore.otlp.json_shape import LOGS, check_way
from spanscore.otlp.json_values import UINT32, UINT64, any_value, attributes, integer, text

_AnyMessage = TypeVar("_AnyMessage", bound=Message)

_IDS: Final = (
    ("traceId", Refusal.INVALID_TRACE_ID, "trace_id", 16),
    ("spanId", Refusal.INVALID_SPAN_ID, "span_id", 8),
)


class Written(NamedTuple):
    """A request with logs."""

    body: bytes
    """An ExportLogsServiceRequest in protobuf; empty where no record is left."""
    refused: tuple[Refused, ...]
    """The records that are not in it."""
    lost: tuple[Span, ...]
    """Stand-ins for those of them whose trace id can be read."""


def logs_to_protobuf(document: Any) -> Written:
    """Write a request with logs, as `parse_request` returned it, in protobuf; what is around no record is left out.

    Raises:
        MalformedRequest: it is none, or has fields but none that leads to records.
    """
    findings = Findings(is_bounded=False)
    written = ExportLogsServiceRequest()
    for outer, where in _objects_in(rules.object_at(document, "the request"), LOGS, ""):
        scopes = [(inner, place, rules.list_at(inner, "logRecords", place)) for inner, place in _scopes(outer, where)]
        try:
            resource_logs = _resource_logs(outer, findings)
        except SpanRefused as refused:
            count = sum(len(records) for _, _, records in scopes)
            findings.refuse(refused.reason, f"{where}.{refused}", count)
            for _, _, records in scopes:
                _lose(records, findings)
            continue
        resource_logs.scope_logs.extend(_kept(scopes, findings))
        if resource_logs.scope_logs:
            written.resource_logs.append(resource_logs)
    if not written.resource_logs and not findings.refused:
        check_way(document, LOGS)
    return Written(written.SerializeToString(), tuple(findings.refused.values()), tuple(findings.lost))


def _kept(scopes: Sequence[tuple[dict[str, Any], str, Sequence[Any]]], findings: Findings) -> Iterator[ScopeLogs]:
    """Yield the scopes of a resource that have records which are not refused."""
    for inner, place, records in scopes:
        try:
            scope_logs = _scope_logs(inner)
        except SpanRefused as refused:
            findings.refuse(refused.reason, f"{place}.{refused}", len(records))
            _lose(records, findings)
            continue
        for index, record in enumerate(records):
            try:
                scope_logs.log_records.append(_record(record, findings))
            except SpanRefused as refused:
                findings.refuse(refused.reason, f"{place}.logRecords[{index}]: {refused}")
                _lose([record], findings)
        if scope_logs.log_records:
            yield scope_logs


def _lose(records: Sequence[Any], findings: Findings) -> None:
    for record in records:
        if isinstance(record, dict):
            findings.lose(rules.identifier(record.get("traceId")), rules.identifier(record.get("spanId")))


def _scopes(resource_logs: dict[str, Any], where: str) -> Iterator[tuple[dict[str, Any], str]]:
    return _objects_in(resource_logs, "scopeLogs", f"{where}.")


def _objects_in(parent: dict[str, Any], key: str, prefix: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the objects of a list, each with its place."""
    for index, each in enumerate(rules.list_at(parent, key, prefix.removesuffix("."))):
        where = f"{prefix}{key}[{index}]"
        yield rules.object_at(each, where), where


def _resource_logs(raw: dict[str, Any], findings: Findings) -> ResourceLogs:
    resource, schema_url = raw.get("resource"), text(raw.get("schemaUrl"), "schemaUrl")
    try:
        rules.resource(resource, findings)
        integer((resource or {}).get("droppedAttributesCount"), UINT32, "droppedAttributesCount")
        written = None if resource is None else _written(resource, Resource)
    except SpanRefused as refused:
        raise SpanRefused(refused.reason, f"resource: {refused}") from None
    return ResourceLogs(resource=written, schema_url=schema_url)


def _scope_logs(raw: dict[str, Any]) -> ScopeLogs:
    scope, schema_url = raw.get("scope"), text(raw.get("schemaUrl"), "schemaUrl")
    try:
        rules.scope_name(scope)
        text((scope or {}).get("version"), "version")
        integer((scope or {}).get("droppedAttributesCount"), UINT32, "droppedAttributesCount")
        attributes((scope or {}).get("attributes"), Findings(is_bounded=False))
        written = None if scope is None else _written(scope, InstrumentationScope)
    except SpanRefused as refused:
        raise SpanRefused(refused.reason, f"scope: {refused}") from None
    return ScopeLogs(scope=written, schema_url=schema_url)


def _record(raw: Any, findings: Findings) -> LogRecord:
    if not isinstance(raw, dict):
        raise SpanRefused(Refusal.MALFORMED, f"a log record must be an object, not {rules.kind_of_json(raw)}")
    findings.begin_span()
    for key, refusal, name, length in _IDS:
        if not rules.is_hexadecimal(raw.get(key)):
            raise SpanRefused(refusal, told_of_id(name, raw.get(key), length))
    for key in ("timeUnixNano", "observedTimeUnixNano"):
        integer(raw.get(key), UINT64, key, Refusal.INVALID_TIME)
    rules.enum(raw.get("severityNumber"), "severityNumber")
    for key in ("severityText", "eventName"):
        text(raw.get(key), key)
    for key in ("flags", "droppedAttributesCount"):
        integer(raw.get(key), UINT32, key)
    attributes(raw.get("attributes"), findings)
    try:
        any_value(raw.get("body"), findings)
    except SpanRefused as refused:
        raise SpanRefused(refused.reason, f"body: {refused}") from None
    return _written(raw, LogRecord)


def _written(raw: dict[str, Any], message_type: type[_AnyMessage]) -> _AnyMessage:
    """Write what the rules allow, unless it is one of the few things that protobuf cannot hold."""
    try:
        return from_json(raw, message_type)
    except MalformedRequest:
        message = (
            "cannot be written as protobuf: its values nest too deeply, or are of types that its fields do not have"
        )
        raise SpanRefused(Refusal.MALFORMED, message) from None
