"""OTLP/JSON: one ExportTraceServiceRequest to spans.

Not protobuf's own JSON mapping: OTLP writes ids in hex, forbids enum names and the original field names, and asks to
ignore what is unknown. Where JSON leaves a choice: of two equal keys the last wins, null means absent, and a lone
surrogate becomes U+FFFD.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from spanscore.model import EMPTY, Attributes, Span
from spanscore.otlp.findings import SPANS_PER_REQUEST, Decoded, Findings, MalformedRequest, SpanRefused
from spanscore.otlp.json_in_parts import decoding_in_parts
from spanscore.otlp.json_in_steps import AT_ONCE
from spanscore.otlp.json_rules import kind_of_json, resource, scope_name, span
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
    findings = Findings(is_bounded=max_spans is not None)
    spans: list[Span] = []
    sizes: list[int] = []
    scopes = list(_scope_spans(_object(document, "the request")))
    if max_spans is not None and sum(len(scope.spans) for scope in scopes) > max_spans:
        message = f"the request has more than {max_spans} spans"
        raise MalformedRequest(message)
    for scope, of_resource, name in _named(scopes, findings):
        yield
        if isinstance(of_resource, SpanRefused):
            findings.refuse(of_resource.reason, f"{scope.path}.resource: {of_resource}", len(scope.spans))
            continue
        if isinstance(name, SpanRefused):
            findings.refuse(name.reason, f"{scope.where}.scope: {name}", len(scope.spans))
            continue
        for index, message in enumerate(scope.spans):
            try:
                spans.append(span(message, of_resource, name, wanted, findings))
                sizes.append(findings.size)
            except SpanRefused as refused:
                findings.refuse(refused.reason, f"{scope.where}.spans[{index}]: {refused}")
            yield
    return findings.decoded(spans, sizes)


class _ScopeSpans(NamedTuple):
    """The spans that share a resource and a scope, as they were parsed."""

    resource_spans: dict[str, Any]
    path: str
    scope: Any
    where: str
    spans: list[Any]


def _scope_spans(document: dict[str, Any]) -> Iterator[_ScopeSpans]:
    for i, item in enumerate(_list(document, "resourceSpans", "")):
        path = f"resourceSpans[{i}]"
        resource_spans = _object(item, path)
        for j, inner in enumerate(_list(resource_spans, "scopeSpans", path)):
            where = f"{path}.scopeSpans[{j}]"
            scope_spans = _object(inner, where)
            yield _ScopeSpans(resource_spans, path, scope_spans.get("scope"), where, _list(scope_spans, "spans", where))


def _named(
    scopes: list[_ScopeSpans], findings: Findings
) -> Iterator[tuple[_ScopeSpans, Attributes | SpanRefused, str | SpanRefused]]:
    """Yield the spans with their resource and the name of their scope, or why these cannot be read."""
    path = ""
    of_resource: Attributes | SpanRefused = EMPTY
    for each in scopes:
        if each.path != path:
            path = each.path
            of_resource = resource(each.resource_spans.get("resource"), findings)
        yield each, of_resource, scope_name(each.scope)


def _object(raw: Any, where: str) -> dict[str, Any]:
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
