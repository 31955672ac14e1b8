"""Rules 68 to 84: OTLP in JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from conformance.doors import HTTP, INVALID_ARGUMENT, OK, Told, over_http_as_json
from conformance.random_requests import random_resource_spans
from fuzzing.otlp_json import snake_case_of
from otlp.json_spans import DECODED, SPAN, SPAN_ID, TRACE_ID, request
from otlp_capture import spans_of
from receivers.otlp_requests import from_json, to_json
from receivers.receiving import JSON, PROTOBUF, Receiver
from spanscore.model import Span
from spanscore.recordings.files import Recording

INT64_MIN, INT64_MAX, UINT64_MAX = -(2**63), 2**63 - 1, 2**64 - 1


@pytest.fixture(scope="module")
def shared() -> Iterator[Receiver]:
    """Serve all tests."""
    with HTTP.run(spans_onward=True) as receiver:
        yield receiver


@pytest.fixture
def receiver(shared: Receiver) -> Receiver:
    """Serve a test that looks only at what it sends itself."""
    shared.core.spans.clear()
    shared.core.refused.clear()
    shared.core.sent_on.clear()
    return shared


def taken(receiver: Receiver, **fields: Any) -> Span:
    """Send a span with these fields, which must be taken without a word, and return it."""
    assert Told(OK) == over_http_as_json(receiver, request(SPAN | fields).encode())
    return receiver.core.spans.pop()


def refusal(receiver: Receiver, **fields: Any) -> str:
    """Send a span with these fields beside a good one: it must be the only one refused. Return why."""
    told = over_http_as_json(receiver, request(SPAN | fields, SPAN).encode())
    assert (OK, 1, [DECODED]) == (told.code, told.rejected, receiver.core.spans)
    receiver.core.spans.clear()
    (reason,) = receiver.core.refused
    receiver.core.refused.clear()
    return reason


def attribute(receiver: Receiver, value: Any) -> Any:
    """Send a span with an attribute of this value, and return what it is taken for."""
    return taken(receiver, attributes=[{"key": "k", "value": value}]).attributes["k"]


def malformed(receiver: Receiver, body: bytes) -> bool:
    """Return whether a body is refused as a whole, for good."""
    reply = receiver.post(body, JSON)
    return (400, INVALID_ARGUMENT) == (reply.status, reply.error[0])


def test_068_ids_are_hex_in_any_case(receiver: Receiver) -> None:
    """Ids of traces, spans, parents and links."""
    for spell in (str.lower, str.upper, str.title):
        link = {"traceId": spell(TRACE_ID), "spanId": spell(SPAN_ID)}
        span = taken(receiver, **link, parentSpanId=spell(SPAN_ID), links=[link])
        assert (TRACE_ID, SPAN_ID, SPAN_ID) == (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())


@pytest.mark.parametrize("name", ["traceId", "spanId", "parentSpanId"])
def test_069_ids_in_base64_are_refused(receiver: Receiver, name: str) -> None:
    """Protobuf's own JSON has them; only the spans with such ids are rejected."""
    length = 16 if name == "traceId" else 8
    assert refusal(receiver, **{name: base64.b64encode(bytes(range(length))).decode()}).startswith("invalid_")


def test_070_enums_are_numbers_or_names(receiver: Receiver) -> None:
    """The names are those in the protobuf files; other texts reject their span."""
    for kind, code in ((3, 2), ("SPAN_KIND_CLIENT", "STATUS_CODE_ERROR")):
        span = taken(receiver, kind=kind, status={"code": code})
        assert (3, 2) == (span.kind, span.status_code)
        (sent,) = spans_of(receiver.core.sent_on)
        assert (3, 2) == (sent.kind, sent.status.code)
        receiver.core.sent_on.clear()
    for fields in ({"kind": "CLIENT"}, {"kind": "3"}, {"status": {"code": "STATUS_CODE_BAD"}}):
        assert "invalid_enum" == refusal(receiver, **fields)


