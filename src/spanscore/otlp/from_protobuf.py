"""OTLP/protobuf: one ExportTraceServiceRequest to spans.

No protobuf message leaves this module: one span's message keeps the whole request's memory alive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from google.protobuf.internal import api_implementation
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from spanscore.model import EMPTY, PARENT_IS_REMOTE, Attributes, Span
from spanscore.otlp import clean_requests
from spanscore.otlp.field_numbers import RESOURCE, RESOURCE_SPANS, SCHEMA_URL, SCOPE, SCOPE_SPANS, SPANS
from spanscore.otlp.findings import (
    LINKS_PER_SPAN,
    SPANS_PER_REQUEST,
    UNNAMED,
    Caveat,
    Decoded,
    Findings,
    MalformedRequest,
    Refusal,
    SpanRefused,
    check_ids,
    check_link_ids,
)
from spanscore.otlp.kept_size import names_size
from spanscore.otlp.protobuf_check import (
    MOST_FIELDS,
    PARSED_AT_ONCE,
    SMALLEST,
    checking_number_of_spans,
    has_too_many_fields,
    walking,
)
from spanscore.otlp.protobuf_values import once, read_attributes, read_events, read_resource
from spanscore.otlp.slices import Steps, at_once
from spanscore.otlp.wire import FIELDS_LOOKED_AT, Place, WireError, fields, is_utf8, readable_field
from spanscore.reading.wanted import WantedAttributes

if api_implementation.Type() == "python":
    # It is 200 times slower, and recurses without a limit into nested messages.
    message = (
        "spanscore needs protobuf's compiled implementation (upb), but the pure-Python one is in use: unset "
        "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION, or reinstall protobuf from a binary wheel"
    )
    raise ImportError(message)


_FIELDS_AT_ONCE: Final = 8_192
_IDS: Final = (SpanMessage.TRACE_ID_FIELD_NUMBER, SpanMessage.SPAN_ID_FIELD_NUMBER)

_AnyMessage = TypeVar("_AnyMessage", bound=Message)


class _ScopeSpans(NamedTuple):
    """The messages of the spans that share a resource and a scope."""

    where: str
    resource: Attributes
    scope: str
    spans: Iterable[tuple[int, SpanMessage | SpanRefused]]
    """Each with its place in the request, or why it cannot be read."""


def decode_protobuf(
    body: bytes, *, max_spans: int | None = SPANS_PER_REQUEST, wanted: WantedAttributes | None = None
) -> Decoded:
    """Decode one request.

    Args:
        body: a serialized ExportTraceServiceRequest; empty is an empty request.
        max_spans: refuse a request with more spans, before it takes memory.
        wanted: the attributes to keep of spans that have a parent in their process; None keeps all.

    Raises:
        MalformedRequest: it is none, or has too many spans.
    """
    return at_once(decoding_protobuf(body, max_spans=max_spans, wanted=wanted))


def decoding_protobuf(
    body: bytes, *, max_spans: int | None = SPANS_PER_REQUEST, wanted: WantedAttributes | None = None
) -> Steps[Decoded]:
    """Do what `decode_protobuf` does in steps: all of a clean request at once, of others one span after the other."""
    clean = clean_requests.decoded(body, max_spans, wanted)
    return (yield from decoding_any(body, max_spans=max_spans, wanted=wanted)) if clean is None else clean


def decoding_any(
    body: bytes, *, max_spans: int | None = SPANS_PER_REQUEST, wanted: WantedAttributes | None = None
) -> Steps[Decoded]:
    """Do what `decode_protobuf` does, in steps of one span, for any request: this says what a request means."""
    findings = Findings(is_bounded=max_spans is not None)
    spans: list[Span] = []
    sizes: list[int] = []
    for scope_spans in _scope_spans(body, findings, max_spans):
        yield
        if scope_spans is None:
            continue
        where, resource, scope, messages = scope_spans
        for index, message in messages:
            try:
                spans.append(_span(message, resource, scope, wanted, findings))
                sizes.append(findings.size)
            except SpanRefused as refused:
                findings.refuse(refused.reason, f"{where}.spans[{index}]: {refused}")
                findings.lose(message.trace_id, message.span_id)
            yield
    return findings.decoded(spans, sizes)


def trace_ids(body: bytes) -> tuple[bytes, ...]:
    """Return the trace ids of the spans that `decode_protobuf` finds in the request, and maybe of some it refuses.

    Each once, in the order of the request: in that of a set, each process would read the same recording in another.

    Raises:
        MalformedRequest: as `decode_protobuf`.
    """
    findings = Findings()
    found = dict.fromkeys(
        message.trace_id
        for scope in _scope_spans(body, findings, None)
        for _, message in (() if scope is None else scope.spans)
    )
    return tuple(found | dict.fromkeys(lost.trace_id for lost in findings.lost))


def is_readable(message: SpanMessage) -> bool:
    """Return whether a span is none that is refused for what is in it."""
    try:
        _span(message, EMPTY, "", None, Findings())
    except SpanRefused:
        return False
    return True


def _scope_spans(body: bytes, findings: Findings, max_spans: int | None) -> Iterator[_ScopeSpans | None]:
    """Yield the spans of each scope, and None where it takes another step."""
    try:
        if max_spans is not None and len(body) > max_spans * SMALLEST:
            yield from checking_number_of_spans(body, max_spans)
        request = None
        if len(body) <= PARSED_AT_ONCE:
            try:
                request = ExportTraceServiceRequest.FromString(body)
            except DecodeError:  # the parser refuses all for one invalid string
                if max_spans is not None:
                    yield from walking(body, max_spans)
        if request is None:
            yield from _salvaged(body, findings)
            return
    except WireError as error:
        message = f"not an ExportTraceServiceRequest in protobuf: {error}"
        raise MalformedRequest(message) from error
    for i, resource_spans in enumerate(request.resource_spans):
        if not resource_spans.scope_spans:
            continue
        resource = read_resource(resource_spans.resource, findings)
        for j, scope_spans in enumerate(resource_spans.scope_spans):
            where = f"resource_spans[{i}].scope_spans[{j}]"
            yield _ScopeSpans(where, resource, scope_spans.scope.name, enumerate(scope_spans.spans))


def _salvaged(body: bytes, findings: Findings) -> Iterator[_ScopeSpans | None]:
    request = yield from _places(body, (0, len(body)))
    for i, resource_spans in enumerate(request[RESOURCE_SPANS]):
        yield None
        inside = yield from _places(body, resource_spans)
        message = _parse(Resource, _joined(body, inside[RESOURCE]))
        _check_schema_urls(body, inside[SCHEMA_URL], findings)
        resource: Attributes | None = None
        for j, scope_spans in enumerate(inside[SCOPE_SPANS]):
            yield None
            where = f"resource_spans[{i}].scope_spans[{j}]"
            parts = yield from _places(body, scope_spans)
            scope = _parse(InstrumentationScope, _joined(body, parts[SCOPE]))
            _check_schema_urls(body, parts[SCHEMA_URL], findings)
            spans = parts[SPANS]
            if isinstance(message, SpanRefused):
                findings.refuse(message.reason, f"resource_spans[{i}].resource: {message}", len(spans))
                yield from _losing(body, spans, findings)
                continue
            resource = read_resource(message, findings) if resource is None else resource
            if isinstance(scope, SpanRefused):
                findings.refuse(scope.reason, f"{where}.scope: {scope}", len(spans))
                yield from _losing(body, spans, findings)
            else:
                parsed = ((index, _parsed_span(body[start:end])) for index, (start, end) in enumerate(spans))
                yield _ScopeSpans(where, resource, scope.name, parsed)


def _losing(body: bytes, spans: Sequence[Place], findings: Findings) -> Steps[None]:
    """Note spans that are refused for what is around them."""
    for count, place in enumerate(spans, 1):
        findings.lose(*_ids(body, place))
        if not count % _FIELDS_AT_ONCE:
            yield


def _ids(body: bytes, place: Place) -> Iterator[bytes]:
    """Return the trace id and the span id of a span, as far as they can be read."""
    return (readable_field(body, place, number, FIELDS_LOOKED_AT) for number in _IDS)


def _parsed_span(content: bytes) -> SpanMessage | SpanRefused:
    message = _parse(SpanMessage, content)
    if isinstance(message, SpanRefused):
        message.trace_id, message.span_id = _ids(content, (0, len(content)))
    return message


def _places(body: bytes, place: Place) -> Steps[Sequence[Sequence[Place]]]:
    """Return where those fields of a message lie that are read, by their number, of which none is above 3."""
    found: tuple[list[Place], ...] = ([], [], [], [])
    for count, (_, number, first, end) in enumerate(fields(body, place), 1):
        if 0 < number < len(found):
            found[number].append((first, end))
        if not count % _FIELDS_AT_ONCE:
            yield
    return found


def _joined(body: bytes, places: Sequence[Place]) -> bytes:
    return b"".join(body[start:end] for start, end in places)


def _check_schema_urls(body: bytes, places: Sequence[Place], findings: Findings) -> None:
    for start, end in places:
        if not is_utf8(body[start:end]):
            findings.caveats[Caveat.INVALID_SCHEMA_URL] += 1


def _parse(message_type: type[_AnyMessage], body: bytes) -> _AnyMessage | SpanRefused:
    try:
        if has_too_many_fields(body, message_type):
            return SpanRefused(Refusal.TOO_MANY_FIELDS, f"large, and has more than {MOST_FIELDS} fields")
        return message_type.FromString(body)
    except (DecodeError, WireError) as error:
        # The parser tells its reasons apart in the text only; without one in it the span is just malformed.
        text = str(error)
        if "UTF-8" in text:
            return SpanRefused(Refusal.INVALID_UTF8, "a string is not valid UTF-8")
        if "Depth" in text:
            return SpanRefused(Refusal.TOO_DEEP, "a value is nested too deeply")
        return SpanRefused(Refusal.MALFORMED, "not valid protobuf")


def _span(
    message: SpanMessage | SpanRefused,
    resource: Attributes,
    scope: str,
    wanted: WantedAttributes | None,
    findings: Findings,
) -> Span:
    if isinstance(message, SpanRefused):
        raise message
    findings.begin_span()
    ids = findings.ids
    span_id = message.span_id
    trace_id = message.trace_id
    parent_span_id = check_ids(trace_id, span_id, message.parent_span_id, findings)
    if links := message.links:
        for link in links[:LINKS_PER_SPAN]:
            check_link_ids(link.trace_id, link.span_id)
    left_out_before = findings.attributes_left_out
    flags = message.flags
    # Of the root of a trajectory a configuration may match on any attribute.
    is_root = not parent_span_id or flags & PARENT_IS_REMOTE == PARENT_IS_REMOTE
    attributes = read_attributes(message.attributes, findings, None if is_root else wanted)
    events = message.events
    status = message.status
    name = once[message.name]
    status_message = status.message
    findings.size += names_size(name, status_message, scope)
    return Span(
        ids.setdefault(trace_id, trace_id),
        span_id,
        ids.setdefault(parent_span_id, parent_span_id),
        name or UNNAMED,
        message.start_time_unix_nano,
        message.end_time_unix_nano,
        message.kind,
        status.code,
        status_message,
        attributes,
        read_events(events, findings) if events else (),
        scope,
        resource,
        flags,
        message.dropped_attributes_count + findings.attributes_left_out - left_out_before,
    )
