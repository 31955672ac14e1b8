"""OTLP/JSON: one ExportTraceServiceRequest to spans.

Not protobuf's own JSON mapping: OTLP writes ids in hex, forbids enum names and the original field names, and asks to
ignore what is unknown. Where JSON leaves a choice: of two equal keys the last wins, null means absent, and a lone
surrogate becomes U+FFFD.
"""

from __future__ import annotations

from binascii import unhexlify
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from spanscore.model import EMPTY, PARENT_IS_REMOTE, Attributes, SharedAttributes, Span, SpanEvent
from spanscore.read.wanted import WantedAttributes
from spanscore.receivers._kept_size import EVENT_SIZE, names_size, text_size
from spanscore.receivers._otlp import (
    EVENTS_PER_SPAN,
    LINKS_PER_SPAN,
    SPANS_PER_REQUEST,
    UNNAMED,
    Caveat,
    Decoded,
    Findings,
    MalformedRequest,
    Refusal,
    SpanRefused,
    check_ids,
    check_link_ids,
)
from spanscore.receivers._otlp_json_typed import decoding_typed
from spanscore.receivers._otlp_json_values import INT32, UINT32, UINT64, attributes, integer, text
from spanscore.receivers._slices import Steps, at_once
from spanscore.receivers._strict_json import has_too_many_values, parse

_NOT_AN_ID: Final = b"?"  # of no length that any id has, so that the checks of ids refuse it


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
    decoded = yield from decoding_typed(body, max_spans=max_spans, wanted=wanted)
    if decoded is None:
        decoded = yield from _decoding_document(parse(body), max_spans, wanted)
    return decoded


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
    for scope, resource, name in _named(scopes, findings):
        yield
        for index, message in enumerate(scope.spans):
            try:
                spans.append(_span(message, resource, name, wanted, findings))
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


def _named(scopes: list[_ScopeSpans], findings: Findings) -> Iterator[tuple[_ScopeSpans, Attributes, str]]:
    """Yield the spans with their resource and the name of their scope, and refuse those where one of them is broken."""
    path = ""
    resource: Attributes | SpanRefused = EMPTY
    for each in scopes:
        if each.path != path:
            path = each.path
            resource = _resource(each.resource_spans.get("resource"), findings)
        scope = _scope(each.scope)
        if isinstance(resource, SpanRefused):
            findings.refuse(resource.reason, f"{path}.resource: {resource}", len(each.spans))
        elif isinstance(scope, SpanRefused):
            findings.refuse(scope.reason, f"{each.where}.scope: {scope}", len(each.spans))
        else:
            yield each, resource, scope


def _object(raw: Any, where: str) -> dict[str, Any]:
    if not isinstance(raw, dict):
        message = f"{where} must be an object, not {_kind_of_json(raw)}"
        raise MalformedRequest(message)
    return raw


def _list(parent: dict[str, Any], key: str, where: str) -> list[Any]:
    raw = parent.get(key)
    if raw is None:
        return []
    if not isinstance(raw, list):
        message = f"{where}{'.' if where else ''}{key} must be an array, not {_kind_of_json(raw)}"
        raise MalformedRequest(message)
    return raw


def _kind_of_json(raw: Any) -> str:
    match raw:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"


def _resource(raw: Any, findings: Findings) -> Attributes | SpanRefused:
    if raw is None:
        return EMPTY
    if not isinstance(raw, dict):
        return SpanRefused(Refusal.INVALID_VALUE, "must be an object")
    if not findings.begin():  # its spans are refused
        return EMPTY
    try:
        shared = attributes(raw.get("attributes"), findings)
    except SpanRefused as refused:
        return refused
    return SharedAttributes(shared, findings.size) if shared else EMPTY


def _scope(raw: Any) -> str | SpanRefused:
    if raw is None:
        return ""
    if not isinstance(raw, dict):
        return SpanRefused(Refusal.INVALID_VALUE, "must be an object")
    try:
        return text(raw.get("name"), "name")
    except SpanRefused as refused:
        return refused


