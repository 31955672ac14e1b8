"""The Vercel AI SDK."""

from __future__ import annotations

from itertools import chain
from typing import Final

from spanscore.contracts import CallReading, CaptureSetting, Markers, ModelCallReading, ModelReading, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _finish_reasons as finish_reasons
from spanscore.dialects import _model_call_reading as model_calls
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import _sent_messages as sent_messages
from spanscore.dialects import gen_ai, openinference
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import JSON, AttributeValue, Later, LaterList, Span

_OPERATION: Final = "ai.operationId"
_CONVENTION: Final = "gen_ai"
"""The scope of version 7 where it follows the conventions."""
_RUNS: Final = frozenset({"ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject"})
_MODEL_STEPS: Final = (".doGenerate", ".doStream")
_NAME: Final = ("ai.toolCall.name", gen_ai.TOOL_NAME)
_ARGUMENTS: Final = ("ai.toolCall.args", "ai.toolCall.input", gen_ai.ARGUMENTS)
_RESULT: Final = ("ai.toolCall.result", "ai.toolCall.output", gen_ai.RESULT)
_CALL_ID: Final = ("ai.toolCall.id", gen_ai.CALL_ID)
_REQUESTS: Final = ("ai.response.toolCalls", gen_ai.OUTPUT)
_ANSWERS: Final = ("ai.prompt.messages", gen_ai.INPUT)
_FINISH_REASONS: Final = ("ai.response.finishReason", *finish_reasons.READS)
_MODEL: Final = ("ai.response.model", "ai.model.id", *model_calls.MODEL)
_TOKENS: Final = {
    "sent": ("ai.usage.inputTokens", "ai.usage.promptTokens", *model_calls.INPUT_TOKENS),
    "said": ("ai.usage.outputTokens", "ai.usage.completionTokens", *model_calls.OUTPUT_TOKENS),
    "cache_read": ("ai.usage.inputTokenDetails.cacheReadTokens", "ai.usage.cachedInputTokens"),
    "cache_write": ("ai.usage.inputTokenDetails.cacheWriteTokens",),
}
_CONVERSATION: Final = tuple(
    prefix + key
    for prefix in ("ai.telemetry.metadata.", "ai.settings.context.")
    for key in ("sessionId", "conversationId", "threadId", "chatId", "session_id", "conversation_id")
)


class VercelAi(FrameworkDialect):
    """The Vercel AI SDK 4 to 7, alone and behind the processors of OpenInference, Traceloop, LangSmith and Langfuse.

    Versions 4 to 6 (and 7 with the legacy integration) write `ai.toolCall.*`; version 7 follows the GenAI semantic
    conventions. Traceloop's processor replaces the former by the latter. OpenInference's marks every span that ends
    after an error as failed: there, only an exception event tells a failure. A run that ends with the finish reason
    `tool-calls` waits: for a person to approve a call, or for the client to execute it.
    """

    markers = Markers(attributes=frozenset({_OPERATION}), scopes=frozenset({"ai", _CONVENTION}))
    reads = gen_ai.READS.union(
        openinference.READS,
        _NAME,
        _ARGUMENTS,
        _RESULT,
        _CALL_ID,
        _REQUESTS,
        _ANSWERS,
        _FINISH_REASONS,
        _CONVERSATION,
        {"ai.telemetry.functionId", "ai.prompt.tools"},
    )
    reads_for_model_calls = frozenset({*_MODEL, *_ANSWERS, *chain.from_iterable(_TOKENS.values())})
    capture_settings = (
        CaptureSetting("experimental_telemetry: { isEnabled: true, recordInputs: true }", ("user messages",)),
        CaptureSetting(
            "experimental_telemetry: { isEnabled: true, recordOutputs: true }", ("arguments", "results", "tool calls")
        ),
    )

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        operation = content.text(attributes.get(_OPERATION)) or ""
        by_convention = attributes.get(gen_ai.OPERATION) == gen_ai.EXECUTE_TOOL and openinference.KIND in attributes
        return Reading(
            call=_call(span) if operation == "ai.toolCall" or by_convention else None,
            is_model=operation.endswith(_MODEL_STEPS),
            is_agent=True if operation in _RUNS else None,
            ends_asking=_ends_asking(span, operation),
            refuses_silently=True,
            agent=content.text(attributes.get("ai.telemetry.functionId")),
            conversation_id=content.first_text(attributes, _CONVERSATION),
        )

    def read_model(self, span: Span) -> ModelReading | None:
        attributes = span.attributes
        if _OPERATION not in attributes:
            sent = attributes.get(gen_ai.INPUT)
            return ModelReading(refused=Later(lambda: _denied(sent)), by_provider=Later(lambda: _by_provider(sent)))
        return ModelReading(
            requests=messages.requests_in(content.first_text(attributes, _REQUESTS)),
            asks=finish_reasons.asks(attributes, _FINISH_REASONS),
            answers=Later(lambda: messages.answers(content.decoded(content.first_text(attributes, _ANSWERS)))),
            by_provider=Later(lambda: _by_provider(content.first_text(attributes, _ANSWERS))),
            tool_definitions=Later(lambda: _definitions(attributes.get("ai.prompt.tools"))),
            history=LaterList(lambda: sent_messages.history_in(content.first_text(attributes, _ANSWERS))),
        )

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        attributes = span.attributes
        if not (content.text(attributes.get(_OPERATION)) or "").endswith(_MODEL_STEPS):
            return None
        sent = content.decoded(content.first_text(attributes, _ANSWERS))
        return model_calls.reading(attributes, model_calls.texts(sent), model=_MODEL, **_TOKENS)


def _ends_asking(span: Span, operation: str) -> bool:
    attributes = span.attributes
    is_run = operation in _RUNS or (span.scope == _CONVENTION and attributes.get(gen_ai.OPERATION) == "invoke_agent")
    return is_run and finish_reasons.asks(attributes, _FINISH_REASONS)


def _denied(sent: AttributeValue) -> dict[str, JSON]:
    """Return the answers of version 7 to calls that a person has denied."""
    if not isinstance(sent, str) or '"denied"' not in sent:
        return {}
    answers = messages.answers(content.decoded(sent))
    return {call_id: told for call_id, told in answers.items() if content.field(told, "denied") is True}


def _by_provider(sent: AttributeValue) -> dict[str, JSON]:
    """Return the results in the messages of the model itself, of tools that its provider executes."""
    history = content.decoded(sent)
    said = [each for each in history if content.field(each, "role") == "assistant"] if isinstance(history, list) else []
    return messages.answers(said)


def _definitions(tools: AttributeValue) -> dict[str, JSON]:
    listed = content.decoded(tools)
    found = map(content.decoded, listed if isinstance(listed, list) else ())
    return messages.definitions([tool for tool in found if isinstance(tool, dict)])


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    may_have_failed = openinference.KIND not in attributes or content.exception(span) is not None
    return CallReading(
        name=content.first_text(attributes, _NAME),
        arguments=content.arguments(content.first_text(attributes, _ARGUMENTS)),
        result=content.decoded(content.first_text(attributes, _RESULT)),
        error=content.error(span) if may_have_failed else None,
        error_type=content.error_type(span) if may_have_failed else None,
        call_id=content.identifier(content.first_text(attributes, _CALL_ID)),
    )
