from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from commands import python
from receivers.otlp_requests import decoded_span, request_of, simple_span, span_id, trace_id
from spanscore import model
from spanscore.otlp.findings import Caveat, Decoded, MalformedRequest, Refusal
from spanscore.otlp.from_protobuf import decode_protobuf
from spanscore.trajectories.wanted import WantedAttributes


def test_every_field_is_decoded() -> None:
    """All that scoring needs of a span is read from its protobuf form, as plain Python values."""
    span = simple_span(
        1,
        parent_span_id=span_id(9),
        kind=3,
        flags=0x301,
        attributes=[
            KeyValue(key="n", value=AnyValue(int_value=7)),
            KeyValue(key="raw", value=AnyValue(bytes_value=b"\x00")),
        ],
        dropped_attributes_count=2,
        events=[Span.Event(time_unix_nano=5, name="thought", attributes=[KeyValue(key="none")])],
        status=Status(code=Status.STATUS_CODE_ERROR, message="broken"),
    )
    resource = Resource(attributes=[KeyValue(key="service.name", value=AnyValue(string_value="shop"))])
    scopes = [ScopeSpans(scope=InstrumentationScope(name="agent"), spans=[span])]
    request = ExportTraceServiceRequest(resource_spans=[ResourceSpans(resource=resource, scope_spans=scopes)])

    expected = decoded_span(1)._replace(
        parent_span_id=span_id(9),
        kind=3,
        status_code=2,
        status_message="broken",
        attributes={"n": 7, "raw": b"\x00"},
        events=(model.SpanEvent("thought", 5, {"none": None}),),
        scope="agent",
        resource={"service.name": "shop"},
        flags=0x301,
        dropped_attributes=2,
    )
    assert Decoded(spans=[expected]) == decode_protobuf(request.SerializeToString())


def test_unwanted_attributes_are_left_out_below_the_root() -> None:
    """Of a span with a parent in its process only what is wanted is kept; a limit on the rest costs it nothing."""
    attributes = [
        KeyValue(key="tool", value=AnyValue(string_value="book")),
        KeyValue(key="page", value=AnyValue(string_value="x" * 2_000_000)),
    ]
    below = simple_span(1, parent_span_id=span_id(9), attributes=attributes)
    remote = simple_span(2, parent_span_id=span_id(9), attributes=attributes[:1], flags=0x300)
    root = simple_span(3, attributes=[*attributes[:1], KeyValue(key="test", value=AnyValue(int_value=1))])
    wanted = WantedAttributes(["tool"])

    expected = [
        decoded_span(1)._replace(parent_span_id=span_id(9), attributes={"tool": "book"}),
        decoded_span(2)._replace(parent_span_id=span_id(9), attributes={"tool": "book"}, flags=0x300),
        decoded_span(3)._replace(attributes={"tool": "book", "test": 1}),
    ]
    body = request_of(below, remote, root).SerializeToString()
    assert Decoded(spans=expected) == decode_protobuf(body, wanted=wanted)
    assert Decoded(spans=[expected[0]._replace(attributes={})]) == decode_protobuf(
        request_of(below).SerializeToString(), wanted=WantedAttributes([])
    )


@pytest.mark.parametrize(
    "request_message",
    [
        ExportTraceServiceRequest(),
        ExportTraceServiceRequest(resource_spans=[ResourceSpans()]),
        ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans()])]),
    ],
)
def test_an_empty_request_is_fine(request_message: ExportTraceServiceRequest) -> None:
    """A request without spans is a success, however empty it is."""
    assert Decoded(spans=[]) == decode_protobuf(request_message.SerializeToString())


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"trace_id": b""}, Refusal.INVALID_TRACE_ID),
        ({"trace_id": bytes(16)}, Refusal.INVALID_TRACE_ID),
        ({"trace_id": b"t" * 15}, Refusal.INVALID_TRACE_ID),
        ({"trace_id": b"t" * 32}, Refusal.INVALID_TRACE_ID),
        ({"span_id": b""}, Refusal.INVALID_SPAN_ID),
        ({"span_id": bytes(8)}, Refusal.INVALID_SPAN_ID),
        ({"span_id": b"s" * 9}, Refusal.INVALID_SPAN_ID),
        ({"parent_span_id": b"s" * 7}, Refusal.INVALID_PARENT_SPAN_ID),
        ({"links": [Span.Link(trace_id=b"t", span_id=b"s")]}, Refusal.INVALID_LINK),
    ],
)
def test_bad_ids_refuse_their_span_only(fields: dict[str, Any], reason: Refusal) -> None:
    """A span with an id of a wrong length, or of zeros, is refused; its neighbour is kept."""
    bad = Span(**{"trace_id": trace_id(1), "span_id": span_id(1)} | fields)
    decoded = decode_protobuf(request_of(bad, simple_span(2)).SerializeToString())

    assert [decoded_span(2)] == decoded.spans
    assert [(reason, 1)] == [(refused.reason, refused.spans) for refused in decoded.refused]


