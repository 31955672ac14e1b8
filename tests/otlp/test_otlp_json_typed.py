from __future__ import annotations

import json
import random
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import at_most
from fuzzing.otlp_json import WANTED, answers, odd_request
from otlp.json_spans import DECODED, SPAN, refusal, request
from spanscore.otlp.findings import Decoded, Refusal
from spanscore.otlp.from_json import decode_document
from spanscore.otlp.json_typed import decode_typed
from spanscore.otlp.limits import SPANS_PER_REQUEST


def typed(body: bytes | str) -> Decoded | None:
    """Decode a request by type, as far as that goes."""
    return decode_typed(body, max_spans=SPANS_PER_REQUEST, wanted=None)


@at_most(300)
@given(seed=st.integers(0, 2**32 - 1), wanted=st.sampled_from([None, WANTED]))
def test_odd_requests_are_decoded_by_all_the_rules(seed: int, wanted: Any) -> None:
    """Whatever is odd in a request, decoding it by type first changes nothing."""
    actual, expected = answers(odd_request(random.Random(seed)), wanted)

    assert expected == actual


@pytest.mark.parametrize(
    "fields",
    [
        {"startTimeUnixNano": 1, "endTimeUnixNano": "2", "parentSpanId": "", "kind": 0, "flags": None},
        {"traceState": "a=b", "droppedAttributesCount": 0, "droppedEventsCount": 1, "droppedLinksCount": 1},
        {"attributes": [], "events": [], "links": [], "status": {}},
        {"links": [{"traceId": "AB" * 16, "spanId": "ab" * 8, "attributes": [{"key": "k", "value": {}}]}]},
    ],
)
def test_what_senders_write_is_decoded_by_type(fields: dict[str, Any]) -> None:
    """Absent, null and empty members, and fields that scoring does not read, do not cost the fast way."""
    assert Decoded(spans=[DECODED]) == typed(request(SPAN | fields))


@pytest.mark.parametrize(
    "value",
    [
        {"stringValue": "v"},
        {"intValue": "-7"},
        {"intValue": 7},
        {"doubleValue": 2},
        {"boolValue": False},
        {"arrayValue": {"values": [{"stringValue": "v"}, {}, None]}},
        {"arrayValue": {}},
        {"kvlistValue": {"values": [{"key": "k", "value": {"arrayValue": {"values": [{"intValue": "1"}]}}}]}},
        {},
        None,
    ],
)
def test_values_are_decoded_by_type(value: Any) -> None:
    """Every kind of value but bytes takes the fast way, with the same result, down to its type."""
    body = request(SPAN | {"attributes": [{"key": "k", "value": value}]})

    assert repr(decode_document(json.loads(body))) == repr(typed(body))


ONE_OF_EACH = {
    "stringValue": "",
    "intValue": 0,
    "doubleValue": 0,
    "boolValue": False,
    "arrayValue": {},
    "kvlistValue": {},
    "bytesValue": "",
}


@pytest.mark.parametrize("members", list(combinations(ONE_OF_EACH, 2)), ids="-".join)
def test_no_two_kinds_of_value_are_taken(members: tuple[str, str]) -> None:
    """A value that is of two kinds refuses its span, also where each of them is empty."""
    value = {member: ONE_OF_EACH[member] for member in members}

    assert refusal(attributes=[{"key": "k", "value": value}]) is Refusal.INVALID_VALUE


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1])
@pytest.mark.parametrize("field", ["kind", "status"])
def test_enums_have_32_bits(field: str, number: int) -> None:
    """A number beyond the 32 bits of an enum refuses its span."""
    assert refusal(**{field: number if field == "kind" else {"code": number}}) is Refusal.INVALID_ENUM
