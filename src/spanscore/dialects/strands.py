"""Strands Agents."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, CallRequest, Markers, ModelReading, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import _sent_messages as sent_messages
from spanscore.dialects import gen_ai, openinference
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import JSON, NOT_RECORDED, Later, Recorded, Span

_STATUS: Final = "gen_ai.tool.status"
_SCHEMA: Final = "gen_ai.tool.json_schema"
_AGENT_RUN: Final = "invoke_agent"
_CANCELLED: Final = "toolResult"
_INTERRUPT: Final = "interrupt"
_FINISH_REASON: Final = "llm.output_messages.0.message.finish_reason"
_FIRST_AGENT: Final = "gen_ai.agent.tools"
_FIRST_TOOL: Final = "Tool: "
_FIRST_MODEL: Final = "Model invoke"
_FIRST_RESULT: Final = "tool.result"
_FIRST_STATUS: Final = "tool.status"
_STATUSES: Final = (_STATUS, _FIRST_STATUS)
_PROMPT: Final = "gen_ai.prompt"
_COMPLETION: Final = "gen_ai.completion"
_FIRST: Final = frozenset(
    {_FIRST_AGENT, "tool.name", "tool.id", "tool.parameters", _FIRST_RESULT, _FIRST_STATUS, _PROMPT, _COMPLETION}
)
"""Attributes of the first versions; the status has this name until 1.0."""
_UNNAMED: Final = (CallRequest(name=""),)


class Strands(FrameworkDialect):
    """Tool spans of Strands Agents, Python and TypeScript (recorded with 0.1.9, 1.0.0 and 1.62.0; 1.16.0).

    They follow the GenAI conventions. Arguments and results are in span events by default; OpenInference's
    processor moves them into `input.value` and `output.value`. An interrupted tool has neither a
    `gen_ai.tool.status` nor a result. For a tool that a hook cancelled, only the text to the model is recorded.
    Its name until 1.0 is `tool.status`. The first versions name a tool's span `Tool: NAME`, and write
    `tool.parameters` and `tool.result`.
    """

    markers = Markers(
        attributes=frozenset({_STATUS, "gen_ai.event.start_time"}),  # in TypeScript the scope is the service's name
        scopes=frozenset({"strands.telemetry.tracer", "strands-agents"}),
    )
    reads = gen_ai.READS | openinference.READS | _FIRST | {_STATUS, _SCHEMA}

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        if gen_ai.OPERATION not in attributes:
            return _first_versions(span)
        if attributes.get(gen_ai.OPERATION) == _AGENT_RUN:
            return Reading(waits=_UNNAMED) if _is_interrupted(span) else None
        if attributes.get(gen_ai.OPERATION) != gen_ai.EXECUTE_TOOL:
            return None
        given = content.first(
            attributes.get(gen_ai.ARGUMENTS),
            content.in_event(span, "gen_ai.tool.message", "content"),
            attributes.get(openinference.INPUT),
        )
        answer = content.first(
            attributes.get(gen_ai.RESULT),
            content.in_event(span, "gen_ai.choice", "message"),
            attributes.get(openinference.OUTPUT),
        )
        result = messages.told(content.decoded(answer))
        status = content.first_text(attributes, _STATUSES)
        error = content.error(span) or (_failure(result) if status == "error" else None)
        has_ended = status is not None or answer is not None or error is not None
        return Reading(
            call=CallReading(
                name=content.text(attributes.get(gen_ai.TOOL_NAME)),
                arguments=content.arguments(given),
                result=result,
                error=error,
                error_type=content.error_type(span),
                call_id=content.identifier(attributes.get(gen_ai.CALL_ID)),
                state="made" if has_ended else "uncertain",
            )
        )

    def read_model(self, span: Span) -> ModelReading | None:
        if span.name == _FIRST_MODEL:
            return sent_messages.reading(span.attributes.get(_COMPLETION), span.attributes.get(_PROMPT))
        if any(_CANCELLED in str(event.attributes.get("content")) for event in span.events):
            return ModelReading(refused=Later(lambda: _cancelled(span)))
        schema = content.decoded(span.attributes.get(_SCHEMA))
        name = content.text(span.attributes.get(gen_ai.TOOL_NAME))
        if name is None or not isinstance(schema, dict):
            return None
        return ModelReading(tool_definitions={name: schema})


def _first_versions(span: Span) -> Reading | None:
    attributes = span.attributes
    if span.name == _FIRST_MODEL:
        return Reading(is_model=True)
    if _FIRST_AGENT in attributes:
        return Reading(is_agent=True, agent=content.text(attributes.get(gen_ai.AGENT)))
    if not span.name.startswith(_FIRST_TOOL):
        return None
    result = messages.told(content.decoded(attributes.get(_FIRST_RESULT)))
    failure = _failure(result) if attributes.get(_FIRST_STATUS) == "error" else None
    return Reading(
        call=CallReading(
            name=content.text(attributes.get("tool.name")),
            arguments=content.arguments(attributes.get("tool.parameters")),
            result=result,
            error=content.error(span) or failure,
            error_type=content.error_type(span),
            call_id=content.identifier(attributes.get("tool.id")),
        )
    )


def _is_interrupted(span: Span) -> bool:
    """Return whether an agent's run ends with an interrupt, by the conventions old and new, or OpenInference's."""
    reasons = [event.attributes.get("finish_reason") for event in span.events]
    if _INTERRUPT in (span.attributes.get(_FINISH_REASON), *reasons):
        return True
    for held in (span.attributes, *(event.attributes for event in span.events)):
        said = held.get(gen_ai.OUTPUT)
        if isinstance(said, str) and f'"{_INTERRUPT}"' in said:
            told = content.decoded(said)
            return isinstance(told, list) and any(content.field(each, "finish_reason") == _INTERRUPT for each in told)
    return False


def _cancelled(span: Span) -> dict[str, JSON]:
    """Return the results with an error that a model was sent: without a span, the tool did not run."""
    found: dict[str, JSON] = {}
    for event in span.events:
        parts = content.decoded(event.attributes.get("content"))
        for part in parts if isinstance(parts, list) else ():
            match part:
                case {"toolResult": {"toolUseId": str(call_id), "status": "error", "content": told}}:
                    found[call_id] = told
    return found


def _failure(result: Recorded) -> str:
    return "error" if result is NOT_RECORDED else content.short(str(result)) or "error"
