"""What log records tell of calls, beside spans and without them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dialects.spans import TRACE_ID, span_id, start_ns
from spanscore.contracts import CallReading, CallRequest, Markers, ModelReading, Precedence, Reading
from spanscore.model import LOG_RECORD, NO_SPAN, CloseReason, Span, ToolCall, Trace, Trajectory
from spanscore.read.reader import DialectReader
from spanscore.read.trajectory import trajectories
from spanscore.testing import check_dialect
from dialects.spans import built_in_reader, call, calls, read
from traces import BERN, PARIS, agent, asked, lasting, model, tool


class Told:
    """An emitter whose log says that a tool was called."""

    precedence = Precedence.FRAMEWORK
    markers = Markers(log_names=("told.call",), attributes=frozenset({"told"}))
    reads = frozenset({"name", "arguments", "result", "id", "error"})

    def read(self, span: Span) -> Reading | None:
        held = span.attributes
        return Reading(
            call=CallReading(
                name=held.get("name"),
                arguments=held["arguments"],
                result=held["result"],
                call_id=held.get("id"),
                error=held.get("error"),
            )
        )

    def read_model(self, span: Span) -> ModelReading | None:
        return None


def log(
    number: int, name: str, attributes: Mapping[str, Any], *, parent: int | None = None, at_ms: int, scope: str = "logs"
) -> Span:
    """Return a log record."""
    at_ns = start_ns(at_ms)
    above = NO_SPAN if parent is None else span_id(parent)
    return Span(
        TRACE_ID, span_id(1000 + number), above, name, at_ns, at_ns, LOG_RECORD, attributes=attributes, scope=scope
    )
