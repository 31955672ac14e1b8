"""Mastra."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, Markers, ModelReading, Precedence, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _messages as messages
from spanscore.dialects import gen_ai, openinference
from spanscore.model import Recorded, Span

_TYPE: Final = "mastra.span.type"
_CONVERSATION: Final = ("mastra.metadata.sessionId", "mastra.metadata.threadId", "mastra.metadata.resourceId")


class Mastra:
    """Mastra's exporters: its own, the OpenTelemetry bridge, and the one for Arize.

    What the model asked for stands in the step spans, not in the chat spans. Arguments that fail validation leave the
    status OK: the result tells.
    """

    precedence = Precedence.FRAMEWORK
    markers = Markers(attributes=frozenset({_TYPE}))

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        kind = attributes.get(_TYPE)
        return Reading(
            call=_call(span) if kind == "tool_call" else None,
            not_a_call=kind == "client_tool_call",
            is_model=kind == "model_step",
            conversation_id=content.first_text(attributes, _CONVERSATION),
        )

    def read_model(self, span: Span) -> ModelReading | None:
        return ModelReading(
            requests=messages.requests(content.decoded(span.attributes.get("mastra.model_step.output")))
        )


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    result = content.decoded(attributes.get(gen_ai.RESULT, attributes.get(openinference.OUTPUT)))
    return CallReading(
        name=content.text(attributes.get(gen_ai.TOOL_NAME)) or content.text(attributes.get(openinference.TOOL_NAME)),
        arguments=content.arguments(attributes.get(gen_ai.ARGUMENTS, attributes.get(openinference.INPUT))),
        result=result,
        error=content.error(span) or _refusal(result),
        call_id=content.identifier(attributes.get(gen_ai.CALL_ID, attributes.get("tool_call.id"))),
    )


def _refusal(result: Recorded) -> str | None:
    message = content.string(content.field(result, "message"))
    if content.field(result, "error") is True and message and message.startswith("Tool input validation failed"):
        return content.short(message)
    return None
