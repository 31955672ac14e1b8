"""DSPy under OpenInference."""

from __future__ import annotations

from spanscore.contracts import Markers, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import openinference
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import Span, changed


class Dspy(FrameworkDialect):
    """Tool spans of DSPy, by OpenInference's instrumentor (recorded with 0.1.48).

    The tool's name is only in the name of the span, as `name.__call__`; the arguments are in `input.value`.
    """

    markers = Markers(scopes=frozenset({"openinference.instrumentation.dspy"}))
    reads = openinference.READS

    def read(self, span: Span) -> Reading | None:
        if span.attributes.get(openinference.KIND) != "TOOL":
            return None
        call = openinference.call(span)
        return Reading(
            call=changed(
                call,
                name=span.name.removesuffix(".__call__"),
                arguments=content.from_signature(content.decoded(span.attributes.get(openinference.INPUT))),
            )
        )
