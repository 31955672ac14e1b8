"""OTLP/JSON decoded straight into typed messages: the way nearly every request goes, because it costs a fourth.

Takes only what is beyond doubt. With anything else in it (a field that is not known here, a number written in an
unusual way, a value that a rule refuses, replaces or leaves out) a request is undecided as a whole, and decoded by
`json_rules`, which has all the rules.
"""

from __future__ import annotations

from binascii import unhexlify
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from sys import getsizeof
from typing import Final

from msgspec import DecodeError
from msgspec.structs import astuple

from spanscore.model import EMPTY, PARENT_IS_REMOTE, Attributes, AttributeValue, Span, SpanEvent
from spanscore.otlp import json_messages as messages
from spanscore.otlp.findings import (
    LINKS_PER_SPAN,
    UNNAMED,
    VALUE_DEPTH,
    Decoded,
    Findings,
    Refusal,
    SpanRefused,
    ValueLeftOut,
    check_ids,
    check_link_ids,
)
from spanscore.otlp.json_values import INT64, integer
from spanscore.otlp.kept_size import EVENT_SIZE, SHORT_CHARS, VALUE_SIZE, keys_size, names_size, text_size
from spanscore.otlp.resources import shared
from spanscore.otlp.slices import Steps, at_once
from spanscore.reading.wanted import WantedAttributes


def decode_typed(body: bytes | str, *, max_spans: int | None, wanted: WantedAttributes | None) -> Decoded | None:
    """Decode one request as `decode_json` does, or return None where that takes all of its rules."""
    return at_once(decoding_typed(body, max_spans=max_spans, wanted=wanted))


def decoding_typed(
    body: bytes | str, *, max_spans: int | None, wanted: WantedAttributes | None
) -> Steps[Decoded | None]:
    """Do what `decode_typed` does in steps, of which each reads one span."""
    decoding = TypedDecoding(wanted, Findings(is_bounded=max_spans is not None))
    try:
        request = messages.REQUEST.decode(body)
        scopes = (scope for resource in request.resource_spans or () for scope in resource.scope_spans or ())
        if max_spans is not None and sum(len(scope.spans or ()) for scope in scopes) > max_spans:
            return None
        for i, resource_spans in enumerate(request.resource_spans or ()):
            if not resource_spans.scope_spans:
                decoding.check_resource(resource_spans.resource)
                yield
            else:
                yield from decoding.resource_spans(resource_spans, f"resourceSpans[{i}]")
    except UNDECIDED:
        return None
    return decoding.findings.decoded(decoding.spans, decoding.sizes)


class _Undecided(Exception):  # noqa: N818 - ends the decoding by type, and is not an error of ours
    """Ends the decoding by type of one request, or of a part of it; never leaves the decoders."""


UNDECIDED: Final = (DecodeError, RecursionError, SpanRefused, ValueError, _Undecided)
"""What is raised where it takes all the rules; of the ValueErrors one is about UTF-8, and one about hex, in an id."""


