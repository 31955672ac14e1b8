"""Needlr's agent framework."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, Markers, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_call_reading as model_calls
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import Span

_NAME: Final = "agent.tool.name"
_SEQUENCE: Final = "agent.tool.sequence"


class Needlr(FrameworkDialect):
    """Tool spans of Needlr's agent framework.

    The name is in `agent.tool.name`, the number of the call in `agent.tool.sequence`, a failure in `status`.
    Arguments and results are not recorded.
    """

    markers = Markers(attributes=frozenset({_NAME}))
    reads = content.READS | {_NAME, _SEQUENCE, "status"}

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        failed = "failed" if attributes.get("status") == "failed" else None
        return Reading(
            call=CallReading(
                name=content.text(attributes.get(_NAME)),
                error=content.error(span) or failed,
                error_type=content.error_type(span),
                sequence=model_calls.count(attributes.get(_SEQUENCE)),  # -1, for none, is no count
            )
        )
