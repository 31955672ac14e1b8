"""AgentOps."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, CallRequest, Markers, ModelReading, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import crewai, openllmetry
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import NOT_RECORDED, Span

_KIND: Final = "agentops.span.kind"
_ASKED: Final = "AgentOpsSpanKindValues.TOOL"
"""The kind of a span for each call that a model asks for, below the span of the model."""
_USAGE: Final = "tool.usage"
"""The kind of a tool's span in CrewAI."""
_DECORATED: Final = "operation.name"
_AGENTS: Final = ("agent.name", _DECORATED, "agent.recipient", "agent.role")
_NAME: Final = "tool.name"
_STATUS: Final = "tool.status"
_ARGUMENTS: Final = ("tool.parameters", "agentops.tool.input")
_RESULT: Final = ("tool.result", "agentops.tool.output")
_ID: Final = ("tool.id", "tool.call.id")


class Agentops(FrameworkDialect):
    """Spans of AgentOps: its decorators, and its instrumentors of OpenAI's Agents SDK, AG2 and CrewAI (with 0.4.21).

    A call has the `agentops.span.kind` `tool`. `@tool` writes its arguments as `{"args": [...], "kwargs": {...}}`. In
    AG2 the name of a tool is only in its result, and the arguments are in a span below that of the model.
    """

    markers = Markers(attributes=frozenset({_KIND}))
    reads = openllmetry.READS | {_NAME, _STATUS, *_ID, *_AGENTS, *_ARGUMENTS, *_RESULT}

    def read(self, span: Span) -> Reading | None:
        kind = content.text(span.attributes.get(_KIND))
        return Reading(
            call=_call(span) if kind in {"tool", _USAGE} else None,
            is_model=kind in {"llm", _ASKED},
            is_agent=True if kind == "agent" else None,
            agent=content.first_text(span.attributes, _AGENTS) if kind == "agent" else None,
        )

    def read_model(self, span: Span) -> ModelReading | None:
        kind = span.attributes.get(_KIND)
        name = content.text(span.attributes.get(_NAME))
        if kind == _ASKED and name is not None:
            given = content.arguments(content.first_text(span.attributes, _ARGUMENTS))
            return ModelReading(
                requests=(CallRequest(name=name, arguments=given, call_id=content.first_text(span.attributes, _ID)),)
            )
        return openllmetry.Openllmetry().read_model(span) if kind == "llm" else None


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    name = content.text(attributes.get(_NAME)) or content.text(attributes.get(_DECORATED))
    result = content.decoded(content.first(*map(attributes.get, _RESULT)))
    match result:
        case {"name": str(named), "role": "function", "content": returned, **others} if not others:
            name, result = named, content.decoded(returned)
    failure = None
    if attributes.get(_KIND) == _USAGE:
        result, failure = crewai.told_to_model(content.first_text(attributes, _RESULT))
    if failure is None and content.text(attributes.get(_STATUS)) in {"error", "failed"}:
        failure = content.short("" if result is NOT_RECORDED else str(result)) or "error"
    return CallReading(
        name=name or span.name.removesuffix(".tool"),
        arguments=content.from_signature(content.arguments(content.first_text(attributes, _ARGUMENTS))),
        result=result,
        error=content.error(span) or failure,
        error_type=content.error_type(span),
        call_id=content.first_text(attributes, _ID),
    )
