"""Agno under OpenInference."""

from __future__ import annotations

from dataclasses import replace

from spanscore.contracts import Markers, ModelReading, Precedence, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import openinference
from spanscore.model import NOT_RECORDED, Span


class Agno:
    """Agno: `tool.parameters` holds the arguments of the call, where other instrumentors hold the tool's schema."""

    precedence = Precedence.FRAMEWORK
    markers = Markers(scopes=frozenset({"openinference.instrumentation.agno"}))
    reads = openinference.READS | {"tool.parameters"}

    def read(self, span: Span) -> Reading | None:
        if span.attributes.get(openinference.KIND) != "TOOL":
            return None
        call = openinference.call(span)
        if call.arguments is NOT_RECORDED:
            call = replace(call, arguments=content.arguments(span.attributes.get("tool.parameters")))
        return Reading(call=call)

    def read_model(self, span: Span) -> ModelReading | None:
        return None
