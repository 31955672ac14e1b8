"""Whether a request in protobuf has too many spans, found out before it takes memory: a span may be two bytes long.

The resources and scopes around the spans are counted, too: a request may have millions of empty ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from spanscore.otlp.field_numbers import RESOURCE_SPANS, SCOPE_SPANS, SPANS
from spanscore.otlp.findings import too_many_spans
from spanscore.otlp.slices import Steps
from spanscore.otlp.wire import Place, fields

SMALLEST_SPAN: Final = 2
"""Bytes: a tag, and the length 0. A request that has no more than this for each span has not too many."""
_AROUND_A_SPAN: Final = 2  # a resource and a scope, where each span has its own
_MOST_FIELDS_AROUND: Final = 4 * _AROUND_A_SPAN
"""For each span: beside a resource's scopes there are its attributes, and a schema URL. A request of nothing but fields
that nobody knows has thirty million."""
_PARSED_AT_ONCE: Final = 4 * 2**20
"""Bytes. Each span of a request that is parsed takes 24 bytes, so that this much may become 50 MB."""
_FIELDS_AT_ONCE: Final = 8_192


def checking_number_of_spans(body: bytes, limit: int) -> Steps[None]:
    """Refuse a serialized ExportTraceServiceRequest that has more spans than that.

    Raises:
        MalformedRequest: it has.
        WireError: it is none.
    """
    if len(body) <= _PARSED_AT_ONCE:
        with suppress(DecodeError):  # the walk tells what is wrong
            if _has_more(_REQUEST.FromString(body).resource_spans, limit):
                raise too_many_spans(limit)
            return
    yield from walking(body, limit)


def walking(body: bytes, limit: int) -> Steps[None]:
    """Do what `checking_number_of_spans` does for a request that cannot be parsed, or not at once.

    It also has too many where there are so many fields around them that a walk through them takes long.
    """
    spans = around = others = 0
    for number, (field, depth) in enumerate(_fields(body, (0, len(body)), 0), 1):
        if depth == _SCOPES and field == SPANS:
            spans += 1
        elif (depth, field) in _AROUND:
            around += 1
        else:
            others += 1
        if spans > limit or around > _AROUND_A_SPAN * limit or others > _MOST_FIELDS_AROUND * limit:
            raise too_many_spans(limit)
        if not number % _FIELDS_AT_ONCE:
            yield


_INSIDE: Final = (RESOURCE_SPANS, SCOPE_SPANS)
_SCOPES: Final = len(_INSIDE)
_AROUND: Final = frozenset(enumerate(_INSIDE))


def _fields(body: bytes, place: Place, depth: int) -> Iterator[tuple[int, int]]:
    """Yield the number of each field of the request, its resources and its scopes, and how deep it is."""
    for _, number, first, end in fields(body, place):
        yield number, depth
        if depth < _SCOPES and number == _INSIDE[depth]:
            yield from _fields(body, (first, end), depth + 1)


def _has_more(resources: Any, limit: int) -> bool:
    return (
        len(resources) > _AROUND_A_SPAN * limit
        or len(resources) + sum(len(resource.scope_spans) for resource in resources) > _AROUND_A_SPAN * limit
        or sum(len(scope.spans) for resource in resources for scope in resource.scope_spans) > limit
    )


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
