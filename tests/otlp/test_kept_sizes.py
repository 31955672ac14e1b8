"""What spans are said to keep in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from sys import getsizeof
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from receivers.otlp_requests import REQUESTS, request_of, simple_span, to_json
from spanscore.model import SharedAttributes, Span
from spanscore.otlp.findings import Decoded
from spanscore.otlp.from_json import decode_json
from spanscore.otlp.from_protobuf import decode_protobuf, decoding_any
from spanscore.otlp.slices import at_once

LONG = 1_000


def texts(value: Any) -> Iterator[str | bytes]:
    """Yield every text in a value, those that are keys too."""
    if isinstance(value, str | bytes):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts(inner)


def of_texts(value: Any) -> int:
    """Return how many bytes all texts in a value take."""
    return sum(map(getsizeof, texts(value)))


def own(span: Span) -> Any:
    """Return what a span has to itself and can be long."""
    return span.name, span.status_message, span.scope, span.attributes, span.events


TEXTS = st.text(max_size=80) | st.builds(lambda char: char * LONG, st.characters(codec="utf-8"))
PAIRS = st.lists(
    st.builds(
        KeyValue,
        key=TEXTS,
        value=st.builds(AnyValue, string_value=TEXTS) | st.builds(AnyValue, bytes_value=st.binary(max_size=100)),
    ),
    max_size=4,
)
SPANS = st.builds(
    lambda name, message, pairs, events: simple_span(
        1, name=name, status=Status(message=message), attributes=pairs, events=events
    ),
    TEXTS,
    TEXTS,
    PAIRS,
    st.lists(st.builds(SpanMessage.Event, name=TEXTS, attributes=PAIRS), max_size=2),
)


@given(span=SPANS, scope=TEXTS, resource=PAIRS)
def test_a_size_is_never_below_what_the_texts_take(span: SpanMessage, scope: str, resource: list[KeyValue]) -> None:
    """Of any length, of any alphabet, as keys and as values, and the same in both encodings."""
    request = request_of(span)
    request.resource_spans[0].resource.attributes.extend(resource)
    request.resource_spans[0].scope_spans[0].scope.name = scope
    decoded = decode_protobuf(request.SerializeToString())

    (of_span,), (kept,) = decoded.sizes, decoded.spans
    assert of_span >= of_texts(own(kept))
    if resource:
        assert isinstance(kept.resource, SharedAttributes)
        assert kept.resource.size >= of_texts(kept.resource)
    in_json = decode_json(to_json(request))
    assert (decoded.sizes, kept.resource) == (in_json.sizes, in_json.spans[0].resource)


@given(request=REQUESTS)
def test_each_span_has_a_size(request: Any) -> None:
    """Both encodings tell one for each span, and the same."""
    decoded = decode_protobuf(request.SerializeToString())

    assert len(decoded.spans) == len(decoded.sizes)
    assert decoded.sizes == decode_json(to_json(request)).sizes


@pytest.mark.parametrize("decode", [decode_protobuf, lambda body: decode_json(to_json(_parsed(body)))])
def test_a_large_span_does_not_hide_behind_small_ones(decode: Callable[[bytes], Decoded]) -> None:
    """Each is told its own size: not what they share of their request."""
    large = [KeyValue(key=str(number), value=AnyValue(string_value="x" * 2**20)) for number in range(3)]
    body = request_of(simple_span(1, 1, attributes=large), *[simple_span(1, 2)] * 100).SerializeToString()

    first, *others = decode(body).sizes
    assert 3 * 2**20 <= first <= 3 * 2**20 + 2_000
    assert max(others) <= 1_500


def test_what_is_left_out_is_not_kept() -> None:
    """A value that is too long takes nothing."""
    pair = KeyValue(key="k", value=AnyValue(string_value="x" * (2**20 + 1)))

    (size,) = decode_protobuf(request_of(simple_span(1, attributes=[pair])).SerializeToString()).sizes
    assert size <= 1_000


def _parsed(body: bytes) -> Any:
    request = request_of()
    request.ParseFromString(body)
    return request


def test_a_size_is_the_same_each_time() -> None:
    """Python keeps the UTF-8 of a text that was written to a message beside it: that is not the span's."""
    body = request_of(simple_span(1, name="\u65e5" * 40, status=Status(message="x" * 90))).SerializeToString()
    first = at_once(decoding_any(body))
    SpanMessage(name=first.spans[0].name)
    assert first.sizes == at_once(decoding_any(body)).sizes == decode_protobuf(body).sizes
