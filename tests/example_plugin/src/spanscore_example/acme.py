"""The spans of the Acme agent framework, which is made up."""

from __future__ import annotations

import json

from spanscore.contracts import CallReading, Markers, ModelReading, Precedence, Reading
from spanscore.model import NOT_RECORDED, Recorded, Span

TOOL = "acme.tool"
ARGUMENTS = "acme.arguments"


class Acme:
    """Acme agents, which do not exist."""

    precedence = Precedence.FRAMEWORK
    markers = Markers(attributes=frozenset({TOOL}))
    reads = frozenset({TOOL, ARGUMENTS})

    def read(self, span: Span) -> Reading | None:
        """Read a tool call; nothing else is in such spans."""
        name = span.attributes.get(TOOL)
        if not isinstance(name, str):
            return None
        return Reading(call=CallReading(name=name, arguments=_arguments(span)))

    def read_model(self, span: Span) -> ModelReading | None:
        """Read nothing: Acme does not tell what the model asked for."""
        del span
        return None


def _arguments(span: Span) -> Recorded:
    text = span.attributes.get(ARGUMENTS)
    try:
        arguments: Recorded = json.loads(text) if isinstance(text, str) else NOT_RECORDED
    except (ValueError, RecursionError):
        return NOT_RECORDED
    return arguments
