"""Log records inside an agent's process: what instrumentations with the capture mode EVENT_ONLY write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from opentelemetry._logs import LogRecord
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider

from spanscore import ScoringLogRecordProcessor, ScoringSpanProcessor

DETAILS = "gen_ai.client.inference.operation.details"
ASKED = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "book", "arguments": {"n": 1}}]}
TOLD = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "ok"}]}


class Agent:
    """Providers of an application, with spanscore's processors at both."""

    def __init__(self, lines: Path) -> None:
        config = lines.with_suffix(".yaml")
        config.write_text(f"exporters: {{jsonl: {{path: {lines}}}}}\ntool_content: true\n", "utf-8")
        self.lines = lines
        self.spans = ScoringSpanProcessor.from_config(config)
        resource = Resource.create({"service.name": "agent"})
        tracing = TracerProvider(resource=resource, shutdown_on_exit=False)
        tracing.add_span_processor(self.spans)
        logging = LoggerProvider(resource=resource, shutdown_on_exit=False)
        logging.add_log_record_processor(ScoringLogRecordProcessor(self.spans))
        self.tracer, self.logger = tracing.get_tracer("an agent"), logging.get_logger("an instrumentation")
        self.logging = logging

    def log(self, name: str, **attributes: object) -> None:
        """Write a record in the span that is current."""
        held = {f"gen_ai.{key}": value for key, value in attributes.items()}
        self.logger.emit(LogRecord(event_name=name, attributes=held))  # type: ignore[arg-type]

    def reports(self) -> list[dict[str, object]]:
        """End, and return what was scored."""
        self.logging.shutdown()
        self.spans.shutdown()
        return [json.loads(line) for line in self.lines.read_text("utf-8").splitlines()]


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    """Return an agent's providers."""
    return Agent(tmp_path / "scores.jsonl")


def test_calls_that_only_logs_tell_of_are_scored(agent: Agent) -> None:
    """Content comes from the logs, in the trace of the spans; other records are passed over."""
    with agent.tracer.start_as_current_span("main"):
        with agent.tracer.start_as_current_span("chat", attributes={"gen_ai.operation.name": "chat"}):
            agent.log(DETAILS, **{"output.messages": [ASKED]})
            agent.log("http.request", **{"output.messages": [ASKED]})
        with agent.tracer.start_as_current_span("chat", attributes={"gen_ai.operation.name": "chat"}):
            held = {"otel.event.name": DETAILS, "gen_ai.input.messages": [ASKED, TOLD]}
            agent.logger.emit(LogRecord(attributes=held))  # type: ignore[arg-type]

    (report,) = agent.reports()
    (call,) = report["tool_calls"]  # type: ignore[misc]
    assert ("book", {"n": 1}, "ok", "c1") == tuple(call[key] for key in ("name", "arguments", "result", "call_id"))


def test_records_outside_of_traces(agent: Agent) -> None:
    """They are a run by their session; without one they are left out, and cost nothing else."""
    agent.log(DETAILS, **{"output.messages": [ASKED]})
    agent.log(DETAILS, **{"output.messages": [ASKED], "conversation.id": "s"})
    agent.log(DETAILS, **{"input.messages": [TOLD], "conversation.id": "s"})

    (report,) = agent.reports()
    assert ("", "s", ["book"]) == (
        report["root_span_id"],
        report["conversation_id"],
        [call["name"] for call in report["tool_calls"]],  # type: ignore[attr-defined]
    )


def test_what_is_not_sampled_is_not_read(agent: Agent) -> None:
    """As with its spans."""
    from opentelemetry import trace  # noqa: PLC0415 - for this test alone

    context = trace.SpanContext(1, 2, is_remote=False, trace_flags=trace.TraceFlags(0))
    with trace.use_span(trace.NonRecordingSpan(context)):
        agent.log(DETAILS, **{"output.messages": [ASKED], "conversation.id": "s"})

    assert [] == agent.reports()
