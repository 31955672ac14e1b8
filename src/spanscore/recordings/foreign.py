"""Traces as other programs write them, into requests of OTLP: Jaeger, Tempo, Zipkin, the Python SDK, protobuf's JSON.

Told by their keys. What is left out of a span is what these formats do not hold.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from google.protobuf.json_format import ParseDict, ParseError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span, Status

from spanscore.otlp.findings import MalformedRequest

_MICRO: Final = 1_000
_SERVICE: Final = "service.name"
_SCOPE: Final = ("otel.scope.name", "otel.library.name")
_STATUS: Final = "otel.status_code"
_DESCRIPTION: Final = "otel.status_description"
_KIND: Final = "span.kind"
_ERROR: Final = "error"
_HEX: Final = re.compile("(?:0x)?([0-9a-fA-F]+)")
_OWN: Final = frozenset({*_SCOPE, _STATUS, _DESCRIPTION, _KIND})
"""Tags that are fields of a span in OTLP."""

NAMED: Final[Mapping[str, frozenset[str]]] = {
    "a LangSmith export: have LangSmith's SDK send OTLP (LANGSMITH_OTEL_ENABLED=true), and record that": frozenset(
        {"run_type", "dotted_order"}
    ),
    "a Langfuse export: record what the application sends (spanscore record), Langfuse takes OTLP too": frozenset(
        {"observations", "projectId"}
    ),
    "a Phoenix export of a data frame: record what the application sends (spanscore record)": frozenset(
        {"context.trace_id", "span_kind"}
    ),
}
"""What is known, and not read: by keys that tell it, with the way out."""


def from_foreign(document: Any) -> bytes | None:
    """Return a document of another program as a trace request in protobuf; None where it is none of those known.

    Raises:
        MalformedRequest: it is, but something in it is wrong; or it is known not to be readable.
    """
    if not isinstance(document, dict):
        return None
    for what, keys in NAMED.items():
        if keys <= document.keys():
            message = f"not OTLP, but {what}"
            raise MalformedRequest(message)
    read = next((read for tells, read in _FORMATS if tells(document)), None)
    if read is None:
        return None
    request = ExportTraceServiceRequest()
    try:
        for resource_spans in read(document):
            request.resource_spans.append(resource_spans)
    except (KeyError, TypeError, ValueError, AttributeError, ParseError) as error:
        what = f"{type(error).__name__}: {error}"
        message = f"{read.__name__.strip('_')} JSON that cannot be read: {what[:200]}"
        raise MalformedRequest(message) from error
    return request.SerializeToString()


def _jaeger(document: Mapping[str, Any]) -> Iterator[ResourceSpans]:
    for trace in document["data"]:
        processes = trace.get("processes", {})
        for span in trace["spans"]:
            process = span.get("process") or processes.get(span.get("processID"), {})
            tags = {tag["key"]: tag.get("value") for tag in span.get("tags") or ()}
            parents = [each for each in span.get("references") or () if each.get("refType") == "CHILD_OF"]
            start = int(span["startTime"]) * _MICRO
            made = _span(
                (span["traceID"], span["spanID"], parents[0]["spanID"] if parents else span.get("parentSpanID")),
                span["operationName"],
                (start, start + int(span.get("duration", 0)) * _MICRO),
                tags,
            )
            for log in span.get("logs") or ():
                fields = {field["key"]: field.get("value") for field in log.get("fields") or ()}
                name = str(fields.pop("event", "") or fields.pop("name", ""))
                made.events.add(
                    name=name, time_unix_nano=int(log["timestamp"]) * _MICRO, attributes=_attributes(fields)
                )
            resource = {tag["key"]: tag.get("value") for tag in process.get("tags") or ()}
            yield _held(made, {_SERVICE: process.get("serviceName"), **resource}, _scope_of(tags))


def _zipkin(document: Mapping[str, Any]) -> Iterator[ResourceSpans]:
    tags = dict(document.get("tags") or {})
    if document.get("kind"):
        tags.setdefault(_KIND, str(document["kind"]).lower())
    start = int(document.get("timestamp") or 0) * _MICRO
    made = _span(
        (document["traceId"], document["id"], document.get("parentId")),
        document.get("name") or "",
        (start, start + int(document.get("duration") or 0) * _MICRO),
        tags,
    )
    for annotation in document.get("annotations") or ():
        made.events.add(name=str(annotation["value"]), time_unix_nano=int(annotation["timestamp"]) * _MICRO)
    service = (document.get("localEndpoint") or {}).get("serviceName")
    yield _held(made, {_SERVICE: service}, _scope_of(tags))


def _sdk(document: Mapping[str, Any]) -> Iterator[ResourceSpans]:
    context = document["context"]
    status = document.get("status") or {}
    made = _span(
        (context["trace_id"], context["span_id"], document.get("parent_id")),
        document["name"],
        (_nanoseconds(document.get("start_time")), _nanoseconds(document.get("end_time"))),
        document.get("attributes") or {},
    )
    made.kind = Span.SpanKind.Value(f"SPAN_KIND_{str(document.get('kind', 'INTERNAL')).rpartition('.')[2]}")
    made.status.code = Status.StatusCode.Value(f"STATUS_CODE_{status.get('status_code', 'UNSET')}")
    made.status.message = status.get("description") or ""
    for event in document.get("events") or ():
        made.events.add(
            name=event["name"],
            time_unix_nano=_nanoseconds(event.get("timestamp")),
            attributes=_attributes(event.get("attributes") or {}),
        )
    scope = (document.get("instrumentation_scope") or {}).get("name") or ""
    yield _held(made, (document.get("resource") or {}).get("attributes") or {}, scope)


def _tempo(document: Mapping[str, Any]) -> Iterator[ResourceSpans]:
    yield from _protobuf({"resourceSpans": [_renamed(batch) for batch in document["batches"]]})


def _inside(key: str) -> Callable[[Mapping[str, Any]], Iterator[ResourceSpans]]:
    def read(document: Mapping[str, Any]) -> Iterator[ResourceSpans]:
        yield from _protobuf(document[key])

    return read


def _protobuf(document: Mapping[str, Any]) -> Iterator[ResourceSpans]:
    """What protobuf's own JSON is: ids in base64, or in hexadecimal as OTLP has it; enumerations by name or number."""
    with_ids = _with_base64_ids(document)
    yield from ParseDict(with_ids, ExportTraceServiceRequest(), ignore_unknown_fields=True).resource_spans


