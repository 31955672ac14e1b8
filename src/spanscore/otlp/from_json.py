"""OTLP/JSON: one ExportTraceServiceRequest to spans.

Not protobuf's own JSON mapping: OTLP writes ids in hex, and asks to ignore what is unknown. Where JSON leaves a choice:
of two equal keys the last wins, null means absent, and a lone surrogate becomes U+FFFD. The names of enumerations and
the original names of fields, which OTLP forbids, are read all the same: see `json_names`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Concatenate, Final, TypeVar

from msgspec import DecodeError, Raw, ValidationError
from msgspec.json import Decoder

from spanscore.model import Attributes
from spanscore.otlp import json_messages as messages
from spanscore.otlp import json_rules as rules
from spanscore.otlp.findings import (
    SPANS_PER_REQUEST,
    Decoded,
    Findings,
    MalformedRequest,
    Refusal,
    SpanRefused,
    too_many_spans,
)
from spanscore.otlp.json_names import renaming
from spanscore.otlp.json_shape import SPANS, check_way, checking_body
from spanscore.otlp.json_typed import UNDECIDED, TypedDecoding, decoding_typed
from spanscore.otlp.slices import Steps, at_once
from spanscore.otlp.strict_json import (
    AT_ONCE,
    checking_utf8,
    has_too_many_values,
    parse,
    parsing,
    too_deep,
    without_lone_surrogates,
)
from spanscore.reading.wanted import WantedAttributes

_TYPED_AT_ONCE: Final = 2**21
"""Bytes: so much is decoded by type in some 30 ms at most, and ordinary requests are smaller. In parts it takes an
eighth longer."""
_COUNTED_AT_ONCE: Final = 8_192

_Message = TypeVar("_Message")
_Read = TypeVar("_Read")


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
    """Do what `decode_json` does in steps, of which each reads one span."""
    if not body:
        return Decoded(spans=[])
    if max_spans is not None and has_too_many_values(body):
        message = "the request has more than 2 million objects and lists, or 4 million values"
        raise MalformedRequest(message)
    decoded = yield from _typed(body, max_spans, wanted)
    if decoded is None:
        renamed = yield from renaming(body)
        decoded = None if renamed is body else (yield from _typed(renamed, max_spans, wanted))
        if decoded is None:
            decoded = yield from _by_all_rules(renamed, max_spans, wanted)
    return decoded


def _typed(body: bytes | str, max_spans: int | None, wanted: WantedAttributes | None) -> Steps[Decoded | None]:
    if isinstance(body, bytes) and len(body) > _TYPED_AT_ONCE:
        return None
    return (yield from decoding_typed(body, max_spans=max_spans, wanted=wanted))


def _by_all_rules(body: bytes | str, max_spans: int | None, wanted: WantedAttributes | None) -> Steps[Decoded]:
    if isinstance(body, str) or len(body) <= AT_ONCE:
        return (yield from _decoding_document(parse(body), max_spans, wanted))
    return (yield from decoding_in_parts(body, max_spans=max_spans, wanted=wanted))


def _decoding_document(document: Any, max_spans: int | None, wanted: WantedAttributes | None) -> Steps[Decoded]:
    decoded = yield from _decoding_parts(_parts(document), max_spans=max_spans, wanted=wanted)
    if not decoded.spans and not decoded.refused:
        check_way(document, SPANS)
    return decoded


def decode_document(
    document: Any, *, max_spans: int | None = SPANS_PER_REQUEST, wanted: WantedAttributes | None = None
) -> Decoded:
    """Decode one request that `parse_request` returned, as `decode_json` does; it takes four times as long.

    Raises:
        MalformedRequest: it is not an OTLP trace request, or has too many spans.
    """
    return at_once(_decoding_document(document, max_spans, wanted))


def decoding_in_parts(
    body: bytes, *, max_spans: int | None, wanted: WantedAttributes | None, at_once: int = AT_ONCE
) -> Steps[Decoded]:
    """Decode one request as `decode_json` does, in steps that are short however large it is.

    All fields must be under their own names.
    Two things differ, of which neither is in any honest request: what no rule reads is passed over, be it nested too
    deeply or a number of thousands of digits; and of two equal keys around the spans the first must be valid, too.
    Larger parts than `at_once` bytes are themselves taken apart.

    Raises:
        MalformedRequest: as `decode_json`.
    """
    yield from checking_utf8(body)
    request = yield from _taken_apart(body)
    decoded = yield from _decoding_parts(request, max_spans=max_spans, wanted=wanted, at_once=at_once)
    if not decoded.spans and not decoded.refused:
        yield from checking_body(body, SPANS)
    return decoded


def _decoding_parts(
    request: messages.RawRequest, *, max_spans: int | None, wanted: WantedAttributes | None, at_once: int = AT_ONCE
) -> Steps[Decoded]:
    """Decode a request whose resources, scopes and spans are as they were written, or all parsed already."""
    outer = request.resource_spans or ()
    spans = 0
    for number, each in enumerate(outer):
        spans += sum(len(inner.spans or ()) for inner in each.scope_spans or ())
        if max_spans is not None and spans > max_spans:
            raise too_many_spans(max_spans)
        if not number % _COUNTED_AT_ONCE:
            yield
    typed = TypedDecoding(wanted, Findings(is_bounded=max_spans is not None))
    decoding = _Decoding(typed, typed.findings, at_once)
    for number, each in enumerate(outer):
        if each.scope_spans:
            yield from decoding.resource_spans(each.resource, each.scope_spans, f"resourceSpans[{number}]")
        elif not number % _COUNTED_AT_ONCE:
            yield
    return typed.findings.decoded(typed.spans, typed.sizes)


def _taken_apart(body: bytes) -> Steps[messages.RawRequest]:
    yield
    try:
        return messages.RAW_REQUEST.decode(body)
    except ValidationError as error:
        message = f"not a trace request: {error}"
        raise MalformedRequest(message) from error
    except RecursionError as error:
        raise too_deep() from error
    except DecodeError as error:
        mended = yield from without_lone_surrogates(body)
        if mended is not body:
            return (yield from _taken_apart(mended))
        message = f"not valid JSON: {str(error).removeprefix('JSON is malformed: ')}"
        raise MalformedRequest(message) from error


@dataclass(slots=True, eq=False)
class _Decoding:
    """Makes the spans of one request from its parts, each by type where that goes."""

    typed: TypedDecoding
    findings: Findings
    at_once: int

    def resource_spans(self, raw: Any, scopes: Sequence[messages.RawScopeSpans], where: str) -> Steps[None]:
        """Read the spans of a resource."""
        yield
        try:
            resource = self._by_type(raw, messages.RESOURCE, self.typed.resource)
            if resource is None:
                resource = rules.resource((yield from self._parsed(raw)), self.findings)
        except SpanRefused as refused:
            spans = sum(len(each.spans or ()) for each in scopes)
            self.findings.refuse(refused.reason, f"{where}.resource: {refused}", spans)
            for each in scopes:
                yield from self._losing(each.spans or ())
            return
        for number, each in enumerate(scopes):
            if each.spans:
                yield from self._scope_spans(each.scope, each.spans, resource, f"{where}.scopeSpans[{number}]")
            elif not number % _COUNTED_AT_ONCE:
                yield

    def _scope_spans(self, raw: Any, spans: Sequence[Any], resource: Attributes, where: str) -> Steps[None]:
        yield
        try:
            scope = self._by_type(raw, messages.SCOPE, self.typed.scope)
            if scope is None:
                scope = rules.scope_name((yield from self._parsed(raw)))
        except SpanRefused as refused:
            self.findings.refuse(refused.reason, f"{where}.scope: {refused}", len(spans))
            yield from self._losing(spans)
            return
        for index, each in enumerate(spans):
            try:
                span = self._by_type(each, messages.SPAN, self.typed.span, resource, scope)
                if span is None:
                    parsed = yield from self._parsed(each)
                    span = rules.span(parsed, resource, scope, self.typed.wanted, self.findings)
                self.typed.spans.append(span)
                self.typed.sizes.append(self.findings.size)
            except SpanRefused as refused:
                self.findings.refuse(refused.reason, f"{where}.spans[{index}]: {refused}")
                yield from self._losing((each,))
            except MalformedRequest as error:
                message = f"{where}.spans[{index}]: {error.what}"
                raise MalformedRequest(message) from error
            yield

    def _losing(self, spans: Sequence[Any]) -> Steps[None]:
        """Note spans that are refused."""
        for each in spans:
            if isinstance(each, Raw):
                with suppress(*UNDECIDED):
                    ids = messages.IDS.decode(each)
                    self.findings.lose(rules.identifier(ids.trace_id), rules.identifier(ids.span_id))
            elif isinstance(each, dict):
                self.findings.lose(rules.identifier(each.get("traceId")), rules.identifier(each.get("spanId")))
            yield

    def _by_type(
        self, raw: Any, decoder: Decoder[_Message], read: Callable[Concatenate[_Message, ...], _Read], *around: Any
    ) -> _Read | None:
        """Return what is read from a small part, or None where it takes all the rules."""
        if not isinstance(raw, Raw) or len(raw) > self.at_once:
            return None
        mark = self.findings.mark()
        try:
            return read(decoder.decode(raw), *around)
        except UNDECIDED as undecided:
            if isinstance(undecided, SpanRefused) and undecided.reason is Refusal.TOO_MANY_VALUES:
                raise
            self.findings.back_to(mark)
            return None

    def _parsed(self, raw: Any) -> Steps[Any]:
        return (yield from parsing(raw, self.at_once)) if isinstance(raw, Raw) else raw


def _parts(document: Any) -> messages.RawRequest:
    """Return the request with its resources, scopes and spans as they were parsed."""
    outer = []
    for i, item in enumerate(rules.list_at(rules.object_at(document, "the request"), "resourceSpans", "")):
        path = f"resourceSpans[{i}]"
        resource_spans = rules.object_at(item, path)
        inner = []
        for j, each in enumerate(rules.list_at(resource_spans, "scopeSpans", path)):
            where = f"{path}.scopeSpans[{j}]"
            scope_spans = rules.object_at(each, where)
            inner.append(
                messages.RawScopeSpans(scope=scope_spans.get("scope"), spans=rules.list_at(scope_spans, "spans", where))
            )
        outer.append(messages.RawResourceSpans(resource=resource_spans.get("resource"), scope_spans=inner))
    return messages.RawRequest(resource_spans=outer)
