"""How each known format of another program becomes spans of OTLP.

Each format is a function that takes the documents of one file and yields, for each span, the id of its trace and a
function that returns it inside of its resource, or raises what is wrong with it: one bad span costs only itself.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span, Status

from spanscore.recordings._foreign_spans import (
    KIND,
    SERVICE,
    attributes,
    held,
    hex_digits,
    nanoseconds,
    scope_of,
    span_id,
    tagged_span,
    trace_id,
)

Document: TypeAlias = Mapping[str, Any]
Spans: TypeAlias = Iterator[tuple[Any, Callable[[], ResourceSpans]]]

_MICRO: Final = 1_000
_OPENINFERENCE_KIND: Final = "openinference.span.kind"
_NO_KIND: Final = "UNKNOWN"
_TRACE_ID_SIZE: Final = 16
_HALF: Final = 16
"""Hexadecimal digits of a trace id of 64 bits."""


def jaeger(documents: Sequence[Document]) -> Spans:
    """Traces as Jaeger's page downloads them and its API returns them."""
    traces = [trace for document in documents for trace in document["data"]]
    spans = [(span, trace.get("processes") or {}) for trace in traces for span in trace["spans"]]
    whole = _whole_ids(span.get("traceID") for span, _ in spans)
    for span, processes in spans:
        yield whole(span.get("traceID")), partial(_jaeger_span, span, processes, whole)


def _jaeger_span(span: Document, processes: Document, whole: Callable[[Any], Any]) -> ResourceSpans:
    process = span.get("process") or processes.get(span.get("processID", ""), {})
    tags = {tag["key"]: tag.get("value") for tag in span.get("tags") or ()}
    of_trace = whole(span["traceID"])
    references = span.get("references") or ()
    inside = [each for each in references if whole(each.get("traceID") or of_trace) == of_trace]
    # As Jaeger itself takes it: the first CHILD_OF, else the first FOLLOWS_FROM, in the same trace.
    first_of = {each.get("refType"): each for each in reversed(inside)}
    parent = first_of.get("CHILD_OF") or first_of.get("FOLLOWS_FROM")
    start = int(span["startTime"]) * _MICRO
    made = tagged_span(
        (of_trace, span["spanID"], parent["spanID"] if parent else span.get("parentSpanID")),
        span["operationName"],
        (start, start + int(span.get("duration", 0)) * _MICRO),
        tags,
    )
    for each in references:
        if each is not parent:
            made.links.add(trace_id=trace_id(whole(each.get("traceID") or of_trace)), span_id=span_id(each["spanID"]))
    for log in span.get("logs") or ():
        fields = {field["key"]: field.get("value") for field in log.get("fields") or ()}
        name = str(fields.pop("event", "") or fields.pop("name", ""))
        made.events.add(name=name, time_unix_nano=int(log["timestamp"]) * _MICRO, attributes=attributes(fields))
    resource = {tag["key"]: tag.get("value") for tag in process.get("tags") or ()}
    return held(made, {SERVICE: process.get("serviceName"), **resource}, scope_of(tags))


def zipkin(documents: Sequence[Document]) -> Spans:
    """Spans of Zipkin's version 2."""
    whole = _whole_ids(document.get("traceId") for document in documents)
    for document in documents:
        yield whole(document["traceId"]), partial(_zipkin_span, document, whole)


def _zipkin_span(document: Document, whole: Callable[[Any], Any]) -> ResourceSpans:
    tags = dict(document.get("tags") or {})
    if document.get("kind"):
        tags.setdefault(KIND, str(document["kind"]).lower())
    start = int(document.get("timestamp") or 0) * _MICRO
    made = tagged_span(
        (whole(document["traceId"]), document["id"], document.get("parentId")),
        document.get("name") or "",
        (start, start + int(document.get("duration") or 0) * _MICRO),
        tags,
    )
    for annotation in document.get("annotations") or ():
        made.events.add(name=str(annotation["value"]), time_unix_nano=int(annotation["timestamp"]) * _MICRO)
    service = (document.get("localEndpoint") or {}).get("serviceName")
    return held(made, {SERVICE: service}, scope_of(tags))


