"""Log records of the OpenTelemetry SDK, into the core's form."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from typing import TYPE_CHECKING

from opentelemetry.trace import SpanContext

from spanscore.model import LOG_RECORD, NO_SPAN, Span, reported_trace_id
from spanscore.otlp.kept_size import SPAN_SIZE, span_size
from spanscore.sdk.span_conversion import attributes_of, refused_sdk_span, value_of
from spanscore.trajectories.log_records import EVENT_NAMES, event_name, run_id, with_body

if TYPE_CHECKING:
    from opentelemetry._logs import LogRecord
    from opentelemetry.sdk._logs import ReadWriteLogRecord


def name_of(record: LogRecord, names: tuple[str, ...]) -> str | None:
    """Return the name of a record's event; None if it has none of these prefixes."""
    told = () if record.attributes is None else map(record.attributes.get, EVENT_NAMES)
    return event_name((record.event_name, record.body, *told), names)


def context_of(record: LogRecord) -> SpanContext:
    """Return the context of the span in which a record was written; an invalid one if there was none."""
    return SpanContext(record.trace_id or 0, record.span_id or 0, is_remote=False)


def log_span(emitted: ReadWriteLogRecord, names: tuple[str, ...], refused: Counter[str]) -> tuple[Span, int] | None:
    """Return a record as a span, with its bytes of memory; does not raise.

    None if the record is not read, if its trace is not sampled, or if it has no run. A record that cannot be converted
    is counted in `refused`, by reason; a stand-in takes its place in the trace of its span.
    """
    try:
        span = _log_span(emitted, names)
        return None if span is None else (span, span_size(span))
    except Exception:  # noqa: BLE001 - values may be of types of the application's
        refused["invalid_value"] += 1
        context = context_of(emitted.log_record)
        return (refused_sdk_span(context), SPAN_SIZE) if context.is_valid else None


def _log_span(emitted: ReadWriteLogRecord, names: tuple[str, ...]) -> Span | None:
    record = emitted.log_record
    name = name_of(record, names)
    if name is None or (record.trace_id and not record.trace_flags.sampled):
        return None
    attributes = with_body(attributes_of(record.attributes), value_of(record.body))
    resource = attributes_of(emitted.resource.attributes) if emitted.resource is not None else {}
    trace_id = record.trace_id.to_bytes(16, "big") if record.trace_id else run_id(attributes, resource)
    if trace_id is None:
        return None
    span_id = record.span_id.to_bytes(8, "big") if record.span_id else NO_SPAN
    time_ns = record.timestamp or record.observed_timestamp or 0
    scope = emitted.instrumentation_scope
    said = repr((reported_trace_id(trace_id), span_id, name, time_ns, attributes)).encode("utf-8", "surrogatepass")
    return Span(
        trace_id,
        blake2b(said, digest_size=8).digest(),
        span_id,
        name,
        time_ns,
        time_ns,
        LOG_RECORD,
        attributes=attributes,
        scope="" if scope is None else scope.name,
        resource=resource,
        dropped_attributes=emitted.dropped_attributes,
    )
