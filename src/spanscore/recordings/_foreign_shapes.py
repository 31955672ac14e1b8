"""The shapes of spans of other programs: which fields there must be, and of which JSON types.

Checked before a span is read, so that a message names the field and what is allowed in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from spanscore.messages.printable import printable
from spanscore.otlp.findings import Refusal, SpanRefused
from spanscore.otlp.json_scalars import is_repeated
from spanscore.otlp.strict_json import kind_of_json

_Number = TypeVar("_Number", bound=int)

_OPTIONAL: Final = "?"
_SHOWN: Final = 40
_KINDS: Final[Mapping[Any, str]] = {str: "a string", dict: "an object", list: "an array"}

# An object has at least the named fields; one with `?` may be missing, null or empty. A list has the shape of its
# items. `object` is any value: its reader says what is allowed.
_TAGS: Final[Any] = [{"key": str}]
_IDS: Final[Any] = {"context": {"trace_id": object, "span_id": object}}

JAEGER: Final[Any] = {"data": [{"spans": [object], "processes?": {}}]}
JAEGER_PROCESS: Final[Any] = {"tags?": _TAGS}
JAEGER_SPAN: Final[Any] = {
    "traceID": object,
    "spanID": object,
    "operationName": str,
    "startTime": object,
    "processID?": str,
    "process?": JAEGER_PROCESS,
    "tags?": _TAGS,
    "references?": [{"spanID": object, "refType?": str}],
    "logs?": [{"timestamp": object, "fields?": _TAGS}],
}
ZIPKIN_SPAN: Final[Any] = {
    "name?": str,
    "tags?": {},
    "annotations?": [{"value": object, "timestamp": object}],
    "localEndpoint?": {},
}
SDK_SPAN: Final[Any] = {
    **_IDS,
    "name": str,
    "kind?": str,
    "attributes?": {},
    "status?": {"status_code?": str, "description?": str},
    "events?": [{"name": str, "attributes?": {}}],
    "links?": [_IDS],
    "instrumentation_scope?": {"name?": str},
    "resource?": {"attributes?": {}},
}
TEMPO: Final[Any] = {"batches": [{"instrumentationLibrarySpans?": [{}]}]}

_FIELD: Final = re.compile(r"Failed to parse (\w+) field")
_PROTOBUF_KINDS: Final = {
    FieldDescriptor.CPPTYPE_STRING: "a string",
    FieldDescriptor.CPPTYPE_BOOL: "a boolean",
    FieldDescriptor.CPPTYPE_ENUM: "the name or the number of a value of its enumeration",
    FieldDescriptor.CPPTYPE_MESSAGE: "an object",
}


def check(value: Any, shape: Any, path: str = "") -> None:
    """Check that a value of JSON has a shape.

    Raises:
        SpanRefused: it has not; the message names the place, and what is allowed there.
    """
    if shape is object:
        return
    kind: Any = shape if isinstance(shape, type) else type(shape)
    if type(value) is not kind:
        raise malformed(f"{path or 'it'} must be {_KINDS[kind]}, not {kind_of_json(value)}")
    if kind is list:
        for index, item in enumerate(value):
            check(item, shape[0], f"{path}[{index}]")
    elif kind is dict:
        for name, inner in shape.items():
            key = name.removesuffix(_OPTIONAL)
            if key == name and key not in value:
                raise malformed(f"there is no {key!r}" + (f" in {path}" if path else ""))
            if key == name or value.get(key):
                check(value[key], inner, f"{path}.{key}" if path else key)


def malformed(message: str) -> SpanRefused:
    """Return the error of a span that has no form that is read."""
    return SpanRefused(Refusal.MALFORMED, message)


def one_of(name: str, allowed: Mapping[str, _Number], value: str, prefix: str) -> _Number:
    """Return the number of a value of the enumeration `name`, whose names in `allowed` have the prefix.

    Raises:
        SpanRefused: there is no such value.
    """
    if prefix + value not in allowed:
        names = ", ".join(each.removeprefix(prefix) for each in allowed)
        raise malformed(f"{name} must be one of {names}, not {shown(value)}")
    return allowed[prefix + value]


def shown(value: Any) -> str:
    """Return a value of JSON for a message: a short text or number as it is, else its type."""
    return printable(repr(value), _SHOWN) if type(value) in {str, int, float} else kind_of_json(value)


def told_by_protobuf(error: Exception, message: type[Message]) -> str:
    """Return a message about a value that protobuf's reader of JSON does not take."""
    path: list[str] = []
    allowed = "what protobuf's JSON allows"
    descriptor: Any = message.DESCRIPTOR
    for name in _FIELD.findall(str(error)):
        field = descriptor.fields_by_camelcase_name.get(name) or descriptor.fields_by_name.get(name)
        if field is None:
            break
        path.append(name)
        allowed = _PROTOBUF_KINDS.get(field.cpp_type, "a number")
        if is_repeated(field):
            allowed = "an array of objects"
        if (descriptor := field.message_type) is None:
            break
        if descriptor.oneofs:
            allowed = "an object with one value"
    return f"{'.'.join(path) or 'a value'} must be {allowed}"
