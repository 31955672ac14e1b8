from __future__ import annotations

import base64
import json
import sys
from typing import Any

import pytest

from otlp.json_spans import DECODED, SPAN, SPAN_ID, TRACE_ID, decode_span, refusal, request
from spanscore.model import SpanEvent
from spanscore.otlp.findings import Caveat, Decoded, MalformedRequest, Refusal, RefusedSpans
from spanscore.otlp.from_json import decode_json

KINDS = (
    "SPAN_KIND_UNSPECIFIED, SPAN_KIND_INTERNAL, SPAN_KIND_SERVER, SPAN_KIND_CLIENT, SPAN_KIND_PRODUCER, "
    "SPAN_KIND_CONSUMER"
)


def test_every_field_is_decoded() -> None:
    """All that scoring needs of a span is read from its JSON form."""
    attribute = {"key": "service.name", "value": {"stringValue": "shop"}}
    span = SPAN | {
        "parentSpanId": "aa" * 8,
        "kind": 3,
        "flags": 257,
        "attributes": [{"key": "n", "value": {"intValue": "7"}}],
        "droppedAttributesCount": 2,
        "events": [{"timeUnixNano": "5", "name": "thought", "attributes": [attribute]}],
        "links": [],
        "status": {"code": 2, "message": "broken"},
    }
    document = {
        "resourceSpans": [
            {
                "resource": {"attributes": [attribute]},
                "scopeSpans": [{"scope": {"name": "agent"}, "spans": [span]}],
            }
        ]
    }

    expected = DECODED._replace(
        parent_span_id=b"\xaa" * 8,
        kind=3,
        status_code=2,
        status_message="broken",
        attributes={"n": 7},
        events=(SpanEvent("thought", 5, {"service.name": "shop"}),),
        scope="agent",
        resource={"service.name": "shop"},
        flags=257,
        dropped_attributes=2,
    )
    assert Decoded(spans=[expected]) == decode_json(json.dumps(document))


def test_the_spans_of_a_resource_share_it() -> None:
    """A resource is decoded once, however many spans it has."""
    first, second = decode_json(request(SPAN, SPAN)).spans

    assert first.resource is second.resource


@pytest.mark.parametrize("body", [b"", "{}", '{"resourceSpans": []}', '{"resourceSpans": null}', request()])
def test_an_empty_request_is_fine(body: bytes | str) -> None:
    """A request without spans is a success, however empty it is."""
    assert Decoded(spans=[]) == decode_json(body)


@pytest.mark.parametrize("text", [TRACE_ID.upper(), TRACE_ID, TRACE_ID[:16] + TRACE_ID[16:].upper()])
def test_ids_are_hex_in_any_case(text: str) -> None:
    """Upper, lower and mixed case mean the same id."""
    assert bytes.fromhex(TRACE_ID) == decode_span(traceId=text).trace_id


def as_base64(text: str) -> str:
    """Return an id as protobuf's own JSON mapping writes it."""
    return base64.b64encode(bytes.fromhex(text)).decode()


@pytest.mark.parametrize(
    "trace_id",
    [
        as_base64(TRACE_ID),
        "0" * 32,
        TRACE_ID[:-2],
        TRACE_ID + "00",
        " " + TRACE_ID[1:],
        "0x" + TRACE_ID[2:],
        "",
        None,
        7,
    ],
)
def test_other_trace_ids_are_refused(trace_id: Any) -> None:
    """A trace id that is not 32 hex digits, or all zeros, refuses its span."""
    assert refusal(traceId=trace_id) is Refusal.INVALID_TRACE_ID


@pytest.mark.parametrize("span_id", [as_base64(SPAN_ID), "0" * 16, SPAN_ID[:-2], SPAN_ID + "00", "", None, True])
def test_other_span_ids_are_refused(span_id: Any) -> None:
    """A span id that is not 16 hex digits, or all zeros, refuses its span."""
    assert refusal(spanId=span_id) is Refusal.INVALID_SPAN_ID


@pytest.mark.parametrize("parent", [as_base64(SPAN_ID), "00", SPAN_ID + "00", 1])
def test_other_parent_ids_are_refused(parent: Any) -> None:
    """A parent that is neither absent nor 16 hex digits refuses its span."""
    assert refusal(parentSpanId=parent) is Refusal.INVALID_PARENT_SPAN_ID


def test_a_parent_id_of_zeros_makes_a_root() -> None:
    """A parent id of zeros means no parent, and is noted."""
    expected = Decoded(spans=[DECODED], caveats={Caveat.ZERO_PARENT_SPAN_ID: 1})

    assert expected == decode_json(request(SPAN | {"parentSpanId": "0" * 16}))


def test_link_ids_are_hex() -> None:
    """Links are not kept, but one with ids in base64 shows that the sender does not speak OTLP/JSON."""
    good = {"traceId": TRACE_ID.upper(), "spanId": SPAN_ID}

    assert decode_span(links=[good, {}]) == DECODED
    assert refusal(links=[good | {"traceId": as_base64(TRACE_ID)}]) is Refusal.INVALID_LINK


