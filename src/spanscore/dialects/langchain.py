"""LangChain and LangGraph under OpenInference."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, Markers, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import openinference
from spanscore.dialects._framework import FrameworkDialect
from spanscore.dialects._langgraph import INTEGRATION, continues, graph, metadata, stops_before_tools
from spanscore.dialects._tool_message import output_message
from spanscore.model import NOT_RECORDED, Span, StatusCode

_PYTHON: Final = "openinference.instrumentation.langchain"
_SCOPES: Final = frozenset({_PYTHON, "@arizeai/openinference-instrumentation-langchain"})
_AGENT: Final = "lc_agent_name"
_NODE: Final = "langgraph_node"


class Langchain(FrameworkDialect):
    """Spans of LangChain and LangGraph, Python and JavaScript, by OpenInference's instrumentors.

    A tool with one string argument has it as bare text in `input.value`, without the argument's name; Python writes
    nothing if there are no arguments. The call id is only in the ToolMessage of the result, in `output.value`.
    """

    markers = Markers(scopes=_SCOPES)
    reads = openinference.READS | {"metadata"}

    def read(self, span: Span) -> Reading | None:
        kind = span.attributes.get(openinference.KIND)
        if kind == "TOOL" or (kind == "AGENT" and openinference.TOOL_NAME in span.attributes):
            call = _call(span)
            return Reading(call=call, only_if_asked=call.agent is not None)
        if kind == "LLM":
            return None
        node, agent = metadata(span, _NODE), metadata(span, _AGENT)
        run = graph(span.name, node, agent, is_marked=kind == "AGENT" or not span.parent_span_id)
        made_by = metadata(span, INTEGRATION) if run.is_agent else None
        return Reading(
            is_agent=run.is_agent,
            agent=run.agent,
            resumes=continues(span, openinference.INPUT, made_by),
            ends_asking=stops_before_tools(made_by, span.attributes.get(openinference.OUTPUT)),
        )


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    given = attributes.get(openinference.INPUT)
    arguments = content.arguments("{}" if _is_without_arguments(span) else given)
    message = output_message(content.decoded(attributes.get(openinference.OUTPUT)))
    return CallReading(
        name=content.text(attributes.get(openinference.TOOL_NAME)) or span.name,
        arguments=arguments if isinstance(arguments, dict) else NOT_RECORDED,
        sole_argument=content.sole_argument(given) if arguments is NOT_RECORDED else content.text(given),
        result=message.content,
        error=content.error(span) or message.error,
        error_type=content.error_type(span),
        call_id=message.call_id,
        agent=metadata(span, _AGENT),
    )


def _is_without_arguments(span: Span) -> bool:
    attributes = span.attributes
    is_told = openinference.OUTPUT in attributes or span.status_code == StatusCode.ERROR
    return span.scope == _PYTHON and is_told and openinference.INPUT not in attributes and not span.dropped_attributes
