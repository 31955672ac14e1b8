from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span

from receivers.otlp_requests import decoded_span, field, refusal, request_of, simple_span, trace_id
from spanscore.otlp.findings import Decoded, MalformedRequest, Refusal, RefusedSpans
from spanscore.otlp.from_protobuf import decode_protobuf, decoding_protobuf, trace_ids
from spanscore.otlp.protobuf_check import MOST_FIELDS, counting_fields
from spanscore.otlp.slices import at_once
from spanscore.otlp.wire import length_prefix

BAD_TEXT = b"bad\xff\xfetext"
BAD_TEXT_STAND_IN = "bad--text"  # of the same length
UNKNOWN_FIELDS = (
    b"\x98\x06\x96\x01"  # field 99, a number
    b"\x99\x06abcdefgh"  # 64 bits
    b"\x9a\x06\x02\x0a\xff"  # bytes
    b"\x9b\x06\x9b\x06\x98\x06\x05\x9a\x06\x01\xff\x9c\x06\x9c\x06"  # a group with a group in it
    b"\x9d\x06abcd"  # 32 bits
)
WHY = {
    Refusal.INVALID_UTF8: "a string is not valid UTF-8",
    Refusal.TOO_DEEP: "a value is nested too deeply",
    Refusal.MALFORMED: "not valid protobuf",
}


def refused(where: str, reason: Refusal, spans: int) -> RefusedSpans:
    """Return the refusal of spans for what the parser found there."""
    reason = refusal(reason)
    return RefusedSpans(reason, spans, f"{where}: {WHY[reason]}")


def with_bad_text(request: ExportTraceServiceRequest) -> bytes:
    """Encode a request, with text that is not UTF-8 wherever the stand-in for it was."""
    return request.SerializeToString().replace(BAD_TEXT_STAND_IN.encode(), BAD_TEXT)


def request_of_encoded(*spans: bytes) -> bytes:
    """Encode a request with spans that are encoded already."""
    return field(1, field(2, b"".join(field(2, span) for span in spans)))


def encoded_span_nested(depth: int) -> bytes:
    """Encode a span with an attribute inside that many lists."""
    value = b""
    for _ in range(depth):
        value = field(5, field(1, value))  # AnyValue.array_value, ArrayValue.values
    return simple_span(1).SerializeToString() + field(9, field(2, value))  # Span.attributes, KeyValue.value


def test_text_that_is_not_utf8_refuses_its_span_only() -> None:
    """The parser refuses a request for one bad string; the other spans are saved."""
    bad = simple_span(2, attributes=[KeyValue(key="k", value=AnyValue(string_value=BAD_TEXT_STAND_IN))])
    request = request_of(simple_span(1), bad, simple_span(3), bad)
    request.resource_spans.add().scope_spans.add().spans.append(simple_span(4))

    where = "resource_spans[0].scope_spans[0].spans[1]"
    expected = Decoded(
        spans=[decoded_span(1), decoded_span(3), decoded_span(4)],
        refused=(refused(where, Refusal.INVALID_UTF8, 2),),
    )
    assert expected == decode_protobuf(with_bad_text(request))
    assert tuple(map(trace_id, (1, 2, 3, 4))) == trace_ids(with_bad_text(request))


def test_a_span_nested_too_deeply_is_refused_alone() -> None:
    """The parser refuses a request for one value nested too deeply; the other spans are saved."""
    where = "resource_spans[0].scope_spans[0].spans[0]"
    expected = Decoded(spans=[decoded_span(2)], refused=(refused(where, Refusal.TOO_DEEP, 1),))
    assert expected == decode_protobuf(request_of_encoded(encoded_span_nested(200), simple_span(2).SerializeToString()))


def test_a_span_that_is_not_protobuf_is_refused_alone() -> None:
    """Bytes that are no span, in the place of one, cost nothing but themselves."""
    where = "resource_spans[0].scope_spans[0].spans[0]"

    expected = Decoded(spans=[decoded_span(1)], refused=(refused(where, Refusal.MALFORMED, 1),))
    assert expected == decode_protobuf(request_of_encoded(b"\xff", simple_span(1).SerializeToString()))


