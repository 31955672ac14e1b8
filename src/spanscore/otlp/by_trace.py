"""Trace requests taken apart by trace, byte for byte; spans of one trace that follow each other stay together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from spanscore.otlp.field_numbers import RESOURCE_SPANS, SCOPE_SPANS, SPANS, TRACE_ID
from spanscore.otlp.raw_requests import Envelope
from spanscore.otlp.wire import Place, field_at, fields, length_prefix, readable_field

TRACE_STATE: Final = SpanMessage.TRACE_STATE_FIELD_NUMBER
_TRACE_ID_SIZE: Final = 16
_TRACE_ID_PREFIX: Final = length_prefix(TRACE_ID, _TRACE_ID_SIZE)
_FIRST: Final = len(_TRACE_ID_PREFIX)
_BEHIND: Final = _FIRST + _TRACE_ID_SIZE
_OTEL_MEMBER: Final = b"ot="
_RARE: Final = 128  # bytes to an equals sign, in texts that are no code


class SpanRun(NamedTuple):
    """Spans of one trace that follow each other in a request."""

    trace_id: bytes
    envelope: Envelope
    place: Place
    """The place of their fields in the request, tags and lengths included."""
    spans: int


def span_runs(request: bytes) -> Iterator[SpanRun]:
    """Yield the spans of a request, in its order.

    Raises:
        WireError: the bytes are not in the protobuf wire format.
    """
    request_head, resources = _parts(request, (0, len(request)), RESOURCE_SPANS)
    for resource in resources:
        resource_head, scopes = _parts(request, resource, SCOPE_SPANS)
        for scope in scopes:
            yield from _runs(request, scope, request_head, resource_head)


def within(envelope: Envelope, content: list[bytes | memoryview]) -> list[bytes | memoryview]:
    """Return the pieces of a request with these fields of spans, if there are any."""
    if not content:
        return []
    size = len(envelope.scope) + sum(map(len, content))
    prefix = length_prefix(SCOPE_SPANS, size)
    whole = length_prefix(RESOURCE_SPANS, len(envelope.resource) + len(prefix) + size)
    return [envelope.request, whole, envelope.resource, prefix, envelope.scope, *content]


def span_places(content: bytes) -> Iterator[Place]:
    """Yield the places of the spans in the fields of a run."""
    position, end = 0, len(content)
    while position < end:
        _, first, position = field_at(content, position, end)
        yield first, position


def may_sample(content: bytes, first: int, end: int) -> bool:
    """Return whether a trace state between the two places may have the member of OpenTelemetry."""
    for _ in range((end - first) // _RARE + 1):  # to look for one byte is faster than for three
        first = content.find(b"=", first, end) + 1
        if not first:
            return False
        if content.startswith(_OTEL_MEMBER, first - len(_OTEL_MEMBER)):
            return True
    return content.find(_OTEL_MEMBER, first, end) >= 0


def trace_state(content: bytes, first: int, end: int) -> str:
    """Return the trace state of a span; empty if there is none, or if it cannot be read."""
    try:
        return SpanMessage.FromString(content[first:end]).trace_state
    except DecodeError:
        return ""


def _parts(request: bytes, place: Place, number: int) -> tuple[bytes, list[Place]]:
    """Return the other fields of a message, and the places of the messages in the fields of that number."""
    others: list[bytes] = []
    found: list[Place] = []
    for start, known, first, end in fields(request, place):
        if known == number:
            found.append((first, end))
        else:
            others.append(request[start:end])
    return b"".join(others), found


def _runs(request: bytes, place: Place, request_head: bytes, resource_head: bytes) -> list[SpanRun]:
    others: list[bytes] = []
    found: list[tuple[bytes, int, int, int]] = []
    position, end = place
    trace_id = b""
    began = spans = 0
    while position < end:
        start = position
        number, first, position = field_at(request, position, end)
        if number != SPANS:
            if spans:
                found.append((trace_id, began, start, spans))
                spans = 0
            others.append(request[start:position])
            continue
        if request.startswith(_TRACE_ID_PREFIX, first, position):
            its_trace = request[first + _FIRST : first + _BEHIND]
        else:
            its_trace = readable_field(request, (first, position), TRACE_ID)
        if its_trace == trace_id and spans:
            spans += 1
            continue
        if spans:
            found.append((trace_id, began, start, spans))
        trace_id, began, spans = its_trace, start, 1
    if spans:
        found.append((trace_id, began, end, spans))
    envelope = Envelope(request_head, resource_head, b"".join(others))
    return [SpanRun(trace, envelope, (first, behind), count) for trace, first, behind, count in found]