def test_071_unknown_names_are_ignored(receiver: Receiver) -> None:
    """On every level, with any value."""
    new = {"later": {"nested": [{"deep": None}]}, "other": 1, "some_other": 2}
    span = SPAN | new | {"attributes": [{"key": "k", "value": {"stringValue": "v"} | new} | new]}
    scope_spans = {"scope": {"name": "s"} | new, "spans": [span]} | new
    body = {"resourceSpans": [{"resource": {"attributes": []} | new, "scopeSpans": [scope_spans]} | new]} | new
    assert Told(OK) == over_http_as_json(receiver, json.dumps(body).encode())
    assert [DECODED._replace(attributes={"k": "v"}, scope="s")] == receiver.core.spans


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"scopeSpan": []}, "resourceSpans[1] has no 'scopeSpans', but 'scopeSpan'"),
        ({"scopeSpans": [{"spanz": [SPAN]}]}, "resourceSpans[1].scopeSpans[0] has no 'spans', but 'spanz'"),
    ],
)
def test_071_a_part_of_unknown_names_only_is_named(receiver: Receiver, other: Any, told: str, tmp_path: Path) -> None:
    """It may hold spans of a mistyped name. The others are taken, and files name it in the same words."""
    good = json.loads(request(SPAN))["resourceSpans"]
    body = json.dumps({"resourceSpans": [*good, other]})
    answer = over_http_as_json(receiver, body.encode())
    (tmp_path / "runs.json").write_text(body)
    recording = Recording([str(tmp_path / "runs.json")])

    assert (OK, 0) == (answer.code, answer.rejected)
    assert f"0 of 1 spans refused: unknown_field ({told})" == answer.message
    assert [DECODED] == receiver.core.spans
    assert [DECODED] == [span for each in recording.read() for span in each.spans]
    assert [f"{tmp_path / 'runs.json'}:1: {told}"] == list(map(str, recording.problems))


def test_072_a_field_has_a_second_name(receiver: Receiver) -> None:
    """The name in the protobuf files, with underscores, is read; of both the last counts."""
    written = snake_case_of(json.loads(EXAMPLE))
    assert Told(OK) == over_http_as_json(receiver, EXAMPLE)
    assert Told(OK) == over_http_as_json(receiver, json.dumps(written).encode())
    first, second = receiver.core.spans
    assert (first, receiver.core.sent_on[0]) == (second, receiver.core.sent_on[1])
    receiver.core.spans.clear()
    assert "b" == taken(receiver, traceState="a", trace_state="b", name="b").name
    assert ["b"] == [span.trace_state for span in spans_of(receiver.core.sent_on[2:])]
    assert malformed(receiver, b'{"resource_spans": [{"scope_spans": 7}]}')


@pytest.mark.parametrize("names", [("traceState", "trace_state"), ("trace_state", "traceState")])
@pytest.mark.parametrize("is_null_last", [True, False])
def test_072_null_under_one_name_leaves_the_other(
    receiver: Receiver,
    names: tuple[str, str],
    is_null_last: bool,  # noqa: FBT001 - a case
) -> None:
    """It is absent, whichever of the two names it has, and wherever it stands."""
    pairs = [(names[0], "a"), (names[1], None)]
    assert "b" == taken(receiver, **dict(pairs if is_null_last else pairs[::-1]), name="b").name
    assert ["a"] == [span.trace_state for span in spans_of(receiver.core.sent_on)]
    receiver.core.sent_on.clear()
    both = {"resource_spans": None, "resourceSpans": json.loads(request(SPAN | {"span_id": None}))["resourceSpans"]}
    assert Told(OK) == over_http_as_json(receiver, json.dumps(both).encode())
    assert [DECODED] == receiver.core.spans


