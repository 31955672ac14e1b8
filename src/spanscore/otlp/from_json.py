"""OTLP/JSON: one ExportTraceServiceRequest to spans.

`json_typed` reads clean requests, which nearly all are. Any other is turned into protobuf messages, which are judged as
messages that came in protobuf.

If JSON leaves a choice: of two equal keys the last wins, but no list hides another; null means absent, and a lone
surrogate becomes U+FFFD. The names of enumerations and the original names of fields, which OTLP forbids, are read
all the same: see `json_names`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from spanscore.otlp.findings import Decoded, Findings, MalformedRequest, Refusal, RefusedSpans, SpanRefused
from spanscore.otlp.json_in_steps import JsonMessages, ids_of
from spanscore.otlp.json_names import renaming
from spanscore.otlp.json_repeated import checking_spans
from spanscore.otlp.json_shape import SPANS, ResourcePart, ScopePart, checking_way, taking_apart
from spanscore.otlp.json_typed import decoding_typed
from spanscore.otlp.judging import JudgedSpans, judging
from spanscore.otlp.limits import SPANS_PER_REQUEST
from spanscore.otlp.protobuf_values import read_resource
from spanscore.otlp.slices import Steps, at_once
from spanscore.otlp.strict_json import AT_ONCE, check_number_of_values, is_small, opening, parse
from spanscore.trajectories.wanted import WantedAttributes


def decode_json(
    body: bytes | str, *, max_spans: int | None = SPANS_PER_REQUEST, wanted: WantedAttributes | None = None
) -> Decoded:
    """Decode one request.

    Args:
        body: the request as JSON in UTF-8; empty is an empty request.
        max_spans: refuse a request with more spans.
        wanted: the attributes to keep of spans that have a parent in their process; None keeps all. Of the others only
            the keys are looked at: a value that would refuse its span does not.

    Raises:
        MalformedRequest: it is no JSON, not an OTLP trace request, has too many spans, or has fields but none that
            leads to spans.
    """
    return at_once(decoding_json(body, max_spans=max_spans, wanted=wanted))


def decoding_json(
    body: bytes | str, *, max_spans: int | None = SPANS_PER_REQUEST, wanted: WantedAttributes | None = None
) -> Steps[Decoded]:
    """Decode like `decode_json`, in steps of one span."""
    if not body:
        return Decoded(spans=[])
    if max_spans is not None:
        check_number_of_values(body)
    renamed = body
    decoded = yield from decoding_typed(body, max_spans=max_spans, wanted=wanted)
    if decoded is None:
        renamed = yield from renaming(body)
        decoded = None if renamed is body else (yield from decoding_typed(renamed, max_spans=max_spans, wanted=wanted))
        if decoded is None:
            if isinstance(renamed, str) or is_small(renamed):
                request = parse(renamed)
            else:
                request = yield from opening(renamed)
            decoded = yield from decoding_odd(request, max_spans=max_spans, wanted=wanted)
    yield from checking_spans(renamed, decoded)
    return decoded


def decode_document(
    document: Any, *, max_spans: int | None = SPANS_PER_REQUEST, wanted: WantedAttributes | None = None
) -> Decoded:
    """Decode one request that `parse_request` returned, as `decode_json` does; it takes several times as long.

    Raises:
        MalformedRequest: it is not an OTLP trace request, or has too many spans.
    """
    return at_once(decoding_odd(document, max_spans=max_spans, wanted=wanted))


def decoding_odd(
    request: Any, *, max_spans: int | None, wanted: WantedAttributes | None, at_once: int = AT_ONCE
) -> Steps[Decoded]:
    """Decode a request with any content, in steps that are short for requests of any size.

    Two things differ for a request that is not parsed; usual requests have neither. Values that no rule reads are
    skipped, even if they nest too deeply or are numbers of thousands of digits. Of two equal keys around the spans
    the first must be valid, too.

    Args:
        request: the request with all fields under their own names, parsed or as `opening` returns it.
        max_spans: as `decode_json`.
        wanted: as `decode_json`.
        at_once: the size in bytes above which a part is split.

    Raises:
        MalformedRequest: as `decode_json`.
    """
    findings = Findings(is_bounded=max_spans is not None)
    parts = yield from taking_apart(request, SPANS, max_spans)
    messages = JsonMessages(findings, wanted, at_once)
    decoded = yield from judging(_scopes(parts, messages, findings), findings, wanted)
    try:
        yield from checking_way(request, SPANS)
    except MalformedRequest as error:
        if not decoded.spans and not decoded.refused:
            raise
        return decoded.refusing([RefusedSpans(Refusal.UNKNOWN_FIELD, 0, error.what)])
    return decoded


def _scopes(parts: Sequence[ResourcePart], messages: JsonMessages, findings: Findings) -> Iterator[JudgedSpans | None]:
    for part in parts:
        try:
            message = (yield from messages.around(part.fields, "resource", Resource)) or Resource()
            resource = read_resource(message, findings)
        except SpanRefused as refused:
            findings.refuse(refused.reason, f"{part.where}.{refused}", part.items)
            for scope in part.scopes:
                yield from losing(refused.reason, scope.items, SpanMessage, findings)
            continue
        for scope in part.scopes:
            try:
                message = yield from messages.around(scope.fields, "scope", InstrumentationScope)
            except SpanRefused as refused:
                findings.refuse(refused.reason, f"{scope.where}.{refused}", len(scope.items))
                yield from losing(refused.reason, scope.items, SpanMessage, findings)
            else:
                name = "" if message is None else message.name
                yield JudgedSpans(scope.where, resource, name, _spans(scope, messages))


def _spans(scope: ScopePart, messages: JsonMessages) -> Iterator[SpanMessage | SpanRefused | None]:
    for index, raw in enumerate(scope.items):
        try:
            yield (yield from messages.making(raw, SpanMessage))
        except SpanRefused as refused:
            refused.trace_id, refused.span_id = ids_of(raw, SpanMessage)
            yield refused
        except MalformedRequest as error:
            raise MalformedRequest(f"{scope.where}.spans[{index}]: {error.what}") from error


def losing(reason: Refusal, items: Sequence[Any], message_type: Any, findings: Findings) -> Steps[None]:
    """Record spans or log records that are refused because of the resource or scope around them."""
    for raw in items:
        findings.lose(reason, *ids_of(raw, message_type))
        yield
