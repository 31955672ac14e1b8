"""Trace requests taken apart by trace: each span byte for byte, with the messages around it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from spanscore.otlp.field_numbers import RESOURCE_SPANS, SCOPE_SPANS, SPANS, TRACE_ID
from spanscore.otlp.raw_requests import Envelope
from spanscore.otlp.wire import Place, encoded_tag, field_at, fields, length_prefix, readable_field

TRACE_STATE: Final = SpanMessage.TRACE_STATE_FIELD_NUMBER
_TRACE_ID_SIZE: Final = 16
_TRACE_ID_PREFIX: Final = length_prefix(TRACE_ID, _TRACE_ID_SIZE)
_FIRST: Final = len(_TRACE_ID_PREFIX)
_BEHIND: Final = _FIRST + _TRACE_ID_SIZE
_OTEL_MEMBER: Final = b"ot="
_SPANS_TAG: Final = encoded_tag(SPANS)[0]
_MORE: Final = 0x80  # set on each byte of a varint but its last
_USUAL_HEAD: Final = 3
"""Bytes of the tag and the length before most spans."""
_RARE: Final = 128  # bytes to an equals sign, in texts that are no code


class SpansOfTrace(NamedTuple):
    """The spans of one trace in a ScopeSpans of a request."""

    trace_id: bytes
    envelope: Envelope
    spans: list[bytes]
    """Each as it was received."""


def by_trace(request: bytes) -> Iterator[SpansOfTrace]:
    """Yield the spans of a request.

    Raises:
        WireError: the bytes are not in the protobuf wire format.
    """
    request_head, resources = _parts(request, (0, len(request)), RESOURCE_SPANS)
    for resource in resources:
        resource_head, scopes = _parts(request, resource, SCOPE_SPANS)
        for scope in scopes:
            scope_head, traces = _spans(request, scope)
            envelope = Envelope(request_head, resource_head, scope_head)
            for trace_id, spans in traces.items():
                yield SpansOfTrace(trace_id, envelope, spans)


@lru_cache(4_096)  # spans have similar lengths: a third of the time
def span_prefix(length: int) -> bytes:
    """Return the tag and the length before a span."""
    return length_prefix(SPANS, length)


def within(envelope: Envelope, content: list[bytes], size: int) -> list[bytes]:
    """Return the pieces of a request with these fields of spans, of that size in all."""
    prefix = length_prefix(SCOPE_SPANS, len(envelope.scope) + size)
    inside = len(envelope.resource) + len(prefix) + len(envelope.scope) + size
    whole = length_prefix(RESOURCE_SPANS, inside)
    return [envelope.request, whole, envelope.resource, prefix, envelope.scope, *content]


def may_sample(content: bytes) -> bool:
    """Return whether a trace state in it may have the member of OpenTelemetry."""
    first = 0
    for _ in range(len(content) // _RARE + 1):  # to look for one byte is faster than for three
        first = content.find(b"=", first) + 1
        if not first:
            return False
        if content.startswith(_OTEL_MEMBER, first - len(_OTEL_MEMBER)):
            return True
    return content.find(_OTEL_MEMBER, first) >= 0


def trace_state(span: bytes) -> str:
    """Return the trace state of a span; empty if there is none, or if it cannot be read."""
    try:
        return SpanMessage.FromString(span).trace_state
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


def _spans(request: bytes, place: Place) -> tuple[bytes, dict[bytes, list[bytes]]]:
    """Return the other fields of a ScopeSpans, and its spans by trace."""
    others: list[bytes] = []
    found: dict[bytes, list[bytes]] = {}
    position, end = place
    while position < end:
        start, first = position, position + _USUAL_HEAD
        if first <= end and request[start] == _SPANS_TAG and request[start + 1] >= _MORE > request[start + 2]:
            # As field_at does, without a call: most spans have a length of two bytes.
            position = first + (request[start + 1] ^ _MORE | request[start + 2] << 7)
        if position == start or position > end:
            number, first, position = field_at(request, start, end)
            if number != SPANS:
                others.append(request[start:position])
                continue
        span = request[first:position]
        if span.startswith(_TRACE_ID_PREFIX):
            trace_id = span[_FIRST:_BEHIND]
        else:
            trace_id = readable_field(request, (first, position), TRACE_ID)
        if trace_id in found:
            found[trace_id].append(span)
        else:
            found[trace_id] = [span]
    return b"".join(others), found
