"""LlamaIndex under OpenInference and under OpenLLMetry."""

from __future__ import annotations

import re
from typing import Final

from spanscore.contracts import CallReading, Markers, ModelCallReading, ModelReading, Precedence, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import gen_ai, openinference, openllmetry
from spanscore.model import Recorded, Span

MAX_AGENT_CHARS: Final = 200
_TOOL_ARGUMENTS: Final = "tool.arguments"
_TOOL_NAME: Final = (openinference.TOOL_NAME, gen_ai.TOOL_NAME)
"""The second is what the Collector's `gen_ai_normalizer` makes of the first."""
_CURRENT_AGENT: Final = re.compile(r"""current_agent_name(?:": |=)["']([^"']+)["'][)}]$""")


class LlamaIndex:
    """Tool spans of LlamaIndex, by OpenInference's and OpenLLMetry's instrumentors (recorded with core 0.14.25).

    OpenInference writes spans of `FunctionTool`, OpenLLMetry spans `*.task` with a tool's name; both have the
    ToolOutput as JSON. A second span of each call by OpenLLMetry, `FunctionTool.task`, is left out. The agent's
    name is at the end of the values that the steps of the workflow pass on.
    """

    precedence = Precedence.FRAMEWORK
    markers = Markers(
        attributes=frozenset({_TOOL_ARGUMENTS}),
        scopes=frozenset({"openinference.instrumentation.llama_index", "opentelemetry.instrumentation.llamaindex"}),
    )
    reads = openinference.READS | openllmetry.READS | {_TOOL_ARGUMENTS, *_TOOL_NAME}
    reads_for_model_calls = frozenset[str]()

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        if attributes.get(openinference.KIND) == "TOOL":
            return Reading(call=_openinference(span))
        if _TOOL_ARGUMENTS in attributes and any(key in attributes for key in _TOOL_NAME):
            return Reading(call=_openllmetry(span))
        agent = _agent(span)
        return Reading(agent=agent) if agent else None

    def read_model(self, span: Span) -> ModelReading | None:
        return None

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        is_part = span.name.endswith("._prepare_chat_with_tools")
        return ModelCallReading(is_request=False) if is_part else None


def _openinference(span: Span) -> CallReading:
    arguments = content.from_signature(content.decoded(span.attributes.get(openinference.INPUT)))
    if isinstance(arguments, dict):  # the workflow's context, handed to tools that ask for it, is no argument
        arguments = {key: value for key, value in arguments.items() if key != "ctx" or not str(value).startswith("<")}
    return _call(span, arguments, content.decoded(span.attributes.get(openinference.OUTPUT)), None)


def _openllmetry(span: Span) -> CallReading:
    done = content.decoded(span.attributes.get(openllmetry.ENTITY_OUTPUT))
    return _call(
        span,
        content.arguments(span.attributes.get(_TOOL_ARGUMENTS)),
        content.field(done, "tool_output"),
        content.text(content.field(done, "tool_id")),
    )


def _call(span: Span, arguments: Recorded, output: Recorded, call_id: str | None) -> CallReading:
    failed = content.field(output, "is_error") is True
    result = content.field(output, "raw_output") if isinstance(output, dict) and "raw_output" in output else output
    return CallReading(
        name=content.first_text(span.attributes, _TOOL_NAME) or span.name,
        arguments=arguments,
        result=result,
        error=content.error(span) or (_failure(output) if failed else None),
        error_type=content.error_type(span),
        call_id=call_id,
    )


def _failure(output: Recorded) -> str:
    """Return the error text that a failed tool returned to the model: its first block of text."""
    match output:
        case {"blocks": [{"text": str(said)}, *_]} | {"content": str(said)}:
            return content.short(said) or "error"
    return "error"


def _agent(span: Span) -> str | None:
    for key in (openllmetry.ENTITY_OUTPUT, openinference.OUTPUT):
        told = content.text(span.attributes.get(key))
        if told and (named := _CURRENT_AGENT.search(told[-MAX_AGENT_CHARS:])):
            return named[1]
    return None
