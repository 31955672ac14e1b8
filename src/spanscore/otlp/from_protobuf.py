"""OTLP/protobuf: one ExportTraceServiceRequest to spans.

No protobuf message leaves this module: one span's message keeps the whole request's memory alive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from google.protobuf.internal import api_implementation
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from spanscore.model import Attributes
from spanscore.otlp import clean_requests
from spanscore.otlp.field_numbers import RESOURCE, RESOURCE_SPANS, SCHEMA_URL, SCOPE, SCOPE_SPANS, SPANS
from spanscore.otlp.findings import Caveat, Decoded, Findings, MalformedRequest, Refusal, SpanRefused
from spanscore.otlp.judging import JudgedSpans, judging
from spanscore.otlp.limits import SPANS_PER_REQUEST
from spanscore.otlp.protobuf_check import (
    MOST_FIELDS,
    PARSED_AT_ONCE,
    SMALLEST,
    checking_number_of_spans,
    counting_fields,
    walking,
)
from spanscore.otlp.protobuf_values import read_resource
from spanscore.otlp.slices import Steps, at_once
from spanscore.otlp.wire import FIELDS_LOOKED_AT, Place, WireError, fields, is_utf8, readable_field
from spanscore.trajectories.wanted import WantedAttributes

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
    """Decode like `decode_protobuf`, in steps: a clean request in one step, others in steps of a few spans."""
    clean = clean_requests.decoded(body, max_spans, wanted)
    return (yield from decoding_any(body, max_spans=max_spans, wanted=wanted)) if clean is None else clean


def decoding_any(
    body: bytes, *, max_spans: int | None = SPANS_PER_REQUEST, wanted: WantedAttributes | None = None
) -> Steps[Decoded]:
    """Decode any request like `decode_protobuf`, in steps of a few spans. This code defines what a request means."""
    findings = Findings(is_bounded=max_spans is not None)
    return judging(_scope_spans(body, findings, max_spans), findings, wanted)


def trace_ids(body: bytes) -> tuple[bytes, ...]:
    """Return the trace ids of the spans that `decode_protobuf` finds in the request, and maybe of some it refuses.

    Each once, in the order of the request: in that of a set, each process would read the same recording in another.

    Raises:
        MalformedRequest: as `decode_protobuf`.
    """
    findings = Findings()
    found = dict.fromkeys(
        span.trace_id
        for scope in _scope_spans(body, findings, None)
        for span in (() if scope is None else scope.spans)
        if span is not None
    )
    return tuple(found | dict.fromkeys(lost.trace_id for lost in findings.lost))


def _scope_spans(body: bytes, findings: Findings, max_spans: int | None) -> Iterator[JudgedSpans | None]:
    """Yield the spans of each scope, and None after a step that read none."""
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
        raise MalformedRequest(f"not an ExportTraceServiceRequest in protobuf: {error}") from error
    for i, resource_spans in enumerate(request.resource_spans):
        if not resource_spans.scope_spans:
            continue
        resource = read_resource(resource_spans.resource, findings)
        for j, scope_spans in enumerate(resource_spans.scope_spans):
            where = f"resource_spans[{i}].scope_spans[{j}]"
            yield JudgedSpans(where, resource, scope_spans.scope.name, scope_spans.spans)


def _salvaged(body: bytes, findings: Findings) -> Iterator[JudgedSpans | None]:
    request = yield from _places(body, (0, len(body)))
    for i, resource_spans in enumerate(request[RESOURCE_SPANS]):
        yield None
        inside = yield from _places(body, resource_spans)
        message = yield from parsing(Resource, _joined(body, inside[RESOURCE]))
        _check_schema_urls(body, inside[SCHEMA_URL], findings)
        resource: Attributes | None = None
        for j, scope_spans in enumerate(inside[SCOPE_SPANS]):
            yield None
            where = f"resource_spans[{i}].scope_spans[{j}]"
            parts = yield from _places(body, scope_spans)
            scope = yield from parsing(InstrumentationScope, _joined(body, parts[SCOPE]))
            _check_schema_urls(body, parts[SCHEMA_URL], findings)
            spans = parts[SPANS]
            if isinstance(message, SpanRefused):
                findings.refuse(message.reason, f"resource_spans[{i}].resource: {message}", len(spans))
                yield from _losing(message.reason, body, spans, findings)
                continue
            resource = read_resource(message, findings) if resource is None else resource
            if isinstance(scope, SpanRefused):
                findings.refuse(scope.reason, f"{where}.scope: {scope}", len(spans))
                yield from _losing(scope.reason, body, spans, findings)
            else:
                yield JudgedSpans(where, resource, scope.name, _spans(body, spans))


def _losing(reason: Refusal, body: bytes, spans: Sequence[Place], findings: Findings) -> Steps[None]:
    """Record spans that are refused because of the resource or scope around them."""
    for count, place in enumerate(spans, 1):
        findings.lose(reason, *_ids(body, place))
        if not count % _FIELDS_AT_ONCE:
            yield


def _ids(body: bytes, place: Place) -> Iterator[bytes]:
    """Return the trace id and the span id of a span, as far as they can be read."""
    return (readable_field(body, place, number, FIELDS_LOOKED_AT) for number in _IDS)


def _spans(body: bytes, places: Sequence[Place]) -> Iterator[SpanMessage | SpanRefused | None]:
    for place in places:
        yield None
        message = yield from parsing(SpanMessage, body[slice(*place)])
        if isinstance(message, SpanRefused):
            message.trace_id, message.span_id = _ids(body, place)
        yield message


def _places(body: bytes, place: Place) -> Steps[Sequence[Sequence[Place]]]:
    """Return the places of the fields of a message that are read, by their number (at most 3)."""
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


def parsing(message_type: type[_AnyMessage], body: bytes) -> Steps[_AnyMessage | SpanRefused]:
    """Parse a message, and return it, or why it cannot be parsed."""
    try:
        if (yield from counting_fields(body, message_type)):
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
