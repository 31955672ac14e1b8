"""OTLP/protobuf: one ExportTraceServiceRequest to spans.

No protobuf message leaves this module: one span's message keeps the whole request's memory alive.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from google.protobuf.internal import api_implementation
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from spanscore.model import EMPTY, PARENT_IS_REMOTE, Attributes, AttributeValue, Span, SpanEvent
from spanscore.read.wanted import WantedAttributes
from spanscore.receivers._field_count import MOST_FIELDS, PARSED_AT_ONCE, has_too_many_fields
from spanscore.receivers._otlp import (
    ATTRIBUTES_PER_SPAN,
    EVENTS_PER_SPAN,
    SPANS_PER_REQUEST,
    UNNAMED,
    VALUE_LENGTH,
    Caveat,
    Decoded,
    Findings,
    MalformedRequest,
    Refusal,
    SpanRefused,
    ValueTooLong,
    check_ids,
    check_link_ids,
)
from spanscore.receivers._span_count import RESOURCE_SPANS, SCOPE_SPANS, SPANS, has_more_spans
from spanscore.wire import Place, WireError, field, is_utf8, submessages

if api_implementation.Type() == "python":
    # It is 200 times slower, and recurses without a limit into nested messages.
    message = (
        "spanscore needs protobuf's compiled implementation (upb), but the pure-Python one is in use: unset "
        "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION, or reinstall protobuf from a binary wheel"
    )
    raise ImportError(message)

_REPEATED_CHARS: Final = 64
_MOST_REPEATED: Final = 8_192

# Field numbers, where a broken request is walked by hand.
_RESOURCE: Final = 1
_SCOPE: Final = 1
_SCHEMA_URL: Final = 3

_AnyMessage = TypeVar("_AnyMessage", bound=Message)


class _Once(dict[str, str]):
    """Keeps one object of each short text that comes again and again, such as the names of spans, tools and operations.

    Not `sys.intern`: in some releases of Python what is interned stays for ever, and senders can make names up.
    """

    def __missing__(self, text: str) -> str:
        if len(text) <= _REPEATED_CHARS:
            if len(self) >= _MOST_REPEATED:
                self.clear()
            self[text] = text
        return text


_once: Final = _Once()


class _ScopeSpans(NamedTuple):
    """The messages of the spans that share a resource and a scope."""

    where: str
    resource: Attributes
    scope: str
    spans: Iterable[tuple[int, SpanMessage]]
    """Each with its place in the request."""


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
    if max_spans is not None:
        _check_number_of_spans(body, max_spans)
    findings = Findings()
    decoding = _Decoding(wanted, findings)
    spans: list[Span] = []
    for where, resource, scope, messages in _scope_spans(body, findings):
        for index, message in messages:
            try:
                spans.append(decoding.span(message, resource, scope))
            except SpanRefused as refused:
                findings.refuse(refused.reason, f"{where}.spans[{index}]: {refused}")
    return findings.decoded(spans)


def trace_ids(body: bytes) -> tuple[bytes, ...]:
    """Return the trace ids of the spans that `decode_protobuf` finds in the request, and maybe of some it refuses.

    Each once, in the order of the request: in that of a set, each process would read the same recording in another.

    Raises:
        MalformedRequest: as `decode_protobuf`.
    """
    return tuple(
        dict.fromkeys(message.trace_id for scope in _scope_spans(body, Findings()) for _, message in scope.spans)
    )


def _check_number_of_spans(body: bytes, max_spans: int) -> None:
    try:
        is_too_many = has_more_spans(body, max_spans)
    except WireError as error:
        raise _malformed(error) from error
    if is_too_many:
        message = f"the request has more than {max_spans} spans"
        raise MalformedRequest(message)


def _scope_spans(body: bytes, findings: Findings) -> Iterator[_ScopeSpans]:
    try:
        request = ExportTraceServiceRequest.FromString(body) if len(body) <= PARSED_AT_ONCE else None
    except DecodeError:
        request = None
    if request is None:
        # The parser refuses all for one invalid string or one value nested too deeply: take the request apart.
        try:
            yield from _salvaged(body, findings)
        except WireError as error:
            raise _malformed(error) from error
    else:
        for i, resource_spans in enumerate(request.resource_spans):
            resource = _attributes(resource_spans.resource.attributes, findings)
            for j, scope_spans in enumerate(resource_spans.scope_spans):
                where = f"resource_spans[{i}].scope_spans[{j}]"
                yield _ScopeSpans(where, resource, scope_spans.scope.name, enumerate(scope_spans.spans))


def _malformed(error: WireError) -> MalformedRequest:
    return MalformedRequest(f"not an ExportTraceServiceRequest in protobuf: {error}")


def _salvaged(body: bytes, findings: Findings) -> Iterator[_ScopeSpans]:
    for i, resource_spans in enumerate(submessages(body, (0, len(body)), RESOURCE_SPANS)):
        resource = _parse(Resource, field(body, resource_spans, _RESOURCE))
        _check_schema_urls(body, resource_spans, findings)
        for j, scope_spans in enumerate(submessages(body, resource_spans, SCOPE_SPANS)):
            where = f"resource_spans[{i}].scope_spans[{j}]"
            scope = _parse(InstrumentationScope, field(body, scope_spans, _SCOPE))
            _check_schema_urls(body, scope_spans, findings)
            spans = [body[start:end] for start, end in submessages(body, scope_spans, SPANS)]
            if isinstance(resource, SpanRefused):
                findings.refuse(resource.reason, f"resource_spans[{i}].resource: {resource}", len(spans))
            elif isinstance(scope, SpanRefused):
                findings.refuse(scope.reason, f"{where}.scope: {scope}", len(spans))
            else:
                attributes = _attributes(resource.attributes, findings)
                yield _ScopeSpans(where, attributes, scope.name, _salvaged_spans(spans, where, findings))


def _check_schema_urls(body: bytes, place: Place, findings: Findings) -> None:
    for start, end in submessages(body, place, _SCHEMA_URL):
        if not is_utf8(body[start:end]):
            findings.caveats[Caveat.INVALID_SCHEMA_URL] += 1


def _salvaged_spans(spans: Sequence[bytes], where: str, findings: Findings) -> Iterator[tuple[int, SpanMessage]]:
    for index, span in enumerate(spans):
        message = _parse(SpanMessage, span)
        if isinstance(message, SpanRefused):
            findings.refuse(message.reason, f"{where}.spans[{index}]: {message}")
        else:
            yield index, message


def _parse(message_type: type[_AnyMessage], body: bytes) -> _AnyMessage | SpanRefused:
    try:
        if has_too_many_fields(body, message_type.DESCRIPTOR.name):
            return SpanRefused(Refusal.TOO_MANY_FIELDS, f"large, and has more than {MOST_FIELDS} fields")
        return message_type.FromString(body)
    except WireError:
        return SpanRefused(Refusal.MALFORMED, "not valid protobuf")
    except DecodeError as error:
        # The parser tells its reasons apart in the text only; without one in it the span is just malformed.
        text = str(error)
        if "UTF-8" in text:
            return SpanRefused(Refusal.INVALID_UTF8, "a string is not valid UTF-8")
        if "Depth" in text:
            return SpanRefused(Refusal.TOO_DEEP, "a value is nested too deeply")
        return SpanRefused(Refusal.MALFORMED, "not valid protobuf")


class _Decoding:
    """Makes the spans of one request from its messages."""

    def __init__(self, wanted: WantedAttributes | None, findings: Findings) -> None:
        self._wanted = wanted
        self._findings = findings
        self._ids: dict[bytes, bytes] = {}  # what repeats is kept once: it is a tenth of what an open span takes

    def span(self, message: SpanMessage, resource: Attributes, scope: str) -> Span:
        findings = self._findings
        span_id = message.span_id
        trace_id = message.trace_id
        parent_span_id = check_ids(trace_id, span_id, message.parent_span_id, findings)
        if links := message.links:
            for link in links:
                check_link_ids(link.trace_id, link.span_id)
        left_out_before = findings.attributes_left_out
        flags = message.flags
        # Of the root of a trajectory a configuration may match on any attribute.
        is_root = not parent_span_id or flags & PARENT_IS_REMOTE == PARENT_IS_REMOTE
        attributes = _attributes(message.attributes, findings, None if is_root else self._wanted)
        events = message.events
        status = message.status
        return Span(
            self._ids.setdefault(trace_id, trace_id),
            span_id,
            self._ids.setdefault(parent_span_id, parent_span_id),
            _once[message.name] or UNNAMED,
            message.start_time_unix_nano,
            message.end_time_unix_nano,
            message.kind,
            status.code,
            status.message,
            attributes,
            _events(events, findings) if events else (),
            scope,
            resource,
            flags,
            message.dropped_attributes_count + findings.attributes_left_out - left_out_before,
        )


def _events(messages: Sequence[SpanMessage.Event], findings: Findings) -> tuple[SpanEvent, ...]:
    if len(messages) > EVENTS_PER_SPAN:
        findings.caveats[Caveat.EVENT_LIMIT] += len(messages) - EVENTS_PER_SPAN
        messages = messages[:EVENTS_PER_SPAN]
    return tuple(
        SpanEvent(event.name, event.time_unix_nano, _attributes(event.attributes, findings)) for event in messages
    )


def _attributes(pairs: Sequence[KeyValue], findings: Findings, wanted: WantedAttributes | None = None) -> Attributes:
    if len(pairs) > ATTRIBUTES_PER_SPAN:
        findings.leave_out_attributes(len(pairs) - ATTRIBUTES_PER_SPAN)
        pairs = pairs[:ATTRIBUTES_PER_SPAN]
    attributes: dict[str, AttributeValue] = {}
    for pair in pairs:
        key = _once[pair.key] if wanted is None else wanted[pair.key]
        if key is None:
            continue
        value = pair.value
        text = value.string_value  # most values are text, and asking which member is set takes longer
        if text and len(text) <= VALUE_LENGTH:
            attributes[key or _absent_key(pair, findings)] = _once[text] if len(text) <= _REPEATED_CHARS else text
            continue
        try:
            attributes[key or _absent_key(pair, findings)] = _value(value, findings)
        except ValueTooLong:
            findings.leave_out_attributes()
    return attributes or EMPTY


def _absent_key(pair: KeyValue, findings: Findings) -> str:
    if getattr(pair, "key_strindex", 0):  # not in the messages of older releases of opentelemetry-proto
        findings.caveats[Caveat.PROFILING_FIELD] += 1
    return ""


def _value(value: AnyValue, findings: Findings) -> AttributeValue:
    # No check of the depth: the parser refuses what nests deeper than some 30 to 50 values.
    member = value.WhichOneof("value")
    if member == "array_value":
        return [_value(item, findings) for item in value.array_value.values]
    if member == "kvlist_value":
        return {
            pair.key or _absent_key(pair, findings): _value(pair.value, findings) for pair in value.kvlist_value.values
        }
    if member == "string_value_strindex":
        findings.caveats[Caveat.PROFILING_FIELD] += 1
        return None
    scalar: AttributeValue = getattr(value, member) if member else None
    if isinstance(scalar, str | bytes) and len(scalar) > VALUE_LENGTH:
        raise ValueTooLong
    if isinstance(scalar, float) and math.isnan(scalar):
        return math.nan  # one object: a span that is sent again must equal itself
    return scalar
