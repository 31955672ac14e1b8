"""LangChain and LangGraph under OpenLLMetry."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, Markers, ModelReading, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import _sent_messages as sent_messages
from spanscore.dialects import gen_ai, openllmetry
from spanscore.dialects._framework import FrameworkDialect
from spanscore.dialects._langgraph import INTEGRATION, continues, stops_before_tools
from spanscore.dialects._tool_message import output_message
from spanscore.model import JSON, NOT_RECORDED, Recorded, Span, changed

_JAVASCRIPT: Final = "@traceloop/instrumentation-langchain"
_PYTHON: Final = "opentelemetry.instrumentation.langchain"
_SCOPES: Final = frozenset({_PYTHON, _JAVASCRIPT})
_CLASS_NAMES: Final = frozenset({"DynamicStructuredTool", "DynamicTool", "StructuredTool", "Tool"})
_AGENT: Final = "traceloop.association.properties.lc_agent_name"
_INTEGRATION: Final = f"traceloop.association.properties.{INTEGRATION}"


class LangchainOpenllmetry(FrameworkDialect):
    """Tool spans of LangChain and LangGraph, Python and JavaScript, by Traceloop's instrumentors.

    Recorded with 0.47.5 and 0.62.4 (Python), and 0.27.0 (JavaScript). The arguments are in
    `traceloop.entity.input`: Python wraps them as `{"input_str", "inputs", "kwargs": {"tool_call_id"}}`, JavaScript
    writes a list with JSON text. In JavaScript the tool's name may be its class: the real name is then only in the
    result, and the model's requests and the calls in its messages are in the spans of the graph's steps, not in the
    model's.
    """

    markers = Markers(scopes=_SCOPES)
    reads = gen_ai.READS | openllmetry.READS | {_AGENT, _INTEGRATION, "traceloop.workflow.name"}

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        if attributes.get(gen_ai.OPERATION) != gen_ai.EXECUTE_TOOL and attributes.get(openllmetry.KIND) != "tool":
            run = _graph(span)
            integration = content.text(attributes.get(_INTEGRATION)) if run else None
            if continues(span, openllmetry.ENTITY_INPUT, integration):
                return changed(run or Reading(), resumes=True)
            return run or (Reading(is_model=True) if _answer(span) else None)
        given = content.decoded(content.first_text(attributes, (openllmetry.ENTITY_INPUT, gen_ai.ARGUMENTS)))
        message = output_message(
            content.decoded(content.first_text(attributes, (openllmetry.ENTITY_OUTPUT, gen_ai.RESULT)))
        )
        agent = content.text(attributes.get(_AGENT))
        return Reading(
            only_if_asked=agent is not None,
            call=CallReading(
                name=_name(span, message.name),
                arguments=_arguments(given),
                sole_argument=_sole_argument(given),
                result=message.content,
                error=content.error(span) or message.error,
                error_type=content.error_type(span),
                agent=agent,
                call_id=content.text(content.field(given, "kwargs", "tool_call_id")) or message.call_id,
            ),
        )

    def read_model(self, span: Span) -> ModelReading | None:
        answer = _answer(span)
        if not answer:
            return None
        sent = sent_messages.reading(sent=span.attributes.get(openllmetry.ENTITY_INPUT))
        return changed(sent, requests=messages.requests(answer))


def _graph(span: Span) -> Reading | None:
    """Return the reading of a run of a graph, which earlier versions do not mark as an agent's."""
    attributes = span.attributes
    name = content.text(attributes.get(openllmetry.ENTITY_NAME))
    is_named = name is not None and name == attributes.get(_AGENT)
    if span.scope != _PYTHON or not (is_named or attributes.get(openllmetry.KIND) == "workflow"):
        return None
    stops = stops_before_tools(content.text(attributes.get(_INTEGRATION)), attributes.get(openllmetry.ENTITY_OUTPUT))
    return Reading(is_agent=True, agent=name, ends_asking=stops)


def _answer(span: Span) -> list[JSON]:
    """Return the messages that a step of a graph added to its state if all are the model's.

    A step behind the model repeats its message when a person has decided about it: that is none of its answers.
    """
    attributes = span.attributes
    if span.scope != _JAVASCRIPT or attributes.get("traceloop.workflow.name") != "RunnableSequence":
        return []
    given = content.text(attributes.get(openllmetry.ENTITY_INPUT)) or ""
    match content.decoded(attributes.get(openllmetry.ENTITY_OUTPUT)):
        case {"output": [{"update": {"messages": list(added)}}]} | {"messages": list(added)}:
            if all(_is_of_the_model(message) and not _is_in(message, given) for message in added):
                return added
    return []


def _is_in(message: JSON, given: str) -> bool:
    told = content.text(content.field(message, "kwargs", "id"))
    return told is not None and (f'"id":"{told}"' in given or f'"id": "{told}"' in given)


def _is_of_the_model(message: JSON) -> bool:
    match message:
        case {"lc": 1, "id": [*_, "AIMessage" | "AIMessageChunk"]}:
            return True
    return False


def _name(span: Span, told: str | None) -> str | None:
    attributes = span.attributes
    name = content.text(attributes.get(gen_ai.TOOL_NAME)) or content.text(attributes.get(openllmetry.ENTITY_NAME))
    if name is None or name in _CLASS_NAMES:
        return told
    return name


def _arguments(given: Recorded) -> Recorded:
    match given:
        case {"inputs": dict(inputs)}:
            return inputs
        case {"args": [only]}:
            return content.arguments(only)
        case {"input_str": str(printed)}:
            return content.arguments(printed)
    return NOT_RECORDED


def _sole_argument(given: Recorded) -> str | None:
    match given:
        case {"args": [str(only)]}:
            return content.sole_argument(only)
    return None
