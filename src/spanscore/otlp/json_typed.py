"""OTLP/JSON decoded straight into typed messages. Nearly every request is decoded so, at a fourth of the cost.

Reads usual requests only. With anything else in it (an unknown field, a number written in an unusual way, a value that
a rule refuses, replaces or leaves out) a request is undecided as a whole, and `from_json` decodes it in another way.
"""

from __future__ import annotations

from binascii import unhexlify
from dataclasses import dataclass, field
from sys import getsizeof
from typing import Any, Final

from msgspec import DecodeError, Raw
from msgspec.json import Decoder
from msgspec.structs import astuple

from spanscore.model import EMPTY, PARENT_IS_REMOTE, Attributes, AttributeValue, Span, SpanEvent
from spanscore.otlp import json_messages as messages
from spanscore.otlp.findings import (
    UNNAMED,
    Decoded,
    Findings,
    SpanRefused,
    ValueLeftOut,
)
from spanscore.otlp.ids import check_ids, check_link_ids
from spanscore.otlp.json_scalars import INT64, integer
from spanscore.otlp.kept_size import EVENT_SIZE, SHORT_CHARS, VALUE_SIZE, names_size, text_memory, text_size
from spanscore.otlp.resources import shared
from spanscore.otlp.slices import Steps, at_once
from spanscore.otlp.strict_json import has_few_values
from spanscore.trajectories.wanted import WantedAttributes

_AT_ONCE: Final = 2**21
"""Bytes: so much is decoded by type in some 30 ms at most, and ordinary requests are smaller. In parts it takes an
eighth longer."""
_VALUES_AT_ONCE: Final = 2**17
"""Objects, lists and commas: more than ordinary requests of that size have."""


def decode_typed(body: bytes | str, *, max_spans: int | None, wanted: WantedAttributes | None) -> Decoded | None:
    """Decode one request like `decode_json`, or return None if it needs the complete rules."""
    return at_once(decoding_typed(body, max_spans=max_spans, wanted=wanted))


def decoding_typed(
    body: bytes | str, *, max_spans: int | None, wanted: WantedAttributes | None
) -> Steps[Decoded | None]:
    """Decode like `decode_typed`, in steps of one span."""
    decoding = _Decoding(wanted, Findings(is_bounded=max_spans is not None))
    try:
        request = (messages.REQUEST if _is_usual(body) else messages.RAW_REQUEST).decode(body)
        scopes = (scope for resource in request.resource_spans or () for scope in resource.scope_spans or ())
        if max_spans is not None and sum(len(scope.spans or ()) for scope in scopes) > max_spans:
            return None
        for resource_spans in request.resource_spans or ():
            yield
            if resource_spans.scope_spans:
                yield from decoding.resource_spans(resource_spans)
    except _UNDECIDED:
        return None
    return decoding.findings.decoded(decoding.spans, decoding.sizes)


class _Undecided(Exception):  # noqa: N818 - ends the decoding by type, and is not an error of ours
    """Ends the decoding by type of one request; never leaves this module."""


_UNDECIDED: Final = (DecodeError, RecursionError, SpanRefused, ValueError, ValueLeftOut, _Undecided)
"""Errors of requests that need the complete rules. ValueErrors come from invalid UTF-8, or invalid hex in an id."""


def _is_usual(raw: bytes | str | Raw) -> bool:
    if isinstance(raw, str) or len(raw) <= _VALUES_AT_ONCE:
        return True
    return len(raw) <= _AT_ONCE and has_few_values(bytes(raw), _VALUES_AT_ONCE)


def _typed(raw: Any, decoder: Decoder[Any]) -> Any:
    """Return the message in a part of a large request; of another it is one already."""
    if not isinstance(raw, Raw):
        return raw
    if not _is_usual(raw):
        raise _Undecided
    return decoder.decode(raw)


@dataclass(slots=True, eq=False)
class _Decoding:
    """Makes the spans of one request from its messages, or raises one of `_UNDECIDED`."""

    wanted: WantedAttributes | None
    findings: Findings
    spans: list[Span] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def resource_spans(self, message: Any) -> Steps[None]:
        """Read the spans of a resource in steps, of which each reads one."""
        resource = self._resource(_typed(message.resource, messages.RESOURCE))
        for scope_spans in message.scope_spans:
            scope = _typed(scope_spans.scope, messages.SCOPE)
            name = (scope and scope.name) or ""
            yield
            for span in scope_spans.spans or ():
                self.spans.append(self._span(_typed(span, messages.SPAN), resource, name))
                self.sizes.append(self.findings.size)
                yield

    def _resource(self, message: Any) -> Attributes:
        if message is None or not self.findings.begin():
            return EMPTY
        attributes = self._attributes(message.attributes)
        return shared(attributes, self.findings.size)

    def _span(self, message: Any, resource: Attributes, scope: str) -> Span:
        findings = self.findings
        findings.begin_span()
        trace_id = unhexlify(message.trace_id)
        span_id = unhexlify(message.span_id)
        parent_span_id = message.parent_span_id
        parent = check_ids(trace_id, span_id, unhexlify(parent_span_id) if parent_span_id else b"", findings)
        for link in message.links or ():
            check_link_ids(unhexlify(link.trace_id), unhexlify(link.span_id))
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
            message.dropped_attributes_count or 0,
        )

    def _event(self, event: Any) -> SpanEvent:
        name = event.name or ""
        self.findings.size += EVENT_SIZE + text_size(name)
        return SpanEvent(name, _nanos(event.time_unix_nano), self._attributes(event.attributes))

    def _attributes(self, pairs: Any, wanted: WantedAttributes | None = None) -> Attributes:
        if not pairs:
            return EMPTY
        findings = self.findings
        findings.values += len(pairs)
        if findings.values > findings.most_values:
            raise _Undecided
        read: dict[str, AttributeValue] = {}
        size = 0
        for pair in pairs:
            key = pair.key if wanted is None else wanted[pair.key]
            value = pair.value
            if key is None:
                continue
            if (
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
                read[key] = _value(value, findings)
        if not read:
            return EMPTY
        findings.size += size + len(read) * VALUE_SIZE + text_memory("".join(read))
        return read


def _nanos(raw: str | int | None) -> int:
    if isinstance(raw, str):
        if raw.isdigit() and raw.isascii():
            return int(raw)
        raise _Undecided
    return raw or 0


def _value(value: Any, findings: Findings) -> AttributeValue:
    if value is None:
        return None
    members = astuple(value)
    if members.count(None) < len(members) - 1:
        raise _Undecided
    if value.int_value is not None:
        return integer(value.int_value, INT64, "intValue")
    if value.array_value is not None:
        items = value.array_value.values or ()
        findings.count_values(len(items))
        return [_value(item, findings) for item in items]
    if value.kvlist_value is not None:
        pairs = value.kvlist_value.values or ()
        findings.count_values(len(pairs))
        mapping = {pair.key: _value(pair.value, findings) for pair in pairs}
        findings.size += text_memory("".join(mapping))
        return mapping
    scalar: AttributeValue = value.bool_value if value.double_value is None else value.double_value
    if value.string_value is not None:
        scalar = value.string_value
        findings.size += text_size(value.string_value)
    return scalar
