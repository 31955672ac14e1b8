"""Laminar's SDK."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, Markers, ModelCallReading, ModelReading, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import gen_ai
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import Span, changed

_TYPE: Final = "lmnr.span.type"
_INPUT: Final = "lmnr.span.input"
_OUTPUT: Final = "lmnr.span.output"
_SESSION: Final = "lmnr.association.properties.session_id"
_CALL_ID: Final = "lmnr.association.properties.metadata.tool_call_id"
_UNKNOWN_TOOL: Final = "InvalidToolCall"


class Laminar(FrameworkDialect):
    """Spans of Laminar's SDK, `lmnr` (recorded with 0.8.1).

    `@observe(span_type="TOOL")` writes a call: `lmnr.span.type` is `TOOL`, the span's name is the tool's, the
    arguments are in `lmnr.span.input` and the result is in `lmnr.span.output`. Spans of type `LLM` have the GenAI
    attributes, but no operation name. No span is marked as an agent's.
    OpenHands (recorded with 1.58.2) names the span after the class of the action: the tool's name is in what the model
    asked for.
    """

    markers = Markers(attributes=frozenset({_TYPE}))
    reads = gen_ai.READS | {_INPUT, _OUTPUT, _SESSION, _CALL_ID}
    reads_for_model_calls = gen_ai.READS_FOR_MODEL_CALLS

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        kind = attributes.get(_TYPE)
        return Reading(
            call=_call(span) if kind == "TOOL" else None,
            is_model=kind == "LLM",
            conversation_id=content.text(attributes.get(_SESSION)),
        )

    def read_model(self, span: Span) -> ModelReading | None:
        if span.attributes.get(_TYPE) != "LLM":
            return None
        return gen_ai.GenAi().read_model(span)

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        return gen_ai.model_call(span) if span.attributes.get(_TYPE) == "LLM" else None


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    call = content.call(
        span, span.name, attributes.get(_INPUT), attributes.get(_OUTPUT), content.unquoted(attributes.get(_CALL_ID))
    )
    if call.call_id is None:
        return call
    match call.arguments:
        case {"action": dict(action), **others} if "kind" in action and not others:
            given = {key: value for key, value in action.items() if key != "kind"}
            return changed(call, name=None, arguments=given)
        case {"tool_input": {"name": str(name), "arguments": str(written)}} if span.name == _UNKNOWN_TOOL:
            told = content.field(call.result, "content")
            error = content.text(content.field(told[0], "text")) if isinstance(told, list) and told else None
            return changed(call, name=name, arguments=content.arguments(written), error=call.error or error or "error")
    return call
