"""The compiled decoder of `fast`: whatever it reads is what the other decoder reads, and all else it leaves alone."""

from __future__ import annotations

import os
from sys import getsizeof
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from dialects.spans import built_in_dialects
from receivers.otlp_requests import CORPUS_NAMES, corpus_lines, from_json, request_of, simple_span
from spanscore.errors import ConfigError
from spanscore.otlp import clean_requests
from spanscore.otlp.findings import Decoded
from spanscore.otlp.from_protobuf import decode_protobuf, decoding_any
from spanscore.otlp.slices import at_once
from spanscore.trajectories.reader import DialectReader
from spanscore.trajectories.wanted import UnusedTexts, WantedAttributes, wanted_attributes

WANTED = WantedAttributes(["gen_ai.operation.name", "gen_ai.tool.*", "äöü"])
NEEDED = "SPANSCORE_NEEDS_FAST"
if clean_requests.COMPILED is None and not os.environ.get(NEEDED):
    pytest.skip("needs the compiled decoder: pip install ./fast", allow_module_level=True)
_TAG_OF_NAME = b"\x2a"

TEXTS = st.text(max_size=90)
SCALARS = st.one_of(
    st.builds(AnyValue, string_value=TEXTS),
    st.builds(AnyValue, bool_value=st.booleans()),
    st.builds(AnyValue, int_value=st.integers(-(2**63), 2**63 - 1)),
    st.builds(AnyValue, double_value=st.floats()),
    st.builds(AnyValue, bytes_value=st.binary(max_size=9)),
    st.just(AnyValue()),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: AnyValue(array_value=ArrayValue(values=items))),
        st.lists(st.builds(KeyValue, key=TEXTS, value=inner), max_size=3).map(
            lambda pairs: AnyValue(kvlist_value=KeyValueList(values=pairs))
        ),
    ),
    max_leaves=6,
)
KEYS = st.one_of(st.sampled_from(["gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.tool.x", "other", "äöü"]), TEXTS)
PAIRS = st.lists(st.one_of(st.builds(KeyValue, key=KEYS, value=VALUES), st.builds(KeyValue, key=KEYS)), max_size=5)
IDS = st.sampled_from([b"", b"12345678", bytes(8), b"1234567812345678", b"123"])
SPANS = st.builds(
    Span,
    trace_id=st.sampled_from([b"1234567812345678", b"8765432187654321", bytes(16), b"12345678"]),
    span_id=st.sampled_from([b"12345678", b"23456789", bytes(8), b""]),
    parent_span_id=IDS,
    trace_state=TEXTS,
    name=TEXTS,
    kind=st.sampled_from([0, 1, 3, 99, -1]),
    start_time_unix_nano=st.integers(0, 2**64 - 1),
    end_time_unix_nano=st.integers(0, 2**64 - 1),
    attributes=PAIRS,
    dropped_attributes_count=st.integers(0, 2**32 - 1),
    events=st.lists(
        st.builds(Span.Event, name=TEXTS, time_unix_nano=st.integers(0, 2**64 - 1), attributes=PAIRS), max_size=2
    ),
    links=st.lists(st.builds(Span.Link, trace_id=IDS, span_id=IDS, attributes=PAIRS), max_size=2),
    status=st.builds(Status, message=TEXTS, code=st.sampled_from([0, 1, 2])),
    flags=st.sampled_from([0, 1, 0x100, 0x300, 2**32 - 1]),
)
REQUESTS = st.builds(
    ExportTraceServiceRequest,
    resource_spans=st.lists(
        st.builds(
            ResourceSpans,
            schema_url=TEXTS,
            scope_spans=st.lists(
                st.builds(ScopeSpans, spans=st.lists(SPANS, max_size=3), schema_url=TEXTS), max_size=2
            ),
        ),
        max_size=2,
    ),
)


