"""Spans of the OpenTelemetry SDK: into the core's form, and with score events for the exporter behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from spanscore.model import EMPTY, Attributes, AttributeValue, Span, SpanEvent, Trajectory, is_too_long, refused_span
from spanscore.otlp.kept_size import SPAN_SIZE, span_size

_HAS_IS_REMOTE: Final = 0x100
_IS_REMOTE: Final = 0x200
_KIND_OFFSET: Final = 1  # the SDK counts from INTERNAL, OTLP from UNSPECIFIED
_PLAIN: Final = frozenset({str, bool, float})


def is_local_root(span: ReadableSpan) -> bool:
    """Return whether the span has no parent in this process."""
    return span.parent is None or span.parent.is_remote


def scored_context(trajectory: Trajectory, *, is_remote: bool = True) -> Context:
    """Return a context in which the evaluated span is the current one; an empty one where its ids are not known.

    The sampled flag is set: the span has reached us, and without it the SDK would take no exemplar.
    """
    span_context = SpanContext(
        int.from_bytes(trajectory.trace_id, "big"),
        int.from_bytes(trajectory.root_span_id, "big"),
        is_remote=is_remote,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )
    return set_span_in_context(NonRecordingSpan(span_context), Context()) if span_context.is_valid else Context()


class Converter:
    """Turns finished spans of the SDK into the form that OTLP gives: all front doors give the same scores.

    Not thread-safe: it remembers the resource of the span before, which mostly is that of the next one too.
    """

    def __init__(self) -> None:
        self._resource: Resource | None = None
        self._resource_attributes: Attributes = EMPTY

    def __call__(self, span: ReadableSpan, refused: Counter[str]) -> tuple[Span, int] | None:
        """Return the span and its bytes of memory; does not raise.

        A span that cannot be converted is counted in `refused`, by reason. It becomes a stand-in, or None if one of its
        ids is invalid, as an id generator of the application's may make them.
        """
        context = span.context
        if not context.is_valid:
            is_trace_valid = 0 < context.trace_id < 1 << 128
            refused["invalid_span_id" if is_trace_valid else "invalid_trace_id"] += 1
            return None
        try:
            converted = self._span(span)
            return converted, span_size(converted)
        except Exception:  # noqa: BLE001 - attributes may be of types of the application's
            refused["invalid_value"] += 1
            return refused_sdk_span(context), SPAN_SIZE

    def _span(self, span: ReadableSpan) -> Span:
        context, parent, scope, status = span.context, span.parent, span.instrumentation_scope, span.status
        resource = span.resource
        if resource is not self._resource:
            self._resource, self._resource_attributes = resource, attributes_of(resource.attributes)
        events = span.events
        return Span(
            context.trace_id.to_bytes(16, "big"),
            context.span_id.to_bytes(8, "big"),
            b"" if parent is None else parent.span_id.to_bytes(8, "big"),
            span.name,
            span.start_time or 0,
            span.end_time or 0,
            span.kind.value + _KIND_OFFSET,
            status.status_code.value,
            status.description or "",
            attributes_of(span.attributes),
            tuple(map(_event, events)) if events else (),
            "" if scope is None else scope.name,
            self._resource_attributes,
            _HAS_IS_REMOTE | (_IS_REMOTE if parent is not None and parent.is_remote else 0),
            span.dropped_attributes,
        )


def refused_sdk_span(context: SpanContext, name: str = "") -> Span:
    """Return a stand-in for a span of the SDK that cannot be scored; `name` as in `refused_span`."""
    return refused_span(context.trace_id.to_bytes(16, "big"), context.span_id.to_bytes(8, "big"), name)


def with_more(span: ReadableSpan, attributes: Mapping[str, str], events: Sequence[Event]) -> ReadableSpan:
    """Return a copy of a finished span with more attributes and events: a span that has ended takes none."""
    return ReadableSpan(
        name=span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes={**(span.attributes or {}), **attributes},
        events=(*span.events, *events),
        links=span.links,
        kind=span.kind,
        status=span.status,
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _event(event: Event) -> SpanEvent:
    return SpanEvent(event.name, event.timestamp, attributes_of(event.attributes))


def attributes_of(attributes: Mapping[str, Any] | None) -> Attributes:
    """Return the SDK's attributes, each as `value_of` does."""
    if not attributes:
        return EMPTY
    copied = copy_of(attributes)
    for key, value in copied.items():
        if type(value) not in _PLAIN:
            copied[key] = value_of(value)
    return copied


def copy_of(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the SDK's attributes as a mapping of its own, with the same values."""
    copy = getattr(attributes, "copy", None)  # the SDK's have it: it is much faster
    copied: dict[str, Any] = dict(attributes or ()) if copy is None else copy()
    return copied


def value_of(value: Any) -> AttributeValue:
    """Return a value of the SDK as OTLP would carry it. An integer that is too long to be written is text."""
    if isinstance(value, int) and is_too_long(value):
        return hex(value)
    if isinstance(value, (list, tuple)):
        return [value_of(item) for item in value]
    if isinstance(value, Mapping):
        return {key: value_of(item) for key, item in value.items()}
    plain: AttributeValue = value
    return plain
