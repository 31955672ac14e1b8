"""Recordings with changes that other senders, processors and applications make: they are read as before."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from corpora import recorded
from dialects.spans import built_in_reader
from spanscore.model import LOG_RECORD, Attributes, CloseReason, Span, Trace, Trajectory
from spanscore.trajectories.trajectory import trajectories

ABOVE = b"above..."
MESSAGES = {"gen_ai.input.messages", "gen_ai.output.messages"}


def structured(spans: Sequence[Span]) -> list[Span]:
    """Parse the JSON in attributes, as the conventions allow, and processors of a Collector do."""

    def parsed(attributes: Attributes) -> dict[str, Any]:
        return {key: _parsed(value) for key, value in attributes.items()}

    return [
        span._replace(
            attributes=parsed(span.attributes),
            events=tuple(event._replace(attributes=parsed(event.attributes)) for event in span.events),
        )
        for span in spans
    ]


def _parsed(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith(("{", "[")):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def below_an_application(spans: Sequence[Span]) -> list[Span]:
    """Put the span of a web server above the root."""
    start, end = min(span.start_ns for span in spans), max(span.end_ns for span in spans)
    server = Span(spans[0].trace_id, ABOVE, b"", "POST /chat", start - 1, end + 1, scope="fastapi")
    return [*(span if span.parent_span_id else span._replace(parent_span_id=ABOVE) for span in spans), server]


def below_another_process(spans: Sequence[Span]) -> list[Span]:
    """Let the caller be traced elsewhere."""
    return [span if span.parent_span_id else span._replace(parent_span_id=ABOVE, flags=0x301) for span in spans]


def sent_twice(spans: Sequence[Span]) -> list[Span]:
    """Send each span while it runs, and again when it has ended."""
    return [*(span._replace(end_ns=0, status_code=0, events=()) for span in spans), *spans]


def with_the_application_s(spans: Sequence[Span]) -> list[Span]:
    """Add an attribute to each span, as a processor of the application does."""
    return [span._replace(attributes={**span.attributes, "session.id": "s-1"}) for span in spans]


def logged(spans: Sequence[Span]) -> list[Span]:
    """Move the messages of models into log records, which are written when the model has answered."""
    found: list[Span] = []
    for number, span in enumerate(spans):
        is_model = span.attributes.get("gen_ai.operation.name") in {"chat", "generate_content"}
        moved = {key: value for key, value in span.attributes.items() if is_model and key in MESSAGES}
        left = {key: value for key, value in span.attributes.items() if key not in moved}
        record = span._replace(
            span_id=number.to_bytes(8, "big"),
            parent_span_id=span.span_id,
            name="gen_ai.client.inference.operation.details",
            start_ns=span.end_ns,
            kind=LOG_RECORD,
            attributes={"gen_ai.operation.name": "chat", **moved},
            events=(),
        )
        found += [record] * bool(moved) + [span._replace(attributes=left)]
    return found


def read(spans: Sequence[Span]) -> list[Any]:
    """Return all that evaluators see of the runs of a trace."""
    trace = Trace(trace_id=spans[0].trace_id, spans=tuple(spans), close_reason=CloseReason.ROOT_ENDED)
    return [_seen(run) for run in trajectories(trace, built_in_reader())]


def _seen(run: Trajectory) -> Any:
    around = run.withheld, run.uncertain, run.refused
    return run.calls, run.completeness, around, run.agent, run.unread, run.recognised


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (structured, "google-adk-js-nocontent"),
        (structured, "llama-index-tl"),
        (structured, "mastra-approval-nocontent"),
        (structured, "pydantic-ai-approval-nocontent"),
        (structured, "strands-interrupt-semconv"),
        (structured, "vercel-ai-6-approval"),
        (structured, "vercel-ai-7-approval"),
        (below_an_application, "agno-tl"),
        (below_an_application, "langchain-js-oi"),
        (below_an_application, "langsmith-otel"),
        (below_an_application, "mlflow-langchain"),
        (below_another_process, "langchain-js-oi"),
        (sent_twice, "litellm-otel"),
        (with_the_application_s, "google-adk-js"),
        (logged, "agent-framework-approval"),
        (logged, "google-adk-confirmation"),
        (logged, "langgraph-approval-tl"),
    ],
)
def test_a_recording_is_read_as_before(change: Callable[[Sequence[Span]], list[Span]], name: str) -> None:
    """Whatever the agents did, and whether they were paused."""
    differing = [trace_id for trace_id, spans in recorded(name).items() if read(change(spans)) != read(spans)]

    assert differing == []