def both(body: bytes, wanted: WantedAttributes | None = WANTED) -> tuple[Decoded | None, Decoded]:
    """A request as the compiled decoder reads it, if it does, and as the other one."""
    return clean_requests.decoded(body, 1_000, wanted), at_once(decoding_any(body, max_spans=1_000, wanted=wanted))


def told(decoded: Decoded) -> Any:
    """All that decoding gives, with the types of what is in the spans."""
    return decoded, decoded.sizes, [(type(each), *map(type, each)) for each in decoded.spans], repr(decoded.spans)


@pytest.mark.parametrize("name", CORPUS_NAMES)
def test_recordings_of_real_programs_are_read_alike(name: str) -> None:
    """And are clean, with hardly an exception."""
    bodies = [from_json(line).SerializeToString() for line in corpus_lines(name) if b"resourceSpans" in line]
    for wanted in (WANTED, None):
        found = [both(body, wanted) for body in bodies]
        assert [told(other) for fast, other in found if fast] == [told(fast) for fast, _ in found if fast]
        assert len([fast for fast, _ in found if fast is None]) <= len(bodies) / 4


@pytest.mark.parametrize("name", CORPUS_NAMES)
def test_what_nothing_looks_at_is_left_out_alike(name: str) -> None:
    """By the decoder itself, or of what the other one has read."""
    unused = UnusedTexts(DialectReader(built_in_dialects(), results=False))
    wanted = wanted_attributes(built_in_dialects(), unused=unused)
    for line in corpus_lines(name):
        fast, other = both(from_json(line).SerializeToString(), wanted) if b"resourceSpans" in line else (None, None)
        if fast is not None and other is not None:
            at_once(unused.taking_out(other.spans, other.sizes))
            assert told(other) == told(fast)


def test_a_text_is_kept_where_it_has_one_of_the_words() -> None:
    """Of two with one key the last counts; what is no text is kept."""
    unused = UnusedTexts(DialectReader(built_in_dialects(), results=False))
    wanted = wanted_attributes(built_in_dialects(), unused=unused)
    sent, result, said = "gen_ai.input.messages", "gen_ai.tool.call.result", '[{"role": "user"}]'
    kept = [(sent, '[{"role": "tool"}]'), (result, 1)]
    pairs = [("gen_ai.operation.name", "chat"), (sent, said), (result, "rain")]
    for written, left in ((pairs, pairs[:1]), ([*pairs, *kept], [*pairs[:1], *kept]), ([*kept, *pairs], pairs[:1])):
        span = Span(trace_id=b"1234567812345678", span_id=b"12345678", parent_span_id=b"23456789", name="chat")
        for key, value in written:
            member = AnyValue(string_value=value) if isinstance(value, str) else AnyValue(int_value=value)
            span.attributes.append(KeyValue(key=key, value=member))
        fast, _ = both(request_of(span).SerializeToString(), wanted)
        assert fast is not None
        assert fast.spans[0].attributes == dict(left)


@given(request=REQUESTS, wanted=st.sampled_from([WANTED, None]))
def test_whatever_it_reads_is_what_the_other_one_reads(
    request: ExportTraceServiceRequest, wanted: WantedAttributes | None
) -> None:
    """Spans, sizes and types; and what is refused, or has a caveat, it does not read."""
    fast, other = both(request.SerializeToString(), wanted)

    assert fast is None or told(other) == told(fast)


def field(tag: bytes, content: bytes) -> bytes:
    """A field of a message that is shorter than 128 bytes."""
    return tag + bytes([len(content)]) + content


def wrapped(span: bytes) -> bytes:
    """A request with one span."""
    return field(b"\x0a", field(b"\x12", field(b"\x12", span)))


