"""Makes OTLP trace requests for tests, in both encodings, without using the code under test."""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections.abc import Callable, Mapping, MutableSequence
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from spanscore import model
from spanscore.otlp.findings import Refusal

_AnyMessage = TypeVar("_AnyMessage", bound=Message)

OF_AN_AGENT = {"gen_ai.operation.name": "invoke_agent"}
"""What makes a span one that a dialect knows: other traces are left alone."""

CORPUS = Path(__file__).parents[1] / "corpus"
CORPUS_NAMES = sorted(path.name.removesuffix(".jsonl.gz") for path in CORPUS.glob("*.jsonl.gz"))

_IDS = {"trace_id", "span_id", "parent_span_id"}
_WRITTEN_AS_TEXT = {
    FieldDescriptor.TYPE_INT64,
    FieldDescriptor.TYPE_UINT64,
    FieldDescriptor.TYPE_FIXED64,
}


def refusal(reason: Refusal) -> Refusal:
    """Return the reason that is given for a refusal: protobuf before 7.35 does not say what is wrong."""
    try:
        Span.FromString(b"\x2a\x01\xff")  # a name that is not UTF-8
    except DecodeError as error:
        return reason if "UTF-8" in str(error) else Refusal.MALFORMED
    raise AssertionError


def corpus_lines(name: str) -> list[bytes]:
    """Return the trace requests of one recording of the corpus, as JSON; logs stand between them in some."""
    lines = gzip.decompress((CORPUS / f"{name}.jsonl.gz").read_bytes()).splitlines()
    return [line for line in lines if b'"resourceSpans"' in line]


def trace_id(number: int) -> bytes:
    """Return the trace id that is this number."""
    return number.to_bytes(16, "big")


def span_id(number: int) -> bytes:
    """Return the span id that is this number."""
    return number.to_bytes(8, "big")


def request_of(*spans: Span) -> ExportTraceServiceRequest:
    """Return a request with these spans in one scope."""
    return ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=spans)])])


def simple_span(trace: int, span: int = 1, **fields: Any) -> Span:
    """Return a valid span whose ids are these numbers: the run of an agent, unless other attributes are given."""
    fields = {
        "name": "work",
        "start_time_unix_nano": 1,
        "end_time_unix_nano": 2,
        "attributes": texts(OF_AN_AGENT),
    } | fields
    return Span(trace_id=trace_id(trace), span_id=span_id(span), **fields)


def texts(attributes: Mapping[str, str]) -> list[KeyValue]:
    """Return attributes whose values are texts, as OTLP has them."""
    return [KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in attributes.items()]


def decoded_span(trace: int, span: int = 1) -> model.Span:
    """Return what `simple_span` is decoded to."""
    return model.Span(trace_id(trace), span_id(span), b"", "work", 1, 2, attributes=OF_AN_AGENT)


def field(number: int, body: bytes) -> bytes:
    """Encode a length-delimited field in protobuf."""
    length = bytearray()
    rest = len(body)
    while rest > 0x7F:
        length.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([number << 3 | 2, *length, rest]) + body


def to_json(request: ExportTraceServiceRequest, **how: Any) -> bytes:
    """Encode a request as OTLP/JSON."""
    return json.dumps(_object(request), **how).encode()


def from_json(line: bytes) -> ExportTraceServiceRequest:
    """Turn OTLP/JSON into a protobuf message.

    Raises:
        KeyError: a name is that of no field.
    """
    return as_message(line, ExportTraceServiceRequest)


def as_message(line: bytes, kind: type[_AnyMessage]) -> _AnyMessage:
    """Turn OTLP/JSON into a message of a kind, as above."""
    return kind(**_fields(json.loads(line), kind.DESCRIPTOR))


def _fields(document: Mapping[str, Any], message: Descriptor) -> dict[str, Any]:
    fields = {}
    for name, value in document.items():
        if value is not None:
            field_name, read = _known(message)[name]
            fields[field_name] = [*map(read, value)] if isinstance(value, list) else read(value)
    return fields


@cache
def _known(message: Descriptor) -> dict[str, tuple[str, Callable[[Any], Any]]]:
    """Return the fields of a message by their names in JSON: their names in protobuf, and what reads a value."""
    return {name: (kind.name, _reading(kind)) for name, kind in message.fields_by_camelcase_name.items()}


