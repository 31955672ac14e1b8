"""The rules for spans in either encoding: reasons to refuse a span, and parts that are left out of a span."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final, NamedTuple

from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from spanscore.model import EMPTY, PARENT_IS_REMOTE, Attributes, Span
from spanscore.otlp.findings import STAND_IN, UNNAMED, Decoded, Findings, Refusal, SpanRefused
from spanscore.otlp.ids import check_ids, check_link_ids
from spanscore.otlp.kept_size import names_size
from spanscore.otlp.limits import LINKS_PER_SPAN
from spanscore.otlp.protobuf_values import once, read_attributes, read_events
from spanscore.otlp.slices import Steps
from spanscore.trajectories.wanted import WantedAttributes

_SPANS_AT_ONCE: Final = 8
_VALUES_AT_ONCE: Final = 512
"""After so many values a step ends, too."""


class JudgedSpans(NamedTuple):
    """The messages of the spans that share a resource and a scope."""

    where: str
    resource: Attributes
    scope: str
    spans: Iterable[SpanMessage | SpanRefused | None]
    """Each span of the scope, or its refusal; None after a step that read none."""


def judging(
    scopes: Iterable[JudgedSpans | None], findings: Findings, wanted: WantedAttributes | None
) -> Steps[Decoded]:
    """Decode the spans of a request, in steps of a few spans, or of one with many values.

    Args:
        scopes: the spans of each scope, and None after a step that read none.
        findings: of the request.
        wanted: the attributes to keep of spans that have a parent in their process; None keeps all.
    """
    spans: list[Span] = []
    sizes: list[int] = []
    for scope_spans in scopes:
        yield
        if scope_spans is None:
            continue
        where, resource, scope, messages = scope_spans
        index = in_step = 0
        most_values = findings.values + _VALUES_AT_ONCE
        for message in messages:
            if message is not None:
                index += 1
                in_step += 1
                try:
                    spans.append(_span(message, resource, scope, wanted, findings))
                    sizes.append(findings.size)
                except SpanRefused as error:
                    refused = _first_refusal(message, error)
                    findings.refuse(refused.reason, f"{where}.spans[{index - 1}]: {refused}")
                    findings.lose(refused.reason, message.trace_id, message.span_id or message.parent_span_id)
                if in_step < _SPANS_AT_ONCE and findings.values < most_values:
                    continue
            yield
            in_step = 0
            most_values = findings.values + _VALUES_AT_ONCE
    return findings.decoded(spans, sizes)


def _first_refusal(message: SpanMessage | SpanRefused, refused: SpanRefused) -> SpanRefused:
    """Return why a span was refused when it was recorded or sent, if this one stands in for it; else the refusal."""
    if isinstance(message, SpanMessage) and not message.span_id and message.name.startswith(STAND_IN):
        with suppress(ValueError):
            reason = Refusal(message.name.removeprefix(STAND_IN))
            return SpanRefused(reason, "in place of a span or log record that was refused when it was recorded or sent")
    return refused


def is_readable(message: SpanMessage) -> bool:
    """Return whether the content of a span is valid."""
    try:
        _span(message, EMPTY, "", None, Findings())
    except SpanRefused:
        return False
    return True


def is_root(parent_span_id: bytes, flags: int) -> bool:
    """Return whether a span is the root of a trajectory, of which a configuration may match on any attribute."""
    return not parent_span_id.strip(b"\0") or flags & PARENT_IS_REMOTE == PARENT_IS_REMOTE


def _span(
    message: SpanMessage | SpanRefused,
    resource: Attributes,
    scope: str,
    wanted: WantedAttributes | None,
    findings: Findings,
) -> Span:
    if isinstance(message, SpanRefused):
        raise message
    findings.begin_span()
    span_id = message.span_id
    trace_id = message.trace_id
    parent_span_id = check_ids(trace_id, span_id, message.parent_span_id, findings)
    if links := message.links:
        for link in links[:LINKS_PER_SPAN]:
            check_link_ids(link.trace_id, link.span_id)
    left_out_before = findings.attributes_left_out
    flags = message.flags
    attributes = read_attributes(
        message.attributes,
        findings,
        wanted if parent_span_id and flags & PARENT_IS_REMOTE != PARENT_IS_REMOTE else None,
    )
    events = message.events
    status = message.status
    name = once[message.name]
    status_message = status.message
    findings.size += names_size(name, status_message, scope)
    ids = findings.ids
    # As calling the class, whose constructor is in Python and takes as long again.
    return tuple.__new__(
        Span,
        (
            ids.setdefault(trace_id, trace_id),
            span_id,
            ids.setdefault(parent_span_id, parent_span_id),
            name or UNNAMED,
            message.start_time_unix_nano,
            message.end_time_unix_nano,
            message.kind,
            status.code,
            status_message,
            attributes,
            read_events(events, findings) if events else (),
            scope,
            resource,
            flags,
            message.dropped_attributes_count + findings.attributes_left_out - left_out_before,
        ),
    )