def _whole_ids(ids: Iterable[Any]) -> Callable[[Any], Any]:
    """Return what makes a trace id whole: services that know 64 bits of it name the trace by its second half.

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


def python_sdk(documents: Sequence[Document]) -> Spans:
    """Spans as the Python SDK prints them."""
    for document in documents:
        yield document["context"]["trace_id"], partial(_sdk_span, document)


def _sdk_span(document: Document) -> ResourceSpans:
    context = document["context"]
    status = document.get("status") or {}
    made = tagged_span(
        (context["trace_id"], context["span_id"], document.get("parent_id")),
        document["name"],
        (nanoseconds(document.get("start_time")), nanoseconds(document.get("end_time"))),
        document.get("attributes") or {},
    )
    made.kind = Span.SpanKind.Value(f"SPAN_KIND_{str(document.get('kind', 'INTERNAL')).rpartition('.')[2]}")
    made.status.code = Status.StatusCode.Value(f"STATUS_CODE_{status.get('status_code', 'UNSET')}")
    made.status.message = status.get("description") or ""
    for event in document.get("events") or ():
        made.events.add(
            name=event["name"],
            time_unix_nano=nanoseconds(event.get("timestamp")),
            attributes=attributes(event.get("attributes") or {}),
        )
    for link in document.get("links") or ():
        made.links.add(trace_id=trace_id(link["context"]["trace_id"]), span_id=span_id(link["context"]["span_id"]))
    scope = (document.get("instrumentation_scope") or {}).get("name") or ""
    return held(made, (document.get("resource") or {}).get("attributes") or {}, scope)


def phoenix(documents: Sequence[Document]) -> Spans:
    """Spans of Phoenix's REST API and its command line: alone, in pages, or in traces."""
    for document in documents:
        for span in document.get("data") or document.get("spans") or [document]:
            yield span["context"]["trace_id"], partial(_phoenix_span, span)


def _phoenix_span(span: Document) -> ResourceSpans:
    """Return a span as the SDK would print it, with OpenInference's kind among the attributes again."""
    kind = str(span["span_kind"] or _NO_KIND).upper()
    of_kind = {} if kind == _NO_KIND else {_OPENINFERENCE_KIND: kind}
    status = {"status_code": str(span["status_code"] or "UNSET").upper(), "description": span.get("status_message")}
    return _sdk_span({**span, "attributes": of_kind | (span.get("attributes") or {}), "status": status})


def phoenix_otlp(documents: Sequence[Document]) -> Spans:
    """Pages of spans of Phoenix's REST API, with the fields of OTLP."""
    for document in documents:
        yield from _protobuf({"resource_spans": [{"scope_spans": [{"spans": document["data"]}]}]})


def tempo(documents: Sequence[Document]) -> Spans:
    """Traces as Tempo's first API returns them."""
    for document in documents:
        yield from _protobuf({"resourceSpans": [_renamed(batch) for batch in document["batches"]]})


def protobuf(documents: Sequence[Document]) -> Spans:
    """Requests in protobuf's own JSON, alone or as Jaeger's and Tempo's later APIs return them."""
    for document in documents:
        is_answer = "resourceSpans" not in document and "resource_spans" not in document
        yield from _protobuf((document.get("trace") or document["result"]) if is_answer else document)


def _protobuf(document: Document) -> Spans:
    """Read protobuf's JSON: ids are base64, or hexadecimal as in OTLP; enumerations are names or numbers."""
    with_ids = _with_base64_ids(document)
    for each in ParseDict(with_ids, ExportTraceServiceRequest(), ignore_unknown_fields=True).resource_spans:
        yield None, partial(ResourceSpans.FromString, each.SerializeToString())


_TRACE_IDS: Final = frozenset({"traceId", "trace_id"})
_SPAN_IDS: Final = frozenset({"spanId", "span_id", "parentSpanId", "parent_span_id"})


def _with_base64_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_base64_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _base64_id(key, item) if isinstance(item, str) else _with_base64_ids(item) for key, item in value.items()
    }


def _base64_id(key: str, text: str) -> str:
    size = _TRACE_ID_SIZE if key in _TRACE_IDS else _TRACE_ID_SIZE // 2 if key in _SPAN_IDS else 0
    digits = hex_digits(text, size) if size and len(text) == 2 * size else None
    return base64.b64encode(bytes.fromhex(digits)).decode() if digits else text


def _renamed(batch: Document) -> dict[str, Any]:
    """Return a batch with the names that OTLP has now: scopes were once called instrumentation libraries."""
    renamed = dict(batch)
    if "scopeSpans" not in renamed and (old := renamed.pop("instrumentationLibrarySpans", None)) is not None:
        renamed["scopeSpans"] = [
            {("scope" if key == "instrumentationLibrary" else key): item for key, item in scope.items()}
            for scope in old
        ]
    return renamed
