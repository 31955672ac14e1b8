"""UiPath's tracing decorator."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import Markers, ModelReading, Reading
from spanscore.dialects import _sent_messages as sent_messages
from spanscore.dialects import openinference
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import Span, changed

_TYPE: Final = "span_type"
_PREFIX: Final = "Tool call - "


class Uipath(FrameworkDialect):
    """UiPath's `@traced`: `tool.name`, `input.value`, `output.value` and `tool.id`.

    The tool's name is the span's, which by UiPath's habit may read `Tool call - name`.
    """

    markers = Markers(attributes=frozenset({_TYPE}), scopes=frozenset({"uipath.core.tracing.decorators"}))
    reads = openinference.READS | {_TYPE}

    def read(self, span: Span) -> Reading | None:
        kind = str(span.attributes.get(_TYPE, "")).lower()
        if kind == "tool" or openinference.TOOL_NAME in span.attributes:
            call = openinference.call(span)
            return Reading(call=changed(call, name=(call.name or span.name).removeprefix(_PREFIX)))
        return Reading(
            is_model=kind == "llm",
            is_agent=True if kind == "agent" else None,
            agent=span.name if kind == "agent" else None,
        )

    def read_model(self, span: Span) -> ModelReading | None:
        return sent_messages.reading(
            span.attributes.get(openinference.OUTPUT), span.attributes.get(openinference.INPUT)
        )
