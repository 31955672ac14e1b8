"""The function wrappers of OpenInference for JavaScript."""

from __future__ import annotations

from spanscore.contracts import Markers, Reading
from spanscore.dialects import openinference
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import Span


class OpeninferenceCore(FrameworkDialect):
    """Spans of `traceTool` and `traceAgent` of @arizeai/openinference-core.

    The name of a tool or an agent is the span's. A function with several arguments has them as a list in
    `input.value`, without their names.
    """

    markers = Markers(scopes=frozenset({"openinference-core"}))
    reads = openinference.READS

    def read(self, span: Span) -> Reading | None:
        kind = span.attributes.get(openinference.KIND)
        if kind == "AGENT":
            return Reading(is_agent=True, agent=span.name)
        if kind != "TOOL":
            return None
        return Reading(call=openinference.call(span))
