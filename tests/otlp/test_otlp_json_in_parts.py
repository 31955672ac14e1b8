"""Large OTLP/JSON requests are taken apart: no step of decoding them takes long, and the outcome is the same."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import at_most
from fuzzing.otlp_json import WANTED, answers_in_parts, odd_request
from otlp.json_spans import SPAN, request
from spanscore.otlp import from_json, json_in_steps, json_messages, strict_json
from spanscore.otlp.findings import MalformedRequest
from spanscore.otlp.from_json import decode_document, decode_json
from spanscore.otlp.strict_json import AT_ONCE, parse

ATTRIBUTE = {"key": "k", "value": {"intValue": 1}}
MANY = 40_000
SPANS = 1_850
"""More than 2 MiB of them, so that they are decoded in parts by type, too."""


def spans(number: int, **fields: Any) -> list[dict[str, Any]]:
    """Return spans of which so many are large together, but not one alone."""
    return [SPAN | {"spanId": f"{n:016x}", "traceState": "x" * 1_000} | fields for n in range(1, number + 1)]


def enveloped(resource: Any, scope: Any) -> bytes:
    """Return a large request with two spans below a resource and a scope."""
    document = json.loads(request(SPAN, SPAN | {"traceState": "x" * 3 * 2**20}))
    document["resourceSpans"][0]["resource"] = resource
    document["resourceSpans"][0]["scopeSpans"][0]["scope"] = scope
    return json.dumps(document).encode()


def with_value(**value: Any) -> bytes:
    """Return a request with one large span, of whose attributes one has such a value."""
    return request(SPAN | {"attributes": [{"key": "k", "value": value}, ATTRIBUTE]}).encode()


@cache
def ordinary() -> bytes:
    """Return a large request with nothing odd in it."""
    return request(*spans(SPANS)).encode()


LARGE: dict[str, Callable[[], bytes]] = {
    "ordinary spans": ordinary,
    "odd spans": lambda: request(*spans(SPANS, new=[1])).encode(),
    "refused spans": lambda: request(*spans(SPANS, kind="CLIENT"), SPAN).encode(),
    "attributes": lambda: request(SPAN | {"attributes": [ATTRIBUTE] * MANY}, SPAN).encode(),
    "odd attributes": lambda: request(SPAN | {"attributes": [ATTRIBUTE] * MANY, "new": 1}).encode(),
    "events": lambda: request(SPAN | {"events": [{"name": "e"}] * MANY}).encode(),
    "links": lambda: request(SPAN | {"links": [{"traceState": "a=b"}] * MANY}).encode(),
    "a link that is none": lambda: request(SPAN | {"links": [{"traceState": "a=b"}] * MANY + [1]}).encode(),
    "an event that is none": lambda: request(SPAN | {"events": [*[{"name": "e"}] * MANY, None]}, SPAN).encode(),
    "array": lambda: with_value(arrayValue={"values": [{"stringValue": "value"}] * MANY}),
    "array with room": lambda: with_value(arrayValue={"values": [{"stringValue": "value" * 10}] * 16_000}),
    "mapping": lambda: with_value(kvlistValue={"values": [ATTRIBUTE] * MANY}),
    "mapping with room": lambda: with_value(kvlistValue={"values": [ATTRIBUTE] * 16_000}),
    "long text": lambda: with_value(stringValue="x" * (3 * 2**20)),
    "two kinds": lambda: with_value(stringValue="x" * AT_ONCE, intValue=1),
    "keys": lambda: request(SPAN | {str(n): n for n in range(MANY)}, SPAN).encode(),
    "resource": lambda: enveloped({"attributes": [ATTRIBUTE] * MANY}, {"name": "s"}),
    "odd resource": lambda: enveloped({"new": 1, "attributes": [ATTRIBUTE]}, {"name": "s"}),
    "refused resource": lambda: enveloped([], {"name": "s"}),
    "scope": lambda: enveloped(None, {"name": "s", "attributes": [ATTRIBUTE] * MANY}),
    "odd scope": lambda: enveloped({}, {"name": "s", "new": 1}),
    "refused scope": lambda: enveloped({}, {"name": 1}),
    "values": lambda: request(
        *spans(70, attributes=[{"key": "k", "value": {"arrayValue": {"values": [{}] * 16_000}}}])
    ).encode(),
    "lone surrogates": lambda: request(*spans(SPANS)).replace("work", r"\ud800 \ud83d\ude00 \\ud800", 7).encode(),
    "spaces": lambda: json.dumps(json.loads(request(*spans(SPANS))), indent=1).encode(),
    "empty": lambda: b'{"resourceSpans":[' + b",".join([b'{"scopeSpans":[{"scope":{}},{}]},{}'] * 8_000) + b"]}",
}


@at_most(300)
@given(seed=st.integers(0, 2**32 - 1), wanted=st.sampled_from([None, WANTED]), at_once=st.sampled_from([1, 30, 300]))
def test_taking_a_request_apart_changes_nothing(seed: int, wanted: Any, at_once: int) -> None:
    """Whatever is odd in a request, and however small its parts are, it is decoded by the same rules."""
    actual, expected = answers_in_parts(odd_request(random.Random(seed)), wanted, at_once)

    assert expected == actual


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list of how many bytes were parsed at once each time."""
    seen: list[int] = []

    def watched(body: bytes) -> Any:
        seen.append(len(body))
        return parse(body)

    for module, name in ((strict_json, "parse_part"), (json_in_steps, "parse_part"), (from_json, "parse")):
        monkeypatch.setattr(module, name, watched)
    return seen


