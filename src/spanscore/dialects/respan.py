"""Respan, formerly Keywords AI."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, Markers, ModelReading, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import _sent_messages as sent_messages
from spanscore.dialects import gen_ai, openinference, openllmetry
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import AttributeValue, Span, changed

_KIND: Final = "respan.entity.log_type"
_ASKED: Final = "gen_ai.completion.0.tool_calls"
_OTHERS: Final = frozenset({openllmetry.KIND, openinference.KIND, gen_ai.OPERATION})
"""The attributes that mark tools in the conventions."""


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
            call=_call(span) if kind == "tool" else None,
            is_model=kind == "chat",
            is_agent=True if kind == "agent" else None,
            agent=name if kind == "agent" else None,
            only_if_asked=kind == "tool",
            refuses_silently=True,
        )

    def read_model(self, span: Span) -> ModelReading | None:
        asked = content.reparsed(content.decoded(span.attributes.get(_ASKED)))
        reading = sent_messages.reading(sent=span.attributes.get(openllmetry.ENTITY_INPUT))
        return changed(reading, requests=messages.requests([{"role": "assistant", "tool_calls": asked}]))


def _call(span: Span) -> CallReading | None:
    """Return the call, None if another dialect reads it: decorated functions and other frameworks have no messages."""
    given, answer = (_said(span.attributes.get(key)) for key in (openllmetry.ENTITY_INPUT, openllmetry.ENTITY_OUTPUT))
    call = openllmetry.call(span)
    match call.arguments:
        case {"name": call.name, "arguments": dict(named), **others} if not others:
            return changed(call, arguments=named)
    if given is None and answer is None:
        return None if _OTHERS.intersection(span.attributes) else call
    return changed(
        call,
        arguments=call.arguments if given is None else content.arguments(given),
        result=call.result if answer is None else content.decoded(answer),
        state="uncertain" if answer == "" and call.error is None else "made",
    )


def _said(told: AttributeValue) -> str | None:
    """Return the text of a tool's message, alone or in a list."""
    match content.decoded(told):
        case [{"role": "tool", "content": str(said)}] | {"role": "tool", "content": str(said)}:
            return said
    return None
