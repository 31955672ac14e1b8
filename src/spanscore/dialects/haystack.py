"""Haystack's own tracing."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from spanscore.contracts import CallReading, CallRequest, Markers, ModelCallReading, ModelReading, Precedence, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _messages as messages
from spanscore.dialects import _model_calls as model_calls
from spanscore.model import NOT_RECORDED, Span

_TOOL_NAME: Final = "haystack.tool.name"
_ERROR: Final = "haystack.tool.error"
_OUTPUT: Final = "haystack.agent.step.tool.output"
_COMPONENT: Final = "haystack.component.name"
_COMPONENT_TYPE: Final = "haystack.component.type"
_LLM: Final = "haystack.agent.step.llm"
_CALL_ID: Final = "haystack.tool.call.id"
_CONFIRMATION: Final = "haystack.agent.hook.human_in_the_loop.strategy"
_DECISION: Final = f"{_CONFIRMATION}.decision"


class Haystack:
    """Haystack's OpenTelemetryTracer. The scope is whatever the user named it; a failure is an attribute of its own.

    An agent has the name that the pipeline gives its component; one that is run alone has none. The span of a
    confirmation has the tool's name too: it is no call, and says whether one was refused.
    """

    precedence = Precedence.FRAMEWORK
    markers = Markers(attributes=frozenset({_TOOL_NAME, _COMPONENT_TYPE}), span_names=("haystack.agent.",))
    reads = content.READS.union(
        {
            _COMPONENT,
            _ERROR,
            _OUTPUT,
            _CALL_ID,
            _DECISION,
            f"{_LLM}.output",
            "haystack.agent.tools",
            "haystack.agent.step.tool.input",
        }
    )
    reads_for_model_calls = frozenset({f"{_LLM}.input"})

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        is_component = attributes.get(_COMPONENT_TYPE) == "Agent"
        if _COMPONENT_TYPE in attributes and not is_component:
            return None  # a pipeline need not have an agent
        if span.name == _CONFIRMATION or _DECISION in attributes:
            return Reading(refused=_refused(span))
        return Reading(
            call=_call(span) if _TOOL_NAME in attributes else None,
            is_model=span.name == _LLM,
            is_agent=True if is_component or span.name == "haystack.agent.run" else None,
            agent=content.text(attributes.get(_COMPONENT)) if is_component else None,
        )

    def read_model(self, span: Span) -> ModelReading | None:
        attributes = span.attributes
        return messages.reading(attributes.get(f"{_LLM}.output"), tools=attributes.get("haystack.agent.tools"))

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        if span.name != _LLM:
            return None
        user, system = model_calls.texts(
            content.field(content.decoded(span.attributes.get(f"{_LLM}.input")), "messages")
        )
        replies = content.field(content.decoded(span.attributes.get(f"{_LLM}.output")), "replies")
        about = content.field(replies[0], "meta") if isinstance(replies, list) and replies else NOT_RECORDED
        return ModelCallReading(
            model=content.text(content.field(about, "model")),
            input_tokens=model_calls.count(content.field(about, "usage", "prompt_tokens")),
            output_tokens=model_calls.count(content.field(about, "usage", "completion_tokens")),
            user_text=user,
            system_text=system,
        )


def _refused(span: Span) -> tuple[CallRequest, ...]:
    name = content.text(span.attributes.get(_TOOL_NAME))
    if name is None or span.attributes.get(_DECISION) != "reject":
        return ()
    return (CallRequest(name=name, call_id=content.text(span.attributes.get(_CALL_ID))),)


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    name = content.text(attributes.get(_TOOL_NAME))
    call = content.call(span, name, attributes.get("haystack.agent.step.tool.input"), attributes.get(_OUTPUT))
    if call.error is None and attributes.get(_ERROR) is True:
        failure = content.text(content.field(call.result, "error")) or "error"
        return replace(call, error=content.short(failure))
    return call
