"""Strands Agents."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, Markers, ModelReading, Precedence, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _messages as messages
from spanscore.dialects import gen_ai, openinference
from spanscore.model import NOT_RECORDED, Recorded, Span

_STATUS: Final = "gen_ai.tool.status"
_SCHEMA: Final = "gen_ai.tool.json_schema"


class Strands:
    """Strands Agents, Python and TypeScript. Arguments and results stand in span events unless told otherwise.

    OpenInference's processor moves them out of the events into attributes of its own.
    """

    precedence = Precedence.FRAMEWORK
    markers = Markers(
        attributes=frozenset({_STATUS, "gen_ai.event.start_time"}),  # in TypeScript the scope is the service's name
        scopes=frozenset({"strands.telemetry.tracer", "strands-agents"}),
    )
    reads = gen_ai.READS | openinference.READS | {_STATUS, _SCHEMA}

    def read(self, span: Span) -> Reading | None:
        if span.attributes.get(gen_ai.OPERATION) != gen_ai.EXECUTE_TOOL:
            return None
        attributes = span.attributes
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
        return Reading(
            call=CallReading(
                name=content.text(attributes.get(gen_ai.TOOL_NAME)),
                arguments=content.arguments(given),
                result=result,
                error=content.error(span) or (_failure(result) if attributes.get(_STATUS) == "error" else None),
                error_type=content.error_type(span),
                call_id=content.identifier(attributes.get(gen_ai.CALL_ID)),
            )
        )

    def read_model(self, span: Span) -> ModelReading | None:
        schema = content.decoded(span.attributes.get(_SCHEMA))
        name = content.text(span.attributes.get(gen_ai.TOOL_NAME))
        if name is None or not isinstance(schema, dict):
            return None
        return ModelReading(tool_definitions={name: schema})


def _failure(result: Recorded) -> str:
    return "error" if result is NOT_RECORDED else content.short(str(result)) or "error"
