"""Tells the signals apart: requests in protobuf do not name their signal, and files join spans and logs.

Requests with spans, logs and metrics have the same nesting and numbers. Only the fields of a span, a log record and a
metric differ: nearly each number that two of them have is written with another wire type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from google.protobuf.descriptor import FieldDescriptor
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Gauge, Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from spanscore.otlp.field_numbers import RESOURCE_SPANS, SCOPE_SPANS, SPANS
from spanscore.otlp.findings import MalformedRequest
from spanscore.otlp.json_shape import gone_astray
from spanscore.otlp.wire import (
    FIXED32,
    FIXED64,
    LENGTH_DELIMITED,
    VARINT,
    Place,
    WireError,
    contents,
    encoded_tag,
    fields,
)

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
"""The first bytes of fields that only a span has."""
_IS_LOG: Final = _bytes_of_tags(_tags(LogRecord) - _tags(Span))
_IS_EITHER: Final = _IS_SPAN | _IS_LOG
_FIELDS_LOOKED_AT: Final = 8_192
"""In some 5 ms."""
_FIRST: Final = 64
"""The items looked at, and the fields of each."""

Signal: TypeAlias = Literal["traces", "logs", "metrics"]

_TAGS: Final[Mapping[Signal, frozenset[bytes]]] = {
    "traces": _tags(Span),
    "logs": _tags(LogRecord),
    "metrics": _tags(Metric),
}
_LAST_NUMBER: Final = max(field.number for field in Metric.DESCRIPTOR.fields)
"""Metrics may get fields with larger numbers; smaller ones are used, or reserved."""
_EARLIER_DATA: Final = frozenset(encoded_tag(number)[0] for number in (4, 6, 8))
"""The first bytes of fields that metrics had in earlier versions of OTLP."""
_ONLY_IN: Final[Mapping[int, Signal]] = {
    byte: signal
    for signal, tags in _TAGS.items()
    for byte in _bytes_of_tags(tags.difference(*(other for name, other in _TAGS.items() if name != signal)))
    if byte >> 3 <= _LAST_NUMBER and byte not in _EARLIER_DATA
}
"""The first bytes of fields that only one signal has."""
_DATA: Final = frozenset(encoded_tag(each.number)[0] for each in Metric.DESCRIPTOR.oneofs_by_name["data"].fields)
_NAME: Final = encoded_tag(Metric.NAME_FIELD_NUMBER)[0]
"""The first byte of most metrics, and of spans: their trace id."""
_POINTS: Final = encoded_tag(Gauge.DATA_POINTS_FIELD_NUMBER)
_IS_NAME: Final = re.compile(rb"(?![0-9A-Fa-f]*\Z)[\x20-\x7e]*\Z")
"""Matches the name of a metric, and not the id of a trace, be it written as hexadecimal digits."""


class Apart(NamedTuple):
    """A request in protobuf, divided by signal; each part may be empty."""

    spans: bytes
    """An ExportTraceServiceRequest; also data that is neither."""
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
    """Return whether a request in protobuf has log records, up to its first break."""
    with suppress(WireError):
        return any(_are_logs(body, place) for place in contents(body, (0, len(body)), RESOURCE_SPANS))
    return False


def begins_with_logs(body: bytes) -> bool:
    """Return whether the first spans or log records of a request in protobuf are log records.

    Looks at a bounded number of fields: a request may begin with millions of empty ones. Data that could be both is a
    log record, as in `_are_logs`.
    """
    found = False
    with suppress(WireError):
        for start in islice(_starts(body), _FIELDS_LOOKED_AT):
            if start is not None:
                if body[start] in _IS_EITHER:
                    return body[start] in _IS_LOG
                found = True
    return found


def check_signal(body: bytes, expected: Signal) -> None:
    """Refuse a request in protobuf whose first spans, log records or metrics are all of another signal.

    One that could be of several decides nothing: it may be a broken one of the expected signal.

    Raises:
        MalformedRequest: they are.
    """
    found = _signal(body)
    if found is not None and found != expected:
        raise MalformedRequest(f"the request has no {expected}, but {found}{gone_astray(found)}")


def _signal(body: bytes) -> Signal | None:
    found: set[Signal | None] = set()
    with suppress(WireError):
        for item in islice(_items(body), _FIRST):
            if item is not None:
                found.add(_signal_of(body, item))
    return found.pop() if len(found) == 1 else None


def _signal_of(body: bytes, item: Place) -> Signal | None:
    """Return the signal of a span, log record or metric; None if it could be of several."""
    known: list[tuple[int, Place]] = []
    with suppress(WireError):
        known += ((body[start], (first, behind)) for start, _, first, behind in islice(fields(body, item), _FIRST))
    found = {signal for tag, _ in known if (signal := _ONLY_IN.get(tag)) is not None}
    if found:
        return found.pop() if len(found) == 1 else None
    # A gauge has the tags of a span, whose name, though, begins with no data point, and whose trace id is random.
    if not any(tag in _DATA and body.startswith(_POINTS, *place) for tag, place in known):
        return None
    tag, name = known[0]
    return "metrics" if tag == _NAME and _IS_NAME.match(body[slice(*name)]) else None


def _starts(body: bytes) -> Iterator[int | None]:
    """Yield the place of each field of the spans or log records of a request, and None for each field around them."""
    for item in _items(body):
        if item is None:
            yield None
        else:
            yield from (start for start, _, _, _ in fields(body, item))


def _items(body: bytes) -> Iterator[Place | None]:
    """Yield the place of each span, log record or metric of a request, and None for each field around them."""
    for _, number, first, behind in fields(body, (0, len(body))):
        yield None
        for _, inner, begin, end in fields(body, (first, behind)) if number == RESOURCE_SPANS else ():
            yield None
            for _, innermost, opened, closed in fields(body, (begin, end)) if inner == SCOPE_SPANS else ():
                yield None
                if innermost == SPANS:
                    yield opened, closed


def _are_logs(body: bytes, resource: Place) -> bool | None:
    """Return whether a resource has log records; None if it is empty.

    Data that could be both has no id, no time and no kind: no span is like that, but a record with only a text is.
    """
    found: bool | None = None
    for scope in contents(body, resource, SCOPE_SPANS):
        for record in contents(body, scope, SPANS):
            for start, _, _, _ in fields(body, record):
                if body[start] in _IS_SPAN:
                    return False
                if body[start] in _IS_LOG:
                    return True
                found = True
    return found
