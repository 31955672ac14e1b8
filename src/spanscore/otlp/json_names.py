"""Further names of fields and enumerations that are read in OTLP/JSON, as the Collector reads them.

A field may have its name in the protobuf files, such as `trace_id` for `traceId`, and an enumeration the name of its
number. Senders must not write either of them. Of the two names of one field the last counts, as of two equal ones,
but a name with null is absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

from google.protobuf.descriptor import Descriptor
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from spanscore.otlp.slices import Steps
from spanscore.otlp.strict_json import parse

_Body = TypeVar("_Body", bound=bytes | str)

_RENAMED_AT_ONCE: Final = 2**17
"""Bytes: of nothing but names so many take some 10 ms."""


def _fields_of(message: Descriptor, seen: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the two names of each field of a message, and of the messages in it."""
    seen.add(message.full_name)
    for field in message.fields:
        yield field.name, field.json_name
        if field.message_type is not None and field.message_type.full_name not in seen:
            yield from _fields_of(field.message_type, seen)


_NAMES: Final[Mapping[str, str]] = {
    name: json_name
    for request in (ExportTraceServiceRequest, ExportLogsServiceRequest, ExportMetricsServiceRequest)
    for name, json_name in _fields_of(request.DESCRIPTOR, set())
    if name != json_name
}

# White space in front of the colon keeps all that follows at its place, which messages and readers of files count on.
# A quotation mark inside of a text has a backslash before it, and no text is followed by a colon but a name.
_SPACE: Final = r"[ \t\r\n]*"
_NULL: Final = f"{_SPACE}:{_SPACE}null"
_NAME: Final = rf'"[a-z]+_[a-z_]+"(?={_SPACE}:)(?!{_NULL})'
_IN_TEXT: Final = re.compile(_NAME)
_IN_BYTES: Final = re.compile(_NAME.encode())
_UNSET: Final = rf'"(?:{"|".join(_NAMES.values())})"(?={_NULL})'
_UNSET_IN_TEXT: Final = re.compile(_UNSET)
_UNSET_IN_BYTES: Final = re.compile(_UNSET.encode())
_NO_NAME: Final = re.compile(rb'[^a-zA-Z_" \t\r\n:]')
_WRITTEN: Final[Mapping[Any, Any]] = {
    spell(f'"{name}"'): spell(f'"{json_name}"'.ljust(len(name) + 2))
    for name, json_name in _NAMES.items()
    for spell in (str, str.encode)
}


def names_of(field: str) -> tuple[str, ...]:
    """Return both names of a field, that of OTLP/JSON first."""
    return (field, *(name for name, json_name in _NAMES.items() if json_name == field))


def with_json_names(body: _Body) -> _Body:
    """Return OTLP/JSON of the same length with all fields under their own names; the same object if they are."""
    patterns: Any = (_IN_TEXT, _UNSET_IN_TEXT, " ") if isinstance(body, str) else (_IN_BYTES, _UNSET_IN_BYTES, b" ")
    names, unset, blank = patterns
    found: set[Any] = set()

    def own(name: re.Match[Any]) -> Any:
        written = _WRITTEN.get(name[0])
        found.add(written and written.rstrip())
        return written or name[0]

    def without(name: re.Match[Any]) -> Any:
        # The field has a value under its other name: this one becomes a name of no field.
        return name[0][:1] + blank * (len(name[0]) - 2) + name[0][:1] if name[0] in found else name[0]

    changed, renamed = names.sub(own, body), body
    if found - {None}:
        renamed = unset.sub(without, changed)
    return renamed


def renaming(body: _Body) -> Steps[_Body]:
    """Rename like `with_json_names`, in steps."""
    if isinstance(body, str) or len(body) <= _RENAMED_AT_ONCE:
        return with_json_names(body)
    parts: list[Any] = []
    start = 0
    while start < len(body):
        end = start + _RENAMED_AT_ONCE
        # No known name, nor the colon after it, has such a byte.
        if cut := _NO_NAME.search(body, end, end + _RENAMED_AT_ONCE):
            end = cut.end()
        parts.append(with_json_names(body[start:end]))
        start = end
        yield
    renamed: Any = b"".join(parts)
    return body if renamed == body else renamed


def parse_request(body: bytes | str) -> Any:
    """Parse a request in OTLP/JSON as `parse` does, with all fields under their own names.

    Raises:
        MalformedRequest: as `parse`.
    """
    return parse(with_json_names(body))