def _span(raw: Any, resource: Attributes, scope: str, wanted: WantedAttributes | None, findings: Findings) -> Span:
    findings.begin_span()
    if not isinstance(raw, dict):
        raise SpanRefused(Refusal.MALFORMED, f"a span must be an object, not {_kind_of_json(raw)}")
    get = raw.get
    trace_id = _id(get("traceId"))
    span_id = _id(get("spanId"))
    parent_span_id = check_ids(trace_id, span_id, _id(get("parentSpanId")), findings)
    if links := get("links"):
        _check_links(links)
    flags = integer(get("flags"), UINT32, "flags")
    if not parent_span_id or flags & PARENT_IS_REMOTE == PARENT_IS_REMOTE:
        wanted = None  # the root of a trajectory: what a configuration matches on may be any attribute of it
    left_out_before = findings.attributes_left_out
    span_attributes = attributes(get("attributes"), findings, wanted)
    raw_events = get("events")
    events = _events(raw_events, findings) if raw_events else ()
    status_code, status_message = _status(status) if (status := get("status")) else (0, "")
    name = text(get("name"), "name")
    findings.size += names_size(name, status_message, scope)
    return Span(
        trace_id,
        span_id,
        parent_span_id,
        name or UNNAMED,
        integer(get("startTimeUnixNano"), UINT64, "startTimeUnixNano", Refusal.INVALID_TIME),
        integer(get("endTimeUnixNano"), UINT64, "endTimeUnixNano", Refusal.INVALID_TIME),
        _enum(get("kind"), "kind"),
        status_code,
        status_message,
        span_attributes,
        events,
        scope,
        resource,
        flags,
        integer(get("droppedAttributesCount"), UINT32, "droppedAttributesCount")
        + findings.attributes_left_out
        - left_out_before,
    )


def _id(raw: Any) -> bytes:
    if raw is None:
        return b""
    try:
        return unhexlify(raw)
    except (ValueError, TypeError):
        return _NOT_AN_ID


def _enum(raw: Any, name: str) -> int:
    if isinstance(raw, str):
        raise SpanRefused(Refusal.INVALID_ENUM, f"{name} must be an integer; OTLP/JSON has no names for it")
    return integer(raw, INT32, name, Refusal.INVALID_ENUM)


def _status(raw: Any) -> tuple[int, str]:
    if not isinstance(raw, dict):
        raise SpanRefused(Refusal.INVALID_VALUE, "status must be an object")
    return _enum(raw.get("code"), "status.code"), text(raw.get("message"), "status.message")


def _check_links(raw: Any) -> None:
    for link in _span_list(raw, "links")[:LINKS_PER_SPAN]:
        check_link_ids(_id(link.get("traceId")), _id(link.get("spanId")))


def _events(raw: Any, findings: Findings) -> tuple[SpanEvent, ...]:
    events = _span_list(raw, "events")
    if len(events) > EVENTS_PER_SPAN:
        findings.caveats[Caveat.EVENT_LIMIT] += len(events) - EVENTS_PER_SPAN
        events = events[:EVENTS_PER_SPAN]
    return tuple([_event(event, findings) for event in events])


def _event(raw: dict[str, Any], findings: Findings) -> SpanEvent:
    name = text(raw.get("name"), "the name of an event")
    findings.size += EVENT_SIZE + text_size(name)
    return SpanEvent(
        name,
        integer(raw.get("timeUnixNano"), UINT64, "timeUnixNano of an event", Refusal.INVALID_TIME),
        attributes(raw.get("attributes"), findings),
    )


def _span_list(raw: Any, name: str) -> list[dict[str, Any]]:
    if not isinstance(raw, list) or not all(isinstance(item, dict) for item in raw):
        raise SpanRefused(Refusal.INVALID_VALUE, f"{name} must be an array of objects")
    return raw
