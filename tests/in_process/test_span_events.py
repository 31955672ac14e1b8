from __future__ import annotations

from collections.abc import Sequence

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased
from opentelemetry.trace import SpanKind, StatusCode

from emitters.reports import BROKEN, NOT_PASSED, PASSED, ROOT_SPAN_ID, TRACE_ID, report, trajectory
from spanscore.in_process.span_events import SpanEvents, span_events
from spanscore.model import Report
from spanscore.reports.evaluation_event import event_attributes

NOW_NS = 1_700_000_000_000_000_000


def emitted(*reports: Report) -> Sequence[ReadableSpan]:
    """Return the spans that the host's tracer provider gets."""
    exporter = InMemorySpanExporter()
    # The root was sampled by whatever chance; its child must be too.
    provider = TracerProvider(
        sampler=ParentBased(ALWAYS_OFF), resource=Resource({"service.name": "shop"}), shutdown_on_exit=False
    )
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    emitter = SpanEvents(provider, clock=lambda: NOW_NS)
    for each in reports:
        emitter.emit(each)
    assert emitter.flush(0)
    assert emitter.close(0)
    return exporter.get_finished_spans()


def test_child_span() -> None:
    """A report is a span of no duration below the evaluated span, which has ended, with an event per evaluation."""
    one = report(NOT_PASSED, BROKEN)

    (span,) = emitted(one)

    assert "evaluate refund" == span.name
    assert span.parent is not None
    assert (int.from_bytes(TRACE_ID), int.from_bytes(ROOT_SPAN_ID), False) == (
        span.parent.trace_id,
        span.parent.span_id,
        span.parent.is_remote,
    )
    assert int.from_bytes(TRACE_ID) == span.context.trace_id
    assert (NOW_NS, NOW_NS) == (span.start_time, span.end_time)
    assert (StatusCode.UNSET, SpanKind.INTERNAL) == (span.status.status_code, span.kind)
    assert span.instrumentation_scope is not None
    assert "spanscore" == span.instrumentation_scope.name
    assert [
        ("gen_ai.evaluation.result", NOW_NS, event_attributes(one, evaluation)) for evaluation in one.evaluations
    ] == [(event.name, event.timestamp, dict(event.attributes or {})) for event in span.events]


def test_named_after_the_service() -> None:
    """Where no agent is known the span is named after the service, and otherwise after nothing."""
    spans = emitted(
        report(PASSED, about=trajectory(agent=None)), report(PASSED, about=trajectory(agent=None, service=None))
    )

    assert ["evaluate shop", "evaluate"] == [span.name for span in spans]


def test_names_are_made_printable() -> None:
    """An agent's name is one line in the span's name, and not longer than a viewer can show."""
    (span,) = emitted(report(PASSED, about=trajectory(agent="a\x1b[31m\n" + "b" * 1_000)))

    assert f"evaluate a\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}{'b' * 52}…" == span.name


def test_no_span_without_evaluations() -> None:
    """A trajectory that no evaluator applied to, or whose span is not known, leaves the trace alone."""
    assert () == emitted(report(), report(PASSED, about=trajectory(root_span_id=b"")))


def test_events_for_the_root_itself() -> None:
    """The same events are had for those who can add them to the evaluated span."""
    one = report(PASSED, NOT_PASSED)

    assert [("gen_ai.evaluation.result", 5, event_attributes(one, each)) for each in one.evaluations] == [
        (event.name, event.timestamp, event.attributes) for event in span_events(one, 5)
    ]
