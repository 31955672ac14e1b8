"""How many values a span and a request may have, the same in both encodings."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from receivers.otlp_requests import field, request_of, simple_span, to_json
from spanscore.otlp.findings import Caveat, Decoded, Findings, MalformedRequest, Refusal, SpanRefused
from spanscore.otlp.from_json import decode_document, decode_json
from spanscore.otlp.from_protobuf import decode_protobuf
from spanscore.otlp.limits import VALUES_PER_REQUEST, VALUES_PER_SPAN
from spanscore.otlp.strict_json import parse
from spanscore.trajectories.wanted import WantedAttributes

ONE = AnyValue(int_value=1)
FULL = VALUES_PER_REQUEST // VALUES_PER_SPAN
"""Spans with all their values that a request may have."""


def from_protobuf(request: ExportTraceServiceRequest, **how: Any) -> Decoded:
    """Decode a request as protobuf."""
    return decode_protobuf(request.SerializeToString(), **how)


def from_json(request: ExportTraceServiceRequest, **how: Any) -> Decoded:
    """Decode a request as JSON."""
    return decode_json(to_json(request), **how)


def from_document(request: ExportTraceServiceRequest, **how: Any) -> Decoded:
    """Decode a request as JSON, by all its rules."""
    return decode_document(parse(to_json(request)), **how)


EACH = pytest.mark.parametrize("decode", [from_protobuf, from_json, from_document])


def array(key: str, *items: AnyValue) -> KeyValue:
    """An attribute that is an array."""
    return KeyValue(key=key, value=AnyValue(array_value=ArrayValue(values=items)))


def ones(key: str, number: int) -> KeyValue:
    """An attribute with so many items."""
    return array(key, *[ONE] * number)


@EACH
def test_an_attribute_with_too_many_values_is_left_out(decode: Callable[..., Decoded]) -> None:
    """As a whole, and its span says so; what stands behind it and fits is read."""
    pairs = [ones("fits", 10_000), ones("not", 10_000), ones("too", 6_380), KeyValue(key="last", value=ONE)]

    (span,) = (decoded := decode(request_of(simple_span(1, attributes=pairs)))).spans

    assert [("fits", 10_000), ("too", 6_380)] == [(key, len(span.attributes[key])) for key in ("fits", "too")]  # type: ignore[arg-type]
    assert (1, ["fits", "too", "last"]) == (span.dropped_attributes, list(span.attributes))
    assert {Caveat.VALUE_LIMIT: 1} == decoded.caveats


@EACH
@pytest.mark.parametrize(("number", "left_out"), [(VALUES_PER_SPAN - 1, 0), (VALUES_PER_SPAN, 1)])
def test_values_of_a_span(decode: Callable[..., Decoded], number: int, left_out: int) -> None:
    """An attribute is one value, and each item in it another; each span has its own."""
    span = simple_span(1, attributes=[ones("k", number)])

    assert [left_out] * 2 == [each.dropped_attributes for each in decode(request_of(span, span)).spans]


@EACH
def test_nested_values_count(decode: Callable[..., Decoded]) -> None:
    """An array in a mapping in an array, that does not fit in the end, takes its whole attribute with it."""
    mapping = AnyValue(kvlist_value=KeyValueList(values=[ones("inner", 4_000)]))
    pairs = [array("k", *[mapping] * 5), KeyValue(key="last", value=ONE)]

    (span,) = decode(request_of(simple_span(1, attributes=pairs))).spans

    assert (1, {"last": 1}) == (span.dropped_attributes, span.attributes)


@EACH
def test_events_share_the_values_of_their_span(decode: Callable[..., Decoded]) -> None:
    """Of 128 events with 200 attributes each, the span has the first ones, and says how many it has not."""
    pairs = [KeyValue(key=str(number), value=ONE) for number in range(200)]
    events = [Span.Event(name="e", attributes=pairs)] * 128

    (span,) = (decoded := decode(request_of(simple_span(1, attributes=[], events=events)))).spans

    assert (128, VALUES_PER_SPAN) == (len(span.events), sum(len(event.attributes) for event in span.events))
    assert 128 * 200 - VALUES_PER_SPAN == span.dropped_attributes == decoded.caveats[Caveat.VALUE_LIMIT]


def test_a_span_behind_all_values_of_its_request_is_refused() -> None:
    """As long as one is left, a span or a resource may begin; what is read from a file may have any number."""
    nearly, full, recorded = (
        Findings(values=values, most_in_request=1_000, is_bounded=is_bounded)
        for values, is_bounded in ((999, True), (1_000, True), (1_000, False))
    )

    assert [True, False, True] == [findings.begin() for findings in (nearly, full, recorded)]
    nearly.begin_span()
    recorded.begin_span()
    with pytest.raises(SpanRefused, match="the spans before it have the 1000 values") as refused:
        full.begin_span()
    assert Refusal.TOO_MANY_VALUES is refused.value.reason
    assert 1_048_576 == VALUES_PER_REQUEST == Findings().most_in_request


def spans_of_full() -> tuple[Span, Span]:
    """Return a span with all its values, and a small one."""
    return simple_span(1, attributes=[ones("k", VALUES_PER_SPAN - 1)]), simple_span(2)


def full_request() -> bytes:
    """Return a request with three spans behind those that have all the values that it may have."""
    first, last = (field(2, span.SerializeToString()) for span in spans_of_full())
    return field(1, field(2, first * FULL + last * 3))


def full_request_in_json() -> bytes:
    """Return it in JSON."""
    document = json.loads(to_json(request_of(*spans_of_full())))
    first, last = map(json.dumps, document["resourceSpans"][0]["scopeSpans"][0]["spans"])
    return f'{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{",".join([first] * FULL + [last] * 3)}]}}]}}]}}'.encode()


EACH_FULL = pytest.mark.parametrize(
    "decode",
    [
        lambda **how: decode_protobuf(full_request(), **how),
        lambda **how: decode_json(full_request_in_json(), **how),
        lambda **how: decode_document(parse(full_request_in_json()), **how),
    ],
    ids=["from_protobuf", "from_json", "from_document"],
)


@pytest.mark.full_size
@EACH_FULL
def test_values_of_a_request(decode: Callable[..., Decoded]) -> None:
    """When a request has had all its values, the spans behind are refused, with the reason; so nothing goes unsaid."""
    decoded = decode()

    assert FULL == len(decoded.spans)
    assert [(Refusal.TOO_MANY_VALUES, 3)] == [(refused.reason, refused.spans) for refused in decoded.refused]
    assert f"spans[{FULL}]: the spans before it have the 1048576 values" in decoded.refused[0].example


@pytest.mark.full_size
@EACH_FULL
def test_a_recording_may_have_more(decode: Callable[..., Decoded]) -> None:
    """What is read from a file holds nobody up: only its spans have a limit."""
    assert FULL + 3 == len(decode(max_spans=None).spans)


@EACH
def test_the_values_of_resources_count(decode: Callable[..., Decoded]) -> None:
    """A resource may have as many values as a span, of those that its request may have."""
    request = request_of(simple_span(1))
    request.resource_spans[0].resource.attributes.extend([ones("k", VALUES_PER_SPAN), ones("l", 1)])

    decoded = decode(request)

    assert [{"l": [1]}] == [span.resource for span in decoded.spans]
    assert ({Caveat.VALUE_LIMIT: 1}, [0]) == (decoded.caveats, [span.dropped_attributes for span in decoded.spans])


@EACH
def test_what_is_not_kept_of_an_attribute_is_not_read(decode: Callable[..., Decoded]) -> None:
    """An attribute that nobody wants costs its span one value, however many are in it."""
    pairs = [ones("unwanted", VALUES_PER_SPAN), ones("k", VALUES_PER_SPAN - 2)]
    span = simple_span(1, parent_span_id=b"a parent", attributes=pairs)

    (decoded,) = decode(request_of(span), wanted=WantedAttributes(["k"])).spans

    assert (["k"], 0) == (list(decoded.attributes), decoded.dropped_attributes)


@pytest.mark.parametrize(
    "around",
    [lambda body: body, lambda body: field(1, body), lambda body: field(1, field(2, body))],
    ids=["request", "resource", "scope"],
)
@pytest.mark.parametrize(
    ("unknown", "bad"),
    [(field(15, bytes(126)), b""), (b"\x78\x00", field(1, field(2, field(2, field(5, b"\xff")))))],
    ids=["large", "broken"],
)
def test_fields_that_nobody_knows_are_not_gone_through_without_end(
    around: Callable[[bytes], bytes], unknown: bytes, bad: bytes
) -> None:
    """A request with many times as many of them as it may have spans is refused: a large one, or one that is broken."""
    with pytest.raises(MalformedRequest, match="more than 4096 spans"):
        decode_protobuf(around(unknown * 40_000) + bad, max_spans=4_096)