def test_073_large_numbers_may_be_text(receiver: Receiver) -> None:
    """Numbers of 64 bits are taken as text and as numbers, and written as text."""
    for start in (7, "7"):
        assert 7 == taken(receiver, startTimeUnixNano=start).start_ns
        assert 7 == attribute(receiver, {"intValue": start})
    reply = receiver.post(request(SPAN, SPAN | {"traceId": ""}).encode(), JSON)
    assert "1" == json.loads(reply.body)["partialSuccess"]["rejectedSpans"]


def test_074_numbers_are_exact(receiver: Receiver) -> None:
    """Up to the largest and the smallest of 64 bits."""
    for written in (UINT64_MAX, str(UINT64_MAX)):
        assert UINT64_MAX == taken(receiver, endTimeUnixNano=written).end_ns
    for number in (INT64_MIN, INT64_MAX, 2**53 + 1):
        for spell in (int, str):
            receiver.core.sent_on.clear()
            assert number == attribute(receiver, {"intValue": spell(number)})
            (sent,) = spans_of(receiver.core.sent_on)
            assert number == sent.attributes[0].value.int_value


def test_075_times_are_whole_numbers(receiver: Receiver) -> None:
    """A time in the notation for fractions is taken if it is whole, and else refuses its span."""
    assert 10**18 == receiver_time(receiver, "1e18")
    assert 1_500 == receiver_time(receiver, "1.5e3")
    for written in ("1.5", "1e-3"):
        body = request(SPAN | {"startTimeUnixNano": 777}, SPAN).replace("777", written)
        told = over_http_as_json(receiver, body.encode())
        assert (OK, 1) == (told.code, told.rejected)


def receiver_time(receiver: Receiver, written: str) -> int:
    """Send a span that starts at a time written like this, and return when it is taken to start."""
    body = request(SPAN | {"startTimeUnixNano": 777}).replace("777", written)
    assert Told(OK) == over_http_as_json(receiver, body.encode())
    return receiver.core.spans.pop().start_ns


def test_076_fractions_may_be_no_numbers(receiver: Receiver) -> None:
    """NaN and the infinities are text; as bare words they are no JSON."""
    inf = float("inf")
    values = {"Infinity": inf, "-Infinity": -inf, 1.5: 1.5, "1.5": 1.5, 2: 2.0}
    for written, value in values.items():
        assert value == attribute(receiver, {"doubleValue": written})
    assert "nan" == str(attribute(receiver, {"doubleValue": "NaN"}))
    for word in ("NaN", "Infinity", "-Infinity"):
        assert malformed(receiver, request(SPAN | {"x": 777}).replace("777", word).encode())


def test_077_bytes_are_base64(receiver: Receiver) -> None:
    """In the usual alphabet or the one for URLs, padded or not."""
    for written in ("+/8=", "-_8=", "+/8", "-_8"):
        assert b"\xfb\xff" == attribute(receiver, {"bytesValue": written})


def test_078_null_is_absent(receiver: Receiver) -> None:
    """In place of any field, and of the whole list of spans."""
    names = ("parentSpanId", "kind", "attributes", "events", "links", "status", "flags", "traceState")
    assert DECODED == taken(receiver, **dict.fromkeys(names))
    assert Told(OK) == over_http_as_json(receiver, b'{"resourceSpans":null}')


def test_079_a_value_is_one_value(receiver: Receiver) -> None:
    """Two in one refuse their span, and no other."""
    twofold = [{"key": "k", "value": {"stringValue": "1", "intValue": "1"}}]
    assert "invalid_value" == refusal(receiver, attributes=twofold)


def test_080_of_equal_names_the_last_counts(receiver: Receiver) -> None:
    """As in almost every reader of JSON.

    If spans or log records are missing then, as they are in a list that is in an object twice, the request is refused.
    """
    body = request(SPAN | {"name": "first"}).replace('"first"', '"first", "name": "last"')
    assert Told(OK) == over_http_as_json(receiver, body.encode())
    assert [DECODED._replace(name="last")] == receiver.core.spans
    assert malformed(receiver, f'{request(SPAN)[:-1]}, "resourceSpans": []}}'.encode())


