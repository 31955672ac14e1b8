"""Trace requests taken apart and put together byte for byte.

In protobuf, two messages written one after the other are one message, and so are a message and a field after it. Hence
requests are merged by joining them, a span gets an event by writing it after the span, and no span is ever rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from spanscore.contracts import Roots
from spanscore.otlp.field_numbers import FLAGS, PARENT_SPAN_ID, RESOURCE_SPANS, SCOPE_SPANS, SPAN_ID, SPANS, TRACE_ID
from spanscore.otlp.wire import FIXED32, Place, encoded_tag, field_at, fields, length_delimited, length_prefix

has_parent: Final = re.compile(
    rb"%b.{16}%b.{8}%b(?!\x00{8})"
    % tuple(re.escape(length_prefix(*each)) for each in ((TRACE_ID, 16), (SPAN_ID, 8), (PARENT_SPAN_ID, 8))),
    re.DOTALL,
).match
"""Matches the first bytes of nearly every span with a parent: trace id, span id, parent. Other spans are parsed."""
_IS_REMOTE: Final = 0x300  # OTLP: bit 8 says that bit 9 is meant, bit 9 that the parent is remote
_FLAGS_TAG: Final = encoded_tag(FLAGS, FIXED32)
_FLAGS_SIZE: Final = len(_FLAGS_TAG) + 4


class Envelope(NamedTuple):
    """The messages around a span: the other fields of its request, its ResourceSpans and its ScopeSpans."""

    request: bytes
    resource: bytes
    scope: bytes


class RootSpan(NamedTuple):
    """A finished root span as it was received."""

    trace_id: bytes
    span_id: bytes
    start_ns: int
    end_ns: int
    content: bytes
    envelope: Envelope

    @property
    def size(self) -> int:
        """The most bytes that it takes; the bytes around it may be shared with other spans."""
        return len(self.content) + sum(map(len, self.envelope))


class Split(NamedTuple):
    """A request taken apart."""

    rest: bytes
    """The request without its roots; empty when no span is left."""
    spans: int
    """The number of spans that are left."""
    roots: list[RootSpan]


def split(request: bytes, roots: Roots) -> Split:
    """Take the finished root spans out of a request, and drop resources and scopes without spans.

    Raises:
        WireError: the bytes are not in the protobuf wire format.
    """

    def scope_spans(place: Place) -> _RequestPart:
        return _scope_spans(request, place, roots)

    def resource_spans(place: Place) -> _RequestPart:
        return _around(request, place, SCOPE_SPANS, scope_spans)

    part = _around(request, (0, len(request)), RESOURCE_SPANS, resource_spans)
    found = [
        RootSpan(
            root.trace_id, root.span_id, root.start_time_unix_nano, root.end_time_unix_nano, content, Envelope(*heads)
        )
        for root, content, heads in part.roots
    ]
    if part.size == len(request):
        return Split(request, part.spans, found)
    return Split(b"".join(part.left) if part.spans else b"", part.spans, found)


def joined(requests: Iterable[bytes], spans: Iterable[tuple[Envelope, bytes]]) -> bytes:
    """Return one request with all of these requests and these spans; spans with equal envelopes share one."""
    by_envelope: dict[Envelope, list[bytes]] = {}
    for envelope, span in spans:
        by_envelope.setdefault(envelope, []).append(length_delimited(SPANS, span))
    parts = list(requests)
    for envelope, inside in by_envelope.items():
        scope_spans = length_delimited(SCOPE_SPANS, b"".join([envelope.scope, *inside]))
        parts += [envelope.request, length_delimited(RESOURCE_SPANS, envelope.resource + scope_spans)]
    return b"".join(parts)


def root_of(span: bytes, roots: Roots, envelope: Envelope) -> RootSpan | None:
    """Return a span as a root, if it is a finished one."""
    if roots == "none" or (root := _root(span, 0, len(span), roots)) is None:
        return None
    message = root.message
    return RootSpan(
        message.trace_id,
        message.span_id,
        message.start_time_unix_nano,
        message.end_time_unix_nano,
        span,
        envelope,
    )


class _RequestPart(NamedTuple):
    """A message of the request."""

    left: list[bytes | memoryview]
    """The rest of the request, in pieces."""
    spans: int
    roots: list[_Root]

    @property
    def size(self) -> int:
        return sum(map(len, self.left))


class _Root(NamedTuple):
    message: SpanMessage
    content: bytes
    heads: tuple[bytes, ...] = ()
    """The other fields of the messages around it, the outermost first."""


def _around(request: bytes, place: Place, number: int, read: Callable[[Place], _RequestPart]) -> _RequestPart:
    """Read a message whose fields of that number contain the spans."""
    view = memoryview(request)
    left: list[bytes | memoryview] = []
    others: list[memoryview] = []
    spans = 0
    roots: list[_Root] = []
    for start, found, first, end in fields(request, place):
        if found != number:
            left.append(view[start:end])
            others.append(view[start:end])
            continue
        part = read((first, end))
        roots += part.roots
        spans += part.spans
        if part.spans:
            left += [length_prefix(number, part.size), *part.left]
    head = b"".join(others)
    return _RequestPart(left, spans, [root._replace(heads=(head, *root.heads)) for root in roots])


def _scope_spans(request: bytes, place: Place, roots: Roots) -> _RequestPart:
    view = memoryview(request)
    left: list[bytes | memoryview] = []
    others: list[memoryview] = []
    spans = 0
    found: list[_Root] = []
    position, end = place
    kept_from = position
    while position < end:
        start = position
        number, first, position = field_at(request, position, end)
        if number != SPANS:
            others.append(view[start:position])
        elif roots != "none" and (root := _root(request, first, position, roots)):
            left.append(view[kept_from:start])
            kept_from = position
            found.append(root)
        else:
            spans += 1
    left.append(view[kept_from:end])
    head = b"".join(others)
    return _RequestPart(left, spans, [root._replace(heads=(head,)) for root in found])


def _root(request: bytes, start: int, end: int, roots: Roots) -> _Root | None:
    remote = roots == "remote_parent"
    if has_parent(request, start, end) and not (remote and _may_be_remote(request, end)):
        return None
    content = request[start:end]
    try:
        span = SpanMessage.FromString(content)
    except DecodeError:
        return None
    is_root = not any(span.parent_span_id) or (remote and span.flags & _IS_REMOTE == _IS_REMOTE)
    return _Root(span, content) if is_root and span.end_time_unix_nano else None


def _may_be_remote(request: bytes, end: int) -> bool:
    """Return whether the parent may be remote, by the flags, with which nearly every span ends."""
    return (
        not request.startswith(_FLAGS_TAG, end - _FLAGS_SIZE)
        or int.from_bytes(request[end - _FLAGS_SIZE + 2 : end], "little") & _IS_REMOTE == _IS_REMOTE
    )
