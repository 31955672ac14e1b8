"""The conversion of each known format of other programs into spans of OTLP.

A `Format` divides a document into spans, and converts each of them. Both may raise any exception for bad content: one
bad document or span costs only itself.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span, Status

from spanscore.recordings import _foreign_shapes as shapes
from spanscore.recordings._foreign_shapes import check, malformed
from spanscore.recordings._foreign_spans import (
    KIND,
    SERVICE,
    ForeignSpan,
    Whole,
    attributes,
    held,
    hex_digits,
    nanoseconds,
    nanoseconds_of,
    resource_of,
    scope_of,
    span_id,
    tagged_span,
    trace_id,
)

Document: TypeAlias = Mapping[str, Any]


class Format(NamedTuple):
    """A format of another program."""

    name: str
    spans: Callable[[Document], Iterable[Any]]
    """Returns the spans of a document, each as `trace_id` and `read` take it."""
    trace_id: Callable[[Any], Any] = lambda _: None
    """Returns the trace id of a span as it is written, None if it is unknown."""
    read: Callable[[Any, Whole], ForeignSpan | ResourceSpans] = lambda spans, _whole: spans
    """Returns a span as OTLP has it. The spans in a `ResourceSpans` were read together."""


_OPENINFERENCE_KIND: Final = "openinference.span.kind"
_NO_KIND: Final = "UNKNOWN"
_TRACE_ID_SIZE: Final = 16


class _JaegerSpan(NamedTuple):
    span: Document
    processes: Document
    """Of its trace."""
    resources: dict[str, Resource | Exception]
    """Made of these processes, by their ids: a large process that many spans name is made, or is wrong, once."""


def _jaeger_spans(document: Document) -> Iterator[_JaegerSpan]:
    check(document, shapes.JAEGER)
    for trace in document["data"]:
        resources: dict[str, Resource | Exception] = {}
        for span in trace["spans"]:
            yield _JaegerSpan(span, trace.get("processes") or {}, resources)


def _jaeger_span(raw: _JaegerSpan, whole: Whole) -> ForeignSpan:
    span = raw.span
    check(span, shapes.JAEGER_SPAN)
    tags = {tag["key"]: tag.get("value") for tag in span.get("tags") or ()}
    of_trace = whole(span["traceID"])
    references = span.get("references") or ()
    inside = [each for each in references if whole(each.get("traceID") or of_trace) == of_trace]
    # As Jaeger itself takes it: the first CHILD_OF, else the first FOLLOWS_FROM, in the same trace.
    first_of = {each.get("refType"): each for each in reversed(inside)}
    parent = first_of.get("CHILD_OF") or first_of.get("FOLLOWS_FROM")
    start = nanoseconds_of(span["startTime"])
    made = tagged_span(
        (of_trace, span["spanID"], parent["spanID"] if parent else span.get("parentSpanID")),
        span["operationName"],
        (start, start + nanoseconds_of(span.get("duration", 0))),
        tags,
    )
    for each in references:
        if each is not parent:
            made.links.add(trace_id=trace_id(whole(each.get("traceID") or of_trace)), span_id=span_id(each["spanID"]))
    for log in span.get("logs") or ():
        fields = {field["key"]: field.get("value") for field in log.get("fields") or ()}
        name = str(fields.pop("event", "") or fields.pop("name", ""))
        made.events.add(name=name, time_unix_nano=nanoseconds_of(log["timestamp"]), attributes=attributes(fields))
    return held(made, _jaeger_resource(raw), scope_of(tags))


def _jaeger_resource(raw: _JaegerSpan) -> Resource:
    if own := raw.span.get("process"):
        return _of_process(own)
    name = raw.span.get("processID") or ""
    if name not in raw.resources:
        try:
            process = raw.processes.get(name) or {}
            check(process, shapes.JAEGER_PROCESS, "its process")
            raw.resources[name] = _of_process(process)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it
            raw.resources[name] = error
    made = raw.resources[name]
    if isinstance(made, Exception):
        raise made.with_traceback(None)
    return made


def _of_process(process: Document) -> Resource:
    tags = {tag["key"]: tag.get("value") for tag in process.get("tags") or ()}
    return resource_of({SERVICE: process.get("serviceName"), **tags})


def _zipkin_span(document: Document, whole: Whole) -> ForeignSpan:
    check(document, shapes.ZIPKIN_SPAN)
    tags = dict(document.get("tags") or {})
    if document.get("kind"):
        tags.setdefault(KIND, str(document["kind"]).lower())
    start = nanoseconds_of(document.get("timestamp") or 0)
    made = tagged_span(
        (whole(document["traceId"]), document["id"], document.get("parentId")),
        document.get("name") or "",
        (start, start + nanoseconds_of(document.get("duration") or 0)),
        tags,
    )
    for annotation in document.get("annotations") or ():
        made.events.add(name=str(annotation["value"]), time_unix_nano=nanoseconds_of(annotation["timestamp"]))
    service = (document.get("localEndpoint") or {}).get("serviceName")
    return held(made, resource_of({SERVICE: service}), scope_of(tags))


def _sdk_span(document: Document, _whole: Whole) -> ForeignSpan:
    check(document, shapes.SDK_SPAN)
    context = document["context"]
    status = document.get("status") or {}
    made = tagged_span(
        (context["trace_id"], context["span_id"], document.get("parent_id")),
        document["name"],
        (nanoseconds(document.get("start_time")), nanoseconds(document.get("end_time"))),
        document.get("attributes") or {},
    )
    kind = (document.get("kind") or "INTERNAL").rpartition(".")[2]
    code = status.get("status_code") or "UNSET"
    made.kind = shapes.one_of("kind", dict(Span.SpanKind.items()), kind, "SPAN_KIND_")
    made.status.code = shapes.one_of("status_code", dict(Status.StatusCode.items()), code, "STATUS_CODE_")
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
    return held(made, resource_of((document.get("resource") or {}).get("attributes") or {}), scope)


def _phoenix_spans(document: Document) -> Iterable[Document]:
    spans: Iterable[Document] = document.get("data") or document.get("spans") or [document]
    return spans


def _phoenix_span(span: Document, whole: Whole) -> ForeignSpan:
    """Return a span as the SDK would print it, with OpenInference's kind among the attributes again."""
    kind = str(span.get("span_kind") or _NO_KIND).upper()
    of_kind = {} if kind == _NO_KIND else {_OPENINFERENCE_KIND: kind}
    status = {"status_code": str(span.get("status_code") or "UNSET").upper(), "description": span.get("status_message")}
    attributes = dict(_flat(_phoenix_attributes(span.get("attributes") or {})))
    return _sdk_span({**span, "attributes": of_kind | attributes, "status": status}, whole)


