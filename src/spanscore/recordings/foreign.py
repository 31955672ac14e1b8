"""Traces as other programs write them, into requests of OTLP: Jaeger, Tempo, Zipkin, Phoenix, the Python SDK, protobuf.

Formats are recognised by their keys. Spans lack only data that these formats do not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final, NamedTuple

from google.protobuf.message import Error as ProtobufError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from spanscore.model import Span
from spanscore.otlp.findings import Findings, MalformedRequest, Refusal, RefusedSpans, SpanRefused
from spanscore.recordings import _foreign_formats as formats
from spanscore.recordings._foreign_formats import Format
from spanscore.recordings._foreign_spans import ForeignSpan, hex_digits, whole_ids

_TRACE_ID_SIZE: Final = 16

_NOT_READ: Final[Mapping[str, Sequence[frozenset[str]]]] = {
    "a LangSmith export: have LangSmith's SDK make OpenTelemetry spans (LANGSMITH_OTEL_ENABLED=true), and record the "
    "application (spanscore record)": (
        frozenset({"run_type", "dotted_order"}),
        frozenset({"run_type", "trace_id"}),
        frozenset({"run_type", "parent_run_id"}),
        frozenset({"run_type", "child_runs"}),
        frozenset({"run_type", "inputs"}),
    ),
    "a Langfuse export: add an OTLP exporter to the tracer provider of Langfuse's SDK, and record the application "
    "(spanscore record; in Python also spanscore.recording())": (
        frozenset({"observations", "projectId"}),
        frozenset({"observations", "trace"}),
        frozenset({"traces", "projectId"}),
        frozenset({"traceId", "parentObservationId"}),
        frozenset({"timestamp", "bookmarked", "public"}),
    ),
    "a Phoenix export of a data frame: take the spans of its REST API (/v1/projects/NAME/spans), or record what the "
    "application sends (spanscore record)": (frozenset({"context.trace_id", "span_kind"}),),
    "Zipkin's version 1: ask the server for version 2 (/api/v2/trace/ID), or have the application send version 2 or "
    "OTLP": (
        frozenset({"traceId", "id", "binaryAnnotations"}),
        frozenset({"timestamp", "value", "endpoint"}),
    ),
}
"""Known forms that are not read, with the way out: by keys of the document, or of its parts."""

_INSIDE: Final = ("trace", "data", "items", "runs", "observations", "traces", "annotations", "post", "patch")
"""The place of a value that identifies the format of a document."""


class Converted(NamedTuple):
    """Documents of other programs as a request of OTLP."""

    body: bytes
    """The request in protobuf."""
    refused: Sequence[RefusedSpans]
    """The spans that are not in it."""
    lost: Sequence[Span]
    """Stand-ins of kind `REFUSED` for refused spans whose trace id can be read."""
    problems: Sequence[MalformedRequest]
    """Problems of whole documents."""


def is_foreign(document: Any) -> bool:
    """Return whether a document of JSON is of a known format that is not OTLP/JSON, read or not."""
    return isinstance(document, dict) and (_name_of(document) is not None or _format_of(document) is not None)


def from_foreign(documents: Iterable[Any]) -> Converted:
    """Convert documents of one file, for each of which `is_foreign` holds."""
    request = _RequestBuilder()
    findings = Findings()
    problems: list[MalformedRequest] = []
    for form, its in groupby(documents, _format_unless_named):
        if form is None:
            problems += [MalformedRequest(f"not OTLP, but {_name_of(document)}") for document in its]
            continue
        spans = [span for document in its for span in _spans(document, form, problems)]
        whole = whole_ids(map(form.trace_id, spans))
        for span in spans:
            if (refused := _refusal(request, partial(form.read, span, whole))) is not None:
                digits = hex_digits(whole(form.trace_id(span)), _TRACE_ID_SIZE)
                of_trace = f": a span of trace {digits}" if digits else ""
                findings.refuse(refused.reason, f"{form.name}{of_trace}: {refused}")
                findings.lose(refused.reason, bytes.fromhex(digits or ""))
    return Converted(request.body(), tuple(findings.refused.values()), tuple(findings.lost), problems)


def _spans(document: Any, form: Format, problems: list[MalformedRequest]) -> Sequence[Any]:
    """Return the spans of a document; note the problem of one that cannot be divided."""
    try:
        return list(form.spans(document))
    except Exception as error:  # noqa: BLE001 - a document may hold anything
        problems.append(MalformedRequest(f"{form.name} JSON that cannot be read: {_told(error)}"))
        return ()


def _refusal(request: _RequestBuilder, read: Callable[[], ForeignSpan | ResourceSpans]) -> SpanRefused | None:
    """Add a span, or return why it cannot be read."""
    try:
        request.add(read())
    except SpanRefused as refused:
        return refused
    except (RecursionError, ProtobufError):  # a message has one limit: that of its nesting
        return SpanRefused(Refusal.TOO_DEEP, "its values nest too deeply")
    except Exception as error:  # noqa: BLE001 - a span may hold anything
        return SpanRefused(Refusal.MALFORMED, _told(error))
    return None


class _RequestBuilder:
    """A request of OTLP that is being made."""

    def __init__(self) -> None:
        self._parts: list[ResourceSpans] = []
        self._by_resource: dict[int, tuple[Resource, ResourceSpans]] = {}
        """By the identity of a resource, which lasts as long as it is kept here."""

    def add(self, made: ForeignSpan | ResourceSpans) -> None:
        """Add spans.

        Raises:
            ProtobufError: protobuf cannot hold them: their values nest too deeply.
        """
        if isinstance(made, ResourceSpans):
            _encoded(made)
            self._parts.append(made)
            return
        _encoded(ResourceSpans(scope_spans=[made.spans]))
        if id(made.resource) not in self._by_resource:
            part = ResourceSpans(resource=made.resource)
            _encoded(part)
            self._parts.append(part)
            self._by_resource[id(made.resource)] = made.resource, part
        scopes = self._by_resource[id(made.resource)][1].scope_spans
        if scopes and scopes[-1].scope == made.spans.scope:
            scopes[-1].spans.extend(made.spans.spans)
        else:
            scopes.append(made.spans)

    def body(self) -> bytes:
        """Return the request in protobuf."""
        return b"".join(map(_encoded, self._parts))


def _encoded(spans: ResourceSpans) -> bytes:
    return ExportTraceServiceRequest(resource_spans=[spans]).SerializeToString()


def _told(error: Exception) -> str:
    if isinstance(error, SpanRefused):
        return str(error)
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return "a value in it is of a type or a size that is not allowed there"


def _format_unless_named(document: Mapping[str, Any]) -> Format | None:
    return None if _name_of(document) is not None else _format_of(document)


def _format_of(document: Mapping[str, Any]) -> Format | None:
    return next((read for tells, read in _FORMATS if tells(document)), None)


def _name_of(document: Mapping[str, Any]) -> str | None:
    """Return the name of a known format that is not supported; None for other documents."""
    places = list(_places(document))
    return next(
        (name for name, signs in _NOT_READ.items() if any(keys <= each.keys() for keys in signs for each in places)),
        None,
    )


def _places(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield document
    for key in _INSIDE:
        inside = document.get(key)
        for each in inside if isinstance(inside, list) else [inside]:
            if isinstance(each, dict):
                yield each


def _are_spans(spans: Any, *keys: str) -> bool:
    return isinstance(spans, list) and all(isinstance(each, dict) and each.keys() >= set(keys) for each in spans)


def _has_spans(inside: Any) -> bool:
    return isinstance(inside, dict) and "resourceSpans" in inside


def _is_sdk_span(document: Any) -> bool:
    return (
        isinstance(document, dict) and isinstance(document.get("context"), dict) and "trace_id" in document["context"]
    )


def _is_phoenix_span(document: Any) -> bool:
    return _is_sdk_span(document) and not document.keys().isdisjoint({"span_kind", "status_code"})


def _are_phoenix_spans(spans: Any) -> bool:
    return isinstance(spans, list) and bool(spans) and all(map(_is_phoenix_span, spans))


_FORMATS: Final[Iterable[tuple[Callable[[Mapping[str, Any]], bool], Format]]] = (
    (lambda document: _are_spans(document.get("data"), "spans"), formats.JAEGER),
    (lambda document: _are_spans(document.get("data"), "trace_id", "span_id"), formats.PHOENIX_OTLP),
    (lambda document: _are_phoenix_spans(document.get("data")), formats.PHOENIX),
    (lambda document: _are_phoenix_spans(document.get("spans")), formats.PHOENIX),
    (_is_phoenix_span, formats.PHOENIX),
    (lambda document: _are_spans(document.get("batches")), formats.TEMPO),
    (lambda document: _has_spans(document.get("trace")), formats.PROTOBUF),
    (lambda document: _has_spans(document.get("result")), formats.PROTOBUF),
    (_is_sdk_span, formats.PYTHON_SDK),
    (lambda document: document.keys() >= {"traceId", "id"} and "resourceSpans" not in document, formats.ZIPKIN),
    (lambda document: "resourceSpans" in document, formats.PROTOBUF),
)
