"""Langfuse's SDKs and callback handlers."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, Markers, ModelReading, Precedence, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _messages as messages
from spanscore.dialects._arguments import from_signature
from spanscore.dialects._tool_message import tool_message
from spanscore.model import Span

_TYPE: Final = "langfuse.observation.type"
_INPUT: Final = "langfuse.observation.input"
_OUTPUT: Final = "langfuse.observation.output"


class Langfuse:
    """Langfuse, Python and JavaScript: `@observe`, the manual API, and the LangChain callback handler.

    The tool's name is the span's. A failure may show in the observation's level alone.
    """

    precedence = Precedence.FRAMEWORK
    markers = Markers(attributes=frozenset({_TYPE}))

    def read(self, span: Span) -> Reading | None:
        kind = span.attributes.get(_TYPE)
        return Reading(
            call=_call(span) if kind == "tool" else None,
            is_model=kind == "generation",
            is_agent=True if kind == "agent" else None,
            agent=span.name if kind == "agent" else None,
        )

    def read_model(self, span: Span) -> ModelReading | None:
        return ModelReading(
            requests=messages.requests(content.decoded(span.attributes.get(_OUTPUT))),
            answers=messages.answers(content.decoded(span.attributes.get(_INPUT))),
        )


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    given = attributes.get(_INPUT)
    message = tool_message(content.decoded(attributes.get(_OUTPUT)))
    return CallReading(
        name=span.name,
        arguments=from_signature(content.arguments(given)),
        sole_argument=content.sole_argument(given),
        result=message.content,
        error=content.error(span) or _level(span) or message.error,
        call_id=content.identifier(attributes.get("langfuse.observation.metadata.tool_call_id")) or message.call_id,
    )


def _level(span: Span) -> str | None:
    if span.attributes.get("langfuse.observation.level") != "ERROR":
        return None
    return content.short(content.text(span.attributes.get("langfuse.observation.status_message")) or "error")
