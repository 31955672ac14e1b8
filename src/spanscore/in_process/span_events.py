"""Scores as span events: in the trace itself, where its viewers look."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final

from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import TracerProvider, get_tracer

from spanscore.contracts.immediate import Immediate
from spanscore.model import Report
from spanscore.reports.evaluation_event import NAME, child_span_name, event_attributes, event_time_ns, span_attributes
from spanscore.sdk.identity import SCOPE, scope_version
from spanscore.sdk.span_conversion import scored_context, with_more


class SpanEvents(Immediate):
    """Puts scores into the trace: a short span below the evaluated one, with an event for each evaluation.

    A span that has ended takes no more events, hence the span of its own. It is made with the tracer provider whose
    spans were scored, and goes where those go. Only sampled spans are scored, so that its parent is in the trace.

    Args:
        tracer_provider: by default the global one, which may be set later.
        clock: the time in nanoseconds since the Unix epoch.
    """

    def __init__(self, tracer_provider: TracerProvider | None = None, clock: Callable[[], int] = time.time_ns) -> None:
        self._tracer: Final = get_tracer(SCOPE, scope_version(), tracer_provider)
        self._clock: Final = clock

    def emit(self, report: Report) -> None:
        """Make the span; none if nothing was evaluated, if the evaluated span has no id, or for a conversation."""
        context = scored_context(report.trajectory, is_remote=False)
        if not report.evaluations or not context or report.conversation is not None:
            return
        now_ns = self._clock()
        said = span_attributes(report)
        span = self._tracer.start_span(child_span_name(report), context, attributes=said, start_time=now_ns)
        for event in span_events(report, now_ns):
            span.add_event(event.name, event.attributes, event.timestamp)
        span.end(now_ns)


def span_events(report: Report, time_ns: int) -> tuple[Event, ...]:
    """Return an event for each evaluation, for a caller that can add them to the evaluated span itself."""
    return tuple(Event(NAME, event_attributes(report, evaluation), time_ns) for evaluation in report.evaluations)


def annotated(span: ReadableSpan, reports: Iterable[Report]) -> ReadableSpan:
    """Return a finished span with the verdict and the events of the reports that are about it."""
    span_id = span.context.span_id.to_bytes(8, "big")
    time_ns = event_time_ns(span.start_time or 0, span.end_time or 0)
    attributes: dict[str, str] = {}
    events: list[Event] = []
    for report in reports:
        if report.evaluations and report.trajectory.root_span_id == span_id:
            attributes |= span_attributes(report)
            events += span_events(report, time_ns)
    return with_more(span, attributes, events) if events else span