def test_a_broken_resource_refuses_its_spans() -> None:
    """Spans are not scored under a resource that is not theirs; those of another resource are saved."""
    request = request_of(simple_span(1), simple_span(2))
    request.resource_spans[0].resource.attributes.add(key=BAD_TEXT_STAND_IN)
    request.MergeFrom(request_of(simple_span(3)))

    expected = Decoded(
        spans=[decoded_span(3)], refused=(refused("resource_spans[0].resource", Refusal.INVALID_UTF8, 2),)
    )
    assert expected == decode_protobuf(with_bad_text(request))


def test_a_broken_scope_refuses_its_spans() -> None:
    """Spans are not scored under a scope that is not theirs; those of another scope are saved."""
    request = request_of(simple_span(1))
    request.resource_spans[0].scope_spans[0].scope.name = BAD_TEXT_STAND_IN
    request.resource_spans[0].scope_spans.add(spans=[simple_span(2)])

    where = "resource_spans[0].scope_spans[0].scope"
    expected = Decoded(spans=[decoded_span(2)], refused=(refused(where, Refusal.INVALID_UTF8, 1),))
    assert expected == decode_protobuf(with_bad_text(request))


def test_saved_spans_keep_their_resource_and_scope() -> None:
    """What is broken elsewhere changes nothing about a span, not even when its resource comes in two parts."""
    part = Resource(attributes=[KeyValue(key="a")]).SerializeToString()
    other_part = Resource(attributes=[KeyValue(key="b")]).SerializeToString()
    spans = [simple_span(1), simple_span(2, name=BAD_TEXT_STAND_IN)]
    scope_spans = ScopeSpans(scope=InstrumentationScope(name="agent"), spans=spans).SerializeToString()
    resource_spans = field(1, part) + field(2, scope_spans) + field(1, other_part)
    body = field(1, resource_spans.replace(BAD_TEXT_STAND_IN.encode(), BAD_TEXT))

    assert [decoded_span(1)._replace(scope="agent", resource={"a": None, "b": None})] == decode_protobuf(body).spans


@pytest.mark.parametrize("broken", [False, True])
def test_unknown_fields_are_ignored_at_every_level(*, broken: bool) -> None:
    """What a later version of OTLP adds changes nothing, also not while a broken request is taken apart."""
    request = request_of(simple_span(1))
    if broken:
        request.resource_spans[0].scope_spans[0].spans.append(simple_span(2, name=BAD_TEXT_STAND_IN))
    resource_spans = request.resource_spans[0]
    scope_spans = resource_spans.scope_spans[0]
    for message in (scope_spans.spans[0], scope_spans, resource_spans, request):
        message.MergeFromString(UNKNOWN_FIELDS)
    resource_spans.schema_url = BAD_TEXT_STAND_IN if broken else "https://example.com"

    decoded = decode_protobuf(with_bad_text(request), max_spans=10)
    assert ([decoded_span(1)], int(broken)) == (decoded.spans, decoded.refused_spans)


@pytest.mark.parametrize(
    "body",
    [
        b"\xff\xff\xff",
        b"{}{}",
        b"\x0a\x05abc",
        b"\x0b\x08\x01",
        b"\x0c\x0c\x0c",
        b"\x09abc",
        b"\x0e\x0e\x0e",
        b"\xff" * 20,
        request_of(simple_span(1)).SerializeToString()[:-1],
        request_of(simple_span(1)).SerializeToString() + b"\x0a",
    ],
)
@pytest.mark.parametrize("max_spans", [1, 65_536])
def test_malformed_requests(body: bytes, max_spans: int) -> None:
    """Bytes that are no request at all, or half of one, are refused as a whole."""
    with pytest.raises(MalformedRequest, match="not an ExportTraceServiceRequest in protobuf: "):
        decode_protobuf(body, max_spans=max_spans)


def test_millions_of_empty_spans_are_refused_unparsed() -> None:
    """A small request with very many spans is refused before they take memory."""
    body = field(1, field(2, field(2, b"") * 1_000_000))

    with pytest.raises(MalformedRequest, match="the request has more than 65536 spans"):
        decode_protobuf(body)