MARKS = {"values": pytest.mark.full_size}  # as many as a request may have, and more


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in LARGE])
def test_no_large_part_is_parsed_at_once(name: str, sizes: list[int]) -> None:
    """What is large is taken apart, except for a text, and means what it means as a whole."""
    body = LARGE[name]()
    assert len(body) > AT_ONCE

    assert repr(decode_document(parse(body))) == repr(decode_json(body))
    assert name in {"long text", "two kinds"} or max(sizes, default=0) <= AT_ONCE


def test_a_large_request_is_not_decoded_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by type either."""
    monkeypatch.setattr(json_messages, "REQUEST", None)

    assert SPANS == len(decode_json(ordinary()).spans)


def _cut_off(body: bytes) -> bytes:
    return body[:-1]


def _broken_text(body: bytes) -> bytes:
    return body.replace(b"work", b"wo\xffrk", 1)


def _broken_unread(body: bytes) -> bytes:
    return body.replace(b"xxx", b"x\xffx", 1)


def _deep(body: bytes) -> bytes:
    return body.replace(b'"work"', b"[" * 100_000 + b"]" * 100_000, 1)


def _no_list(body: bytes) -> bytes:
    return body.replace(b'"spans": [', b'"spans": 1, "more": [')


def _no_json(body: bytes) -> bytes:
    return body.replace(b'"work"', b"work", 1)


def _constant(body: bytes) -> bytes:
    return body.replace(b'"work"', b"NaN", 1)


def _byte_order_mark(body: bytes) -> bytes:
    return b"\xef\xbb\xbf" + body


@pytest.mark.parametrize(
    "break_", [_cut_off, _broken_text, _broken_unread, _deep, _no_list, _no_json, _constant, _byte_order_mark]
)
def test_what_is_broken_is_refused_as_a_whole(break_: Callable[[bytes], bytes], sizes: list[int]) -> None:
    """Wherever a large request is broken, it is no request, and that is found in parts, too."""
    broken = break_(ordinary())
    with pytest.raises(MalformedRequest):
        parse(broken) if break_ is not _no_list else decode_document(parse(broken))

    with pytest.raises(MalformedRequest):
        decode_json(broken)
    assert max(sizes, default=0) <= AT_ONCE


def test_too_many_spans_are_counted_before_they_are_decoded(sizes: list[int]) -> None:
    """A request with more spans than are allowed is refused."""
    with pytest.raises(MalformedRequest, match="more than 1849 spans"):
        decode_json(ordinary(), max_spans=SPANS - 1)
    assert [] == sizes


def test_a_broken_span_is_named() -> None:
    """Who sends a large request is told where it is broken."""
    body = ordinary().replace(b"work", b"w\xe2\x82", 1)

    with pytest.raises(MalformedRequest, match="not valid UTF-8 at byte"):
        decode_json(body)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ('{"spans":[],%s}', "the request has no 'resourceSpans', but fields with other names"),
        ('{"resourceSpans":[{%s}]}', "resourceSpans[0] has no 'scopeSpans', but fields with other names"),
        ('{"resourceSpans":[{"scopeSpans":[{"scope":{},%s}]}]}', "scopeSpans[0] has no 'spans', but fields"),
        ('{"resourceSpans":[],%s}', None),
        ('{"resourceSpans":[{"resource":{%s}}]}', None),
    ],
)
def test_thousands_of_unknown_names_are_not_looked_at(body: str, why: str | None) -> None:
    """They are ignored beside the list that leads on, and not listed where it is missing."""
    full = (body % ",".join(f'"k{n}":0' for n in range(MANY))).encode()

    if why is None:
        assert not decode_json(full).spans
    else:
        with pytest.raises(MalformedRequest, match=re.escape(why)):
            decode_json(full)


def test_escapes_of_a_long_text_are_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no surrogate lacks its other half: millions of them in one text would take a second."""
    monkeypatch.setattr(strict_json, "_ESCAPE", None)
    text = "\U0001f600" * AT_ONCE

    decoded = decode_json(with_value(stringValue=text))  # the escapes of two surrogates, 12 bytes, for each

    assert 1 == len(decoded.spans)