def _reading(kind: FieldDescriptor) -> Callable[[Any], Any]:
    if kind.message_type is not None:
        return partial(_fields, message=kind.message_type)
    if kind.name in _IDS:
        return bytes.fromhex
    if kind.type == FieldDescriptor.TYPE_BYTES:
        return base64.b64decode
    if kind.type == FieldDescriptor.TYPE_DOUBLE:
        return float
    return int if kind.type in _WRITTEN_AS_TEXT else lambda value: value


def _object(message: Message) -> dict[str, Any]:
    return {
        kind.json_name: (
            [_json(kind, item) for item in value] if isinstance(value, MutableSequence) else _json(kind, value)
        )
        for kind, value in message.ListFields()
    }


def _json(kind: FieldDescriptor, value: Any) -> Any:
    if isinstance(value, Message):
        return _object(value)
    if kind.name in _IDS:
        return value.hex()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if kind.type in _WRITTEN_AS_TEXT:
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _mostly(valid: st.SearchStrategy[Any], invalid: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 19).flatmap(lambda number: valid if number else invalid)


_TEXT = st.text(max_size=6)
_UINT32 = st.integers(0, 2**32 - 1)
_INT32 = st.integers(-(2**31), 2**31 - 1)
_UINT64 = st.integers(0, 2**64 - 1)

_SCALARS = st.one_of(
    st.builds(AnyValue),
    st.builds(AnyValue, string_value=_TEXT),
    st.builds(AnyValue, bool_value=st.booleans()),
    st.builds(AnyValue, int_value=st.integers(-(2**63), 2**63 - 1)),
    # No NaN: it is not equal to itself.
    st.builds(AnyValue, double_value=st.floats(allow_nan=False)),
    st.builds(AnyValue, bytes_value=st.binary(max_size=6)),
)


def _pairs(values: st.SearchStrategy[AnyValue]) -> st.SearchStrategy[list[KeyValue]]:
    return st.lists(st.builds(KeyValue, key=_TEXT, value=values) | st.builds(KeyValue, key=_TEXT), max_size=3)


_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.builds(AnyValue, array_value=st.builds(ArrayValue, values=st.lists(inner, max_size=3)))
        | st.builds(AnyValue, kvlist_value=st.builds(KeyValueList, values=_pairs(inner)))
    ),
    max_leaves=5,
)
_ATTRIBUTES = _pairs(_VALUES)
_BAD_IDS = st.binary(max_size=17) | st.sampled_from([bytes(8), bytes(16)])
_TRACE_IDS = _mostly(st.binary(min_size=16, max_size=16), _BAD_IDS)
_SPAN_IDS = _mostly(st.binary(min_size=8, max_size=8), _BAD_IDS)

_SPANS = st.builds(
    Span,
    trace_id=_TRACE_IDS,
    span_id=_SPAN_IDS,
    parent_span_id=st.just(b"") | _SPAN_IDS,
    trace_state=_TEXT,
    flags=_UINT32,
    name=_TEXT,
    kind=_INT32,
    start_time_unix_nano=_UINT64,
    end_time_unix_nano=_UINT64,
    attributes=_ATTRIBUTES,
    dropped_attributes_count=_UINT32,
    events=st.lists(
        st.builds(
            Span.Event,
            time_unix_nano=_UINT64,
            name=_TEXT,
            attributes=_ATTRIBUTES,
            dropped_attributes_count=_UINT32,
        ),
        max_size=2,
    ),
    links=st.lists(st.builds(Span.Link, trace_id=_TRACE_IDS, span_id=_SPAN_IDS, attributes=_ATTRIBUTES), max_size=1),
    status=st.builds(Status, code=_INT32, message=_TEXT),
)
REQUESTS = st.builds(
    ExportTraceServiceRequest,
    resource_spans=st.lists(
        st.builds(
            ResourceSpans,
            resource=st.none() | st.builds(Resource, attributes=_ATTRIBUTES),
            schema_url=_TEXT,
            scope_spans=st.lists(
                st.builds(
                    ScopeSpans,
                    scope=st.none() | st.builds(InstrumentationScope, name=_TEXT, attributes=_ATTRIBUTES),
                    spans=st.lists(_SPANS, max_size=3),
                ),
                max_size=2,
            ),
        ),
        max_size=2,
    ),
)
"""Any request that can be written in both encodings, with a few bad ids."""
