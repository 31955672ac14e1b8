"""Trace requests as bytes, with unknown fields everywhere, and taken apart without the code under test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from receivers.otlp_requests import field


class RawSpan(NamedTuple):
    """A span and what stands around it."""

    request: bytes
    resource: bytes
    scope: bytes
    span: bytes


def taken_apart(bodies: Iterable[bytes]) -> Counter[RawSpan]:
    """Return the spans of requests, each with all other fields of the messages around it."""
    found: Counter[RawSpan] = Counter()
    for body in bodies:
        request = _REQUEST.FromString(body)
        around = _without(request, "inner")
        for resource_spans in request.inner:
            resource = _without(resource_spans, "inner")
            for scope_spans in resource_spans.inner:
                scope = _without(scope_spans, "spans")
                found.update(RawSpan(around, resource, scope, span) for span in scope_spans.spans)
    return found


def _request_type() -> Any:
    """Return the message of a request that knows nothing but where the spans are: all else is unknown, and kept."""
    file = FileDescriptorProto(name="raw.proto", package="raw", syntax="proto3")
    for name, number, inner in (("Request", 1, "Resource"), ("Resource", 2, "Scope")):
        file.message_type.add(name=name).field.add(
            name="inner",
            number=number,
            label=FieldDescriptorProto.LABEL_REPEATED,
            type=FieldDescriptorProto.TYPE_MESSAGE,
            type_name=f".raw.{inner}",
        )
    file.message_type.add(name="Scope").field.add(
        name="spans", number=2, label=FieldDescriptorProto.LABEL_REPEATED, type=FieldDescriptorProto.TYPE_BYTES
    )
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("raw.Request"))


_REQUEST = _request_type()


def _without(message: Any, name: str) -> bytes:
    rest = type(message)()
    rest.CopyFrom(message)
    rest.ClearField(name)
    encoded: bytes = rest.SerializeToString()
    return encoded


# All with the number 1001.
_UNKNOWN = st.one_of(
    st.binary(max_size=200).map(lambda content: b"\xca\x3e" + field(1, content)[1:]),
    st.just(b"\xc8\x3e\x96\x01"),  # a number
    st.binary(min_size=8, max_size=8).map(lambda content: b"\xc9\x3e" + content),  # 64 bits
    st.binary(min_size=4, max_size=4).map(lambda content: b"\xcd\x3e" + content),  # 32 bits
    st.just(b"\xcb\x3e\xcb\x3e\xc8\x3e\x01\xcc\x3e\xcc\x3e"),  # a group in a group
)


def _message(*fields: st.SearchStrategy[list[bytes]]) -> st.SearchStrategy[bytes]:
    """Return a message of fields in any order, with unknown ones between them."""
    unknown = st.lists(_UNKNOWN, max_size=1)
    everything = st.tuples(*fields, unknown).map(lambda groups: [each for group in groups for each in group])
    return everything.flatmap(st.permutations).map(b"".join)


def _fields(number: int, content: st.SearchStrategy[bytes], max_size: int) -> st.SearchStrategy[list[bytes]]:
    return st.lists(content.map(lambda encoded: field(number, encoded)), max_size=max_size)


_ATTRIBUTES = st.lists(
    st.builds(KeyValue, key=st.text(max_size=4), value=st.builds(AnyValue, string_value=st.text(max_size=300))),
    max_size=2,
)
_SPANS = st.tuples(
    st.lists(_UNKNOWN, max_size=1),
    st.builds(
        Span,
        trace_id=st.integers(1, 4).map(lambda number: number.to_bytes(16, "big")),
        span_id=st.integers(1, 4).map(lambda number: number.to_bytes(8, "big")),
        parent_span_id=st.sampled_from([b"", bytes(8), b"p" * 8]),
        trace_state=st.sampled_from(["", "a=b"]),
        name=st.text(max_size=4),
        start_time_unix_nano=st.integers(0, 2**64 - 1),
        end_time_unix_nano=st.sampled_from([0, 1, 2**64 - 1]),
        attributes=_ATTRIBUTES,
        links=st.lists(st.builds(Span.Link, trace_id=st.just(b"l" * 16), flags=st.just(7)), max_size=1),
        flags=st.sampled_from([0, 0x01, 0x101, 0x301, 2**32 - 1]),
    ).map(Span.SerializeToString),
    st.lists(_UNKNOWN, max_size=1),
).map(lambda parts: b"".join([*parts[0], parts[1], *parts[2]]))

_SCOPE_SPANS = _message(
    _fields(
        1, st.builds(InstrumentationScope, name=st.text(max_size=4)).map(InstrumentationScope.SerializeToString), 1
    ),
    _fields(2, _SPANS, 4),
    _fields(3, st.just(b"https://opentelemetry.io/schemas/1.37.0"), 1),
)
_RESOURCE_SPANS = _message(
    _fields(1, st.builds(Resource, attributes=_ATTRIBUTES).map(Resource.SerializeToString), 1),
    _fields(2, _SCOPE_SPANS, 3),
    _fields(3, st.just(b"https://opentelemetry.io/schemas/1.37.0"), 1),
)
REQUESTS = _message(_fields(1, _RESOURCE_SPANS, 3))
"""Any request as bytes: roots, local and remote ones, finished or not, among other spans; the ids repeat."""


def is_root(span: bytes, *, remote: bool) -> bool:
    """Return whether a span is a finished root."""
    parsed = Span.FromString(span)
    has_remote_parent = remote and parsed.flags & 0x300 == 0x300
    return bool(parsed.end_time_unix_nano) and (not any(parsed.parent_span_id) or has_remote_parent)
