"""Laminar's SDK."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import Markers, ModelCallReading, ModelReading, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import gen_ai
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import Span

_TYPE: Final = "lmnr.span.type"
_INPUT: Final = "lmnr.span.input"
_OUTPUT: Final = "lmnr.span.output"
_SESSION: Final = "lmnr.association.properties.session_id"


class Laminar(FrameworkDialect):
    """Spans of Laminar's SDK, `lmnr` (recorded with 0.8.1).

    `@observe(span_type="TOOL")` writes a call: `lmnr.span.type` is `TOOL`, the span's name is the tool's, the
    arguments are in `lmnr.span.input` and the result is in `lmnr.span.output`. Spans of type `LLM` have the GenAI
    attributes, but no operation name. No span is marked as an agent's.
    """

    markers = Markers(attributes=frozenset({_TYPE}))
    reads = gen_ai.READS | {_INPUT, _OUTPUT, _SESSION}
    reads_for_model_calls = gen_ai.READS_FOR_MODEL_CALLS

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        kind = attributes.get(_TYPE)
        is_tool = kind == "TOOL"
        return Reading(
            call=content.call(span, span.name, attributes.get(_INPUT), attributes.get(_OUTPUT)) if is_tool else None,
            is_model=kind == "LLM",
            conversation_id=content.text(attributes.get(_SESSION)),
        )

    def read_model(self, span: Span) -> ModelReading | None:
        if span.attributes.get(_TYPE) != "LLM":
            return None
        return gen_ai.GenAi().read_model(span)

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        return gen_ai.model_call(span) if span.attributes.get(_TYPE) == "LLM" else None
