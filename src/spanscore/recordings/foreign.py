"""Traces as other programs write them, into requests of OTLP: Jaeger, Tempo, Zipkin, Phoenix, the Python SDK, protobuf.

Told by their keys. What is left out of a span is what these formats do not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeAlias

from google.protobuf.json_format import ParseError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from spanscore.model import Span
from spanscore.otlp.findings import Findings, MalformedRequest, Refusal, Refused, SpanRefused
from spanscore.recordings import _foreign_formats as formats
from spanscore.recordings._foreign_spans import hex_digits

_ERRORS: Final = (KeyError, TypeError, ValueError, AttributeError, ParseError)
_WHAT_SHOWN: Final = 200
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
"""Where a document has what tells it."""


class Converted(NamedTuple):
    """Documents of other programs as a request of OTLP."""

    body: bytes
    """The request in protobuf."""
    refused: Sequence[Refused]
    """The spans that are not in it."""
    lost: Sequence[Span]
    """Stand-ins for those of them whose trace id can be read, of kind `REFUSED`."""
    problems: Sequence[MalformedRequest]
    """Problems of whole documents."""


def is_foreign(document: Any) -> bool:
    """Return whether a document of JSON is of a known format that is not OTLP/JSON, read or not."""
    return isinstance(document, dict) and (_name_of(document) is not None or _format_of(document) is not None)


def from_foreign(documents: Iterable[Any]) -> Converted:
    """Convert documents of one file, for each of which `is_foreign` holds."""
    request = ExportTraceServiceRequest()
    findings = Findings()
    problems: list[MalformedRequest] = []
    for read, its in groupby(documents, _format_unless_named):
        if read is None:
            problems += [MalformedRequest(f"not OTLP, but {_name_of(document)}") for document in its]
            continue
        name = read.__name__.replace("_", " ")
        try:
            for trace, made in read(list(its)):
                digits = hex_digits(trace, _TRACE_ID_SIZE)
                what = f"{name}: a span of trace {digits}" if digits else name
                if not _is_added(request, made, what, findings) and digits:
                    findings.lose(bytes.fromhex(digits))
        except _ERRORS as error:
            problems.append(MalformedRequest(f"{name} JSON that cannot be read: {_told(error)}"))
    return Converted(request.SerializeToString(), tuple(findings.refused.values()), tuple(findings.lost), problems)


def _is_added(request: ExportTraceServiceRequest, made: Callable[[], Any], what: str, findings: Findings) -> bool:
    """Return whether a span was added; one that cannot be read is refused."""
    try:
        request.resource_spans.append(made())
    except SpanRefused as refused:
        findings.refuse(refused.reason, f"{what}: {refused}")
    except _ERRORS as error:
        findings.refuse(Refusal.MALFORMED, f"{what}: {_told(error)}")
    else:
        return True
    return False


def _told(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"there is no {error}"[:_WHAT_SHOWN]
    return f"{type(error).__name__}: {error}"[:_WHAT_SHOWN]


def _format_unless_named(document: Mapping[str, Any]) -> _Format | None:
    return None if _name_of(document) is not None else _format_of(document)


def _format_of(document: Mapping[str, Any]) -> _Format | None:
    return next((read for tells, read in _FORMATS if tells(document)), None)


def _name_of(document: Mapping[str, Any]) -> str | None:
    """Return what a document is that is not read; None for one of another kind."""
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
    return _is_sdk_span(document) and document.keys() >= {"span_kind", "status_code"}


def _are_phoenix_spans(spans: Any) -> bool:
    return isinstance(spans, list) and bool(spans) and all(map(_is_phoenix_span, spans))


_Format: TypeAlias = Callable[[Sequence[Mapping[str, Any]]], formats.Spans]

_FORMATS: Final[Iterable[tuple[Callable[[Mapping[str, Any]], bool], _Format]]] = (
    (lambda document: _are_spans(document.get("data"), "spans"), formats.jaeger),
    (lambda document: _are_spans(document.get("data"), "trace_id", "span_id"), formats.phoenix_otlp),
    (lambda document: _are_phoenix_spans(document.get("data")), formats.phoenix),
    (lambda document: _are_phoenix_spans(document.get("spans")), formats.phoenix),
    (_is_phoenix_span, formats.phoenix),
    (lambda document: _are_spans(document.get("batches")), formats.tempo),
    (lambda document: _has_spans(document.get("trace")), formats.protobuf),
    (lambda document: _has_spans(document.get("result")), formats.protobuf),
    (_is_sdk_span, formats.python_sdk),
    (lambda document: document.keys() >= {"traceId", "id"} and "resourceSpans" not in document, formats.zipkin),
    (lambda document: "resourceSpans" in document, formats.protobuf),
)
