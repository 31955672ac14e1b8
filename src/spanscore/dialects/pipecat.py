"""Pipecat."""

from __future__ import annotations

import re
from typing import Final

from spanscore.contracts import Markers, ModelCallReading, ModelReading, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_call_reading as model_calls
from spanscore.dialects import _sent_messages as sent_messages
from spanscore.dialects import gen_ai, openinference
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import JSON, Later, Span, changed

_TURNS: Final = "pipecat.turn"
_SERVICES: Final = "pipecat"
_OBSERVED: Final = "openinference.instrumentation.pipecat"
_SENT: Final = "input"
_TOOLS: Final = "tools"
_FAILURE: Final = "frame.error.message"
_UNANSWERED: Final = re.compile(r"The function `[^`]*` failed and returned no result\.")
"""The result that Pipecat gives the model if a tool raises an exception."""


class Pipecat(FrameworkDialect):
    """Spans of Pipecat: its own, and OpenInference's (recorded with pipecat-ai 1.14 and the instrumentor 2.0.9).

    A trace of its own spans is a conversation. No span of it is a call, and the span of a request to a model has only
    the text of the answer: calls are in the messages of the next request, and those that the last answer of a trace
    asks for are not seen. OpenInference writes calls as spans, and a failure into `frame.error.message`.
    """

    markers = Markers(scopes=frozenset({_TURNS, _SERVICES, _OBSERVED}))
    reads = gen_ai.READS | openinference.READS | {_SENT, _TOOLS, _FAILURE}
    reads_for_model_calls = frozenset({_SENT})

    def read(self, span: Span) -> Reading | None:
        if span.scope == _TURNS:
            return Reading(is_agent=span.name == "conversation")
        told = content.text(span.attributes.get(_FAILURE))
        if span.scope != _OBSERVED or told is None or span.attributes.get(openinference.KIND) != "TOOL":
            return None
        kind = content.error_type(span) or _kind(told)
        return Reading(call=changed(openinference.call(span), error=content.named(kind, told), error_type=kind))

    def read_model(self, span: Span) -> ModelReading | None:
        if span.scope != _SERVICES:
            return None
        sent = span.attributes.get(_SENT)
        told = sent_messages.reading(sent=sent, tools=span.attributes.get(_TOOLS))
        return changed(told, leaves_out_requests=True, failures=Later(lambda: _failures(told)))

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        if span.scope != _SERVICES:
            return None
        user, system = model_calls.texts(content.decoded(span.attributes.get(_SENT)))
        return ModelCallReading(user_text=user, system_text=system)


def _failures(told: ModelReading) -> dict[str, JSON]:
    texts = {call_id: result for call_id, result in told.answers.items() if isinstance(result, str)}
    return {call_id: content.short(text) for call_id, text in texts.items() if _UNANSWERED.fullmatch(text)}


def _kind(told: str) -> str | None:
    kind, colon, _ = told.partition(": ")
    return kind if colon and kind.isidentifier() else None
