"""VoltAgent."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, Markers, ModelReading, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _finish_reasons as finish_reasons
from spanscore.dialects import gen_ai
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import Span

_ENTITY: Final = "entity.type"
_RUN: Final = "operation.id"
_FINISH_REASON: Final = "llm.finish_reason"
_AGENT: Final = "entity.name"
_SUBAGENT: Final = "subagent.name"
_TOOL_NAME: Final = ("tool.name", gen_ai.TOOL_NAME)
"""The second is what the Collector's `gen_ai_normalizer` makes of the first."""


class Voltagent(FrameworkDialect):
    """Tool spans of VoltAgent (recorded with @voltagent/core 2.10.0).

    A call has the `span.type` `tool`, the name in `tool.name`, the arguments in `input` and the result in `output`;
    `tool.parameters` is the tool's schema. The application chooses the name of the scope.
    """

    markers = Markers(attributes=frozenset({_ENTITY}))
    reads = content.READS.union(
        {
            _ENTITY,
            _RUN,
            _AGENT,
            _SUBAGENT,
            _FINISH_REASON,
            "span.type",
            *_TOOL_NAME,
            "conversation.id",
            "input",
            "output",
            "tool.call.id",
        }
    )

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        if _RUN not in attributes:
            return None
        kind = attributes.get("span.type")
        is_agent = kind is None and attributes.get(_ENTITY) == "agent"
        return Reading(
            call=_call(span) if kind == "tool" and any(key in attributes for key in _TOOL_NAME) else None,
            is_model=kind == "llm",
            is_agent=is_agent or None,
            agent=content.first_text(attributes, (_SUBAGENT, _AGENT)),
            conversation_id=content.text(attributes.get("conversation.id")),
        )

    def read_model(self, span: Span) -> ModelReading | None:
        return ModelReading(asks=finish_reasons.asks(span.attributes, (_FINISH_REASON,)))


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    name = content.first_text(attributes, _TOOL_NAME)
    return content.call(span, name, attributes.get("input"), attributes.get("output"), attributes.get("tool.call.id"))
