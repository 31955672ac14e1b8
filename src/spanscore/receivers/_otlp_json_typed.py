"""OTLP/JSON decoded straight into typed messages: the way nearly every request goes, because it costs a fourth.

Takes only what is beyond doubt. With anything else in it (a field that is not known here, a number written in an
unusual way, a value that a rule refuses, replaces or leaves out) a request is undecided as a whole, and `_otlp_json`
decodes it, which knows all the rules.
"""

from __future__ import annotations

from binascii import unhexlify
from collections.abc import Iterable

from msgspec import DecodeError
from msgspec.structs import astuple

from spanscore.model import EMPTY, PARENT_IS_REMOTE, Attributes, AttributeValue, Span, SpanEvent
from spanscore.read.wanted import WantedAttributes
from spanscore.receivers import _otlp_json_messages as messages
from spanscore.receivers._otlp import (
    UNNAMED,
    VALUE_DEPTH,
    Decoded,
    Findings,
    SpanRefused,
    check_ids,
    check_link_ids,
)
from spanscore.receivers._otlp_json_values import INT64, integer


def decode_typed(body: bytes | str, *, max_spans: int | None, wanted: WantedAttributes | None) -> Decoded | None:
    """Decode one request as `decode_json` does, or return None where that takes all of its rules."""
    findings = Findings()
    try:
        spans = _spans(messages.REQUEST.decode(body), max_spans, wanted, findings)
    except (DecodeError, RecursionError, SpanRefused, ValueError, _Undecided):
        # Of the ValueErrors one is about UTF-8, in the body, and one about hex, in an id.
        return None
    return findings.decoded(spans)


class _Undecided(Exception):  # noqa: N818 - ends the decoding of one request, and is not an error of ours
    """Ends the decoding of one request; never leaves this module."""


def _spans(
    request: messages.Request, max_spans: int | None, wanted: WantedAttributes | None, findings: Findings
) -> list[Span]:
    spans: list[Span] = []
    for resource_spans in request.resource_spans or ():
        resource = EMPTY if resource_spans.resource is None else _attributes(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans or ():
            scope = _scope(scope_spans.scope)
            found = scope_spans.spans or ()
            if max_spans is not None and len(spans) + len(found) > max_spans:
                raise _Undecided
            spans += [_span(message, resource, scope, wanted, findings) for message in found]
    return spans


def _scope(scope: messages.Scope | None) -> str:
    if scope is None:
        return ""
    _attributes(scope.attributes)  # not kept: what nobody reads must not be nested too deeply either
    return scope.name or ""


def _span(
    message: messages.Span, resource: Attributes, scope: str, wanted: WantedAttributes | None, findings: Findings
) -> Span:
    trace_id = unhexlify(message.trace_id)
    span_id = unhexlify(message.span_id)
    parent_span_id = message.parent_span_id
    parent = check_ids(trace_id, span_id, unhexlify(parent_span_id) if parent_span_id else b"", findings)
    if message.links:
        _check_links(message.links)
    flags = message.flags or 0
    status = message.status
    return Span(
        trace_id,
        span_id,
        parent,
        message.name or UNNAMED,
        _nanos(message.start_time_unix_nano),
        _nanos(message.end_time_unix_nano),
        message.kind or 0,
        (status and status.code) or 0,
        (status and status.message) or "",
        _attributes(message.attributes, wanted if parent and flags & PARENT_IS_REMOTE != PARENT_IS_REMOTE else None),
        tuple([_event(event) for event in message.events]) if message.events else (),
        scope,
        resource,
        flags,
        message.dropped_attributes_count or 0,
    )


def _check_links(links: Iterable[messages.Link]) -> None:
    for link in links:
        check_link_ids(unhexlify(link.trace_id), unhexlify(link.span_id))
        _attributes(link.attributes)  # as for a scope


def _nanos(raw: str | int | None) -> int:
    if isinstance(raw, str):
        if raw.isdigit() and raw.isascii():
            return int(raw)
        raise _Undecided
    return raw or 0


def _event(event: messages.Event) -> SpanEvent:
    return SpanEvent(event.name or "", _nanos(event.time_unix_nano), _attributes(event.attributes))


def _attributes(pairs: list[messages.KeyValue] | None, wanted: WantedAttributes | None = None) -> Attributes:
    if not pairs:
        return EMPTY
    read: dict[str, AttributeValue] = {}
    for pair in pairs:
        key = pair.key if wanted is None else wanted[pair.key]
        value = pair.value
        if key is None:
            if value is not None and (value.array_value is not None or value.kvlist_value is not None):
                _value(value, 1)  # for its depth
        elif (
            # Most attributes are text; this only saves the call below.
            value is not None
            and (string := value.string_value) is not None
            and value.int_value is None
            and value.double_value is None
            and value.bool_value is None
            and value.array_value is None
            and value.kvlist_value is None
        ):
            read[key] = string
        else:
            read[key] = _value(value, 1)
    return read or EMPTY


def _value(value: messages.AnyValue | None, depth: int) -> AttributeValue:
    if value is None:
        return None
    if depth > VALUE_DEPTH:
        raise _Undecided
    members = astuple(value)
    if members.count(None) < len(members) - 1:
        raise _Undecided
    if value.int_value is not None:
        return integer(value.int_value, INT64, "intValue")
    if value.array_value is not None:
        return [_value(item, depth + 1) for item in value.array_value.values or ()]
    if value.kvlist_value is not None:
        return {pair.key: _value(pair.value, depth + 1) for pair in value.kvlist_value.values or ()}
    if value.string_value is not None:
        return value.string_value
    return value.bool_value if value.double_value is None else value.double_value
