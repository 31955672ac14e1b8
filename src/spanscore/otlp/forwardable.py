"""Requests to send on: the accepted spans of a request, in protobuf, with everything that the sender wrote.

Decoding keeps only the parts of a span that scoring needs. So this works on the request itself, and uses the decoded
spans only to see which ones were accepted.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from spanscore.model import Span
from spanscore.otlp.encoding import Encoding
from spanscore.otlp.field_numbers import RESOURCE, RESOURCE_SPANS, SCHEMA_URL, SCOPE, SCOPE_SPANS, SPANS
from spanscore.otlp.findings import STAND_IN, MalformedRequest
from spanscore.otlp.from_logs import narrowed_logs
from spanscore.otlp.json_names import parse_request
from spanscore.otlp.judging import is_readable
from spanscore.otlp.protobuf_check import counting_fields
from spanscore.otlp.slices import Steps, at_once
from spanscore.otlp.wire import (
    Place,
    WireError,
    fields,
    is_utf8,
    joined_field,
    length_delimited,
    readable_field,
)

_AnyMessage = TypeVar("_AnyMessage", bound=Message)


class AcceptedSpans:
    """The accepted spans of a request that are still to come, in its order."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._left = deque((span.trace_id, span.span_id) for span in spans)

    def is_next(self, message: SpanMessage) -> bool:
        """Return whether the next span is an accepted one; one that was refused may have the same ids."""
        if not self._left or (message.trace_id, message.span_id) != self._left[0] or not is_readable(message):
            return False
        self._left.popleft()
        return True


def accepting_only(body: bytes, spans: Sequence[Span]) -> Steps[bytes]:
    """Return, in steps of one span, a request in protobuf without refused spans and broken schema URLs.

    All else stays byte for byte. `spans` are the spans that it was decoded to.
    """
    accepted = AcceptedSpans(spans)
    return (
        yield from _rebuilding(
            body, (0, len(body)), RESOURCE_SPANS, lambda place: _resource_spans(body, place, accepted)
        )
    )


def standing_in(lost: Iterable[Span]) -> bytes:
    """Return a request in protobuf with a span for each refused one that is refused, too.

    Such a span has the trace id and no span id; its name is the reason, and its parent id tells it from others of its
    trace. Readers of requests without the refused spans so know that their runs lack spans, how many, and why.
    """
    spans = (
        SpanMessage(trace_id=each.trace_id, parent_span_id=each.span_id, name=STAND_IN + each.name) for each in lost
    )
    inside = b"".join(length_delimited(SPANS, span.SerializeToString()) for span in spans)
    return length_delimited(RESOURCE_SPANS, length_delimited(SCOPE_SPANS, inside))


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

    def kept(place: Place) -> Steps[bytes]:  # refused ones, too: they will be refused again, and their runs lack them
        yield
        is_wanted = readable_field(body, place, SpanMessage.TRACE_ID_FIELD_NUMBER) in trace_ids
        return body[slice(*place)] if is_wanted else b""

    def spans_of(place: Place) -> Steps[bytes]:
        return _rebuilding(body, place, SPANS, kept)

    def scopes_of(place: Place) -> Steps[bytes]:
        return _rebuilding(body, place, SCOPE_SPANS, spans_of)

    try:
        return at_once(_rebuilding(body, (0, len(body)), RESOURCE_SPANS, scopes_of))
    except WireError as error:
        raise MalformedRequest(f"not an OTLP request: {error}") from error


def _resource_spans(body: bytes, place: Place, accepted: AcceptedSpans) -> Steps[bytes]:
    if (yield from _parsing(Resource, joined_field(body, place, RESOURCE))) is None:
        return b""
    return (yield from _rebuilding(body, place, SCOPE_SPANS, lambda inner: _scope_spans(body, inner, accepted)))


def _scope_spans(body: bytes, place: Place, accepted: AcceptedSpans) -> Steps[bytes]:
    if (yield from _parsing(InstrumentationScope, joined_field(body, place, SCOPE))) is None:
        return b""
    return (yield from _rebuilding(body, place, SPANS, lambda inner: _span(body[slice(*inner)], accepted)))


def _span(content: bytes, accepted: AcceptedSpans) -> Steps[bytes]:
    yield
    message = yield from _parsing(SpanMessage, content)
    return content if message is not None and accepted.is_next(message) else b""


def _rebuilding(body: bytes, place: Place, number: int, rebuild: Callable[[Place], Steps[bytes]]) -> Steps[bytes]:
    """Return a message with the messages in the fields of that number rebuilt; empty where nothing is left of them."""
    parts: list[bytes] = []
    left = False
    for start, found, first, end in fields(body, place):
        yield
        if found == SCHEMA_URL and not is_utf8(body[first:end]):
            continue
        if found != number:
            parts.append(body[start:end])
        elif content := (yield from rebuild((first, end))):
            parts.append(length_delimited(number, content))
            left = True
    return b"".join(parts) if left else b""


def _parsing(message_type: type[_AnyMessage], content: bytes) -> Steps[_AnyMessage | None]:
    try:
        return None if (yield from counting_fields(content, message_type)) else message_type.FromString(content)
    except (DecodeError, WireError):
        return None
