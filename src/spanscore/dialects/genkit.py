"""Genkit."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from spanscore.contracts import CallReading, Markers, ModelReading, Precedence, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _messages as messages
from spanscore.model import Span

_SUBTYPE: Final = "genkit:metadata:subtype"
_NAME: Final = "genkit:name"
_AGENTS: Final = frozenset({"flow", "agent"})
_INPUT: Final = "genkit:input"
_OUTPUT: Final = "genkit:output"


class Genkit:
    """Genkit: actions of subtype `tool`. Call ids stand only in what the model asked for; the flow is the agent."""

    precedence = Precedence.FRAMEWORK
    markers = Markers(attributes=frozenset({_SUBTYPE}))
    reads = content.READS | {_SUBTYPE, _NAME, _INPUT, _OUTPUT, "genkit:state"}

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        subtype = content.text(attributes.get(_SUBTYPE))
        is_agent = subtype in _AGENTS
        return Reading(
            call=_call(span) if subtype == "tool" else None,
            is_model=subtype == "model",
            is_agent=True if is_agent else None,
            agent=content.text(attributes.get(_NAME)) if is_agent else None,
        )

    def read_model(self, span: Span) -> ModelReading | None:
        given = content.decoded(span.attributes.get(_INPUT))
        answer = content.decoded(span.attributes.get(_OUTPUT))
        return ModelReading(
            requests=messages.requests(content.field(answer, "message")),
            answers=messages.answers(content.field(given, "messages")),
            tool_definitions=messages.definitions(content.field(given, "tools")),
        )


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    name = content.text(attributes.get(_NAME)) or span.name
    call = content.call(span, name, attributes.get(_INPUT), attributes.get(_OUTPUT))
    return replace(call, error="error") if call.error is None and attributes.get("genkit:state") == "error" else call
