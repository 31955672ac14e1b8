"""An OTLP/JSON request in parts, resource by resource and span by span, so that no step of decoding it takes long.

A large request is taken apart before it is parsed. Each part of it is decoded by type where that goes; where it does
not, and where a request is parsed already, by all the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import DecodeError, Raw, ValidationError

from spanscore.model import Attributes, Span
from spanscore.otlp import json_messages as messages
from spanscore.otlp import json_rules as rules
from spanscore.otlp.findings import Decoded, MalformedRequest, Refusal, SpanRefused, too_many_spans
from spanscore.otlp.json_in_steps import AT_ONCE, checking_utf8, parsing, without_lone_surrogates
from spanscore.otlp.json_typed import UNDECIDED, TypedDecoding
from spanscore.otlp.slices import Steps
from spanscore.otlp.strict_json import too_deep
from spanscore.read.wanted import WantedAttributes

_COUNTED_AT_ONCE: Final = 8_192


def decoding_in_parts(
    body: bytes, *, max_spans: int | None, wanted: WantedAttributes | None, at_once: int = AT_ONCE
) -> Steps[Decoded]:
    """Decode one request as `decode_json` does, in steps that are short however large it is.

    Two things differ, of which neither is in any honest request: what no rule reads is passed over, be it nested too
    deeply or a number of thousands of digits; and of two equal keys around the spans the first must be valid, too.

    Args:
        body: the request.
        max_spans: as for `decode_json`.
        wanted: as for `decode_json`.
        at_once: how many bytes of a part are decoded at once.

    Raises:
        MalformedRequest: as `decode_json`.
    """
    yield from checking_utf8(body)
    request = yield from _taken_apart(body)
    return (yield from decoding_parts(request, max_spans=max_spans, wanted=wanted, at_once=at_once))


def decoding_parts(
    request: messages.RawRequest, *, max_spans: int | None, wanted: WantedAttributes | None, at_once: int = AT_ONCE
) -> Steps[Decoded]:
    """Decode a request whose resources, scopes and spans are as they were written, or all parsed already.

    Raises:
        MalformedRequest: it has too many spans, or a part of it is no JSON.
    """
    outer = request.resource_spans or ()
    spans = 0
    for number, each in enumerate(outer):
        spans += sum(len(inner.spans or ()) for inner in each.scope_spans or ())
        if max_spans is not None and spans > max_spans:
            raise too_many_spans(max_spans)
        if not number % _COUNTED_AT_ONCE:
            yield
    decoding = _Decoding(TypedDecoding(wanted, is_bounded=max_spans is not None), wanted, at_once)
    for number, each in enumerate(outer):
        if each.scope_spans:
            yield from decoding.resource_spans(each.resource, each.scope_spans, f"resourceSpans[{number}]")
        elif not number % _COUNTED_AT_ONCE:
            yield
    return decoding.decoded()


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


class _Decoding:
    """Makes the spans of one request from its parts."""

    def __init__(self, typed: TypedDecoding, wanted: WantedAttributes | None, at_once: int) -> None:
        self._typed = typed
        self._findings = typed.findings
        self._wanted = wanted
        self._at_once = at_once

    def decoded(self) -> Decoded:
        """Return the request as decoded."""
        return self._findings.decoded(self._typed.spans, self._typed.sizes)

    def resource_spans(self, raw: Any, scopes: Sequence[messages.RawScopeSpans], where: str) -> Steps[None]:
        """Read the spans of a resource."""
        yield
        try:
            resource = yield from self._resource(raw)
        except SpanRefused as refused:
            spans = sum(len(each.spans or ()) for each in scopes)
            self._findings.refuse(refused.reason, f"{where}.resource: {refused}", spans)
            return
        for number, each in enumerate(scopes):
            if each.spans:
                yield from self._scope_spans(each.scope, each.spans, resource, f"{where}.scopeSpans[{number}]")
            elif not number % _COUNTED_AT_ONCE:
                yield

    def _scope_spans(self, raw: Any, spans: Sequence[Any], resource: Attributes, where: str) -> Steps[None]:
        yield
        try:
            scope = yield from self._scope(raw)
        except SpanRefused as refused:
            self._findings.refuse(refused.reason, f"{where}.scope: {refused}", len(spans))
            return
        for index, each in enumerate(spans):
            try:
                span = self._typed_span(each, resource, scope)
                if span is None:
                    parsed = yield from self._parsed(each)
                    span = rules.span(parsed, resource, scope, self._wanted, self._findings)
                self._typed.spans.append(span)
                self._typed.sizes.append(self._findings.size)
            except SpanRefused as refused:
                self._findings.refuse(refused.reason, f"{where}.spans[{index}]: {refused}")
            except MalformedRequest as error:
                message = f"{where}.spans[{index}]: {error.what}"
                raise MalformedRequest(message) from error
            yield

    def _typed_span(self, raw: Any, resource: Attributes, scope: str) -> Span | None:
        """Return a span, or None where it takes all the rules."""
        if not self._is_small(raw):
            return None
        mark = self._findings.mark()
        try:
            return self._typed.span(messages.SPAN.decode(raw), resource, scope)
        except UNDECIDED as undecided:
            if isinstance(undecided, SpanRefused) and undecided.reason is Refusal.TOO_MANY_VALUES:
                raise
            self._findings.back_to(mark)
            return None

    def _is_small(self, raw: Any) -> bool:
        return isinstance(raw, Raw) and len(raw) <= self._at_once

    def _parsed(self, raw: Any) -> Steps[Any]:
        return (yield from parsing(raw, self._at_once)) if isinstance(raw, Raw) else raw

    def _resource(self, raw: Any) -> Steps[Attributes]:
        if self._is_small(raw):
            mark = self._findings.mark()
            try:
                return self._typed.resource(messages.RESOURCE.decode(raw))
            except UNDECIDED:
                self._findings.back_to(mark)
        return rules.resource((yield from self._parsed(raw)), self._findings)

    def _scope(self, raw: Any) -> Steps[str]:
        if self._is_small(raw):
            try:
                return self._typed.scope(messages.SCOPE.decode(raw))
            except UNDECIDED:
                pass
        return rules.scope_name((yield from self._parsed(raw)))
