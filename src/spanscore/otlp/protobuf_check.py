"""Checks of bytes in protobuf before, or without, decoding them.

- Whether a request has too many spans: a span may be two bytes long. The resources and scopes around them are counted,
  too: a request may have millions of empty ones.
- Whether a large message has too many fields: a field may be two bytes long and take fifty when it is parsed: 64 MiB of
  them would become gigabytes.
- Whether bytes are a message, in steps: for requests that are sent on unchanged. Fields that follow each other are a
  message by themselves. So a large one is parsed some fields at a time, and a field that is large and a message itself
  is taken apart, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from spanscore.otlp.field_numbers import RESOURCE_SPANS, SCOPE_SPANS, SPANS
from spanscore.otlp.findings import MalformedRequest, too_many_spans
from spanscore.otlp.slices import Steps
from spanscore.otlp.wire import Place, WireError, field_at, fields

AT_ONCE: Final = 2**20
"""Bytes: so much is parsed in some 10 ms."""

_FIELDS_AT_ONCE: Final = 8_192

SMALLEST: Final = 2
"""Bytes of a field, and so of a span: a tag, and the length 0."""
_AROUND_A_SPAN: Final = 2  # a resource and a scope, where each span has its own
_MOST_FIELDS_AROUND: Final = 4 * _AROUND_A_SPAN
"""For each span: beside a resource's scopes there are its attributes, and a schema URL. A request of only
unknown fields has thirty million."""

PARSED_AT_ONCE: Final = 4 * 2**20
"""Bytes: a larger request is taken apart, and its spans are parsed one by one. Each span of a request that is parsed to
be counted takes 24 bytes, so that this much may become 50 MB."""
MOST_FIELDS: Final = 1_500_000
"""Of one message and all in it."""

_LARGE: Final = 2**20  # bytes; a smaller message may have any number of fields

_MOST_TAKEN_APART: Final = 2_000_000
"""Records, metrics or data points of a large request, as many as objects in JSON: 64 MiB of honest ones have less."""

_DEEPEST: Final = 100  # protobuf's own limit
_SMALL: Final = 16  # bytes; fields of shorter messages are not counted: the most that fit are assumed


def checking_number_of_spans(body: bytes, limit: int) -> Steps[None]:
    """Refuse a serialized ExportTraceServiceRequest that has more spans than that.

    Raises:
        MalformedRequest: it has.
        WireError: it is none.
    """
    if len(body) <= PARSED_AT_ONCE:
        with suppress(DecodeError):  # the walk raises the precise error
            if _has_more(_REQUEST.FromString(body).resource_spans, limit):
                raise too_many_spans(limit)
            return
    yield from walking(body, limit)


def walking(body: bytes, limit: int) -> Steps[None]:
    """Check like `checking_number_of_spans` a request that cannot be parsed, or not at once.

    A request with so many fields around its spans that the walk takes long is refused, too.
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
    return GetMessageClass(pool.FindMessageTypeByName("spanscore.Request"))


_REQUEST: Final = _message_class()


def counting_fields(body: bytes, message_type: type[Message], most: int = MOST_FIELDS) -> Steps[bool]:
    """Return, in steps, whether a serialized message of that type is large, and has more fields than that.

    Raises:
        WireError: it is none.
    """
    if len(body) <= _LARGE:
        return False
    left = most
    # Depth first, so that what is still to be looked at is little.
    pending = [(0, len(body), _messages_in(message_type.DESCRIPTOR))]
    while pending and len(pending) <= _DEEPEST:  # the parser comes no deeper either
        position, end, inside = pending.pop()
        while position < end:
            number, start, position = field_at(body, position, end)
            left -= 1
            if not left % _FIELDS_AT_ONCE:
                yield
            if number in inside:
                if position - start > _SMALL:
                    pending += ((position, end, inside), (start, position, _messages_in(inside[number])))
                    break
                left -= (position - start) // SMALLEST
            if left < 0:
                return True
    return False


@cache
def _messages_in(message: Any) -> Mapping[int, Any]:
    """Return the types of the messages in a message, by the number of the field."""
    return {field.number: field.message_type for field in message.fields if field.message_type}


def checking(body: bytes, message_type: type[Message], size: int = AT_ONCE) -> Steps[None]:
    """Find out whether bytes are a message of that type, of which so many are parsed at once.

    Raises:
        MalformedRequest: they are not, or taking them apart finds more than two million fields.
    """
    try:
        yield from _Checking(size, _MOST_TAKEN_APART).message(body, (0, len(body)), message_type, _DEEPEST)
    except (DecodeError, WireError) as error:
        raise MalformedRequest(f"not an {message_type.DESCRIPTOR.name} in protobuf") from error


@dataclass(slots=True, eq=False)
class _Checking:
    """Parses a message some bytes at a time, and counts the fields between which it is taken apart."""

    at_once: int
    left: int

    def message(self, body: bytes, place: Place, message_type: Any, levels: int) -> Steps[None]:
        begin, end = place
        if end - begin <= self.at_once or not levels:
            message_type.FromString(body[begin:end])
            return
        inside = message_type.DESCRIPTOR.fields_by_number
        for start, number, first, behind in fields(body, place):
            if behind - begin > self.at_once:
                message_type.FromString(body[begin:start])
                begin = start
                yield
            known = inside.get(number)
            if behind - begin > self.at_once and known is not None and known.message_type:
                yield from self.message(body, (first, behind), GetMessageClass(known.message_type), levels - 1)
                begin = behind
            self.left -= 1
            if self.left < 0:
                raise MalformedRequest(f"the request has more than {_MOST_TAKEN_APART} parts")
            if not self.left % _FIELDS_AT_ONCE:
                yield
        message_type.FromString(body[begin:end])