SPAN = simple_span(1).SerializeToString()
PAIR = b"\x0a\x01a\x12\x03\x0a\x01b"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(wrapped(SPAN + b"\xa3\x06\xa4\x06"), id="a group"),
        pytest.param(wrapped(SPAN + b"\x9a\x80\x80\x80\x80\x00\x00"), id="a tag of six bytes"),
        pytest.param(wrapped(SPAN + b"\x2a\x81\x80\x80\x80\x80\x00a"), id="a length of six bytes"),
        pytest.param(wrapped(SPAN + b"\x30" + b"\xff" * 9 + b"\x01"), id="a kind below 0"),
        pytest.param(wrapped(SPAN + b"\x30" + b"\xff" * 10), id="a number that does not end"),
        pytest.param(wrapped(SPAN + b"\x28\x01"), id="a name that is a number"),
        pytest.param(wrapped(SPAN + b"\x02\x00"), id="field number 0"),
        pytest.param(wrapped(SPAN + _TAG_OF_NAME + b"\x01\xff"), id="a name that is no UTF-8"),
        pytest.param(wrapped(SPAN + b"\x1a\x01\xff"), id="a trace state that is no UTF-8"),
        pytest.param(wrapped(SPAN + field(b"\x4a", b"\x0a\x01x\x12\x03\x0a\x01\xff")), id="a value that is no UTF-8"),
        pytest.param(wrapped(SPAN + field(b"\x4a", PAIR + b"\x12\x03\x0a\x01b")), id="two values of a key"),
        pytest.param(wrapped(SPAN + field(b"\x4a", b"\x0a\x01a\x12\x05\x0a\x01b\x10\x01")), id="a value of two kinds"),
        pytest.param(wrapped(SPAN + field(b"\x4a", b"\x0a\x01a\x18\x01")), id="a key by its place in a table"),
        pytest.param(wrapped(SPAN + b"\x7a\x02\x18\x02" * 2), id="two states"),
        pytest.param(wrapped(SPAN[:-1]), id="cut off"),
        pytest.param(wrapped(SPAN)[:-1], id="cut off outside"),
    ],
)
def test_what_is_unusual_is_left_alone(body: bytes) -> None:
    """The other decoder says what it means, or what is wrong."""
    assert clean_requests.decoded(body, 1_000, None) is None


def nested(depth: int) -> AnyValue:
    """A list in a list."""
    value = AnyValue(int_value=1)
    for _ in range(depth):
        value = AnyValue(array_value=ArrayValue(values=[value]))
    return value


@pytest.mark.parametrize(
    "span",
    [
        pytest.param(simple_span(1, parent_span_id=bytes(8)), id="a parent of zeros"),
        pytest.param(Span(trace_id=b"short", span_id=b"12345678"), id="no trace id"),
        pytest.param(simple_span(1, links=[Span.Link(trace_id=b"short")]), id="a link to nowhere"),
        pytest.param(simple_span(1, attributes=[KeyValue(key="", value=AnyValue(int_value=1))]), id="an empty key"),
        pytest.param(simple_span(1, attributes=[KeyValue(key="a", value=nested(20))]), id="deep"),
        pytest.param(
            simple_span(1, attributes=[KeyValue(key="a", value=AnyValue(double_value=float("nan")))]), id="not a number"
        ),
        pytest.param(
            simple_span(1, attributes=[KeyValue(key="a", value=AnyValue(string_value="x" * (2**20 + 1)))]), id="long"
        ),
        pytest.param(simple_span(1, attributes=[KeyValue(key=str(n)) for n in range(1_025)]), id="many attributes"),
        pytest.param(simple_span(1, events=[Span.Event()] * 129), id="many events"),
        pytest.param(
            simple_span(
                1, attributes=[KeyValue(key="a", value=AnyValue(array_value=ArrayValue(values=[AnyValue()] * 9_000)))]
            ),
            id="many values",
        ),
    ],
)
def test_what_is_limited_or_refused_is_left_alone(span: Span) -> None:
    """With all that is beside it in the request."""
    body = request_of(simple_span(2), span).SerializeToString()

    assert clean_requests.decoded(body, 1_000, None) is None
    assert at_once(decoding_any(body)) == decode_protobuf(body)


