"""Whether a request in protobuf has too many spans, found out before it takes memory: a span may be two bytes long.

The resources and scopes around the spans are counted, too: a request may have millions of empty ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from spanscore.wire import submessages

RESOURCE_SPANS: Final = 1
SCOPE_SPANS: Final = 2
SPANS: Final = 2

_SMALLEST_SPAN: Final = 2  # bytes: a tag, and the length 0
_AROUND_A_SPAN: Final = 2  # a resource and a scope, where each span has its own
_PARSED_AT_ONCE: Final = 4 * 2**20
"""Bytes. Each span of a request that is parsed takes 24 bytes, so that this much may become 50 MB."""


def has_more_spans(body: bytes, limit: int) -> bool:
    """Return whether a serialized ExportTraceServiceRequest has more spans than that.

    Raises:
        WireError: it is none.
    """
    if len(body) <= limit * _SMALLEST_SPAN:
        return False
    if len(body) <= _PARSED_AT_ONCE:
        try:
            request = _REQUEST.FromString(body)
        except DecodeError:
            pass  # the walk tells what is wrong
        else:
            return _counted(request, limit)
    return _walked(body, limit)


def _counted(request: Any, limit: int) -> bool:
    resources = request.resource_spans
    if len(resources) > _AROUND_A_SPAN * limit:
        return True
    around = len(resources) + sum(len(resource.scope_spans) for resource in resources)
    if around > _AROUND_A_SPAN * limit:
        return True
    return sum(len(scope.spans) for resource in resources for scope in resource.scope_spans) > limit


def _walked(body: bytes, limit: int) -> bool:
    spans = around = 0
    for is_span in _parts(body):
        if is_span:
            spans += 1
        else:
            around += 1
        if spans > limit or around > _AROUND_A_SPAN * limit:
            return True
    return False


def _parts(body: bytes) -> Iterator[bool]:
    """Go through the resources, scopes and spans, and tell of each whether it is a span."""
    for resource_spans in submessages(body, (0, len(body)), RESOURCE_SPANS):
        yield False
        for scope_spans in submessages(body, resource_spans, SCOPE_SPANS):
            yield False
            for _ in submessages(body, scope_spans, SPANS):
                yield True


def _message_class() -> Any:
    """Return OTLP's request with spans that are not parsed: a tenth of the time of the walk."""
    file = descriptor_pb2.FileDescriptorProto(name="spanscore/span_count.proto", package="spanscore", syntax="proto3")
    field = descriptor_pb2.FieldDescriptorProto
    for message, name, number, inner in (
        ("ScopeSpans", "spans", SPANS, None),
        ("ResourceSpans", "scope_spans", SCOPE_SPANS, "ScopeSpans"),
        ("Request", "resource_spans", RESOURCE_SPANS, "ResourceSpans"),
    ):
        kind = field.TYPE_BYTES if inner is None else field.TYPE_MESSAGE
        added = file.message_type.add(name=message).field.add(
            name=name, number=number, type=kind, label=field.LABEL_REPEATED
        )
        if inner is not None:
            added.type_name = f".spanscore.{inner}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("spanscore.Request"))


_REQUEST: Final = _message_class()
