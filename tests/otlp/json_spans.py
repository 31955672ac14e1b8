"""Makes OTLP/JSON requests of one span for tests, and decodes them."""

from __future__ import annotations

import json
from typing import Any

from spanscore.model import Span
from spanscore.otlp.findings import Refusal
from spanscore.otlp.from_json import decode_json

TRACE_ID = "0102030405060708090a0b0c0d0e0fff"
SPAN_ID = "01020304050607ff"
SPAN = {"traceId": TRACE_ID, "spanId": SPAN_ID, "name": "work", "startTimeUnixNano": "1", "endTimeUnixNano": "2"}
DECODED = Span(bytes.fromhex(TRACE_ID), bytes.fromhex(SPAN_ID), b"", "work", 1, 2)


def request(*spans: Any) -> str:
    """Return a request with these spans as JSON."""
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})


def decode_span(**fields: Any) -> Span:
    """Decode one span with these fields, which must not be refused."""
    decoded = decode_json(request(SPAN | fields))
    assert decoded.refused == ()
    return decoded.spans[0]


def refusal(**fields: Any) -> Refusal:
    """Decode a span with these fields beside a good one: it must be the only one refused."""
    decoded = decode_json(request(SPAN | fields, SPAN))
    assert [DECODED] == decoded.spans
    assert [1] == [refused.spans for refused in decoded.refused]
    return decoded.refused[0].reason
