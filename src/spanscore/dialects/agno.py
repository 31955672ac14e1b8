"""Agno under OpenInference and under OpenLLMetry."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from spanscore.contracts import CallReading, Markers, ModelReading, Precedence, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import openinference, openllmetry
from spanscore.dialects._literals import literal
from spanscore.model import NOT_RECORDED, Span

_PRINTED: Final = re.compile(r"status='(success|failure)' result=(.*) error=(.*?) updated_session_state=.*", re.DOTALL)


class Agno:
    """Tool spans of Agno, by OpenInference's and OpenLLMetry's instrumentors (recorded with agno 3.1.10).

    OpenInference writes the arguments into `tool.parameters`, where its other instrumentors have the tool's schema.
    OpenLLMetry writes the whole execution as its output, as Pydantic prints it: a failure shows only there, and the
    status is OK.
    """

    precedence = Precedence.FRAMEWORK
    markers = Markers(scopes=frozenset({"openinference.instrumentation.agno", "opentelemetry.instrumentation.agno"}))
    reads = openinference.READS | openllmetry.READS | {"tool.parameters"}

    def read(self, span: Span) -> Reading | None:
        if span.attributes.get(openllmetry.KIND) == "tool":
            return Reading(call=_openllmetry(span))
        if span.attributes.get(openinference.KIND) != "TOOL":
            return None
        call = openinference.call(span)
        if call.arguments is NOT_RECORDED:
            call = replace(call, arguments=content.arguments(span.attributes.get("tool.parameters")))
        return Reading(call=call)

    def read_model(self, span: Span) -> ModelReading | None:
        return None


def _openllmetry(span: Span) -> CallReading:
    call = openllmetry.call(span)
    printed = _PRINTED.fullmatch(content.text(span.attributes.get(openllmetry.ENTITY_OUTPUT)) or "")
    if printed is None:
        return call
    status, result, failure = printed.groups()
    if status == "success":
        value = literal(result)
        return replace(call, result=result if value is NOT_RECORDED else content.reparsed(value))
    told = literal(failure)
    error = content.short(told if isinstance(told, str) else failure)
    return replace(call, result=NOT_RECORDED, error=call.error or error or "error")
