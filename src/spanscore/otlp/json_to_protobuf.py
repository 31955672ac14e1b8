"""OTLP/JSON as protobuf, where that is beyond doubt: protobuf's own reading of JSON takes four times as long."""

from __future__ import annotations

from binascii import unhexlify
from collections.abc import Sequence
from typing import Final

from msgspec import DecodeError
from msgspec.structs import astuple
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from spanscore.otlp import json_messages as messages

_MOST_NESTED: Final = 16
"""Deeper values are rare, and protobuf's parsers refuse those that nest some 30 deep."""


def to_protobuf(body: bytes | str, accepted: int) -> bytes | None:
    """Return a request in protobuf, or None where it takes protobuf's own reading to say what it would be.

    Args:
        body: a request that was decoded.
        accepted: how many of its spans were accepted; unless it is all of them, the answer is None.
    """
    try:
        request = messages.REQUEST.decode(body)
        resource_spans = [_resource_spans(message) for message in request.resource_spans or ()]
    except (DecodeError, RecursionError, ValueError, _Unclear):
        return None
    if sum(len(inner.spans) for outer in resource_spans for inner in outer.scope_spans) != accepted:
        return None
    return ExportTraceServiceRequest(
        resource_spans=[outer for outer in resource_spans if outer.scope_spans]
    ).SerializeToString()


class _Unclear(Exception):  # noqa: N818 - ends the writing of one request, and is not an error of ours
    """Ends the writing of one request; never leaves this module."""


def _resource_spans(message: messages.ResourceSpans) -> ResourceSpans:
    scope_spans = [_scope_spans(inner) for inner in message.scope_spans or () if inner.spans]
    return ResourceSpans(
        resource=_resource(message.resource), scope_spans=scope_spans, schema_url=message.schema_url or ""
    )


def _resource(message: messages.Resource | None) -> Resource | None:
    if message is None:
        return None
    if message.entity_refs:
        raise _Unclear
    return Resource(
        attributes=_attributes(message.attributes), dropped_attributes_count=message.dropped_attributes_count or 0
    )


def _scope_spans(message: messages.ScopeSpans) -> ScopeSpans:
    spans = [_span(span) for span in message.spans or ()]
    return ScopeSpans(scope=_scope(message.scope), spans=spans, schema_url=message.schema_url or "")


def _scope(message: messages.Scope | None) -> InstrumentationScope | None:
    if message is None:
        return None
    return InstrumentationScope(
        name=message.name or "",
        version=message.version or "",
        attributes=_attributes(message.attributes),
        dropped_attributes_count=message.dropped_attributes_count or 0,
    )


def _span(message: messages.Span) -> Span:
    return Span(
        trace_id=unhexlify(message.trace_id),
        span_id=unhexlify(message.span_id),
        trace_state=message.trace_state or "",
        parent_span_id=unhexlify(message.parent_span_id or ""),
        flags=message.flags or 0,
        name=message.name or "",
        kind=message.kind or 0,  # type: ignore[arg-type] # the stubs know no open enums
        start_time_unix_nano=_number(message.start_time_unix_nano),
        end_time_unix_nano=_number(message.end_time_unix_nano),
        attributes=_attributes(message.attributes),
        dropped_attributes_count=message.dropped_attributes_count or 0,
        events=[_event(event) for event in message.events or ()],
        dropped_events_count=message.dropped_events_count or 0,
        links=[_link(link) for link in message.links or ()],
        dropped_links_count=message.dropped_links_count or 0,
        status=_status(message.status),
    )


def _status(message: messages.Status | None) -> Status | None:
    if message is None:
        return None
    return Status(code=message.code or 0, message=message.message or "")  # type: ignore[arg-type] # as for the kind


def _event(message: messages.Event) -> Span.Event:
    return Span.Event(
        time_unix_nano=_number(message.time_unix_nano),
        name=message.name or "",
        attributes=_attributes(message.attributes),
        dropped_attributes_count=message.dropped_attributes_count or 0,
    )


def _link(message: messages.Link) -> Span.Link:
    return Span.Link(
        trace_id=unhexlify(message.trace_id),
        span_id=unhexlify(message.span_id),
        trace_state=message.trace_state or "",
        attributes=_attributes(message.attributes),
        dropped_attributes_count=message.dropped_attributes_count or 0,
        flags=message.flags or 0,
    )


def _number(raw: str | int | None) -> int:
    if not isinstance(raw, str):
        return raw or 0
    if raw.isascii() and raw.removeprefix("-").isdigit():
        return int(raw)
    raise _Unclear


def _attributes(pairs: Sequence[messages.KeyValue] | None) -> list[KeyValue]:
    return [_pair(pair, 1) for pair in pairs or ()]


def _pair(pair: messages.KeyValue, depth: int) -> KeyValue:
    return KeyValue(key=pair.key, value=None if pair.value is None else _value(pair.value, depth))


def _value(value: messages.AnyValue | None, depth: int) -> AnyValue:
    if value is None or depth > _MOST_NESTED:
        raise _Unclear
    members = astuple(value)
    if members.count(None) < len(members) - 1:
        raise _Unclear
    if value.string_value is not None:
        return AnyValue(string_value=value.string_value)
    if value.int_value is not None:
        return AnyValue(int_value=_number(value.int_value))
    if value.double_value is not None:
        return AnyValue(double_value=value.double_value)
    if value.bool_value is not None:
        return AnyValue(bool_value=value.bool_value)
    return AnyValue() if members.count(None) == len(members) else _nested(value, depth + 1)


def _nested(value: messages.AnyValue, depth: int) -> AnyValue:
    if value.array_value is not None:
        return AnyValue(array_value=ArrayValue(values=[_value(item, depth) for item in value.array_value.values or ()]))
    pairs = (value.kvlist_value and value.kvlist_value.values) or ()
    return AnyValue(kvlist_value=KeyValueList(values=[_pair(pair, depth) for pair in pairs]))
