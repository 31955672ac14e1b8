"""OpenLLMetry, the conventions of Traceloop's SDK and instrumentors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from spanscore.contracts import (
    CallReading,
    CaptureSetting,
    Markers,
    ModelCallReading,
    ModelReading,
    Precedence,
    Reading,
    SentMessage,
)
from spanscore.dialects import _content as content
from spanscore.dialects import _finish_reasons as finish_reasons
from spanscore.dialects import _model_call_reading as model_calls
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import _numbered as numbered
from spanscore.dialects import _sent_messages as sent_messages
from spanscore.dialects import gen_ai
from spanscore.model import JSON, NOT_RECORDED, Later, LaterList, Span, changed

KIND: Final = "traceloop.span.kind"
ENTITY_NAME: Final = "traceloop.entity.name"
ENTITY_INPUT: Final = "traceloop.entity.input"
ENTITY_OUTPUT: Final = "traceloop.entity.output"

_CONVERSATION: Final = tuple(
    f"traceloop.association.properties.{key}" for key in ("session_id", "conversation_id", "thread_id")
)
_COMPLETION: Final = "gen_ai.completion."
_PROMPT: Final = "gen_ai.prompt."
_FUNCTIONS: Final = "llm.request.functions."
_TOOL_CALL: Final = re.compile(r"gen_ai\.completion\.(\d+)\.tool_calls\.(\d+)\.(\w+)")
_FUNCTION_CALL: Final = re.compile(r"gen_ai\.completion\.(\d+)\.function_call\.(\w+)")
_FIELD: Final = re.compile(r"gen_ai\.prompt\.(\d+)\.(.+)")
_TOOL: Final = re.compile(r"llm\.request\.functions\.(\d+)\.(name|parameters)")
_REQUEST_TYPE: Final = "llm.request.type"
_FIRST_ROLE: Final = "gen_ai.completion.0.role"
_FINISH_REASONS: Final = (f"{_COMPLETION}0.finish_reason", *finish_reasons.READS)
_MODEL_TYPES: Final = frozenset({"chat", "completion"})

READS: Final = frozenset(
    {KIND, ENTITY_NAME, ENTITY_INPUT, ENTITY_OUTPUT, *_CONVERSATION, _REQUEST_TYPE, "gen_ai.tool.name", *content.READS}
    | {f"{_COMPLETION}*", f"{_PROMPT}*", f"{_FUNCTIONS}*", *_FINISH_REASONS}
)
"""The attributes that the conventions define and a dialect may look at."""

_TEXT: Final = re.compile(r"gen_ai\.prompt\.(\d+)\.(role|content)")


class Openllmetry:
    """Traceloop's decorators and instrumentors, Python and JavaScript, and LiteLLM's callback.

    `@tool` writes its arguments as `{"args": [...], "kwargs": {...}}`.
    """

    precedence = Precedence.CONVENTION
    markers = Markers(
        attributes=frozenset({KIND, _REQUEST_TYPE, _FIRST_ROLE}),
    )
    reads = READS
    reads_for_model_calls = gen_ai.READS_FOR_MODEL_CALLS | {f"{_PROMPT}*"}
    capture_settings = (
        CaptureSetting(
            "TRACELOOP_TRACE_CONTENT=true", scopes=("opentelemetry.instrumentation.", "@traceloop/", "traceloop.")
        ),
    )

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        kind = attributes.get(KIND)
        name = content.text(attributes.get(ENTITY_NAME))
        return Reading(
            call=call(span) if kind == "tool" else None,
            is_model=_is_model(span),
            is_agent=True if kind == "agent" else None,
            agent=name if kind == "agent" else None,
            conversation_id=content.first_text(attributes, _CONVERSATION),
        )

    def read_model(self, span: Span) -> ModelReading | None:
        sent = LaterList(lambda: _history(span))
        return ModelReading(
            requests=numbered.requests(span.attributes, _COMPLETION, _TOOL_CALL)
            or numbered.requests(span.attributes, _COMPLETION, _FUNCTION_CALL)
            or messages.requests_in(span.attributes.get(ENTITY_OUTPUT)),
            asks=finish_reasons.asks(span.attributes, _FINISH_REASONS),
            answers=Later(lambda: _answers(sent)),
            failures=Later(lambda: _failures(sent)),
            history=sent,
            tool_definitions=Later(lambda: _definitions(span)),
        )

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        if not _is_model(span):
            return None
        # Later versions write the messages as the semantic conventions do.
        user, system = model_calls.numbered_texts(span.attributes, _PROMPT, _TEXT)
        reading = gen_ai.model_call(span)
        return changed(reading, user_text=reading.user_text or user, system_text=reading.system_text or system)


def _is_model(span: Span) -> bool:
    return content.text(span.attributes.get(_REQUEST_TYPE)) in _MODEL_TYPES or _FIRST_ROLE in span.attributes


def call(span: Span) -> CallReading:
    """Return the call that a tool's span stands for."""
    attributes = span.attributes
    return CallReading(
        name=content.first_text(attributes, ("gen_ai.tool.name", ENTITY_NAME)) or span.name.removesuffix(".tool"),
        arguments=content.from_signature(content.decoded(attributes.get(ENTITY_INPUT))),
        result=content.decoded(attributes.get(ENTITY_OUTPUT)),
        error=content.error(span),
        error_type=content.error_type(span),
    )


def _history(span: Span) -> Sequence[SentMessage]:
    """Return the messages that earlier versions spread over numbered attributes."""
    return sent_messages.numbered_history(span.attributes, _PROMPT, _FIELD)


def _answers(sent: Iterable[SentMessage]) -> dict[str, JSON]:
    return {
        answer.call_id: answer.result
        for message in sent
        for answer in message.answers
        if answer.call_id and answer.result is not NOT_RECORDED
    }


def _failures(sent: Iterable[SentMessage]) -> dict[str, JSON]:
    return {
        answer.call_id: answer.error
        for message in sent
        for answer in message.answers
        if answer.call_id and answer.error
    }


def _definitions(span: Span) -> dict[str, JSON]:
    return {
        name: schema if isinstance(schema := content.decoded(tool.get("parameters")), dict) else None
        for tool in numbered.numbered(span.attributes, _FUNCTIONS, _TOOL)
        if (name := content.text(tool.get("name")))
    }