def test_so_many_spans_and_no_more() -> None:
    """What a receiver accepts, and what is read in one go."""
    body = request_of(*[simple_span(number) for number in range(1, 12)]).SerializeToString()
    many = request_of(*[simple_span(number) for number in range(1, 8_194)]).SerializeToString()

    assert [None, 11] == [
        found and len(found.spans) for found in (clean_requests.decoded(body, n, None) for n in (10, 11))
    ]
    assert clean_requests.decoded(many, None, None) is None
    assert 8_193 == len(decode_protobuf(many).spans)


def test_resources_and_scopes_are_counted_too() -> None:
    """A request may have millions of empty ones: they are left to the decoder that refuses them."""
    for empty in (b"\x0a\x00" * 50, b"\x0a\x32" + b"\x12\x00" * 25):
        assert clean_requests.decoded(empty, 20, None) is None
        assert clean_requests.decoded(empty, 60, None) is not None


@pytest.mark.parametrize(("items", "is_read"), [(500, True), (1_000, False)])
def test_values_of_resources_count_in_a_request(items: int, *, is_read: bool) -> None:
    """All of them together, as for the decoder that then refuses spans: each resource alone is of usual size."""
    request = ExportTraceServiceRequest()
    for number in range(1, 301):
        sent = request.resource_spans.add()
        value = AnyValue(array_value=ArrayValue(values=[AnyValue()] * items))
        sent.resource.attributes.add(key="k").value.CopyFrom(value)
        sent.scope_spans.add().spans.append(simple_span(number))
    fast, _ = both(request.SerializeToString())
    assert is_read == (fast is not None)


def test_a_name_that_is_looked_at_takes_no_more() -> None:
    """Python keeps the UTF-8 of a text that was asked for it, beside the text."""
    wanted = wanted_attributes(
        built_in_dialects(), unused=UnusedTexts(DialectReader(built_in_dialects(), results=False))
    )
    span = simple_span(1, parent_span_id=b"12345678", name="\u65e5" * 1_000)
    span.attributes.append(KeyValue(key="gen_ai.tool.call.result", value=AnyValue(string_value="rain")))
    fast, other = both(request_of(span).SerializeToString(), wanted)
    assert fast is not None
    assert fast.spans[0].attributes.keys() < other.spans[0].attributes.keys()
    assert getsizeof(fast.spans[0].name) == getsizeof(other.spans[0].name)


def test_fields_of_later_versions_are_skipped() -> None:
    """As protobuf does: a sender may be newer than its receiver."""
    later = wrapped(SPAN + b"\xb8\x06\x01" + b"\xc2\x06\x02hi" + b"\xc9\x06" + bytes(8) + b"\xd5\x06" + bytes(4))

    fast, other = both(later)

    assert fast is not None
    assert told(other) == told(fast)


def test_of_equal_keys_the_last_counts() -> None:
    """Some SDKs write an attribute twice."""
    twice = [KeyValue(key="a", value=AnyValue(string_value=text)) for text in ("first", "last")]
    mapping = KeyValue(key="b", value=AnyValue(kvlist_value=KeyValueList(values=twice)))

    fast, other = both(request_of(simple_span(1, attributes=[*twice, mapping])).SerializeToString())

    assert fast is not None
    assert told(other) == told(fast)
    assert {"a": "last", "b": {"a": "last"}} == fast.spans[0].attributes


def test_short_texts_are_one_object() -> None:
    """They come in each span."""
    spans = [simple_span(1, number, name="execute_tool book") for number in (1, 2)]

    found = clean_requests.decoded(request_of(*spans).SerializeToString(), 10, None)

    assert found is not None
    one, other = found.spans
    assert one.name is other.name
    assert one.trace_id is other.trace_id
    assert one.resource is other.resource


def test_which_decoder_reads_can_be_asked_for() -> None:
    """By an environment variable; another word is told with those that there are."""
    assert ["fast", "python"] == [clean_requests.chosen(asked).partition(" ")[0] for asked in ("", "python")]
    with pytest.raises(ConfigError, match="SPANSCORE_DECODER must be fast or python, not 'rust'"):
        clean_requests.chosen("rust")
