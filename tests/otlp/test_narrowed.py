from __future__ import annotations

import json

import pytest

from otlp.json_spans import SPAN, request
from receivers.otlp_requests import field, request_of, simple_span, trace_id
from spanscore.otlp.encoding import Encoding
from spanscore.otlp.findings import MalformedRequest
from spanscore.otlp.forwardable import narrowed
from spanscore.otlp.wire import FIELDS_LOOKED_AT, readable_field


def test_other_traces_are_left_out_of_a_request() -> None:
    """What is left is byte for byte as it came, fields that nobody knows included."""
    kept, other = simple_span(1, 2, name="kept"), simple_span(2, 3)
    unknown = field(15, b"unknown")
    body = request_of(kept, other, simple_span(1, 4)).SerializeToString() + unknown

    expected = request_of(kept, simple_span(1, 4)).SerializeToString() + unknown
    assert expected == narrowed(body, Encoding.PROTOBUF, {trace_id(1)})
    assert body == narrowed(body, Encoding.PROTOBUF, {trace_id(1), trace_id(2)})


def test_other_traces_are_left_out_of_json() -> None:
    """JSON stays JSON; ids may be written in capitals, and what is no span goes."""
    kept = SPAN | {"traceId": "AB" * 16, "attributes": [{"key": "k", "value": {"doubleValue": "NaN"}}]}
    body = request(SPAN, kept, "nonsense", {"traceId": 7}).encode()

    assert json.loads(request(kept)) == json.loads(narrowed(body, Encoding.JSON, {b"\xab" * 16}))


def test_what_is_no_request_is_said_to_be_none() -> None:
    """It is an error that the caller knows."""
    for body, encoding in ((b"\xff", Encoding.PROTOBUF), (b"{", Encoding.JSON)):
        with pytest.raises(MalformedRequest):
            narrowed(body, encoding, {trace_id(1)})


def test_ids_of_a_refused_span_are_looked_for_in_so_many_fields_only() -> None:
    """However many empty parts stand before an id, looking for it ends."""
    body = field(9, b"") * 10 + field(1, b"id")
    place = (0, len(body))

    assert [b"", b"id", b"id"] == [readable_field(body, place, 1, most) for most in (10, 11, None)]
    assert 2_048 == FIELDS_LOOKED_AT
