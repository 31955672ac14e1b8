from __future__ import annotations

import base64
import math
from typing import Any

import pytest

from otlp.json_spans import DECODED, SPAN, decode_span, refusal, request
from spanscore.otlp.findings import Caveat, Decoded, Refusal
from spanscore.otlp.from_json import decode_json


def decode_value(value: Any) -> Any:
    """Decode one attribute value."""
    return decode_span(attributes=[{"key": "k", "value": value}]).attributes["k"]


def value_refusal(value: Any) -> Refusal:
    """Decode a span with this attribute value, which must be refused."""
    return refusal(attributes=[{"key": "k", "value": value}])


def nested(depth: int, value: Any) -> Any:
    """Return a value at that depth, counted from 1."""
    for level in range(depth - 1):
        value = (
            {"arrayValue": {"values": [value]}}
            if level % 2
            else {"kvlistValue": {"values": [{"key": "k", "value": value}]}}
        )
    return value


def innermost(value: Any) -> Any:
    """Return the value inside all lists and mappings."""
    while isinstance(value, dict | list):
        value = next(iter(value.values())) if isinstance(value, dict) else value[0]
    return value


@pytest.mark.parametrize(
    ("raw", "number"),
    [
        ("18446744073709551615", 2**64 - 1),
        (18446744073709551615, 2**64 - 1),
        (1e18, 10**18),
        ("1e18", 10**18),
        (0, 0),
        (None, 0),
    ],
)
def test_times_are_exact(raw: Any, number: int) -> None:
    """Times are strings or numbers, up to the largest of 64 bits."""
    assert number == decode_span(startTimeUnixNano=raw).start_ns


@pytest.mark.parametrize(
    "raw",
    [-1, "-1", 2**64, "18446744073709551616", 1.5, "1.5", "", " 1", "1_0", "١", "now", True, [], "9" * 5000, 1e300],  # noqa: RUF001 - a digit that is not ASCII
)
def test_other_times_are_refused(raw: Any) -> None:
    """A time that is not a whole number of 64 bits refuses its span."""
    assert refusal(endTimeUnixNano=raw) is Refusal.INVALID_TIME
    assert refusal(events=[{"timeUnixNano": raw}]) is Refusal.INVALID_TIME


@pytest.mark.parametrize("raw", ["1764000003020000000.5", "17640000030200000005e-1", "1e-99999", "1e" + "9" * 30])
def test_a_fraction_is_refused_however_small(raw: str) -> None:
    """As a double some of these are whole numbers."""
    assert refusal(endTimeUnixNano=raw) is Refusal.INVALID_TIME


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"stringValue": ""}, ""),
        ({"stringValue": "\x00\u202e\n"}, "\x00\u202e\n"),
        ({"boolValue": False}, False),
        ({"intValue": "-9223372036854775808"}, -(2**63)),
        ({"intValue": 9223372036854775807}, 2**63 - 1),
        ({"intValue": -5.0}, -5),
        ({"doubleValue": 1.5}, 1.5),
        ({"doubleValue": 2}, 2.0),
        ({"doubleValue": "-1.5e3"}, -1500.0),
        ({"doubleValue": "Infinity"}, math.inf),
        ({"doubleValue": "-Infinity"}, -math.inf),
        ({"bytesValue": "+/8="}, b"\xfb\xff"),
        ({"bytesValue": "-_8="}, b"\xfb\xff"),
        ({"bytesValue": "+/8"}, b"\xfb\xff"),
        ({"bytesValue": "-_8"}, b"\xfb\xff"),
        ({"bytesValue": ""}, b""),
        ({"arrayValue": {}}, []),
        ({"arrayValue": {"values": None}}, []),
        ({"arrayValue": {"values": [{"intValue": 1}, {}, None]}}, [1, None, None]),
        ({"kvlistValue": {}}, {}),
        (
            {"kvlistValue": {"values": [{"key": "a", "value": {"boolValue": True}}, {"key": "b"}]}},
            {"a": True, "b": None},
        ),
        ({"stringValue": None, "intValue": 3}, 3),
        ({"stringValue": None}, None),
        ({"tensorValue": 3}, None),
        ({}, None),
        (None, None),
    ],
)
def test_values(value: Any, expected: Any) -> None:
    """Each kind of attribute value becomes the plain Python value; null is absent."""
    decoded = decode_value(value)

    assert (type(expected), expected) == (type(decoded), decoded)


