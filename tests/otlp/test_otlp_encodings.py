from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otlp.json_spans import SPAN, request
from receivers.otlp_requests import REQUESTS, from_json, request_of, simple_span, to_json
from spanscore.otlp.findings import Decoded, MalformedRequest
from spanscore.otlp.from_json import decode_json
from spanscore.otlp.from_protobuf import decode_protobuf, trace_ids


def outcome(decoded: Decoded) -> tuple[Any, ...]:
    """Return all that does not name fields, which have other names in JSON."""
    return decoded.spans, {refused.reason: refused.spans for refused in decoded.refused}, decoded.caveats


@given(request=REQUESTS, indent=st.none() | st.just(2), ascii_only=st.booleans())
def test_both_encodings_decode_alike(request: Any, indent: int | None, *, ascii_only: bool) -> None:
    """The protobuf and the JSON form of any request give the same spans and the same refusals."""
    from_protobuf = decode_protobuf(request.SerializeToString())

    assert outcome(from_protobuf) == outcome(decode_json(to_json(request, indent=indent, ensure_ascii=ascii_only)))


@given(request=REQUESTS)
def test_the_trace_ids_are_those_of_the_spans(request: Any) -> None:
    """`trace_ids` misses no trace that decoding finds."""
    body = request.SerializeToString()

    assert {span.trace_id for span in decode_protobuf(body).spans} <= set(trace_ids(body))


@given(request=REQUESTS)
def test_every_span_is_decoded_or_refused(request: Any) -> None:
    """No span is lost: those decoded and those refused are those sent."""
    sent = sum(len(scope.spans) for resource in request.resource_spans for scope in resource.scope_spans)
    decoded = decode_protobuf(request.SerializeToString())

    assert sent == len(decoded.spans) + decoded.refused_spans


@given(request=REQUESTS, data=st.data())
def test_damaged_protobuf_is_decoded_or_refused(request: Any, data: st.DataObject) -> None:
    """Whatever bytes are overwritten or cut off, decoding ends with spans or with MalformedRequest."""
    body = bytearray(request.SerializeToString())
    for place in data.draw(st.lists(st.integers(0, max(0, len(body) - 1)), max_size=4)):
        body[place : place + 1] = data.draw(st.binary(max_size=2))
    with suppress(MalformedRequest):
        decode_protobuf(bytes(body))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=3,
)


@given(request=REQUESTS, data=st.data())
def test_json_of_any_shape_is_decoded_or_refused(request: Any, data: st.DataObject) -> None:
    """Whatever value stands where another is expected, decoding ends with spans or with MalformedRequest."""
    document = json.loads(to_json(request))
    for _ in range(3):
        parent: Any = document
        while isinstance(parent, dict | list) and parent:
            key = data.draw(st.sampled_from(sorted(parent) if isinstance(parent, dict) else range(len(parent))))
            if data.draw(st.booleans()):
                parent[key] = data.draw(_JSON)
                break
            parent = parent[key]
    with suppress(MalformedRequest):
        decode_json(json.dumps(document))


@pytest.mark.parametrize("kind", [-1, 6, 2**31 - 1, -(2**31)])
def test_no_kind_of_a_span_makes_it_a_log_record(kind: int) -> None:
    """Kinds of later versions are kept as they are."""
    request = request_of(simple_span(1, kind=kind))
    for decoded in (decode_protobuf(request.SerializeToString()), decode_json(to_json(request))):
        assert [(kind, False)] == [(span.kind, span.is_log) for span in decoded.spans]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"traceId": "0102"}, "trace_id '0102' is not 16 bytes (in JSON 32 hex digits)"),
        ({"traceId": ""}, "trace_id '' is not 16 bytes (in JSON 32 hex digits)"),
        ({"traceId": "00" * 16}, f"trace_id '{'00' * 16}' is all zeros"),
        ({"traceId": "0b" * 5_000}, f"trace_id '{'0b' * 19}0…' is not 16 bytes (in JSON 32 hex digits)"),
        ({"spanId": "0102"}, "span_id '0102' is not 8 bytes (in JSON 16 hex digits)"),
        ({"spanId": "00" * 8}, f"span_id '{'00' * 8}' is all zeros"),
        ({"parentSpanId": "0102"}, "parent_span_id '0102' is not 8 bytes (in JSON 16 hex digits)"),
        ({"links": [{"traceId": "01"}]}, "trace_id of a link '01' is not 16 bytes (in JSON 32 hex digits)"),
        ({"links": [{"spanId": "01"}]}, "span_id of a link '01' is not 8 bytes (in JSON 16 hex digits)"),
    ],
)
def test_a_message_quotes_the_id_that_is_refused(fields: dict[str, Any], told: str) -> None:
    """Whoever sends it finds it again by that; a long one is cut."""
    body = request(SPAN | fields)
    for decoded in (decode_json(body), decode_protobuf(from_json(body).SerializeToString())):
        (refused,) = decoded.refused
        assert f".spans[0]: {told}" in refused.example


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("no\nid\u202e", "no\ufffdid\ufffd"),
        (7, "7"),
        ("x" * 50_000, f"{'x' * 39}…"),
        (json.loads("[" * 900 + "]" * 900), "[...]"),
        ({"a": 1}, "{...}"),
        (None, ""),
    ],
)
def test_what_is_no_id_is_quoted_on_one_line(written: Any, shown: str) -> None:
    """In JSON anything may be in place of an id."""
    (refused,) = decode_json(request(SPAN | {"traceId": written})).refused
    assert f": trace_id '{shown}' is not 16 bytes" in refused.example
