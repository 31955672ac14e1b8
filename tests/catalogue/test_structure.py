"""Requests whose form is meant to hurt, sent to real receivers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from catalogue.bounds import costs_at_most
from catalogue.scoring import outcome_of
from receivers.otlp_requests import decoded_span, field, refusal, request_of, simple_span, texts, to_json
from receivers.receiving import JSON, Receiver, over_grpc, over_http
from serving import DEADLINE_S
from spanscore.model import Skipped
from spanscore.otlp.findings import Refusal

LIMIT = 64 * 2**20
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

ARGUMENTS = "gen_ai.tool.call.arguments"


def exported(receiver: Receiver, body: bytes) -> grpc.StatusCode:
    """Send a request over gRPC and return the status."""
    options = [("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(str(receiver.address), options=options) as channel:
        try:
            channel.unary_unary(EXPORT)(body, timeout=DEADLINE_S)
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code
    return grpc.StatusCode.OK


def tool_call(number: int, arguments: bytes) -> bytes:
    """Return the execution of a tool, encoded."""
    named = texts({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"})
    span = simple_span(1, number, name="execute_tool search", attributes=named)
    return span.SerializeToString() + field(9, field(1, ARGUMENTS.encode()) + field(2, field(1, arguments)))


def nested_bytes(depth: int) -> bytes:
    """Return a list in a list, and so on, as protobuf; its own library cannot write it so deep."""
    pieces: list[bytes] = []
    size = 0
    for _ in range(depth):
        for tag in (b"\x0a", b"\x2a"):  # ArrayValue.values, AnyValue.array_value
            pieces.append(tag + varint(size))
            size += len(pieces[-1])
    return b"".join(reversed(pieces))


def varint(number: int) -> bytes:
    """Encode a number."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_millions_of_empty_spans(kind: str) -> None:
    """Two million spans in 4 MB are counted and refused before one of them is made: within 96 MiB and 2 s."""
    body = field(1, field(2, b"\x12\x00" * 2_000_000))
    if kind == "http":
        with over_http(max_request_body_size=LIMIT) as receiver, costs_at_most(cpu_s=2, mib=96):
            answer = receiver.post(body)
        assert (400, (3, "the request has more than 65536 spans")) == (answer.status, answer.error)
    else:
        with over_grpc(max_request_size=LIMIT) as receiver, costs_at_most(cpu_s=2, mib=96):
            assert grpc.StatusCode.INVALID_ARGUMENT is exported(receiver, body)
    assert [] == receiver.core.spans


ONE = simple_span(1).SerializeToString()


@pytest.mark.full_size
@pytest.mark.parametrize(
    ("part", "around"),
    [
        pytest.param(b"\x0a\x00", lambda parts: parts, id="resources"),
        pytest.param(b"\x12\x00", lambda parts: field(1, parts), id="scopes"),
        pytest.param(
            b"\x0a\x00", lambda parts: field(1, field(1, parts) + field(2, field(2, ONE))), id="resource attributes"
        ),
        pytest.param(b"\x4a\x00", lambda parts: field(1, field(2, field(2, ONE + parts))), id="attributes"),
        pytest.param(b"\x5a\x00", lambda parts: field(1, field(2, field(2, ONE + parts))), id="events"),
        pytest.param(b"\x6a\x00", lambda parts: field(1, field(2, field(2, ONE + parts))), id="links"),
        pytest.param(
            b"\x0a\x00",
            lambda parts: field(1, field(2, field(2, ONE + field(9, field(2, field(5, parts)))))),
            id="values",
        ),
    ],
)
def test_millions_of_empty_parts(part: bytes, around: Callable[[bytes], bytes]) -> None:
    """16 MB of empty parts of any kind, in memory 30 times that, are refused unparsed: within 96 MiB and 4 s."""
    bomb = around(part * 8_000_000)
    with over_http(max_request_body_size=LIMIT) as receiver, costs_at_most(cpu_s=4, mib=96):
        answer = receiver.post(bomb)
    assert (400, []) == (answer.status, receiver.core.spans)


@pytest.mark.parametrize(
    ("opening", "value", "times"),
    [(b'{"resourceSpans":[', b"{},", 5_000_000), (b'{"a":[', b"[],", 5_000_000), (b'{"a":[', b'"ab",', 9_000_000)],
)
def test_millions_of_values_in_json(opening: bytes, value: bytes, times: int) -> None:
    """Millions of objects, lists or texts in JSON are refused unparsed: within 160 MiB and 2 s."""
    bomb = opening + value * times + b'""]}'
    with over_http(max_request_body_size=LIMIT) as receiver, costs_at_most(cpu_s=2, mib=160):
        answer = receiver.post(bomb, JSON)
    assert (400, "the request has more than 2,000,000 objects and lists, or 4,000,000 values") == (
        answer.status,
        answer.error[1],
    )


def test_millions_of_attributes() -> None:
    """Of two million attributes of a span at most 1,024 are looked at, and it says so: within 192 MiB and 4 s."""
    span = simple_span(1).SerializeToString() + b"\x4a\x00" * 2_000_000
    with over_http(max_request_body_size=LIMIT, spans_onward=True) as receiver, costs_at_most(cpu_s=4, mib=192):
        body = field(1, field(2, field(2, span)))
        answer = receiver.post(body)

    (received,) = receiver.core.spans
    assert (200, True) == (answer.status, len(received.attributes) <= 1_024)
    assert 2_000_000 - 1_024 <= received.dropped_attributes
    assert [body] == receiver.core.sent_on