def test_nan_is_a_double() -> None:
    """NaN is written in quotes."""
    assert math.isnan(decode_value({"doubleValue": "NaN"}))


@pytest.mark.parametrize(
    "value",
    [
        {"stringValue": 1},
        {"stringValue": "a", "intValue": 1},
        {"stringValue": "a", "arrayValue": {}},
        {"boolValue": "true"},
        {"boolValue": 1},
        {"intValue": 2**63},
        {"intValue": 1.5},
        {"intValue": True},
        {"intValue": "ten"},
        {"doubleValue": "nan"},
        {"doubleValue": "inf"},
        {"doubleValue": ""},
        {"doubleValue": "1e999"},
        {"doubleValue": 10**400},
        {"doubleValue": False},
        {"bytesValue": "a"},
        {"bytesValue": "ab=c"},
        {"bytesValue": "a b="},
        {"bytesValue": [1]},
        {"arrayValue": []},
        {"arrayValue": {"values": {}}},
        {"arrayValue": {"values": ["text"]}},
        {"kvlistValue": {"values": [["k", "v"]]}},
        {"kvlistValue": {"values": [{"key": 1}]}},
        "text",
        [],
    ],
)
def test_wrong_values_are_refused(value: Any) -> None:
    """A value that is not what its name says, or two values in one, refuse their span and no other."""
    assert value_refusal(value) is Refusal.INVALID_VALUE


def test_equal_keys_let_the_last_win() -> None:
    """Of two equal keys, in JSON or among attributes, the last one counts."""
    body = request(SPAN | {"attributes": [{"key": "k", "value": {"intValue": n}} for n in (1, 2)]})

    assert {"k": 2} == decode_json(body).spans[0].attributes
    assert "last" == decode_json(body.replace('"name": "work"', '"name": "first", "name": "last"')).spans[0].name


@pytest.mark.parametrize(("depth", "expected", "caveats"), [(64, 7, {}), (65, None, {Caveat.DEPTH_LIMIT: 1})])
def test_values_nest_64_deep(depth: int, expected: Any, caveats: Any) -> None:
    """A value nested 64 deep is kept; a deeper one is replaced by an empty one, and noted."""
    decoded = decode_json(request(SPAN | {"attributes": [{"key": "k", "value": nested(depth, {"intValue": 7})}]}))

    assert (expected, caveats) == (innermost(decoded.spans[0].attributes["k"]), decoded.caveats)


def test_attributes_beyond_the_limit_are_left_out() -> None:
    """A span keeps 1,024 attributes, and says how many are missing besides those its sender dropped."""
    attributes = [{"key": str(n), "value": {"intValue": n}} for n in range(1_030)]
    decoded = decode_json(request(SPAN | {"attributes": attributes, "droppedAttributesCount": 2}, SPAN))

    assert [(1_024, 8), (0, 0)] == [(len(span.attributes), span.dropped_attributes) for span in decoded.spans]
    assert {Caveat.ATTRIBUTE_LIMIT: 6} == decoded.caveats


LONG = 1024 * 1024


@pytest.mark.parametrize(
    "value",
    [
        {"stringValue": "x" * (LONG + 1)},
        {"bytesValue": base64.b64encode(bytes(LONG + 1)).decode()},
        {"arrayValue": {"values": [{"stringValue": "x" * (LONG + 1)}]}},
        {"kvlistValue": {"values": [{"key": "k", "value": {"stringValue": "x" * (LONG + 1)}}]}},
    ],
)
def test_long_values_are_left_out_whole(value: Any) -> None:
    """An attribute with a text of more than 1 MiB is not cut but left out, so that nobody scores half of it."""
    span = decode_span(attributes=[{"key": "k", "value": value}, {"key": "ok", "value": {"stringValue": "x" * LONG}}])

    assert ({"ok": "x" * LONG}, 1) == (span.attributes, span.dropped_attributes)


def test_fields_of_the_profiling_signal_are_absent() -> None:
    """References into a profile's string table mean nothing in a trace; the data is processed without them."""
    attributes = [{"key": "k", "value": {"stringValueStrindex": 3}}, {"keyStrindex": 4, "value": {"intValue": 1}}]
    decoded = decode_json(request(SPAN | {"attributes": attributes}))

    expected = Decoded(spans=[DECODED._replace(attributes={"k": None, "": 1})], caveats={Caveat.PROFILING_FIELD: 2})
    assert expected == decoded
