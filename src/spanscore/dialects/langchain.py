"""LangChain and LangGraph under OpenInference."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, Markers, ModelReading, Precedence, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import openinference
from spanscore.dialects._tool_message import output_message
from spanscore.model import NOT_RECORDED, Span

_SCOPES: Final = frozenset(
    {"openinference.instrumentation.langchain", "@arizeai/openinference-instrumentation-langchain"}
)


class Langchain:
    """LangChain and LangGraph, Python and JavaScript, under the OpenInference instrumentors.

    A tool with one string argument is written as that bare text, without the argument's name. The call id stands only
    in the serialised ToolMessage of the result.
    """

    precedence = Precedence.FRAMEWORK
    markers = Markers(scopes=_SCOPES)

    def read(self, span: Span) -> Reading | None:
        kind = span.attributes.get(openinference.KIND)
        if kind == "TOOL" or (kind == "AGENT" and openinference.TOOL_NAME in span.attributes):
            return Reading(call=_call(span))
        return _graph(span) if kind == "AGENT" or not span.parent_span_id else None

    def read_model(self, span: Span) -> ModelReading | None:
        return None


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    given = attributes.get(openinference.INPUT)
    arguments = content.arguments(given)
    message = output_message(content.decoded(attributes.get(openinference.OUTPUT)))
    return CallReading(
        name=content.text(attributes.get(openinference.TOOL_NAME)) or span.name,
        arguments=arguments if isinstance(arguments, dict) else NOT_RECORDED,
        sole_argument=None if isinstance(arguments, dict) else content.sole_argument(given),
        result=message.content,
        error=content.error(span) or message.error,
        call_id=message.call_id,
        agent=content.string(content.field(content.decoded(attributes.get("metadata")), "lc_agent_name")),
    )


def _graph(span: Span) -> Reading:
    """Tell a graph, which is an agent's run, from a node of a graph that merely has "agent" in its name."""
    metadata = content.decoded(span.attributes.get("metadata"))
    is_graph = content.field(metadata, "langgraph_node") != span.name
    return Reading(is_agent=is_graph, agent=span.name if is_graph else None)
