"""Recordings with changes that other senders, processors and applications make: they are read as before."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from corpora import recorded
from dialects.spans import built_in_reader
from spanscore.model import LOG_RECORD, Attributes, CloseReason, Span, SpanEvent, Trace, Trajectory
from spanscore.trajectories.trajectory import trajectories

ABOVE = b"above..."
ANSWER = "gen_ai.output.messages"
MESSAGES = {"gen_ai.input.messages", ANSWER}
CONTENT = {
    *MESSAGES,
    "gen_ai.system_instructions",
    "gen_ai.tool.definitions",
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.result",
}
DETAILS = "gen_ai.client.inference.operation.details"


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
            name=DETAILS,
            start_ns=span.end_ns,
            kind=LOG_RECORD,
            attributes={"gen_ai.operation.name": "chat", **moved},
            events=(),
        )
        found += [record] * bool(moved) + [span._replace(attributes=left)]
    return found


def in_events(spans: Sequence[Span]) -> list[Span]:
    """Move the content of spans into an event of each."""
    found: list[Span] = []
    for span in spans:
        moved = {key: value for key, value in span.attributes.items() if key in CONTENT}
        left = {key: value for key, value in span.attributes.items() if key not in moved}
        events = (SpanEvent(DETAILS, span.end_ns, moved),) if moved else ()
        found.append(span._replace(attributes=left, events=(*span.events, *events)))
    return found


def in_records_of_messages(spans: Sequence[Span]) -> list[Span]:
    """Move the messages of models into log records, one for each message, as older versions of the conventions do."""
    found: list[Span] = []
    for span in spans:
        sides = {side: json.loads(span.attributes.get(side, "[]")) for side in ("gen_ai.input.messages", ANSWER)}
        if span.attributes.get("gen_ai.operation.name") not in {"chat", "generate_content"}:
            sides = {}
        found.append(span._replace(attributes={key: each for key, each in span.attributes.items() if key not in sides}))
        for side, said in sides.items():
            for name, body in (each for message in said for each in _messages(message, is_answer=side == ANSWER)):
                found.append(
                    span._replace(
                        span_id=len(found).to_bytes(8, "big"),
                        parent_span_id=span.span_id,
                        name=name,
                        start_ns=span.end_ns if side == ANSWER else span.start_ns,
                        kind=LOG_RECORD,
                        attributes={"body": json.dumps(body)} if len(found) % 2 else body,
                        events=(),
                    )
                )
    return found


def _messages(message: dict[str, Any], *, is_answer: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the names and bodies of the events that hold a message."""
    text = "".join(part["content"] for part in message["parts"] if part["type"] == "text")
    calls = [
        {"id": part.get("id"), "type": "function", "function": {"name": part["name"], "arguments": part["arguments"]}}
        for part in message["parts"]
        if part["type"] == "tool_call"
    ]
    said = ({"content": text} if text else {}) | ({"tool_calls": calls} if calls else {})
    for part in message["parts"]:
        if part["type"] == "tool_call_response":
            told = part.get("response", part.get("result"))
            yield "gen_ai.tool.message", {"id": part.get("id"), "content": told}
    if is_answer:
        yield "gen_ai.choice", {"index": 0, "finish_reason": message.get("finish_reason"), "message": said}
    elif said:
        yield f"gen_ai.{message['role']}.message", said


def read(spans: Sequence[Span]) -> list[Any]:
    """Return all that evaluators see of the runs of a trace."""
    trace = Trace(trace_id=spans[0].trace_id, spans=tuple(spans), close_reason=CloseReason.ROOT_ENDED)
    return [_seen(run) for run in trajectories(trace, built_in_reader(), model_calls=True)]


def _seen(run: Trajectory) -> Any:
    around = run.withheld, run.uncertain, run.refused
    told = run.user_text, run.system_text, dict(run.tool_definitions), [call.turn for call in run.calls]
    return run.calls, run.completeness, around, run.agent, run.unread, run.recognised, told


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
        (logged, "pydantic-ai-approval"),
        (logged, "vercel-ai-7-approval"),
        (in_events, "agent-framework-approval"),
        (in_events, "mastra-approval"),
        (in_events, "openai-agents-approval-v2"),
        (in_events, "pydantic-ai-approval"),
        (in_records_of_messages, "agent-framework-approval"),
        (in_records_of_messages, "google-adk-confirmation"),
        (in_records_of_messages, "openai-agents-approval-genai"),
    ],
)
def test_a_recording_is_read_as_before(change: Callable[[Sequence[Span]], list[Span]], name: str) -> None:
    """Whatever the agents did, and whether they were paused."""
    differing = [trace_id for trace_id, spans in recorded(name).items() if read(change(spans)) != read(spans)]

    assert differing == []
