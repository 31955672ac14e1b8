"""LiveKit Agents."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, Markers, ModelCallReading, ModelReading, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_call_reading as model_calls
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import _sent_messages as sent_messages
from spanscore.dialects import gen_ai
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import JSON, Attributes, AttributeValue, Span, changed

_LABEL: Final = "lk.agent_label"
_ID: Final = "lk.function_tool.id"
_NAME: Final = "lk.function_tool.name"
_FAILED: Final = "lk.function_tool.is_error"
_ARGUMENTS: Final = ("lk.pii.function_tool.arguments", "lk.function_tool.arguments", gen_ai.ARGUMENTS)
_OUTPUT: Final = ("lk.pii.function_tool.output", "lk.function_tool.output", gen_ai.RESULT)
_ASKED: Final = "lk.response.function_calls"
_SENT: Final = "lk.chat_ctx"


class Livekit(FrameworkDialect):
    """Spans of LiveKit Agents (recorded with 1.3.12 and 1.8.9).

    A trace is a session with its turns. Later versions follow the GenAI conventions as well; earlier ones name the
    agent of the session only, and have what a model asked for in the span `llm_node`.
    """

    markers = Markers(scopes=frozenset({"livekit-agents"}))
    reads = gen_ai.READS | {_LABEL, _ID, _NAME, _FAILED, *_ARGUMENTS, *_OUTPUT, _ASKED, _SENT}
    reads_for_model_calls = frozenset({_SENT})

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        if span.name == "function_tool":
            return Reading(call=_call(span))
        if span.name == "agent_session" and gen_ai.OPERATION not in attributes:
            return Reading(is_agent=True, agent=content.text(attributes.get(_LABEL)))
        return Reading(is_model=True) if _ASKED in attributes else None

    def read_model(self, span: Span) -> ModelReading | None:
        asked = content.decoded(span.attributes.get(_ASKED))
        if not isinstance(asked, list):
            return None
        calls: JSON = [{**each, "type": "function_call"} for each in asked if isinstance(each, dict)]
        return changed(sent_messages.reading(sent=span.attributes.get(_SENT)), requests=messages.requests(calls))

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        if _ASKED not in span.attributes:
            return None
        user, system = model_calls.texts(content.decoded(span.attributes.get(_SENT)))
        return ModelCallReading(user_text=user, system_text=system)


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    result = content.decoded(_first(attributes, _OUTPUT))
    has_failed = content.is_true(attributes.get(_FAILED))
    told = content.named(content.error_type(span), result) if has_failed and isinstance(result, str) else None
    return CallReading(
        name=content.text(attributes.get(_NAME)) or content.text(attributes.get(gen_ai.TOOL_NAME)),
        arguments=content.arguments(_first(attributes, _ARGUMENTS)),
        result=result,
        error=told or content.error(span) or ("error" if has_failed else None),
        error_type=content.error_type(span),
        call_id=content.identifier(content.first(attributes.get(_ID), attributes.get(gen_ai.CALL_ID))),
    )


def _first(attributes: Attributes, keys: tuple[str, ...]) -> AttributeValue:
    return content.first(*(attributes.get(key) for key in keys))