def _phoenix_attributes(written: Any) -> Any:
    found = written
    if isinstance(written, str):
        try:
            found = json.loads(written)
        except ValueError:
            found = None
    if not isinstance(found, dict):
        raise malformed("attributes must be an object, or a string with the JSON of one")
    return found


def _flat(nested: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield attributes under their dotted names, as the application wrote them; Phoenix's own pages nest them."""
    items = enumerate(nested) if isinstance(nested, list) else nested.items()
    for key, value in items:
        name = f"{path}.{key}" if path else str(key)
        is_nested = isinstance(value, dict) or (
            isinstance(value, list) and any(isinstance(each, dict) for each in value)
        )
        yield from _flat(value, name) if is_nested and value else [(name, value)]


def _tempo(document: Document) -> Iterable[ResourceSpans]:
    check(document, shapes.TEMPO)
    return _protobuf({"resourceSpans": [_renamed(batch) for batch in document["batches"]]})


def _requests(document: Document) -> Iterable[ResourceSpans]:
    is_answer = "resourceSpans" not in document and "resource_spans" not in document
    return _protobuf((document.get("trace") or document["result"]) if is_answer else document)


def _protobuf(document: Document) -> Iterable[ResourceSpans]:
    """Read protobuf's JSON: ids are base64, or hexadecimal as in OTLP; enumerations are names or numbers."""
    request = ExportTraceServiceRequest()
    try:
        return ParseDict(_with_base64_ids(document), request, ignore_unknown_fields=True).resource_spans
    except RecursionError:
        raise
    except Exception as error:  # its messages are for programmers in Python
        raise malformed(shapes.told_by_protobuf(error, ExportTraceServiceRequest)) from error


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


def _member(value: Any, *keys: str) -> Any:
    """Return the value at a path of keys in nested objects; None if a key is missing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _alone(document: Document) -> Iterable[Document]:
    return (document,)


def _of_context(span: Any) -> Any:
    return _member(span, "context", "trace_id")


JAEGER: Final = Format("jaeger", _jaeger_spans, lambda each: _member(each.span, "traceID"), _jaeger_span)
"""Traces as Jaeger's page downloads them and its API returns them."""
ZIPKIN: Final = Format("zipkin", _alone, lambda each: _member(each, "traceId"), _zipkin_span)
"""Spans of Zipkin's version 2."""
PYTHON_SDK: Final = Format("python sdk", _alone, _of_context, _sdk_span)
"""Spans as the Python SDK prints them."""
PHOENIX: Final = Format("phoenix", _phoenix_spans, _of_context, _phoenix_span)
"""Spans of Phoenix's REST API and its command line: alone, in pages, or in traces."""
PHOENIX_OTLP: Final = Format(
    "phoenix otlp", lambda page: _protobuf({"resource_spans": [{"scope_spans": [{"spans": page["data"]}]}]})
)
"""Pages of spans of Phoenix's REST API, with the fields of OTLP."""
TEMPO: Final = Format("tempo", _tempo)
"""Traces as Tempo's first API returns them."""
PROTOBUF: Final = Format("protobuf", _requests)
"""Requests in protobuf's own JSON, alone or as Jaeger's and Tempo's later APIs return them."""
