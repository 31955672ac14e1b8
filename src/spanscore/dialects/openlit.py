"""OpenLIT."""

from __future__ import annotations

import re
from typing import Final

from spanscore.contracts import CallReading, CallRequest, CaptureSetting, Markers, ModelReading, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import gen_ai
from spanscore.dialects._framework import FrameworkDialect
from spanscore.dialects._literals import printed
from spanscore.dialects._tool_message import tool_message
from spanscore.model import Span, changed

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
_OPENAI_AGENTS: Final = "openlit.instrumentation.openai_agents"
_AGENT_RUN: Final = "invoke_agent"
_RUNS: Final = ("invoke_workflow", _AGENT_RUN)
_OPENAI: Final = "openlit.instrumentation.openai"
_PYDANTIC_AI: Final = "openlit.instrumentation.pydantic_ai"
_DEFERRED: Final = "DeferredToolRequests("
_RESPONSES: Final = "openai.api.type"
_ITEM: Final = "fc_"
"""The beginning of the ids that OpenAI's Responses API gives the items of an answer, beside the ids of the calls."""
_GIVEN: Final = "gen_ai.workflow.input"
_RESUMED: Final = ('"Command(resume=', "Command(resume=")
"""Beginnings of what a graph is given that continues with a person's answer, as Python prints it."""
_RUN_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Openlit(FrameworkDialect):
    """Tool spans of OpenLIT's instrumentations of agent frameworks (recorded with 1.45.0).

    They follow the GenAI conventions, with the arguments as a Python repr, the result as a printed ToolMessage, and
    no exception events. Until a tool returns, the call id is the id of LangChain's run, which is not the model's; a
    failed call keeps it. OpenLIT writes every node of a graph as an agent's run. The agent is the graph, which
    `gen_ai.workflow.name` names. Of the OpenAI Agents SDK it also writes each turn so, without a name; a tool that
    waits for approval has a span without a result, and messages to a model by the Responses API are without calls. Of
    Pydantic AI it writes a tool's span for each step that handles an answer of a model, and none for a call.
    """

    markers = Markers(
        attributes=frozenset({_FAILURE}),
        scopes=frozenset(f"openlit.instrumentation.{name}" for name in _FRAMEWORKS) | {"openlit.otel.tracing", _OPENAI},
    )
    reads = gen_ai.READS | {_FAILURE, "gen_ai.workflow.name", _GIVEN, _RESPONSES}
    capture_settings = (CaptureSetting("OPENLIT_CAPTURE_MESSAGE_CONTENT=true", scopes=("openlit.",)),)

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        if attributes.get(gen_ai.OPERATION) != gen_ai.EXECUTE_TOOL:
            return _around_calls(span)
        if span.scope == _PYDANTIC_AI and gen_ai.TOOL_NAME not in attributes:
            return Reading(not_a_call=True, is_workflow=True)
        given = attributes.get(gen_ai.ARGUMENTS)
        message = tool_message(content.decoded(attributes.get(gen_ai.RESULT)))
        call_id = content.identifier(attributes.get(gen_ai.CALL_ID))
        if call_id is not None and _RUN_ID.fullmatch(call_id) and message.call_id != call_id:
            call_id = message.call_id
        error = _failure(span) or message.error
        may_wait = span.scope == _OPENAI_AGENTS and gen_ai.RESULT not in attributes and error is None
        return Reading(
            call=CallReading(
                name=content.text(attributes.get(gen_ai.TOOL_NAME)),
                arguments=content.arguments(given),
                sole_argument=content.sole_argument(given),
                result=message.content,
                error=error,
                error_type=content.error_type(span),
                call_id=call_id,
                state="uncertain" if may_wait else "made",
            ),
        )

    def read_model(self, span: Span) -> ModelReading | None:
        """Return the requests of an answer by the Responses API, which has the ids of items in place of calls."""
        asked = messages.requests_in(span.attributes.get(gen_ai.OUTPUT)) if _is_of_responses(span) else ()
        if not any((request.call_id or "").startswith(_ITEM) for request in asked):
            return None
        call_id = content.identifier(span.attributes.get(gen_ai.CALL_ID)) if len(asked) == 1 else None
        return ModelReading(requests=tuple(changed(request, call_id=call_id) for request in asked))


def _around_calls(span: Span) -> Reading | None:
    """Return the reading of a span that is no tool's."""
    attributes = span.attributes
    if span.scope == _LANGGRAPH:
        return _graph(span)
    if span.scope == _PYDANTIC_AI:
        return _pydantic_run(span) if span.name.startswith(_AGENT_RUN) else None
    if span.scope == _OPENAI:
        return Reading(leaves_out_calls=_is_of_responses(span))
    if span.scope == _OPENAI_AGENTS and attributes.get(gen_ai.OPERATION) in _RUNS:
        return _agents_run(span)
    resumes = (content.text(attributes.get(_GIVEN)) or "").startswith(_RESUMED)
    return Reading(resumes=True) if resumes else None


def _is_of_responses(span: Span) -> bool:
    return span.scope == _OPENAI and span.attributes.get(_RESPONSES) == "responses"


def _graph(span: Span) -> Reading:
    name = content.text(span.attributes.get("gen_ai.workflow.name"))
    return Reading(is_agent=name is not None, agent=name)


def _pydantic_run(span: Span) -> Reading:
    agent = content.text(span.attributes.get(gen_ai.AGENT))
    output = content.text(span.attributes.get(gen_ai.OUTPUT)) or ""
    return Reading(is_agent=True, agent=agent, waits=_deferred(output), refuses_silently=True)


def _deferred(output: str) -> tuple[CallRequest, ...]:
    """Return the calls that wait by the output of a run of Pydantic AI, which is printed."""
    told = printed(output) if output.startswith(_DEFERRED) else None
    lists = (content.field(told, name) for name in ("calls", "approvals"))
    return tuple(
        CallRequest(name=name, call_id=content.text(content.field(each, "tool_call_id")))
        for parts in lists
        for each in (parts if isinstance(parts, list) else ())
        if (name := content.text(content.field(each, "tool_name")))
    )


def _agents_run(span: Span) -> Reading:
    """Return the reading of a run of the OpenAI Agents SDK, or of a part of it.

    A part without a name is the root only where a run continues: any other run begins with a workflow.
    """
    is_nameless = gen_ai.AGENT not in span.attributes
    is_root = not span.parent_span_id and span.attributes.get(gen_ai.OPERATION) == _AGENT_RUN
    return Reading(is_agent=False if is_nameless else None, resumes=is_nameless and is_root, refuses_silently=True)


def _failure(span: Span) -> str | None:
    told = content.text(span.attributes.get(_FAILURE))
    return content.named(content.error_type(span), told) if told else content.error(span)
