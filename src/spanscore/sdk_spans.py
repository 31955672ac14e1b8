"""Spans of the OpenTelemetry SDK: into the core's form, and with score events for the exporter behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from opentelemetry.sdk.trace import Event, ReadableSpan

from spanscore.model import EMPTY, Attributes, AttributeValue, Span, SpanEvent

_HAS_IS_REMOTE: Final = 0x100
_IS_REMOTE: Final = 0x200
_KIND_OFFSET: Final = 1  # the SDK counts from INTERNAL, OTLP from UNSPECIFIED


def is_local_root(span: ReadableSpan) -> bool:
    """Return whether the span has no parent in this process."""
    return span.parent is None or span.parent.is_remote


def converted(span: ReadableSpan) -> Span:
    """Return a finished span of the SDK as OTLP would carry it: the same scores come out of every front door."""
    context = span.context
    parent = span.parent
    scope = span.instrumentation_scope
    flags = _HAS_IS_REMOTE | (_IS_REMOTE if parent is not None and parent.is_remote else 0)
    return Span(
        trace_id=context.trace_id.to_bytes(16, "big"),
        span_id=context.span_id.to_bytes(8, "big"),
        parent_span_id=b"" if parent is None else parent.span_id.to_bytes(8, "big"),
        name=span.name,
        start_ns=span.start_time or 0,
        end_ns=span.end_time or 0,
        kind=span.kind.value + _KIND_OFFSET,
        status_code=span.status.status_code.value,
        status_message=span.status.description or "",
        attributes=_attributes(span.attributes),
        events=tuple(SpanEvent(event.name, event.timestamp, _attributes(event.attributes)) for event in span.events),
        scope="" if scope is None else scope.name,
        resource=_attributes(span.resource.attributes),
        flags=flags,
        dropped_attributes=span.dropped_attributes,
    )


def with_events(span: ReadableSpan, events: Sequence[Event]) -> ReadableSpan:
    """Return a copy of a finished span with more events: a span that has ended takes none."""
    return ReadableSpan(
        name=span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=span.attributes,
        events=(*span.events, *events),
        links=span.links,
        kind=span.kind,
        status=span.status,
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _attributes(attributes: Mapping[str, Any] | None) -> Attributes:
    if not attributes:
        return EMPTY
    return {key: _value(value) for key, value in attributes.items()}


def _value(value: Any) -> AttributeValue:
    if isinstance(value, (list, tuple)):
        return [_value(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _value(item) for key, item in value.items()}
    plain: AttributeValue = value
    return plain
