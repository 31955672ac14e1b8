"""OpenLIT."""

from __future__ import annotations

import re
from typing import Final

from spanscore.contracts import CallReading, CaptureSetting, Markers, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import gen_ai
from spanscore.dialects._framework import FrameworkDialect
from spanscore.dialects._tool_message import tool_message
from spanscore.model import Span

_FAILURE: Final = "gen_ai.framework.error.message"
_FRAMEWORKS: Final = (
    "ag2",
    "agent_framework",
    "agno",
    "claude_agent_sdk",
    "crewai",
    "google_adk",
    "haystack",
    "langchain",
    "langgraph",
    "letta",
    "llamaindex",
    "openai_agents",
    "pydantic_ai",
    "smolagents",
    "strands",
)
_LANGGRAPH: Final = "openlit.instrumentation.langgraph"
_GIVEN: Final = "gen_ai.workflow.input"
_RESUMED: Final = ('"Command(resume=', "Command(resume=")
"""Beginnings of what a graph is given that continues with a person's answer, as Python prints it."""
_RUN_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Openlit(FrameworkDialect):
    """Tool spans of OpenLIT's instrumentations of agent frameworks (recorded with 1.45.0).

    They follow the GenAI conventions, with the arguments as a Python repr, the result as a printed ToolMessage, and
    no exception events. Until a tool returns, the call id is the id of LangChain's run, which is not the model's; a
    failed call keeps it. OpenLIT writes every node of a graph as an agent's run. The agent is the graph, which
    `gen_ai.workflow.name` names.
    """

    markers = Markers(
        attributes=frozenset({_FAILURE}),
        scopes=frozenset(f"openlit.instrumentation.{name}" for name in _FRAMEWORKS) | {"openlit.otel.tracing"},
    )
    reads = gen_ai.READS | {_FAILURE, "gen_ai.workflow.name", _GIVEN}
    capture_settings = (CaptureSetting("OPENLIT_CAPTURE_MESSAGE_CONTENT=true", scopes=("openlit.",)),)

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        if attributes.get(gen_ai.OPERATION) != gen_ai.EXECUTE_TOOL:
            if span.scope == _LANGGRAPH:
                return _graph(span)
            resumes = (content.text(attributes.get(_GIVEN)) or "").startswith(_RESUMED)
            return Reading(resumes=True) if resumes else None
        given = attributes.get(gen_ai.ARGUMENTS)
        message = tool_message(content.decoded(attributes.get(gen_ai.RESULT)))
        call_id = content.identifier(attributes.get(gen_ai.CALL_ID))
        if call_id is not None and _RUN_ID.fullmatch(call_id) and message.call_id != call_id:
            call_id = message.call_id
        return Reading(
            call=CallReading(
                name=content.text(attributes.get(gen_ai.TOOL_NAME)),
                arguments=content.arguments(given),
                sole_argument=content.sole_argument(given),
                result=message.content,
                error=_failure(span) or message.error,
                error_type=content.error_type(span),
                call_id=call_id,
            )
        )


def _graph(span: Span) -> Reading:
    name = content.text(span.attributes.get("gen_ai.workflow.name"))
    return Reading(is_agent=name is not None, agent=name)


def _failure(span: Span) -> str | None:
    told = content.text(span.attributes.get(_FAILURE))
    return content.named(content.error_type(span), told) if told else content.error(span)