@pytest.mark.parametrize(
    "fields",
    [{"kind": "SERVER"}, {"kind": "span_kind_server"}, {"kind": "2"}, {"status": {"code": "SPAN_KIND_SERVER"}}],
)
def test_other_texts_are_no_enum_names(fields: dict[str, Any]) -> None:
    """A name of an enumeration is one of its own, as the protobuf files write it."""
    assert refusal(**fields) is Refusal.INVALID_ENUM


def test_unknown_enum_numbers_are_kept() -> None:
    """Enums are open: a number of a later version passes."""
    span = decode_span(kind=99, status={"code": 7})

    assert (99, 7) == (span.kind, span.status_code)


@pytest.mark.parametrize("status", [{}, None, {"code": 0}, {"code": None, "message": None}])
def test_a_status_may_be_empty(status: Any) -> None:
    """An empty status, one with code 0 and none at all are the same."""
    assert decode_span(status=status) == DECODED


def test_unknown_fields_are_ignored_at_every_level() -> None:
    """What a later version of OTLP adds changes nothing, whatever it is."""
    more = {"new": {"deep": [{"er": None}]}, "resource_span": 1, "traceid": 2}
    span = (
        SPAN
        | more
        | {
            "attributes": [{"key": "k", "value": {"stringValue": "v"} | more} | more],
            "events": [{"name": "e"} | more],
            "links": [more],
            "status": {"code": 1} | more,
        }
    )
    document = {
        "resourceSpans": [
            {
                "resource": {"attributes": []} | more,
                "scopeSpans": [{"scope": {"name": "s"} | more, "spans": [span]} | more],
            }
            | more
        ]
    } | more

    expected = DECODED._replace(status_code=1, attributes={"k": "v"}, events=(SpanEvent("e", 0, {}),), scope="s")
    assert Decoded(spans=[expected]) == decode_json(json.dumps(document))


def test_odd_times_are_kept_as_they_are() -> None:
    """A span may end before it starts, or not at all."""
    assert (5, 3) == decode_span(startTimeUnixNano="5", endTimeUnixNano="3")[4:6]
    assert (5, 0) == decode_span(startTimeUnixNano=5, endTimeUnixNano="0")[4:6]


@pytest.mark.parametrize(
    "fields",
    [
        {"name": 1},
        {"attributes": {}},
        {"attributes": "text"},
        {"attributes": ["text"]},
        {"attributes": [{"key": 1, "value": {"stringValue": "v"}}]},
        {"events": {"name": "e"}},
        {"events": ["text"]},
        {"events": [{"name": 1}]},
        {"links": "text"},
        {"status": "OK"},
        {"status": {"message": 1}},
        {"flags": -1},
        {"droppedAttributesCount": 2**32},
    ],
)
def test_fields_of_a_wrong_type_are_refused(fields: dict[str, Any]) -> None:
    """A field of a wrong type refuses its span and no other."""
    assert refusal(**fields) is Refusal.INVALID_VALUE


def test_a_span_that_is_no_object_is_refused() -> None:
    """What stands in place of a span counts as a refused span."""
    expected = RefusedSpans(
        Refusal.MALFORMED, 3, "resourceSpans[0].scopeSpans[0].spans[1]: a span must be an object, not a number"
    )

    assert Decoded(spans=[DECODED], refused=(expected,)) == decode_json(request(SPAN, 1, None, "text"))


def test_refusals_name_the_first_span_of_each_reason() -> None:
    """Refusals are counted by reason; the example names the span and the attribute, never its value."""
    secret = SPAN | {"attributes": [{"key": "k", "value": {"intValue": "secret"}}]}
    where = "resourceSpans[0].scopeSpans[0]"

    assert (
        RefusedSpans(
            Refusal.INVALID_VALUE,
            2,
            f"{where}.spans[0]: attribute 'k': intValue must be an integer from {-(2**63)} to {2**63 - 1}",
        ),
        RefusedSpans(Refusal.INVALID_ENUM, 1, f"{where}.spans[2]: kind must be an integer or one of {KINDS}"),
    ) == decode_json(request(secret, secret, SPAN | {"kind": "CLIENT"})).refused


@pytest.mark.parametrize(
    ("part", "example"),
    [
        ({"resource": {"attributes": 1}}, "resourceSpans[0].resource: attributes must be an array"),
        ({"resource": 1}, "resourceSpans[0].resource: must be an object"),
    ],
)
def test_a_broken_resource_refuses_its_spans(part: dict[str, Any], example: str) -> None:
    """Spans are not scored under a resource that is not theirs."""
    document = {
        "resourceSpans": [part | {"scopeSpans": [{"spans": [SPAN, SPAN]}]}, {"scopeSpans": [{"spans": [SPAN]}]}]
    }

    expected = Decoded(spans=[DECODED], refused=(RefusedSpans(Refusal.INVALID_VALUE, 2, example),))
    assert expected == decode_json(json.dumps(document))


