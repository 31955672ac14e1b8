"""Respan, formerly Keywords AI."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, Markers, ModelReading, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import openllmetry
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import AttributeValue, Recorded, Span

_KIND: Final = "respan.entity.log_type"
_ASKED: Final = "gen_ai.completion.0.tool_calls"


class Respan(FrameworkDialect):
    """Spans of Respan's instrumentations (recorded with 1.1.2 for the OpenAI Agents SDK).

    They have OpenLLMetry's attributes with a kind of their own. Arguments and result of a call are each a message with
    the role `tool`, and the calls that a model asks for are in one attribute. A tool that waits for approval has an
    empty result.
    """

    markers = Markers(attributes=frozenset({_KIND}))
    reads = openllmetry.READS | {_ASKED}

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        kind = attributes.get(_KIND)
        name = content.text(attributes.get(openllmetry.ENTITY_NAME))
        return Reading(
            call=_call(span, name) if kind == "tool" else None,
            is_model=kind == "chat",
            is_agent=True if kind == "agent" else None,
            agent=name if kind == "agent" else None,
            only_if_asked=kind == "tool",
            refuses_silently=True,
        )

    def read_model(self, span: Span) -> ModelReading | None:
        asked = content.reparsed(content.decoded(span.attributes.get(_ASKED)))
        return ModelReading(requests=messages.requests([{"role": "assistant", "tool_calls": asked}]))


def _call(span: Span, name: str | None) -> CallReading:
    attributes = span.attributes
    result = content.decoded(_said(attributes.get(openllmetry.ENTITY_OUTPUT)))
    error = content.error(span)
    return CallReading(
        name=name or span.name.removesuffix(".tool"),
        arguments=content.arguments(_said(attributes.get(openllmetry.ENTITY_INPUT))),
        result=result,
        error=error,
        error_type=content.error_type(span),
        state="uncertain" if result == "" and error is None else "made",
    )


def _said(told: AttributeValue) -> str | None:
    """Return the text of a message, alone or in a list."""
    message: Recorded = content.decoded(told)
    match message:
        case [{"content": str(said)}] | {"content": str(said)}:
            return said
    return None