@pytest.mark.parametrize("mib", [2, pytest.param(60, marks=pytest.mark.full_size)])
def test_huge_attribute(mib: int) -> None:
    """An attribute of up to 60 MiB is sent on but not scored: what needs it is skipped, never failed; in 384 MiB."""
    request = field(1, field(2, field(2, ONE) + field(2, tool_call(2, b'{"city": "%b"}' % (b"x" * (mib * 2**20))))))
    with over_http(max_request_body_size=LIMIT, spans_onward=True) as receiver, costs_at_most(cpu_s=5, mib=384):
        assert 200 == receiver.post(request).status
    assert 1 == receiver.core.spans[1].dropped_attributes
    assert [request] == receiver.core.sent_on

    outcome = outcome_of(receiver.core.spans, "{type: tool_call_args, tool_calls: [{name: search, args: {city: a}}]}")
    assert Skipped("arguments of 1 call of 'search' were not recorded") == outcome


def with_value(value: bytes) -> bytes:
    """Return a request with a good span, and one that has this value as an attribute."""
    attribute = field(9, field(1, ARGUMENTS.encode()) + field(2, value))
    spans = [simple_span(1).SerializeToString(), simple_span(2).SerializeToString() + attribute]
    return field(1, field(2, b"".join(field(2, span) for span in spans)))


@pytest.mark.parametrize("depth", [48, 64])
def test_deep_values(depth: int) -> None:
    """A value nested 48 or 64 times costs no more than its own span, and in JSON not even that."""
    document = json.loads(to_json(request_of(simple_span(1), simple_span(2))))
    value: Any = {"stringValue": "x"}
    for _ in range(depth):
        value = {"arrayValue": {"values": [value]}}
    spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans[1]["attributes"] = [{"key": ARGUMENTS, "value": value}]

    with over_http() as receiver, costs_at_most(cpu_s=1, mib=16):
        assert 200 == receiver.post(with_value(nested_bytes(depth))).status
        assert decoded_span(1) == receiver.core.spans[0]
        assert 2 - len(receiver.core.spans) == receiver.core.refused[refusal(Refusal.TOO_DEEP)]
    with over_http() as receiver, costs_at_most(cpu_s=1, mib=16):
        assert 200 == receiver.post(json.dumps(document).encode(), JSON).status
        assert [1, 2] == [span.trace_id[-1] for span in receiver.core.spans]


def test_absurdly_deep_values() -> None:
    """A value nested 100,000 times costs its span in protobuf and its request in JSON: no more, within 64 MiB."""
    with over_http(max_request_body_size=LIMIT) as receiver, costs_at_most(cpu_s=2, mib=64):
        assert 200 == receiver.post(with_value(nested_bytes(100_000))).status
        assert ([decoded_span(1)], {refusal(Refusal.TOO_DEEP): 1}) == (receiver.core.spans, dict(receiver.core.refused))
        for deep in (b"[" * 100_000 + b"]" * 100_000, b'{"arrayValue":{"values":[' * 100_000):
            answer = receiver.post(deep, JSON)
            assert (400, 3) == (answer.status, answer.error[0])
        assert 200 == receiver.post(request_of(simple_span(3)).SerializeToString()).status


def test_very_many_events_and_links() -> None:
    """Of 100,000 events 128 are looked at, of as many links none is kept; all are sent on: within 256 MiB and 4 s."""
    span = simple_span(
        1,
        events=[Span.Event(name="e", time_unix_nano=1)] * 100_000,
        links=[Span.Link(trace_id=bytes(15) + b"\x01", span_id=bytes(7) + b"\x01")] * 100_000,
    )
    body = request_of(span).SerializeToString()
    with over_http(max_request_body_size=LIMIT, spans_onward=True) as receiver, costs_at_most(cpu_s=4, mib=256):
        assert 200 == receiver.post(body).status
    (received,) = receiver.core.spans
    assert len(received.events) <= 128
    assert [body] == receiver.core.sent_on


def test_a_schema_url_that_is_not_utf8() -> None:
    """Scoring does not look at it; sent on, it would cost the whole request, and so it is left out."""
    one = field(2, simple_span(1).SerializeToString())
    with over_http(spans_onward=True) as receiver:
        answer = receiver.post(field(1, field(2, one + field(3, b"\xff")) + field(3, b"\xfe")))
    assert (200, [decoded_span(1)]) == (answer.status, receiver.core.spans)
    assert b"invalid_schema_url (2)" in answer.body
    assert [request_of(simple_span(1)).SerializeToString()] == receiver.core.sent_on


def test_text_that_is_not_utf8() -> None:
    """A span with a broken text is refused, its neighbours are not."""
    broken = simple_span(2).SerializeToString() + field(5, b"\xff\xfe")
    spans = [simple_span(1).SerializeToString(), broken, simple_span(3).SerializeToString()]
    with over_http() as receiver, costs_at_most(cpu_s=1, mib=16):
        assert 200 == receiver.post(field(1, field(2, b"".join(field(2, span) for span in spans)))).status
    assert [decoded_span(1), decoded_span(3)] == receiver.core.spans
    assert {refusal(Refusal.INVALID_UTF8): 1} == dict(receiver.core.refused)
