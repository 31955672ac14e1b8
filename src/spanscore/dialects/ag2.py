"""AG2's own spans, where they differ from the GenAI semantic conventions."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, Markers, Reading
from spanscore.dialects import gen_ai
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import Span

_TYPE: Final = "ag2.span.type"


class Ag2(FrameworkDialect):
    """The question to a person within a call of AG2.

    The person allows the call, denies it, or answers the tool's own question: only the result of the call shows which.
    """

    markers = Markers(attributes=frozenset({_TYPE}))
    reads = frozenset({gen_ai.OPERATION, gen_ai.RESULT})

    def read(self, span: Span) -> Reading | None:
        if span.attributes.get(_TYPE) != "human_input":
            return None
        return Reading(call=CallReading(refusal="hidden"), part_of_call=True)
