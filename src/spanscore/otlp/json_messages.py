"""The messages of an OTLP/JSON trace request, as far as they are beyond doubt.

A type here may be stricter than `json_rules` are, but never laxer: what it does not take is read by those.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

from msgspec import Meta, Raw, Struct
from msgspec.json import Decoder

from spanscore.otlp.findings import ATTRIBUTES_PER_SPAN, EVENTS_PER_SPAN, VALUE_LENGTH
from spanscore.otlp.json_values import INT64

# Limits that must not be passed to be beyond doubt.
_Text: TypeAlias = Annotated[str, Meta(max_length=VALUE_LENGTH)]
_Digits: TypeAlias = Annotated[str, Meta(max_length=19)]  # no 19 digits are more than 64 bits hold
_Int32: TypeAlias = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
_UInt32: TypeAlias = Annotated[int, Meta(ge=0, le=2**32 - 1)]
_Int64: TypeAlias = Annotated[int, Meta(ge=INT64[0], le=INT64[1])]
_UInt63: TypeAlias = Annotated[int, Meta(ge=0, le=INT64[1])]


class Message(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """What all messages have in common.

    Unknown fields are forbidden because they would be passed over however deep they nest. The garbage collector need
    not look at messages: what is read from JSON refers to nothing that refers back.
    """


class AnyValue(Message):
    string_value: _Text | None = None
    int_value: _Int64 | str | None = None
    double_value: float | None = None
    bool_value: bool | None = None
    array_value: ArrayValue | None = None
    kvlist_value: KeyValueList | None = None


class ArrayValue(Message):
    values: list[AnyValue | None] | None = None


class KeyValue(Message):
    key: str  # required, as ids are: an empty object takes less memory as a dict than as a message
    value: AnyValue | None = None


class KeyValueList(Message):
    values: list[KeyValue] | None = None


Attributes: TypeAlias = Annotated[list[KeyValue], Meta(max_length=ATTRIBUTES_PER_SPAN)]


class Event(Message):
    time_unix_nano: _Digits | _UInt63 | None = None
    name: str | None = None
    attributes: Attributes | None = None
    dropped_attributes_count: _UInt32 | None = None


class Link(Message):
    trace_id: str
    span_id: str
    trace_state: str | None = None
    attributes: Attributes | None = None
    dropped_attributes_count: _UInt32 | None = None
    flags: _UInt32 | None = None


class Status(Message):
    message: str | None = None
    code: _Int32 | None = None


class Span(Message):
    trace_id: str
    span_id: str
    parent_span_id: str | None = None
    trace_state: str | None = None
    flags: _UInt32 | None = None
    name: str | None = None
    kind: _Int32 | None = None
    start_time_unix_nano: _Digits | _UInt63 | None = None
    end_time_unix_nano: _Digits | _UInt63 | None = None
    attributes: Attributes | None = None
    dropped_attributes_count: _UInt32 | None = None
    events: Annotated[list[Event], Meta(max_length=EVENTS_PER_SPAN)] | None = None
    dropped_events_count: _UInt32 | None = None
    links: list[Link] | None = None
    dropped_links_count: _UInt32 | None = None
    status: Status | None = None


class Scope(Message):
    name: str | None = None
    version: str | None = None
    attributes: Attributes | None = None
    dropped_attributes_count: _UInt32 | None = None


class ScopeSpans(Message):
    scope: Scope | None = None
    spans: list[Span] | None = None
    schema_url: str | None = None


class Resource(Message):
    attributes: Attributes | None = None
    dropped_attributes_count: _UInt32 | None = None
    entity_refs: list[dict[str, str | list[str] | None]] | None = None


class ResourceSpans(Message):
    resource: Resource | None = None
    scope_spans: list[ScopeSpans] | None = None
    schema_url: str | None = None


class Request(Message):
    resource_spans: list[ResourceSpans] | None = None


REQUEST: Final = Decoder(Request)
"""The whole of a request."""
RESOURCE: Final = Decoder(Resource | None)
SCOPE: Final = Decoder(Scope | None)
SPAN: Final = Decoder(Span)


class _Around(Struct, rename="camel", gc=False):
    """What is around the spans. Nothing of it is read here, so that what is not known is passed over."""


class RawScopeSpans(_Around):
    scope: Raw = Raw(b"null")
    spans: list[Raw] | None = None


class RawResourceSpans(_Around):
    resource: Raw = Raw(b"null")
    scope_spans: list[RawScopeSpans] | None = None


class RawRequest(_Around):
    resource_spans: list[RawResourceSpans] | None = None


class _Ids(_Around):
    trace_id: Any = None
    span_id: Any = None


IDS: Final = Decoder(_Ids)
"""The ids of a span alone."""
RAW_REQUEST: Final = Decoder(RawRequest)
"""A request whose resources, scopes and spans stay as they are written: a tenth of the time."""