@pytest.mark.parametrize(
    "body",
    [lambda parts: field(1, b"") * parts, lambda parts: field(1, field(2, b"") * (parts - 1))],
    ids=["resources", "scopes"],
)
def test_resources_and_scopes_are_limited(body: Callable[[int], bytes]) -> None:
    """A request may have two of them for each span that it may have, be they empty, and not one more."""
    assert Decoded(spans=[]) == decode_protobuf(body(2_000), max_spans=1_000)
    with pytest.raises(MalformedRequest, match="the request has more than 1000 spans"):
        decode_protobuf(body(2_001), max_spans=1_000)


LONG_NAME = field(5, bytes(2**20))
LONG_KEY = field(1, field(1, bytes(2**20)))


@pytest.mark.parametrize(
    ("message_type", "body"),
    [
        pytest.param(Span, lambda fields: LONG_NAME + field(9, b"") * (fields - 1), id="attributes"),
        pytest.param(Span, lambda fields: LONG_NAME + field(11, b"") * (fields - 1), id="events"),
        pytest.param(Span, lambda fields: LONG_NAME + field(13, b"") * (fields - 1), id="links"),
        pytest.param(
            Span, lambda fields: LONG_NAME + field(9, field(2, field(5, field(1, b"") * (fields - 4)))), id="values"
        ),
        pytest.param(Resource, lambda fields: LONG_KEY + field(1, b"") * (fields - 2), id="resource attributes"),
    ],
)
def test_fields_of_a_large_message_are_limited(message_type: Any, body: Callable[[int], bytes]) -> None:
    """It may have so many, be they empty, those of what is in it too, and not one more; then it is not parsed."""
    counted = [at_once(counting_fields(body(fields), message_type, most=1_000)) for fields in (1_000, 1_001)]
    assert [False, True] == counted
    assert 1_500_000 == MOST_FIELDS


BAD_SCOPES = field(1, field(2, field(1, b"\xff") + field(2, b"")) * 1_000)
BAD_RESOURCE = field(1, field(1, b"\xff") + field(2, field(2, b"")) * 1_000)
BAD_RESOURCES = field(1, field(1, b"\xff")) * 1_000
NUMBERS_IN_A_SPAN = field(1, field(2, field(2, LONG_NAME + b"\x98\x06\x01" * 25_000 + b"\xff")))
UNKNOWN_IN_A_RESOURCE = field(1, field(2, field(2, b"\xff")) + UNKNOWN_FIELDS * 5_000)


@pytest.mark.parametrize(
    ("body", "refused", "steps"),
    [
        pytest.param(BAD_SCOPES, 1_000, 1_000, id="scopes"),
        pytest.param(BAD_RESOURCE, 1_000, 1_000, id="a resource"),
        pytest.param(BAD_RESOURCES, 0, 1_000, id="resources"),
        pytest.param(UNKNOWN_IN_A_RESOURCE, 1, 2 * 5 * 5_000 // 8_192, id="unknown fields"),
        pytest.param(NUMBERS_IN_A_SPAN, 1, 1 + 25_000 // 8_192, id="unknown fields of a span"),
    ],
)
def test_what_is_refused_takes_steps(body: bytes, refused: int, steps: int) -> None:
    """A request in which everything is broken lets others run as often as one that is read."""
    assert refused == decode_protobuf(body).refused_spans
    assert steps <= sum(1 for _ in decoding_protobuf(body))


@pytest.mark.parametrize("inside", [b"\x98\x06\x05" * 16, b"\x9b\x06" * 8 + b"\x9c\x06" * 8], ids=["flat", "nested"])
def test_a_group_has_few_fields(inside: bytes) -> None:
    """A group is skipped in one step: one with more is refused, unless the request is parsed as a whole."""
    bad_name = field(5, b"\xff")
    with pytest.raises(MalformedRequest, match="has more than 16 fields"):
        decode_protobuf(b"\x9b\x06" + inside + b"\x9c\x06" + request_of_encoded(bad_name))


def test_a_negative_length_is_not_encoded() -> None:
    """A receiver would read it as another length."""
    with pytest.raises(ValueError, match="range"):
        length_prefix(1, -1)
