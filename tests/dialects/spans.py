"""Spans written by hand and read with every built-in dialect."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from spanscore.contracts import Dialect, plugins
from spanscore.model import NOT_RECORDED, CloseReason, Span, SpanEvent, ToolCall, Trace, Trajectory, Unit
from spanscore.trajectories.explained import explained
from spanscore.trajectories.reader import DialectReader
from spanscore.trajectories.trajectory import trajectories
from spanscore.trajectories.wanted import WantedAttributes, log_names, wanted_attributes

TRACE_ID = bytes(15) + b"\x01"
START_NS = 1_700_000_000_000_000_000


def span_id(number: int) -> bytes:
    """Return the id of the span with this number."""
    return number.to_bytes(8, "big")


def start_ns(at_ms: int) -> int:
    """Return the time so many milliseconds after the trace began."""
    return START_NS + at_ms * 1_000_000


def span(
    number: int,
    name: str,
    attributes: Mapping[str, Any] | None = None,
    *,
    parent: int = 0,
    at_ms: int | None = None,
    **fields: Any,
) -> Span:
    """Return a span of 1 ms below `parent`, or a root; it starts `number` ms into the trace unless told otherwise."""
    start = start_ns(number if at_ms is None else at_ms)
    return Span(
        trace_id=TRACE_ID,
        span_id=span_id(number),
        parent_span_id=span_id(parent) if parent else b"",
        name=name,
        start_ns=start,
        end_ns=start + 1_000_000,
        attributes=attributes or {},
        **fields,
    )


def event(name: str, attributes: Mapping[str, Any] | None = None) -> SpanEvent:
    """Return an event of a span."""
    return SpanEvent(name, START_NS, attributes or {})


def exception(kind: str, message: str) -> SpanEvent:
    """Return the event that an SDK records for an exception."""
    return event("exception", {"exception.type": kind, "exception.message": message})


def call(
    number: int | None, name: str, arguments: Any = NOT_RECORDED, *, at_ms: int | None = None, **fields: Any
) -> ToolCall:
    """Return the call that the span of this number stands for, with the times that `span` gives it.

    A call without a span starts and ends with the model span that asked for it: tell `at_ms`.
    """
    start = start_ns((number or 0) if at_ms is None else at_ms)
    return ToolCall(
        name=name,
        arguments=arguments,
        span_id=None if number is None else span_id(number),
        start_ns=start,
        end_ns=start if number is None else start + 1_000_000,
        **fields,
    )


@cache
def built_in_dialects() -> tuple[Dialect, ...]:
    """Return every built-in dialect that needs no configuration."""
    return tuple(plugins.find("dialects", name)() for name in plugins.names("dialects") if name != "custom")


@cache
def built_in_reader() -> DialectReader:
    """Return a reader of these dialects."""
    return DialectReader(built_in_dialects())


@cache
def built_in_wanted() -> WantedAttributes:
    """Return which attributes these dialects look at."""
    return wanted_attributes(built_in_dialects())


@cache
def built_in_wanted_with_model_calls() -> WantedAttributes:
    """Return which attributes these dialects look at where an evaluator needs model calls."""
    return wanted_attributes(built_in_dialects(), model_calls=True)


@cache
def built_in_log_names() -> tuple[str, ...]:
    """Return what the names of the log records begin with that built-in dialects read."""
    return log_names(built_in_dialects())


def as_received(span: Span, *, model_calls: bool = False) -> Span:
    """Return a span as it is received: below a root, without attributes that no dialect looks at; a log is whole."""
    if not span.parent_span_id or span.is_log:
        return span
    wanted = built_in_wanted_with_model_calls() if model_calls else built_in_wanted()
    return span._replace(attributes={key: value for key, value in span.attributes.items() if wanted[key] is not None})


def read(*spans: Span, unit: Unit = Unit.TRACE, model_calls: bool = False) -> tuple[Trajectory, ...]:
    """Return the trajectories of a trace of these spans, received in this order."""
    kept = tuple(as_received(span, model_calls=model_calls) for span in spans)
    trace = Trace(trace_id=TRACE_ID, spans=kept, close_reason=CloseReason.ROOT_ENDED)
    return trajectories(trace, built_in_reader(), unit, model_calls=model_calls)


def calls(*spans: Span) -> list[ToolCall]:
    """Return the tool calls of a trace of these spans, received in this order."""
    (trajectory,) = read(*spans)
    assert not built_in_reader().failures
    return list(trajectory.calls)


def told_to_wait(*spans: Span) -> tuple[str, ...]:
    """Return the names of the calls without a span that the trace of these spans waits for."""
    trace = Trace(trace_id=TRACE_ID, spans=tuple(map(as_received, spans)), close_reason=CloseReason.ROOT_ENDED)
    return explained(trace, trajectories(trace, built_in_reader()), built_in_reader()).waits
