"""OTLP/JSON: one ExportTraceServiceRequest to spans.

Not protobuf's own JSON mapping: OTLP writes ids in hex, forbids enum names and the original field names, and asks to
ignore what is unknown. Where JSON leaves a choice: of two equal keys the last wins, null means absent, and a lone
surrogate becomes U+FFFD.
"""

from __future__ import annotations

from typing import Any, Final

from spanscore.otlp.findings import SPANS_PER_REQUEST, Decoded, MalformedRequest
from spanscore.otlp.json_in_parts import decoding_in_parts, decoding_parts
from spanscore.otlp.json_in_steps import AT_ONCE
from spanscore.otlp.json_messages import RawRequest, RawResourceSpans, RawScopeSpans
from spanscore.otlp.json_rules import kind_of_json
from spanscore.otlp.json_typed import decoding_typed
from spanscore.otlp.slices import Steps, at_once
from spanscore.otlp.strict_json import has_too_many_values, parse
from spanscore.read.wanted import WantedAttributes

_TYPED_AT_ONCE: Final = 2**21
"""Bytes: so much is decoded by type in some 30 ms at most, and ordinary requests are smaller. In parts it takes an
eighth longer."""


def decode_json(
    body: bytes | str, *, max_spans: int | None = SPANS_PER_REQUEST, wanted: WantedAttributes | None = None
) -> Decoded:
    """Decode one request.

    Args:
        body: the request as JSON in UTF-8; empty is an empty request.
        max_spans: refuse a request with more spans.
        wanted: the attributes to keep of spans that have a parent in their process; None keeps all. Of the others only
            the keys are looked at: a value that would refuse its span does not.

    Raises:
        MalformedRequest: it is no JSON, not an OTLP trace request, or has too many spans.
    """
    return at_once(decoding_json(body, max_spans=max_spans, wanted=wanted))


def decoding_json(
    body: bytes | str, *, max_spans: int | None = SPANS_PER_REQUEST, wanted: WantedAttributes | None = None
) -> Steps[Decoded]:
    """Do what `decode_json` does in steps, of which each reads one span."""
    if not body:
        return Decoded(spans=[])
    if max_spans is not None and has_too_many_values(body):
        message = "the request has more than 2 million objects and lists, or 4 million values"
        raise MalformedRequest(message)
    is_in_parts = isinstance(body, bytes) and len(body) > AT_ONCE
    if len(body) <= _TYPED_AT_ONCE or not is_in_parts:
        decoded = yield from decoding_typed(body, max_spans=max_spans, wanted=wanted)
        if decoded is not None:
            return decoded
    if isinstance(body, bytes) and is_in_parts:
        return (yield from decoding_in_parts(body, max_spans=max_spans, wanted=wanted))
    return (yield from _decoding_document(parse(body), max_spans, wanted))


def decode_document(
    document: Any, *, max_spans: int | None = SPANS_PER_REQUEST, wanted: WantedAttributes | None = None
) -> Decoded:
    """Decode one request that `parse` returned, as `decode_json` does; it takes four times as long.

    Raises:
        MalformedRequest: it is not an OTLP trace request, or has too many spans.
    """
    return at_once(_decoding_document(document, max_spans, wanted))


def _decoding_document(document: Any, max_spans: int | None, wanted: WantedAttributes | None) -> Steps[Decoded]:
    return (yield from decoding_parts(_parts(document), max_spans=max_spans, wanted=wanted))


def _parts(document: Any) -> RawRequest:
    """Return the request with its resources, scopes and spans as they were parsed."""
    outer = []
    for i, item in enumerate(_list(_object(document, "the request"), "resourceSpans", "")):
        path = f"resourceSpans[{i}]"
        resource_spans = _object(item, path)
        inner = []
        for j, each in enumerate(_list(resource_spans, "scopeSpans", path)):
            where = f"{path}.scopeSpans[{j}]"
            scope_spans = _object(each, where)
            inner.append(RawScopeSpans(scope=scope_spans.get("scope"), spans=_list(scope_spans, "spans", where)))
        outer.append(RawResourceSpans(resource=resource_spans.get("resource"), scope_spans=inner))
    return RawRequest(resource_spans=outer)


def _object(raw: Any, where: str) -> Any:
    if not isinstance(raw, dict):
        message = f"{where} must be an object, not {kind_of_json(raw)}"
        raise MalformedRequest(message)
    return raw


def _list(parent: dict[str, Any], key: str, where: str) -> list[Any]:
    raw = parent.get(key)
    if raw is None:
        return []
    if not isinstance(raw, list):
        message = f"{where}{'.' if where else ''}{key} must be an array, not {kind_of_json(raw)}"
        raise MalformedRequest(message)
    return raw
