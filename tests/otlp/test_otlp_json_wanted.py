from __future__ import annotations

from typing import Any

import pytest

from otlp.json_spans import DECODED, SPAN, request
from spanscore.model import SpanEvent
from spanscore.otlp.findings import Decoded, MalformedRequest, Refusal
from spanscore.otlp.from_json import decode_json
from spanscore.trajectories.wanted import WantedAttributes

WANTED = WantedAttributes(["k", "gen_ai.*"])
CHILD = SPAN | {"parentSpanId": "aa" * 8}
DECODED_CHILD = DECODED._replace(parent_span_id=b"\xaa" * 8)

READ_FASTER: dict[str, Any] = {}
READ_BY_ALL_THE_RULES = {"unknown": 1}
BOTH_WAYS = pytest.mark.parametrize("more", [READ_FASTER, READ_BY_ALL_THE_RULES], ids=["fast", "all rules"])


def pairs(**values: Any) -> list[dict[str, Any]]:
    """Return attributes in JSON; `__` in a name stands for a dot."""
    return [{"key": key.replace("__", "."), "value": value} for key, value in values.items()]


ATTRIBUTES = pairs(
    k={"intValue": "1"}, gen_ai__tool__name={"stringValue": "fetch"}, http__url={"stringValue": "u"}, x={"intValue": 2}
)
KEPT = {"k": 1, "gen_ai.tool.name": "fetch"}
ALL = KEPT | {"http.url": "u", "x": 2}


@BOTH_WAYS
@pytest.mark.parametrize("flags", [0, 0x101], ids=["parent unknown", "parent here"])
def test_only_wanted_attributes_of_a_child_are_kept(flags: int, more: dict[str, Any]) -> None:
    """Of a span whose parent is in its process only the attributes that are wanted are kept; None wants all."""
    body = request(CHILD | {"attributes": ATTRIBUTES, "flags": flags} | more)
    expected = DECODED_CHILD._replace(flags=flags)

    assert Decoded(spans=[expected._replace(attributes=KEPT)]) == decode_json(body, wanted=WANTED)
    assert Decoded(spans=[expected._replace(attributes=ALL)]) == decode_json(body)


@BOTH_WAYS
@pytest.mark.parametrize(
    "fields", [{}, {"parentSpanId": "0" * 16}, {"parentSpanId": "aa" * 8, "flags": 0x300}], ids=["root", "0", "remote"]
)
def test_roots_keep_every_attribute(fields: dict[str, Any], more: dict[str, Any]) -> None:
    """A span without a parent in its process keeps all: a configuration may match on any attribute of a root."""
    (span,) = decode_json(request(SPAN | {"attributes": ATTRIBUTES} | fields | more), wanted=WANTED).spans

    assert ALL == span.attributes


@BOTH_WAYS
def test_events_and_resources_keep_every_attribute(more: dict[str, Any]) -> None:
    """What is wanted is asked of the span's own attributes only."""
    span = CHILD | {"events": [{"name": "e", "attributes": ATTRIBUTES}]} | more

    expected = DECODED_CHILD._replace(events=(SpanEvent("e", 0, ALL),))
    assert Decoded(spans=[expected]) == decode_json(request(span), wanted=WANTED)


@pytest.mark.parametrize(
    "value",
    [{"stringValue": "a", "intValue": 1}, {"intValue": "secret"}, {"bytesValue": "!"}, 5, {"stringValue": 5}],
)
def test_a_value_that_nobody_wants_refuses_no_span(value: Any) -> None:
    """Broken values cost a span only where somebody would read them."""
    span = CHILD | {"attributes": [{"key": "x", "value": value}, {"key": "k", "value": {"stringValue": "v"}}]}
    decoded = decode_json(request(span), wanted=WANTED)

    assert Decoded(spans=[DECODED_CHILD._replace(attributes={"k": "v"})]) == decoded
    assert [Refusal.INVALID_VALUE] == [refused.reason for refused in decode_json(request(span)).refused]


@pytest.mark.parametrize("pair", ["text", {"key": 5}, {"key": "k", "value": {"stringValue": 5}}])
def test_what_is_no_attribute_still_refuses_its_span(pair: Any) -> None:
    """An attribute whose key cannot be read, or that is wanted and broken, refuses its span."""
    decoded = decode_json(request(CHILD | {"attributes": [pair]}), wanted=WANTED)

    assert ([], [Refusal.INVALID_VALUE]) == (decoded.spans, [refused.reason for refused in decoded.refused])


@BOTH_WAYS
def test_the_limit_of_attributes_counts_unwanted_ones_too(more: dict[str, Any]) -> None:
    """How many attributes a span may have does not depend on who reads them."""
    span = CHILD | {"attributes": pairs(x={"intValue": 1}) * 1_024 + pairs(k={"intValue": 1})} | more
    (decoded,) = decode_json(request(span), wanted=WANTED).spans

    assert DECODED_CHILD._replace(dropped_attributes=1) == decoded


def test_values_that_nobody_wants_may_not_nest_without_end() -> None:
    """Nesting beyond 1,000 levels of JSON is refused, also where it is not read."""
    deep = '{"arrayValue":{"values":[' * 400 + "]}}" * 400
    body = request(CHILD | {"attributes": [{"key": "x", "value": "deep"}]}).replace('"deep"', deep)

    with pytest.raises(MalformedRequest, match="nested too deeply"):
        decode_json(body, wanted=WANTED)
