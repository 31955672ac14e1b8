"""What of a request is sent on: the spans that were accepted of it, in protobuf, with all that the sender wrote.

Decoding keeps of a span what scoring needs. So this works on the request itself, and looks into the decoded spans only
to learn which ones were accepted.
"""

from __future__ import annotations

import json
from base64 import b64encode
from binascii import unhexlify
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from spanscore.model import Span
from spanscore.otlp.encoding import Encoding
from spanscore.otlp.field_numbers import RESOURCE, RESOURCE_SPANS, SCHEMA_URL, SCOPE, SCOPE_SPANS, SPANS
from spanscore.otlp.findings import MalformedRequest, SpanRefused
from spanscore.otlp.from_logs import narrowed_logs
from spanscore.otlp.from_protobuf import is_readable
from spanscore.otlp.json_names import ENUMS, parse_request
from spanscore.otlp.json_rules import enum, identifier, kind_of_json
from spanscore.otlp.json_rules import is_readable as is_readable_json
from spanscore.otlp.json_shape import METRICS, check_way
from spanscore.otlp.json_to_protobuf import to_protobuf
from spanscore.otlp.protobuf_check import has_too_many_fields
from spanscore.otlp.wire import Place, WireError, fields, is_utf8, joined_field, length_delimited, readable_field

_IDS: Final = frozenset({"traceId", "spanId", "parentSpanId"})
_MOST_NESTED: Final = 96
"""Protobuf's parsers refuse a request with messages nested deeper than 100; three of them are around a span."""

_AnyMessage = TypeVar("_AnyMessage", bound=Message)
_Accepted: TypeAlias = deque[tuple[bytes, ...]]
"""The ids of the accepted spans of a request that are still to come, in its order."""


def accepted_only(body: bytes, spans: Sequence[Span]) -> bytes:
    """Return a request in protobuf, decoded to these spans, without refused spans and broken schema URLs.

    All else stays byte for byte.
    """
    accepted = _accepted(spans)
    return _rebuilt(body, (0, len(body)), RESOURCE_SPANS, lambda place: _resource_spans(body, place, accepted))


def accepted_only_from_json(request: Any, spans: Sequence[Span]) -> bytes:
    """Return a JSON request, its text or that parsed, decoded to these spans, in protobuf without its refused spans.

    Also without spans that JSON can hold and protobuf cannot: attribute values nested some 30 deep, and wrong types in
    fields that decoding does not look at.
    """
    if isinstance(request, bytes | str):
        whole = to_protobuf(request, len(spans))
        return accepted_only_from_json(parse_request(request), spans) if whole is None else whole
    accepted = _accepted(spans)
    kept = ExportTraceServiceRequest()
    for outer in request.get("resourceSpans") or ():
        resource_spans = _without(outer, "scopeSpans", ResourceSpans)
        for inner in outer.get("scopeSpans") or ():
            scope_spans = _without(inner, "spans", ScopeSpans)
            for span in inner.get("spans") or ():
                ids = (identifier(span.get(key)) for key in ("traceId", "spanId")) if isinstance(span, dict) else ()
                if _is_next(accepted, tuple(ids), partial(is_readable_json, span)):
                    with suppress(MalformedRequest):
                        scope_spans.spans.append(from_json(span, SpanMessage))
            if scope_spans.spans:
                resource_spans.scope_spans.append(scope_spans)
        if resource_spans.scope_spans:
            kept.resource_spans.append(resource_spans)
    return kept.SerializeToString()


def narrowed(body: bytes, encoding: Encoding, trace_ids: Collection[bytes]) -> bytes:
    """Return a request that was decoded before, written as it was, with the spans of these traces only.

    Raises:
        MalformedRequest: it cannot be decoded.
    """
    if encoding is Encoding.LOGS:
        return narrowed_logs(body, trace_ids)
    if encoding is Encoding.JSON:
        document = parse_request(body)
        wanted = {trace_id.hex() for trace_id in trace_ids}
        for resource_spans in document.get("resourceSpans") or ():
            for scope_spans in resource_spans.get("scopeSpans") or ():
                scope_spans["spans"] = [
                    span
                    for span in scope_spans.get("spans") or ()
                    if isinstance(span, dict) and str(span.get("traceId")).lower() in wanted
                ]
        return json.dumps(document, separators=(",", ":")).encode()

    def kept(place: Place) -> bytes:  # refused ones, too: they will be refused again, and their runs lack them
        return (
            body[slice(*place)] if readable_field(body, place, SpanMessage.TRACE_ID_FIELD_NUMBER) in trace_ids else b""
        )

    def spans_of(place: Place) -> bytes:
        return _rebuilt(body, place, SPANS, kept)

    try:
        return _rebuilt(
            body, (0, len(body)), RESOURCE_SPANS, lambda place: _rebuilt(body, place, SCOPE_SPANS, spans_of)
        )
    except WireError as error:
        message = f"not an OTLP request: {error}"
        raise MalformedRequest(message) from error


