"""All the rules of OTLP/JSON for a resource, a scope and a span, as they were parsed."""

from __future__ import annotations

from binascii import unhexlify
from typing import Any, Final

from spanscore.model import EMPTY, PARENT_IS_REMOTE, Attributes, Span, SpanEvent
from spanscore.otlp.findings import (
    EVENTS_PER_SPAN,
    LINKS_PER_SPAN,
    UNNAMED,
    Caveat,
    Findings,
    MalformedRequest,
    Refusal,
    SpanRefused,
    check_ids,
    check_link_ids,
)
from spanscore.otlp.json_names import ENUMS
from spanscore.otlp.json_values import INT32, UINT32, UINT64, attributes, integer, text
from spanscore.otlp.kept_size import EVENT_SIZE, names_size, text_size
from spanscore.otlp.resources import shared
from spanscore.reading.wanted import WantedAttributes

_KINDS: Final = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}
_NAMES_LISTED: Final = 6
_NOT_AN_ID: Final = b"?"  # of no length that any id has, so that the checks of ids refuse it


def resource(raw: Any, findings: Findings) -> Attributes:
    """Read the attributes of a resource.

    Raises:
        SpanRefused: its spans cannot be used.
    """
    if raw is None:
        return EMPTY
    if not isinstance(raw, dict):
        raise SpanRefused(Refusal.INVALID_VALUE, "must be an object")
    if not findings.begin():  # its spans are refused
        return EMPTY
    read = attributes(raw.get("attributes"), findings)
    return shared(read, findings.size)


def scope_name(raw: Any) -> str:
    """Read the name of a scope.

    Raises:
        SpanRefused: its spans cannot be used.
    """
    if raw is None:
        return ""
    if not isinstance(raw, dict):
        raise SpanRefused(Refusal.INVALID_VALUE, "must be an object")
    return text(raw.get("name"), "name")


def is_readable(raw: Any) -> bool:
    """Return whether a span is none that is refused for what is in it."""
    try:
        span(raw, EMPTY, "", None, Findings())
    except SpanRefused:
        return False
    return True


def span(raw: Any, resource: Attributes, scope: str, wanted: WantedAttributes | None, findings: Findings) -> Span:
    """Read a span.

    Raises:
        SpanRefused: it cannot be used.
    """
    findings.begin_span()
    if not isinstance(raw, dict):
        raise SpanRefused(Refusal.MALFORMED, f"a span must be an object, not {kind_of_json(raw)}")
    get = raw.get
    written = get("traceId"), get("spanId"), get("parentSpanId")
    trace_id, span_id, parent_span_id = map(identifier, written)
    parent_span_id = check_ids(trace_id, span_id, parent_span_id, findings, written)
    if links := get("links"):
        for link in _span_list(links, "links")[:LINKS_PER_SPAN]:
            ids = link.get("traceId"), link.get("spanId")
            check_link_ids(identifier(ids[0]), identifier(ids[1]), ids)
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
        enum(get("kind"), "kind"),
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


def is_hexadecimal(raw: Any) -> bool:
    """Return whether an id is absent, or made of hex digits, however many."""
    return identifier(raw) != _NOT_AN_ID


def identifier(raw: Any) -> bytes:
    """Read an id; what is none becomes one that is refused, and absent is empty."""
    if raw is None:
        return b""
    try:
        return unhexlify(raw)
    except (ValueError, TypeError):
        return _NOT_AN_ID


def enum(raw: Any, field: str) -> int:
    """Read the number of an enumeration, written as a number or by its name; absent is 0."""
    if isinstance(raw, str):
        number = ENUMS[field].get(raw)
        if number is None:
            first, *others = names = tuple(ENUMS[field])
            known = f"one of {', '.join(names)}" if len(names) <= _NAMES_LISTED else f"{first} to {others[-1]}"
            message = f"{field} must be an integer or {known}"
            raise SpanRefused(Refusal.INVALID_ENUM, message)
        return number
    return integer(raw, INT32, field, Refusal.INVALID_ENUM)


def _status(raw: Any) -> tuple[int, str]:
    if not isinstance(raw, dict):
        raise SpanRefused(Refusal.INVALID_VALUE, "status must be an object")
    return enum(raw.get("code"), "status.code"), text(raw.get("message"), "status.message")


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


def object_at(raw: Any, where: str) -> Any:
    """Return an object around spans or log records.

    Raises:
        MalformedRequest: it is none.
    """
    if not isinstance(raw, dict):
        message = f"{where} must be an object, not {kind_of_json(raw)}"
        raise MalformedRequest(message)
    return raw


def list_at(parent: dict[str, Any], key: str, where: str) -> list[Any]:
    """Return a member of such an object that is a list; absent is empty.

    Raises:
        MalformedRequest: it is none.
    """
    raw = parent.get(key)
    if raw is None:
        return []
    if not isinstance(raw, list):
        message = f"{where}{'.' if where else ''}{key} must be an array, not {kind_of_json(raw)}"
        raise MalformedRequest(message)
    return raw


def kind_of_json(raw: Any) -> str:
    """Return what a parsed value is, for messages."""
    return _KINDS[type(raw)]