@pytest.mark.parametrize("scope", [1, {"name": 1}])
def test_a_broken_scope_refuses_its_spans(scope: Any) -> None:
    """Spans are not scored under a scope that is not theirs."""
    document = {"resourceSpans": [{"scopeSpans": [{"scope": scope, "spans": [SPAN]}, {"spans": [SPAN]}]}]}
    decoded = decode_json(json.dumps(document))

    assert ([DECODED], 1) == (decoded.spans, decoded.refused_spans)


def test_a_span_without_a_name_is_unknown() -> None:
    """A span's name may be empty or absent."""
    assert ["unknown"] * 2 == [decode_span(name=name).name for name in ("", None)]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"\ud800", "\ufffd"),
        (r"\uDC00 \ud83d", "\ufffd \ufffd"),
        (r"\ud800\ud800\udc00", "\ufffd\U00010000"),
        (r"\ud83d\ude00", "\U0001f600"),
        (r"\\ud800", r"\ud800"),
        (r"\\\ud800", "\\\ufffd"),
        (r"\"\ud800\"", '"\ufffd"'),
    ],
)
def test_lone_surrogates_are_replaced(written: str, read: str) -> None:
    """Half a surrogate pair becomes U+FFFD; whole pairs and escaped backslashes stay what they are."""
    assert read == decode_json(request(SPAN).replace("work", written)).spans[0].name


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"\xef\xbb\xbf{}", "not valid JSON: it starts with a byte order mark"),
        ("{}".encode("utf-16"), "not valid UTF-8 at byte 0"),
        ("{}".encode("utf-16-be"), "not valid JSON: Expecting value (column 1)"),
        (b'{"a":\n"\xff"}', "line 2: not valid UTF-8 at byte 7"),
        (b'{"a": NaN}', "not valid JSON: NaN is not JSON; as a double it is written in quotes"),
        (b'{"a": -Infinity}', "not valid JSON: -Infinity is not JSON; as a double it is written in quotes"),
        (b'{"a":\n', "line 2: not valid JSON: Expecting value (column 1)"),
        (b'{"a": "\n"}', "not valid JSON: Invalid control character at (column 8)"),
        (b"{} {}", "not valid JSON: Extra data (column 4)"),
        (b"{'a': 1}", "not valid JSON: Expecting property name enclosed in double quotes (column 2)"),
        (b"[]", "the request must be an object, not an array"),
        (b"null", "the request must be an object, not null"),
        (b'"text"', "the request must be an object, not a string"),
        (b'{"resourceSpans": {}}', "resourceSpans must be an array, not an object"),
        (b'{"resourceSpans": [1]}', "resourceSpans[0] must be an object, not a number"),
        (b'{"resourceSpans": [{"scopeSpans": true}]}', "resourceSpans[0].scopeSpans must be an array, not a boolean"),
        (
            b'{"resourceSpans": [{"scopeSpans": [{"spans": "x"}]}]}',
            "resourceSpans[0].scopeSpans[0].spans must be an array, not a string",
        ),
    ],
)
def test_malformed_requests(body: bytes, message: str) -> None:
    """A request that is not JSON, or not of the right shape, is refused as a whole and says where it is wrong."""
    with pytest.raises(MalformedRequest) as error:
        decode_json(body)

    assert message == str(error.value)


def test_a_number_of_too_many_digits_is_malformed() -> None:
    """Numbers that Python will not convert do not escape as another error."""
    with pytest.raises(MalformedRequest, match=r"^not valid JSON: an integer has more than 4300 digits$"):
        decode_json('{"a": ' + "9" * 5000 + "}")


@pytest.mark.parametrize("depth", [1_001, 5_000, 200_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"x":', "}")])
def test_json_nested_too_deeply_is_malformed(depth: int, opening: str, closing: str) -> None:
    """Nesting beyond 1,000 levels is refused, also where it would be ignored, and never as a RecursionError."""
    with pytest.raises(MalformedRequest) as error:
        decode_json('{"unknown":' + opening * depth + "1" + closing * depth + "}")

    assert "nested too deeply; at most 1000 levels are allowed" == str(error.value)


def test_a_host_that_recurses_deeper_changes_nothing() -> None:
    """The limit is the same where a program has raised the interpreter's own."""
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(5_000)
    try:
        with pytest.raises(MalformedRequest, match="nested too deeply"):
            decode_json('{"unknown":' + "[" * 1_200 + "]" * 1_200 + "}")
    finally:
        sys.setrecursionlimit(usual)


def test_events_beyond_the_limit_are_left_out() -> None:
    """A span keeps its first 128 events."""
    decoded = decode_json(request(SPAN | {"events": [{"name": str(n)} for n in range(130)]}))

    assert [str(n) for n in range(128)] == [event.name for event in decoded.spans[0].events]
    assert {Caveat.EVENT_LIMIT: 2} == decoded.caveats


def test_the_number_of_spans_is_limited() -> None:
    """A request may have as many spans as allowed, and not one more."""
    assert 2 == len(decode_json(request(SPAN, SPAN), max_spans=2).spans)
    with pytest.raises(MalformedRequest, match="the request has more than 1 spans"):
        decode_json(request(SPAN, SPAN), max_spans=1)
