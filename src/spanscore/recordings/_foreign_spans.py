"""Spans of other programs' formats as messages of OTLP: ids, times, attributes and status."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeAlias

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span, Status

from spanscore.otlp.findings import Refusal, SpanRefused
from spanscore.recordings._foreign_shapes import shown

SERVICE: Final = "service.name"
KIND: Final = "span.kind"

_SCOPE: Final = ("otel.scope.name", "otel.library.name")
_STATUS: Final = "otel.status_code"
_DESCRIPTION: Final = "otel.status_description"
_ERROR: Final = "error"
Whole: TypeAlias = Callable[[Any], Any]
"""Returns the complete trace id for one of which a service knows only half."""
_TRACE_ID_SIZE: Final = 16
_HALF: Final = 16
"""Hexadecimal digits of a trace id of 64 bits."""
_HEX: Final = re.compile("(?:0x)?([0-9a-fA-F]+)")
_MICRO: Final = 1_000
_END_OF_TIME: Final = 2**64
_OWN: Final = frozenset({*_SCOPE, _STATUS, _DESCRIPTION, KIND})
"""Tags that are fields of a span in OTLP."""


def trace_id(text: Any) -> bytes:
    """Return a trace id of 16 bytes.

    Raises:
        SpanRefused: the text is no id of at most 32 hexadecimal digits.
    """
    return _id(text, 16, Refusal.INVALID_TRACE_ID)


def span_id(text: Any) -> bytes:
    """Return a span id of 8 bytes.

    Raises:
        SpanRefused: the text is no id of at most 16 hexadecimal digits.
    """
    return _id(text, 8, Refusal.INVALID_SPAN_ID)


def tagged_span(ids: tuple[Any, Any, Any], name: str, times: tuple[int, int], tags: Mapping[str, Any]) -> Span:
    """Return a span with the kind and the status that its tags give.

    Args:
        ids: of the trace, the span and its parent; the parent's is empty or None for a root.
        name: of the span.
        times: start and end in nanoseconds since the Unix epoch.
        tags: attributes, and among them the fields that the format writes as attributes.

    Raises:
        SpanRefused: an id or a time is invalid.
    """
    of_trace, of_span, parent = ids
    if not all(0 <= time < _END_OF_TIME for time in times):
        raise SpanRefused(Refusal.INVALID_TIME, "a time must be from 1970 to 2554")
    code = str(tags.get(_STATUS, "")).upper()
    has_failed = code == "ERROR" or (not code and tags.get(_ERROR) not in (None, False, "false", ""))
    made = Span(
        trace_id=trace_id(of_trace),
        span_id=span_id(of_span),
        parent_span_id=_id(parent, 8, Refusal.INVALID_PARENT_SPAN_ID) if parent else b"",
        name=name,
        start_time_unix_nano=times[0],
        end_time_unix_nano=times[1],
        attributes=attributes({key: value for key, value in tags.items() if key not in _OWN}),
    )
    kind = f"SPAN_KIND_{str(tags.get(KIND, 'internal')).upper()}"
    made.kind = Span.SpanKind.Value(kind) if kind in Span.SpanKind.keys() else Span.SPAN_KIND_INTERNAL  # noqa: SIM118
    if has_failed:
        text = tags.get(_DESCRIPTION) or (tags[_ERROR] if isinstance(tags.get(_ERROR), str) else "")
        made.status.code = Status.STATUS_CODE_ERROR
        made.status.message = "" if text == "true" else str(text)
    elif code == "OK":
        made.status.code = Status.STATUS_CODE_OK
    return made


class ForeignSpan(NamedTuple):
    """A span in its scope, and its resource. Spans of the same object become spans of one resource."""

    spans: ScopeSpans
    resource: Resource


def held(span: Span, resource: Resource, scope: str) -> ForeignSpan:
    """Return a span inside of its scope, with its resource."""
    made = ScopeSpans()
    made.scope.name = scope
    made.spans.append(span)
    return ForeignSpan(made, resource)


def resource_of(values: Mapping[str, Any]) -> Resource:
    """Return a resource with the attributes that are not null."""
    return Resource(attributes=attributes({key: value for key, value in values.items() if value is not None}))


def scope_of(tags: Mapping[str, Any]) -> str:
    """Return the name of the instrumentation scope, empty if no tag has it."""
    return next((str(tags[key]) for key in _SCOPE if tags.get(key)), "")


def attributes(values: Mapping[str, Any]) -> list[KeyValue]:
    """Return values of JSON as attributes."""
    return [KeyValue(key=str(key), value=_any(value)) for key, value in values.items()]


def nanoseconds(time: Any) -> int:
    """Return a time in ISO 8601 as nanoseconds since the Unix epoch; in UTC if it names no zone; 0 for none.

    Raises:
        SpanRefused: it is no such time.
    """
    if not time:
        return 0
    try:
        moment = datetime.fromisoformat(time)
        since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime.fromtimestamp(0, UTC)
    except (TypeError, ValueError, OverflowError):
        raise _no_time(time, "in ISO 8601") from None
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1_000


def nanoseconds_of(microseconds: Any) -> int:
    """Return a number of microseconds in nanoseconds.

    Raises:
        SpanRefused: it is no number, or not finite.
    """
    try:
        return int(microseconds) * _MICRO
    except (TypeError, ValueError, OverflowError):
        raise _no_time(microseconds, "in microseconds") from None


def _no_time(value: Any, how: str) -> SpanRefused:
    return SpanRefused(Refusal.INVALID_TIME, f"a time must be {how}, not {shown(value)}")


def hex_digits(text: Any, size: int) -> str | None:
    """Return an id's digits in lower case, padded with zeros to its size in bytes; None for what is no id."""
    found = _HEX.fullmatch(text) if isinstance(text, str) else None
    return found[1].lower().zfill(2 * size) if found and len(found[1]) <= 2 * size else None


def whole_ids(ids: Iterable[Any]) -> Whole:
    """Return a function that completes trace ids: services that know 64 bits use the second half of the id.

    An id of 64 bits is that of the one trace among these whose id of 128 bits ends so; otherwise it stays as it is.
    """
    known = {digits for digits in (hex_digits(each, _TRACE_ID_SIZE) for each in ids) if digits}
    by_half: dict[str, list[str]] = {}
    for digits in known:
        if digits[:_HALF].strip("0"):
            by_half.setdefault(digits[_HALF:], []).append(digits)

    def whole(text: Any) -> Any:
        digits = hex_digits(text, _TRACE_ID_SIZE)
        if digits is None or digits[:_HALF].strip("0"):
            return digits or text
        longer = by_half.get(digits[_HALF:], ())
        return longer[0] if len(longer) == 1 else digits

    return whole


def _id(text: Any, size: int, refusal: Refusal) -> bytes:
    digits = hex_digits(text, size)
    if digits is None:
        message = f"an id must have at most {2 * size} hexadecimal digits, not {shown(text)}"
        raise SpanRefused(refusal, message)
    return bytes.fromhex(digits)


def _any(value: Any) -> AnyValue:
    made = AnyValue()
    if isinstance(value, bool):
        made.bool_value = value
    elif isinstance(value, int) and -(2**63) <= value < 2**63:
        made.int_value = value
    elif isinstance(value, float):
        made.double_value = value
    elif isinstance(value, list):
        made.array_value.values.extend(map(_any, value))
    elif isinstance(value, dict):
        made.kvlist_value.values.extend(attributes(value))
    elif value is not None:
        made.string_value = str(value)
    return made
