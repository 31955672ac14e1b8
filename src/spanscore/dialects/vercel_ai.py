"""The Vercel AI SDK."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, Markers, ModelReading, Precedence, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _messages as messages
from spanscore.dialects import gen_ai, openinference
from spanscore.model import Span

_OPERATION: Final = "ai.operationId"
_MODEL_STEPS: Final = (".doGenerate", ".doStream")
_SCOPES: Final = frozenset({"ai", "gen_ai"})
_CONVERSATION: Final = tuple(
    prefix + key
    for prefix in ("ai.telemetry.metadata.", "ai.settings.context.")
    for key in ("sessionId", "conversationId", "threadId", "chatId", "session_id", "conversation_id")
)


class VercelAi:
    """The Vercel AI SDK 4 to 7, alone and behind openinference-vercel.

    Versions 4 to 6 (and 7 with the legacy integration) write `ai.toolCall.*`; version 7 follows the GenAI semantic
    conventions. openinference-vercel marks every span that ends after an error as failed: there, only an exception
    event tells a failure.
    """

    precedence = Precedence.FRAMEWORK
    markers = Markers(attributes=frozenset({_OPERATION}), scopes=_SCOPES)

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        operation = content.text(attributes.get(_OPERATION)) or ""
        if operation == "ai.toolCall":
            call = _call(span)
        elif openinference.KIND in attributes and attributes.get(gen_ai.OPERATION) == gen_ai.EXECUTE_TOOL:
            call = _semconv_call(span)
        else:
            call = None
        is_model = operation.endswith(_MODEL_STEPS)
        is_agent = bool(operation) and call is None and not is_model
        return Reading(
            call=call,
            is_model=is_model,
            is_agent=True if is_agent else None,
            agent=content.text(attributes.get("ai.telemetry.functionId")),
            conversation_id=content.first_text(attributes, _CONVERSATION),
        )

    def read_model(self, span: Span) -> ModelReading | None:
        attributes = span.attributes
        if _OPERATION not in attributes:
            return None
        tools = attributes.get("ai.prompt.tools")
        listed = [content.decoded(tool) for tool in tools] if isinstance(tools, (list, tuple)) else []
        return ModelReading(
            requests=messages.requests(content.decoded(attributes.get("ai.response.toolCalls"))),
            answers=messages.answers(content.decoded(attributes.get("ai.prompt.messages"))),
            tool_definitions=messages.definitions([tool for tool in listed if isinstance(tool, dict)]),
        )


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    return CallReading(
        name=content.text(attributes.get("ai.toolCall.name")),
        arguments=content.arguments(attributes.get("ai.toolCall.args")),
        result=content.decoded(attributes.get("ai.toolCall.result")),
        error=_error(span),
        call_id=content.identifier(attributes.get("ai.toolCall.id")),
    )


def _semconv_call(span: Span) -> CallReading:
    attributes = span.attributes
    return CallReading(
        name=content.text(attributes.get(gen_ai.TOOL_NAME)),
        arguments=content.arguments(attributes.get(gen_ai.ARGUMENTS)),
        result=content.decoded(attributes.get(gen_ai.RESULT)),
        error=_error(span),
        call_id=content.identifier(attributes.get(gen_ai.CALL_ID)),
    )


def _error(span: Span) -> str | None:
    return content.exception(span) if openinference.KIND in span.attributes else content.error(span)
