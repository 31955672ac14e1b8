"""The usual messages of OTLP/JSON with spans, as types of msgspec that are made from the types of protobuf.

A type here may be stricter than the rules, but never laxer: `from_json` reads the requests that it refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from msgspec import Meta, Raw, defstruct
from msgspec.json import Decoder
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from spanscore.otlp.json_scalars import INT64, is_repeated
from spanscore.otlp.limits import ATTRIBUTES_PER_SPAN, EVENTS_PER_SPAN, VALUE_LENGTH

_UINT32: Final = Annotated[int, Meta(ge=0, le=2**32 - 1)]
_TYPES: Final[Mapping[int, Any]] = {
    FieldDescriptor.TYPE_STRING: str,
    FieldDescriptor.TYPE_BYTES: str,  # ids; values are taken as unusual
    FieldDescriptor.TYPE_BOOL: bool,
    FieldDescriptor.TYPE_DOUBLE: float,
    FieldDescriptor.TYPE_INT64: Annotated[int, Meta(ge=INT64[0], le=INT64[1])] | str,
    # No 19 digits are more than 64 bits hold.
    FieldDescriptor.TYPE_FIXED64: Annotated[str, Meta(max_length=19)] | Annotated[int, Meta(ge=0, le=INT64[1])],
    FieldDescriptor.TYPE_FIXED32: _UINT32,
    FieldDescriptor.TYPE_UINT32: _UINT32,
    FieldDescriptor.TYPE_ENUM: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)],
}
_UNUSUAL: Final = {"bytes_value", "string_value_strindex", "key_strindex"}
_REQUIRED: Final = {"Span.trace_id", "Span.span_id", "Link.trace_id", "Link.span_id", "KeyValue.key"}
"""An empty object takes less memory as a dict than as a message."""
_MOST: Final = {"attributes": ATTRIBUTES_PER_SPAN, "events": EVENTS_PER_SPAN, "string_value": VALUE_LENGTH}
"""The most items or characters of these fields."""
_AS_WRITTEN: Final = {"Resource", "InstrumentationScope", "Span"}
_MOST_NESTED: Final = 16
"""Values in each other. Deeper ones are rare."""


@cache
def _message(message: Descriptor, nested: int = _MOST_NESTED, *, is_raw: bool = False) -> Any:
    """Return the type of a message, with at most `nested` values in each other.

    Unknown fields are forbidden because they would be passed over however deep they nest. The garbage collector need
    not look at messages: what is read from JSON refers to nothing that refers back.
    """
    fields: list[Any] = []
    for field in message.fields:
        if field.name in _UNUSUAL:
            continue
        kind = _TYPES.get(field.type)
        if field.message_type and is_raw and field.message_type.name in _AS_WRITTEN:
            kind = Raw
        elif field.message_type:
            inside = nested - (message.name == "AnyValue")
            kind = _message(field.message_type, inside, is_raw=is_raw) if inside >= 0 else None
        if is_repeated(field):
            has_null = message.name == "ArrayValue"
            kind = list[kind | None] if has_null else list[kind]  # type: ignore[valid-type] # made of types
        if field.name in _MOST:
            kind = Annotated[kind, Meta(max_length=_MOST[field.name])]
        if f"{message.name}.{field.name}" in _REQUIRED:
            fields.append((field.name, kind))
        else:
            fields.append((field.name, kind, Raw(b"null")) if kind is Raw else (field.name, kind and kind | None, None))
    return defstruct(message.name, fields, rename="camel", forbid_unknown_fields=True, gc=False, kw_only=True)


REQUEST: Final[Decoder[Any]] = Decoder(_message(ExportTraceServiceRequest.DESCRIPTOR))
"""The whole of a request."""
RAW_REQUEST: Final[Decoder[Any]] = Decoder(_message(ExportTraceServiceRequest.DESCRIPTOR, is_raw=True))
"""A request whose resources, scopes and spans stay as they are written: a tenth of the time."""
RESOURCE: Final[Decoder[Any]] = Decoder(_message(Resource.DESCRIPTOR) | None)
SCOPE: Final[Decoder[Any]] = Decoder(_message(InstrumentationScope.DESCRIPTOR) | None)
SPAN: Final[Decoder[Any]] = Decoder(_message(Span.DESCRIPTOR))