def from_json(document: Any, message_type: type[_AnyMessage]) -> _AnyMessage:
    """Return a message that is written as OTLP/JSON.

    Raises:
        MalformedRequest: it is not one.
    """
    name = message_type.DESCRIPTOR.name
    if not isinstance(document, dict):
        what = f"not an {name} in JSON: it must be an object, not {kind_of_json(document)}"
        raise MalformedRequest(what)
    message = message_type()
    try:
        ParseDict(_as_protobuf_json(document), message, ignore_unknown_fields=True, max_recursion_depth=_MOST_NESTED)
    except SpanRefused as refused:
        what = f"not an {name} in JSON: {refused}"
        raise MalformedRequest(what) from refused
    except (ParseError, RecursionError, AttributeError, TypeError, ValueError) as error:
        what = f"not an {name} in JSON"
        raise MalformedRequest(what) from error
    return message


def metrics_from_json(document: Any) -> bytes:
    """Return a request with metrics, as `parse_request` returned it, in protobuf.

    Raises:
        MalformedRequest: it is none, or has fields but none that leads to metrics.
    """
    request = from_json(document, ExportMetricsServiceRequest)
    if not any(scope.metrics for outer in request.resource_metrics for scope in outer.scope_metrics):
        check_way(document, METRICS)
    return request.SerializeToString()


def _accepted(spans: Iterable[Span]) -> _Accepted:
    return deque((span.trace_id, span.span_id) for span in spans)


def _is_next(accepted: _Accepted, ids: tuple[bytes, ...], is_readable: Callable[[], bool]) -> bool:
    """Return whether the next span, with these ids, is an accepted one; one that was refused may have the same."""
    if not accepted or ids != accepted[0] or not is_readable():
        return False
    accepted.popleft()
    return True


def _resource_spans(body: bytes, place: Place, accepted: _Accepted) -> bytes:
    if _parsed(Resource, joined_field(body, place, RESOURCE)) is None:
        return b""
    return _rebuilt(body, place, SCOPE_SPANS, lambda inner: _scope_spans(body, inner, accepted))


def _scope_spans(body: bytes, place: Place, accepted: _Accepted) -> bytes:
    if _parsed(InstrumentationScope, joined_field(body, place, SCOPE)) is None:
        return b""
    return _rebuilt(body, place, SPANS, lambda inner: _span(body[slice(*inner)], accepted))


def _span(content: bytes, accepted: _Accepted) -> bytes:
    message = _parsed(SpanMessage, content)
    if message is None or not _is_next(accepted, (message.trace_id, message.span_id), partial(is_readable, message)):
        return b""
    return content


def _rebuilt(body: bytes, place: Place, number: int, rebuild: Callable[[Place], bytes]) -> bytes:
    """Return a message with the messages in the fields of that number rebuilt; empty where nothing is left of them."""
    parts: list[bytes] = []
    left = False
    for start, found, first, end in fields(body, place):
        if found == SCHEMA_URL and not is_utf8(body[first:end]):
            continue
        if found != number:
            parts.append(body[start:end])
        elif content := rebuild((first, end)):
            parts.append(length_delimited(number, content))
            left = True
    return b"".join(parts) if left else b""


def _parsed(message_type: type[_AnyMessage], content: bytes) -> _AnyMessage | None:
    try:
        return None if has_too_many_fields(content, message_type) else message_type.FromString(content)
    except (DecodeError, WireError):
        return None


def _without(document: dict[str, Any], key: str, message_type: type[_AnyMessage]) -> _AnyMessage:
    try:
        return from_json({name: value for name, value in document.items() if name != key}, message_type)
    except MalformedRequest:
        return message_type()


def _as_protobuf_json(value: Any) -> Any:
    """Return OTLP/JSON as protobuf's own JSON, in which ids are base64 and fields have a second name."""
    if isinstance(value, dict):
        return {key: _inside(key, inner) for key, inner in value.items() if "_" not in key}
    return [_as_protobuf_json(item) for item in value] if isinstance(value, list) else value


def _inside(key: str, value: Any) -> Any:
    if not isinstance(value, str):
        return _as_protobuf_json(value)
    if key in _IDS:
        return _base64(value)
    return enum(value, key) if key in ENUMS else value


def _base64(hexadecimal: str) -> str:
    return b64encode(unhexlify(hexadecimal)).decode()
