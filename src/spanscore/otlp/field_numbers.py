"""The field numbers of OTLP, for code that splits and joins requests without parsing them.

Requests with metrics or logs have the same nesting and numbers as requests with spans.
"""

from __future__ import annotations

from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

RESOURCE_SPANS: Final = ExportTraceServiceRequest.RESOURCE_SPANS_FIELD_NUMBER

RESOURCE: Final = ResourceSpans.RESOURCE_FIELD_NUMBER
SCOPE_SPANS: Final = ResourceSpans.SCOPE_SPANS_FIELD_NUMBER

SCOPE: Final = ScopeSpans.SCOPE_FIELD_NUMBER
SPANS: Final = ScopeSpans.SPANS_FIELD_NUMBER

SCHEMA_URL: Final = ScopeSpans.SCHEMA_URL_FIELD_NUMBER
"""Of a resource's spans as well."""

TRACE_ID: Final = Span.TRACE_ID_FIELD_NUMBER
SPAN_ID: Final = Span.SPAN_ID_FIELD_NUMBER
PARENT_SPAN_ID: Final = Span.PARENT_SPAN_ID_FIELD_NUMBER
NAME: Final = Span.NAME_FIELD_NUMBER
EVENTS: Final = Span.EVENTS_FIELD_NUMBER
FLAGS: Final = Span.FLAGS_FIELD_NUMBER