@dataclass(slots=True, eq=False)
class TypedDecoding:
    """Makes the spans of one request from its messages.

    Raises `UNDECIDED`, after which the findings are not as they were.
    """

    wanted: WantedAttributes | None
    findings: Findings
    spans: list[Span] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    _unread: Findings = field(default_factory=Findings)
    """Bounds the look at what is not kept: nobody reads it, but it must not be nested too deeply either."""

    def resource_spans(self, message: messages.ResourceSpans, where: str) -> Steps[None]:
        """Read the spans of a resource in steps, of which each reads one."""
        resource = self.resource(message.resource)
        for j, scope_spans in enumerate(message.scope_spans or ()):
            scope = self.scope(scope_spans.scope)
            yield
            for index, span in enumerate(scope_spans.spans or ()):
                try:
                    self.spans.append(self.span(span, resource, scope))
                    self.sizes.append(self.findings.size)
                except SpanRefused as refused:
                    if refused.reason is not Refusal.TOO_MANY_VALUES:
                        raise
                    self.findings.refuse(refused.reason, f"{where}.scopeSpans[{j}].spans[{index}]: {refused}")
                    self.findings.lose(unhexlify(span.trace_id), unhexlify(span.span_id))
                yield

    def check_resource(self, message: messages.Resource | None) -> None:
        """Look at a resource without spans, of which nothing is kept."""
        self._unread.begin()
        self._check_depth(None if message is None else message.attributes)

    def resource(self, message: messages.Resource | None) -> Attributes:
        """Read the attributes of a resource."""
        if message is None or not self.findings.begin():
            return EMPTY
        attributes = self._attributes(message.attributes)
        return shared(attributes, self.findings.size)

    def scope(self, scope: messages.Scope | None) -> str:
        """Read the name of a scope."""
        self._unread.begin()
        if scope is None:
            return ""
        self._check_depth(scope.attributes)
        return scope.name or ""

    def span(self, message: messages.Span, resource: Attributes, scope: str) -> Span:
        """Read a span."""
        findings = self.findings
        findings.begin_span()
        self._unread.begin()
        trace_id = unhexlify(message.trace_id)
        span_id = unhexlify(message.span_id)
        parent_span_id = message.parent_span_id
        parent = check_ids(trace_id, span_id, unhexlify(parent_span_id) if parent_span_id else b"", findings)
        if message.links:
            for link in message.links[:LINKS_PER_SPAN]:
                check_link_ids(unhexlify(link.trace_id), unhexlify(link.span_id))
            for link in message.links:
                self._check_depth(link.attributes)
        left_out_before = findings.attributes_left_out
        flags = message.flags or 0
        status = message.status
        status_message = (status and status.message) or ""
        name = message.name or ""
        findings.size += names_size(name, status_message, scope)
        return Span(
            trace_id,
            span_id,
            parent,
            name or UNNAMED,
            _nanos(message.start_time_unix_nano),
            _nanos(message.end_time_unix_nano),
            message.kind or 0,
            (status and status.code) or 0,
            status_message,
            self._attributes(
                message.attributes, self.wanted if parent and flags & PARENT_IS_REMOTE != PARENT_IS_REMOTE else None
            ),
            tuple([self._event(event) for event in message.events]) if message.events else (),
            scope,
            resource,
            flags,
            (message.dropped_attributes_count or 0) + findings.attributes_left_out - left_out_before,
        )

    def _event(self, event: messages.Event) -> SpanEvent:
        name = event.name or ""
        self.findings.size += EVENT_SIZE + text_size(name)
        return SpanEvent(name, _nanos(event.time_unix_nano), self._attributes(event.attributes))

    def _check_depth(self, pairs: Iterable[messages.KeyValue] | None) -> None:
        for pair in pairs or ():
            self._check_unread(pair.value)

    def _check_unread(self, value: messages.AnyValue | None) -> None:
        try:
            _value(value, 1, self._unread)
        except ValueLeftOut:
            raise _Undecided from None

    def _attributes(
        self, pairs: Sequence[messages.KeyValue] | None, wanted: WantedAttributes | None = None
    ) -> Attributes:
        if not pairs:
            return EMPTY
        findings = self.findings
        values = findings.values + len(pairs)
        if values > findings.most_values:
            pairs = findings.first(pairs)
        else:
            findings.values = values
        read: dict[str, AttributeValue] = {}
        size = 0
        for pair in pairs:
            key = pair.key if wanted is None else wanted[pair.key]
            value = pair.value
            if key is None:
                if value is not None and (value.array_value is not None or value.kvlist_value is not None):
                    self._check_unread(value)
            elif (
                # Most attributes are text; this only saves the call below.
                value is not None
                and (string := value.string_value) is not None
                and value.int_value is None
                and value.double_value is None
                and value.bool_value is None
                and value.array_value is None
                and value.kvlist_value is None
            ):
                if len(string) <= SHORT_CHARS and string.isascii():
                    size += len(string)
                else:
                    size += getsizeof(string)
                    string = findings.long_text(string)
                read[key] = string
            else:
                before = findings.size
                try:
                    read[key] = _value(value, 1, findings)
                except ValueLeftOut as left_out:
                    findings.size = before
                    findings.leave_out_attributes(1, left_out.caveat)
        if not read:
            return EMPTY
        findings.size += size + len(read) * VALUE_SIZE + getsizeof("".join(read))
        return read


def _nanos(raw: str | int | None) -> int:
    if isinstance(raw, str):
        if raw.isdigit() and raw.isascii():
            return int(raw)
        raise _Undecided
    return raw or 0


def _value(value: messages.AnyValue | None, depth: int, findings: Findings) -> AttributeValue:
    if value is None:
        return None
    if depth > VALUE_DEPTH:
        raise _Undecided
    members = astuple(value)
    if members.count(None) < len(members) - 1:
        raise _Undecided
    if value.int_value is not None:
        return integer(value.int_value, INT64, "intValue")
    if value.array_value is not None:
        items = value.array_value.values or ()
        findings.count_values(len(items))
        return [_value(item, depth + 1, findings) for item in items]
    if value.kvlist_value is not None:
        pairs = value.kvlist_value.values or ()
        findings.count_values(len(pairs))
        mapping = {pair.key: _value(pair.value, depth + 1, findings) for pair in pairs}
        findings.size += keys_size(mapping)
        return mapping
    if value.string_value is not None:
        findings.size += text_size(value.string_value)
        return value.string_value
    return value.bool_value if value.double_value is None else value.double_value
