"""The evaluated span as the parent of what tells its scores, and what the span of its scores is called."""

from __future__ import annotations

from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from spanscore.model import Report, Trajectory
from spanscore.wording.printable import printable


def scored_context(trajectory: Trajectory, *, is_remote: bool = True) -> Context:
    """Return a context in which the evaluated span is the current one; an empty one where its ids are not known.

    The sampled flag is set: the span has reached us, and without it the SDK would take no exemplar.
    """
    span_context = SpanContext(
        int.from_bytes(trajectory.trace_id, "big"),
        int.from_bytes(trajectory.root_span_id, "big"),
        is_remote=is_remote,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )
    return set_span_in_context(NonRecordingSpan(span_context), Context()) if span_context.is_valid else Context()


def child_span_name(report: Report) -> str:
    """Return what the span below the evaluated one is called."""
    subject = report.trajectory.agent or report.trajectory.service
    return f"evaluate {printable(subject)}" if subject else "evaluate"
