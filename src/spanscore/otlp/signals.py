"""Spans told from logs: requests in protobuf do not say what they hold, and files join both.

A request with spans and one with logs are nested alike, under the same numbers. What differs are the fields of a span
and of a log record: nearly each number that both have is written in another way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple

from google.protobuf.descriptor import FieldDescriptor
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from spanscore.otlp.field_numbers import RESOURCE_SPANS, SCOPE_SPANS, SPANS
from spanscore.otlp.wire import FIXED32, FIXED64, LENGTH_DELIMITED, VARINT, Place, WireError, encoded_tag, fields

_WIRE_TYPES: Final = {
    FieldDescriptor.TYPE_FIXED64: FIXED64,
    FieldDescriptor.TYPE_FIXED32: FIXED32,
    FieldDescriptor.TYPE_STRING: LENGTH_DELIMITED,
    FieldDescriptor.TYPE_BYTES: LENGTH_DELIMITED,
    FieldDescriptor.TYPE_MESSAGE: LENGTH_DELIMITED,
    FieldDescriptor.TYPE_UINT32: VARINT,
    FieldDescriptor.TYPE_ENUM: VARINT,
}


def _tags(message: Any) -> frozenset[bytes]:
    return frozenset(encoded_tag(field.number, _WIRE_TYPES[field.type]) for field in message.DESCRIPTOR.fields)


def _bytes_of_tags(tags: frozenset[bytes]) -> frozenset[int]:
    return frozenset(tag[0] for tag in tags if len(tag) == 1)


_IS_SPAN: Final = _bytes_of_tags(_tags(Span) - _tags(LogRecord))
"""What the fields begin with that only a span has."""
_IS_LOG: Final = _bytes_of_tags(_tags(LogRecord) - _tags(Span))


class Apart(NamedTuple):
    """A request in protobuf, by what it holds; of each there may be nothing."""

    spans: bytes
    """An ExportTraceServiceRequest; also what is neither."""
    logs: bytes
    """An ExportLogsServiceRequest."""


def apart(body: bytes) -> Apart:
    """Take the spans and the logs of a request apart, where requests of both were joined; else it stays as it is."""
    if not has_logs(body):
        return Apart(body, b"")
    parts: dict[bool | None, list[bytes]] = {True: [], False: [], None: []}
    with suppress(WireError):
        for start, number, first, behind in fields(body, (0, len(body))):
            parts[_are_logs(body, (first, behind)) if number == RESOURCE_SPANS else None].append(body[start:behind])
        if parts[False]:
            return Apart(b"".join(parts[False] + parts[None]), b"".join(parts[True]))
    return Apart(b"", body)


def has_logs(body: bytes) -> bool:
    """Return whether a request in protobuf has log records, up to where it is broken."""
    with suppress(WireError):
        return any(_are_logs(body, place) for place in _contents(body, (0, len(body)), RESOURCE_SPANS))
    return False


def _are_logs(body: bytes, resource: Place) -> bool | None:
    """Return whether what belongs to a resource are logs; None where there is nothing.

    What could be both has no id, no time and no kind: no span is like that, but a record with nothing but a text is.
    """
    found: bool | None = None
    for scope in _contents(body, resource, SCOPE_SPANS):
        for record in _contents(body, scope, SPANS):
            for start, _, _, _ in fields(body, record):
                if body[start] in _IS_SPAN:
                    return False
                if body[start] in _IS_LOG:
                    return True
                found = True
    return found


def _contents(body: bytes, place: Place, number: int) -> Iterator[Place]:
    return ((first, behind) for _, known, first, behind in fields(body, place) if known == number)
