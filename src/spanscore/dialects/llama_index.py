"""LlamaIndex under OpenInference, OpenLLMetry, and OpenTelemetry's own instrumentation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from spanscore.contracts import CallReading, CallRequest, Markers, ModelCallReading, ModelReading, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import gen_ai, openinference, openllmetry
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import Recorded, Span, changed

MAX_AGENT_CHARS: Final = 200
_TOOL_ARGUMENTS: Final = "tool.arguments"
_TOOL_NAME: Final = (openinference.TOOL_NAME, gen_ai.TOOL_NAME)
"""The second is what the Collector's `gen_ai_normalizer` makes of the first."""
CURRENT_AGENT: Final = re.compile(r"""current_agent_name(?:": |=)["']([^"']+)["'][)}](?:"})?$""")
STEP: Final = ".run_agent_step"
"""The end of the name of the step of a workflow in which an agent asks its model."""
_ANSWERED: Final = '{"response": {'
"""The beginning of the result of such a step, under OpenLLMetry."""
_OPENTELEMETRY: Final = "opentelemetry.instrumentation.genai.llama_index"
_CONTINUES: Final = re.compile(r'\{"init_state":\s*\{"is_running":\s*true\b')
"""The beginning of what a workflow is given, under OpenInference, if it continues with a saved context."""
_INNER_TOOL: Final = "FunctionTool.task"


class LlamaIndex(FrameworkDialect):
    """LlamaIndex, by the instrumentors of OpenInference, OpenLLMetry and OpenTelemetry (recorded with core 0.14.25).

    OpenInference writes spans of `FunctionTool`, OpenLLMetry spans `*.task` with a tool's name; both have the
    ToolOutput as JSON. OpenLLMetry writes a second span of each call, `FunctionTool.task`; without both, the tool
    waits for a person's event. The agent's name is at the end of the values that the steps of the workflow pass on.
    A step in which an agent asks its model is beside the steps that call the tools. Under OpenInference a workflow that
    continues with a saved context is given that it runs. OpenTelemetry follows the GenAI
    conventions: an agent whose own answer asks for calls has stopped at them.
    """

    markers = Markers(
        attributes=frozenset({_TOOL_ARGUMENTS}),
        scopes=frozenset(
            {"openinference.instrumentation.llama_index", "opentelemetry.instrumentation.llamaindex", _OPENTELEMETRY}
        ),
    )
    reads = gen_ai.READS | openinference.READS | openllmetry.READS | {_TOOL_ARGUMENTS, *_TOOL_NAME}
    reads_for_model_calls = frozenset[str]()

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        if span.scope == _OPENTELEMETRY:
            return _opentelemetry(span)
        if attributes.get(openinference.KIND) == "TOOL":
            # Agents await their tools; an application that calls one by itself seldom does.
            return Reading(call=_openinference(span), only_if_asked=span.name.endswith(".acall"))
        if _TOOL_ARGUMENTS in attributes and any(key in attributes for key in _TOOL_NAME):
            return Reading(call=_openllmetry(span), only_if_asked=True)
        if span.name == _INNER_TOOL:
            return Reading(call=CallReading(), part_of_call=True)
        agent, is_step = _agent(span), _is_step(span)
        given = None if span.parent_span_id else content.text(attributes.get(openinference.INPUT))
        continues = given is not None and _CONTINUES.match(given) is not None
        return Reading(agent=agent, is_model=is_step, resumes=continues) if agent or is_step or continues else None

    def read_model(self, span: Span) -> ModelReading | None:
        return ModelReading(requests=tuple(_requests(span))) if _is_step(span) else None

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        is_part = span.name.endswith("._prepare_chat_with_tools") or _is_step(span)
        return ModelCallReading(is_request=False) if is_part else None


def _opentelemetry(span: Span) -> Reading:
    operation, said = span.attributes.get(gen_ai.OPERATION), span.attributes.get(gen_ai.OUTPUT)
    return Reading(
        waits=messages.requests_in(said) if operation == "invoke_agent" else (),
        # A workflow that continues is given no messages.
        resumes=operation == "invoke_workflow" and said is not None and gen_ai.INPUT not in span.attributes,
    )


def _is_step(span: Span) -> bool:
    """Return whether an agent asks its model in a step. OpenLLMetry names all steps alike: its result shows it."""
    answered = span.attributes.get(openllmetry.ENTITY_OUTPUT)
    return span.name.endswith(STEP) or (isinstance(answered, str) and answered.startswith(_ANSWERED))


def _requests(span: Span) -> Iterator[CallRequest]:
    asked = content.field(content.decoded(span.attributes.get(openllmetry.ENTITY_OUTPUT)), "tool_calls")
    for call in asked if isinstance(asked, list) else ():
        if name := content.text(content.field(call, "tool_name")):
            yield CallRequest(
                name=name,
                arguments=content.field(call, "tool_kwargs"),
                call_id=content.text(content.field(call, "tool_id")),
            )


def _openinference(span: Span) -> CallReading:
    arguments = content.from_signature(content.decoded(span.attributes.get(openinference.INPUT)))
    if isinstance(arguments, dict):  # the workflow's context, handed to tools that ask for it, is no argument
        arguments = {key: value for key, value in arguments.items() if key != "ctx" or not str(value).startswith("<")}
    return _call(span, arguments, content.decoded(span.attributes.get(openinference.OUTPUT)), None)


def _openllmetry(span: Span) -> CallReading:
    done = content.decoded(span.attributes.get(openllmetry.ENTITY_OUTPUT))
    call = _call(
        span,
        content.arguments(span.attributes.get(_TOOL_ARGUMENTS)),
        content.field(done, "tool_output"),
        content.text(content.field(done, "tool_id")),
    )
    has_ended = openllmetry.ENTITY_OUTPUT in span.attributes or call.error is not None
    # Without content, a call that waits and one that failed lack the second span alike.
    return call if has_ended else changed(call, state="uncertain", may_have_failed=True)


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
    """Return the name at the end of what a step has passed on, or of what the step that asks the model was given."""
    is_step = _is_step(span)
    if is_step and openllmetry.ENTITY_OUTPUT in span.attributes:
        answered = content.decoded(span.attributes[openllmetry.ENTITY_OUTPUT])
        return content.text(content.field(answered, "current_agent_name"))
    for key in (openllmetry.ENTITY_OUTPUT, openinference.OUTPUT, *((openinference.INPUT,) if is_step else ())):
        told = content.text(span.attributes.get(key))
        if told and (named := CURRENT_AGENT.search(told[-MAX_AGENT_CHARS:])):
            return named[1]
    return None