def test_081_text_is_utf8(receiver: Receiver) -> None:
    """Another encoding, a byte order mark or invalid bytes are refused; half a surrogate pair becomes U+FFFD."""
    body = request(SPAN)
    for damaged in (b"\xef\xbb\xbf" + body.encode(), body.encode("utf-16"), body.encode().replace(b"work", b"w\xffrk")):
        assert malformed(receiver, damaged)
    assert "a\ufffdb" == taken(receiver, name="a\ud800b").name


def test_082_nesting_is_bounded(receiver: Receiver) -> None:
    """64 levels of a value are kept; deeper values become empty, and the sender gets a warning.

    JSON of more than 1,000 levels is refused.
    """
    depth_ok, too_deep = (request(SPAN | {"attributes": [{"key": "k", "value": nested(depth)}]}) for depth in (64, 65))
    # Protobuf cannot hold it.
    not_forwarded = "all spans accepted, but not as they were sent: not_forwarded (1)"
    assert Told(OK, message=not_forwarded, rejected=0) == over_http_as_json(receiver, depth_ok.encode())
    told = over_http_as_json(receiver, too_deep.encode())
    assert (OK, 0, True) == (told.code, told.rejected, "depth_limit" in told.message)
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        assert malformed(receiver, (opening * 100_000 + "1" + closing * 100_000).encode())


def nested(depth: int) -> dict[str, Any]:
    """Return a value inside that many levels of lists."""
    value: dict[str, Any] = {"boolValue": True}
    for _ in range(depth - 1):
        value = {"arrayValue": {"values": [value]}}
    return value


def test_083_a_whole_request_is_understood(receiver: Receiver) -> None:
    """In the form of the OTLP examples, JSON means what protobuf means."""
    assert Told(OK) == over_http_as_json(receiver, EXAMPLE)
    as_json = receiver.core.spans.copy()
    receiver.core.spans.clear()
    assert 200 == receiver.post(from_json(EXAMPLE).SerializeToString(), PROTOBUF).status
    assert (1, as_json) == (len(as_json), receiver.core.spans)


EXAMPLE = json.dumps(
    {
        "resourceSpans": [
            {
                "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]},
                "scopeSpans": [
                    {
                        "scope": {
                            "name": "agent",
                            "version": "1.0.0",
                            "attributes": [{"key": "team", "value": {"stringValue": "refunds"}}],
                        },
                        "spans": [
                            {
                                "traceId": "5B8EFFF798038103D269B633813FC60C",
                                "spanId": "EEE19B7EC3C1B174",
                                "parentSpanId": "EEE19B7EC3C1B173",
                                "name": "execute_tool refund",
                                "startTimeUnixNano": "1544712660000000000",
                                "endTimeUnixNano": "1544712661000000000",
                                "kind": 2,
                                "attributes": [{"key": "gen_ai.tool.name", "value": {"stringValue": "refund"}}],
                            }
                        ],
                    }
                ],
            }
        ]
    }
).encode()


@pytest.mark.parametrize(
    "batches",
    [range(10), pytest.param(range(10, 100), marks=pytest.mark.full_size)],
    ids=["the first thousand", "the others"],
)
def test_084_both_encodings_mean_the_same(receiver: Receiver, batches: range) -> None:
    """Ten thousand random requests, in hundreds, leave the same spans and refusals."""
    for batch in batches:
        parts: list[ResourceSpans] = [random_resource_spans(100 * batch + seed) for seed in range(100)]
        sent = ExportTraceServiceRequest(resource_spans=parts)
        states = []
        for body, content_type in ((sent.SerializeToString(), PROTOBUF), (to_json(sent), JSON)):
            assert 200 == receiver.post(body, content_type).status
            states.append((repr(receiver.core.spans), dict(receiver.core.refused)))
            receiver.core.spans.clear()
            receiver.core.refused.clear()
            receiver.core.sent_on.clear()
        assert states[0] == states[1]