_TRACE_IDS: Final = frozenset({"traceId", "trace_id"})
_SPAN_IDS: Final = frozenset({"spanId", "span_id", "parentSpanId", "parent_span_id"})


def _with_base64_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_base64_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _id(key, item) if isinstance(item, str) else _with_base64_ids(item) for key, item in value.items()}


def _id(key: str, text: str) -> str:
    digits = 32 if key in _TRACE_IDS else 16 if key in _SPAN_IDS else 0
    if not digits or len(text) != digits or not _HEX.fullmatch(text):
        return text
    return base64.b64encode(bytes.fromhex(text)).decode()


def _renamed(batch: Mapping[str, Any]) -> dict[str, Any]:
    """Return a batch with the names that OTLP has now: scopes were once called instrumentation libraries."""
    renamed = dict(batch)
    if "scopeSpans" not in renamed and (old := renamed.pop("instrumentationLibrarySpans", None)) is not None:
        renamed["scopeSpans"] = [
            {("scope" if key == "instrumentationLibrary" else key): item for key, item in scope.items()}
            for scope in old
        ]
    return renamed


def _span(ids: tuple[str, str, str | None], name: str, times: tuple[int, int], tags: Mapping[str, Any]) -> Span:
    """Return a span of these ids, its trace's first and its parent's last, with what its tags say of it."""
    trace_id, span_id, parent = ids
    code = str(tags.get(_STATUS, "")).upper()
    has_failed = code == "ERROR" or (not code and tags.get(_ERROR) not in {None, False, "false", ""})
    made = Span(
        trace_id=_bytes(trace_id, 16),
        span_id=_bytes(span_id, 8),
        parent_span_id=_bytes(parent, 8) if parent else b"",
        name=name,
        start_time_unix_nano=times[0],
        end_time_unix_nano=times[1],
        attributes=_attributes({key: value for key, value in tags.items() if key not in _OWN}),
    )
    kind = f"SPAN_KIND_{str(tags.get(_KIND, 'internal')).upper()}"
    made.kind = Span.SpanKind.Value(kind) if kind in Span.SpanKind.keys() else Span.SPAN_KIND_INTERNAL  # noqa: SIM118
    if has_failed:
        text = tags.get(_DESCRIPTION) or (tags[_ERROR] if isinstance(tags.get(_ERROR), str) else "")
        made.status.code = Status.STATUS_CODE_ERROR
        made.status.message = "" if text == "true" else str(text)
    elif code == "OK":
        made.status.code = Status.STATUS_CODE_OK
    return made


def _held(span: Span, resource: Mapping[str, Any], scope: str) -> ResourceSpans:
    made = ResourceSpans()
    made.resource.attributes.extend(_attributes({key: value for key, value in resource.items() if value is not None}))
    scope_spans = made.scope_spans.add()
    scope_spans.scope.name = scope
    scope_spans.spans.append(span)
    return made


def _scope_of(tags: Mapping[str, Any]) -> str:
    return next((str(tags[key]) for key in _SCOPE if tags.get(key)), "")


def _attributes(values: Mapping[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=str(key), value=_any(value)) for key, value in values.items()]


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
        made.kvlist_value.values.extend(_attributes(value))
    elif value is not None:
        made.string_value = str(value)
    return made


def _bytes(text: str, size: int) -> bytes:
    found = _HEX.fullmatch(text)
    if found is None or len(found[1]) > 2 * size:
        message = f"an id must have at most {2 * size} hexadecimal digits, not {text[:40]!r}"
        raise ValueError(message)
    return bytes.fromhex(found[1].zfill(2 * size))


def _nanoseconds(time: str | None) -> int:
    if not time:
        return 0
    moment = datetime.fromisoformat(time)
    whole = datetime.fromtimestamp(0, UTC)
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - whole
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1_000


def _are_spans(spans: Any, *keys: str) -> bool:
    return isinstance(spans, list) and all(isinstance(each, dict) and each.keys() >= set(keys) for each in spans)


def _has_spans(inside: Any) -> bool:
    return isinstance(inside, dict) and "resourceSpans" in inside


_FORMATS: Final[Iterable[tuple[Callable[[Mapping[str, Any]], bool], Callable[..., Iterator[ResourceSpans]]]]] = (
    (lambda document: _are_spans(document.get("data"), "spans"), _jaeger),
    (lambda document: _are_spans(document.get("batches")), _tempo),
    (lambda document: _has_spans(document.get("trace")), _inside("trace")),
    (lambda document: _has_spans(document.get("result")), _inside("result")),
    (lambda document: isinstance(document.get("context"), dict) and "trace_id" in document["context"], _sdk),
    (lambda document: document.keys() >= {"traceId", "id"} and "resourceSpans" not in document, _zipkin),
    (lambda document: "resourceSpans" in document, _protobuf),
)