def test_a_parent_id_of_zeros_makes_a_root() -> None:
    """A parent id of zeros means no parent, and is noted."""
    request = request_of(simple_span(1, parent_span_id=bytes(8)))

    expected = Decoded(spans=[decoded_span(1)], caveats={Caveat.ZERO_PARENT_SPAN_ID: 1})
    assert expected == decode_protobuf(request.SerializeToString())


def test_odd_spans_are_kept_as_they_are() -> None:
    """Unknown enum numbers, times in any order and beyond any calendar, and an empty name pass."""
    span = simple_span(1, name="", start_time_unix_nano=2**64 - 1, end_time_unix_nano=0, status=Status())
    span.MergeFromString(b"\x30\x63\x7a\x02\x18\x07")  # kind 99, status code 7

    expected = decoded_span(1)._replace(name="unknown", start_ns=2**64 - 1, end_ns=0, kind=99, status_code=7)
    assert Decoded(spans=[expected]) == decode_protobuf(request_of(span).SerializeToString())


def test_of_equal_keys_the_last_wins() -> None:
    """An attribute given twice has its last value."""
    pairs = [KeyValue(key="k", value=AnyValue(int_value=value)) for value in (1, 2)]

    assert {"k": 2} == decode_protobuf(request_of(simple_span(1, attributes=pairs)).SerializeToString()).spans[
        0
    ].attributes


def test_the_number_of_spans_is_limited() -> None:
    """A request may have as many spans as allowed, and not one more."""
    body = request_of(*(simple_span(n) for n in range(1, 4))).SerializeToString()

    assert 3 == len(decode_protobuf(body, max_spans=3).spans)
    with pytest.raises(MalformedRequest, match="the request has more than 2 spans"):
        decode_protobuf(body, max_spans=2)


def test_attributes_beyond_the_limit_are_left_out() -> None:
    """A span keeps 1,024 attributes, and says how many are missing besides those its sender dropped."""
    pairs = [KeyValue(key=str(n), value=AnyValue(int_value=n)) for n in range(1_030)]
    request = request_of(simple_span(1, attributes=pairs, dropped_attributes_count=2), simple_span(2, attributes=[]))
    decoded = decode_protobuf(request.SerializeToString())

    assert [(1_024, 8), (0, 0)] == [(len(span.attributes), span.dropped_attributes) for span in decoded.spans]
    assert {Caveat.ATTRIBUTE_LIMIT: 6} == decoded.caveats


LONG = 1024 * 1024


@pytest.mark.parametrize(
    "value",
    [
        AnyValue(string_value="x" * (LONG + 1)),
        AnyValue(bytes_value=bytes(LONG + 1)),
        AnyValue(array_value=ArrayValue(values=[AnyValue(string_value="x" * (LONG + 1))])),
    ],
    ids=["text", "bytes", "list"],
)
def test_long_values_are_left_out_whole(value: AnyValue) -> None:
    """An attribute with a text of more than 1 MiB is not cut but left out, so that nobody scores half of it."""
    pairs = [KeyValue(key="k", value=value), KeyValue(key="ok", value=AnyValue(string_value="x" * LONG))]
    (span,) = decode_protobuf(request_of(simple_span(1, attributes=pairs)).SerializeToString()).spans

    assert ({"ok": "x" * LONG}, 1) == (span.attributes, span.dropped_attributes)


def test_events_beyond_the_limit_are_left_out() -> None:
    """A span keeps its first 128 events."""
    decoded = decode_protobuf(
        request_of(simple_span(1, events=[Span.Event(name=str(n)) for n in range(130)])).SerializeToString()
    )

    assert [str(n) for n in range(128)] == [event.name for event in decoded.spans[0].events]
    assert {Caveat.EVENT_LIMIT: 2} == decoded.caveats


def test_fields_of_the_profiling_signal_are_absent() -> None:
    """References into a profile's string table mean nothing in a trace; the data is processed without them."""
    span = simple_span(1, attributes=[])
    span.attributes.add(key="k").value.MergeFromString(b"\x40\x03")  # string_value_strindex
    span.attributes.add(value=AnyValue(int_value=1)).MergeFromString(b"\x18\x04")  # key_strindex

    is_known = "string_value_strindex" in AnyValue.DESCRIPTOR.fields_by_name  # else they are unknown fields
    expected = Decoded(
        spans=[decoded_span(1)._replace(attributes={"k": None, "": 1})],
        caveats={Caveat.PROFILING_FIELD: 2} if is_known else {},
    )
    assert expected == decode_protobuf(request_of(span).SerializeToString())


def test_the_slow_protobuf_is_refused() -> None:
    """With protobuf's pure-Python implementation, importing the decoder fails and says what to do."""
    code = "import spanscore.otlp.from_protobuf"
    result = python("-c", code, PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION="python")

    assert 1 == result.returncode
    assert result.stderr.splitlines()[-1].startswith("ImportError: spanscore needs protobuf's compiled implementation")
