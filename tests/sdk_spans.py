"""Recorded spans rebuilt as spans of the OpenTelemetry SDK."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from spanscore.model import Attributes, Span
from spanscore.recordings.files import Recording

CORPUS = Path(__file__).parent / "corpus"
_KINDS = {kind.value + 1: kind for kind in SpanKind}


def recorded_spans(name: str) -> list[Span]:
    """Return the spans of a recording of the corpus, in the order they were received."""
    return [span for batch in Recording([CORPUS / f"{name}.jsonl.gz"]).read() for span in batch.spans]


def sdk_span(span: Span, flags: int = TraceFlags.SAMPLED) -> ReadableSpan:
    """Return a span of the SDK that says what the recorded one does."""
    return ReadableSpan(
        name=span.name,
        context=_context(span.trace_id, span.span_id, flags),
        parent=_context(span.trace_id, span.parent_span_id, flags, remote=span.parent_is_remote)
        if span.parent_span_id
        else None,
        resource=_resource(tuple(span.resource.items())),
        attributes=_tuples(span.attributes),
        events=[Event(event.name, _tuples(event.attributes), event.time_ns) for event in span.events],
        kind=_KINDS.get(span.kind, SpanKind.INTERNAL),
        status=Status(StatusCode(span.status_code), span.status_message or None)
        if span.status_code == StatusCode.ERROR.value
        else Status(StatusCode(span.status_code)),
        start_time=span.start_ns,
        end_time=span.end_ns,
        instrumentation_scope=InstrumentationScope(span.scope),
    )


def sdk_spans(spans: Iterable[Span]) -> list[ReadableSpan]:
    """Return spans of the SDK that say what the recorded ones do."""
    return [sdk_span(span) for span in spans]


def _context(trace_id: bytes, span_id: bytes, flags: int, *, remote: bool = False) -> SpanContext:
    return SpanContext(
        int.from_bytes(trace_id, "big"), int.from_bytes(span_id, "big"), is_remote=remote, trace_flags=TraceFlags(flags)
    )


@cache
def _resource(attributes: tuple[Any, ...]) -> Resource:
    return Resource(dict(attributes))


def _tuples(attributes: Attributes) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in attributes.items()}
