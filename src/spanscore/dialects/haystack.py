"""Haystack's own tracing."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import (
    CallReading,
    CallRequest,
    CaptureSetting,
    Markers,
    ModelCallReading,
    ModelReading,
    Reading,
)
from spanscore.dialects import _content as content
from spanscore.dialects import _finish_reasons as finish_reasons
from spanscore.dialects import _model_call_reading as model_calls
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import _sent_messages as sent_messages
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import NOT_RECORDED, AttributeValue, Later, Span, changed

_TOOL_NAME: Final = "haystack.tool.name"
_ERROR: Final = "haystack.tool.error"
_OUTPUT: Final = "haystack.agent.step.tool.output"
_COMPONENT: Final = "haystack.component.name"
_COMPONENT_TYPE: Final = "haystack.component.type"
_COMPONENT_PREFIX: Final = "haystack.component"
_COMPONENT_INPUT: Final = f"{_COMPONENT_PREFIX}.input"
_COMPONENT_OUTPUT: Final = f"{_COMPONENT_PREFIX}.output"
_LLM: Final = "haystack.agent.step.llm"
_CALL_ID: Final = "haystack.tool.call.id"
_CONFIRMATION: Final = "haystack.agent.hook.human_in_the_loop.strategy"
_DECISION: Final = f"{_CONFIRMATION}.decision"


class Haystack(FrameworkDialect):
    """Spans of Haystack's own `OpenTelemetryTracer` (recorded with haystack-ai 2.12, 2.31 and 3.4).

    The application chooses the name of the scope. `haystack.tool.error` marks a failure. An agent has the name of
    its component in the pipeline, `haystack.component.name`, and none outside of a pipeline. The span of a
    confirmation also has the tool's name: it is no call, and says whether a call was refused.

    Since version 3 a call has a span with `haystack.tool.name`. Before, and in pipelines, one span of a ToolInvoker
    covers all calls of an answer: the calls are read from the chat generator's requests, and their outcomes from
    the ToolInvoker's output. The first agents of version 2 have one span, which holds the conversation.
    """

    markers = Markers(attributes=frozenset({_TOOL_NAME, _COMPONENT_TYPE}), span_names=("haystack.agent.",))
    reads = content.READS.union(
        {
            _COMPONENT,
            _ERROR,
            _OUTPUT,
            _CALL_ID,
            _DECISION,
            _COMPONENT_INPUT,
            _COMPONENT_OUTPUT,
            f"{_LLM}.output",
            "haystack.agent.tools",
            "haystack.agent.step.tool.input",
        }
    )
    reads_for_model_calls = frozenset({f"{_LLM}.input"})
    capture_settings = (CaptureSetting("HAYSTACK_CONTENT_TRACING_ENABLED=true"),)

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        is_component = attributes.get(_COMPONENT_TYPE) == "Agent"
        if _COMPONENT_TYPE in attributes and not is_component:
            # A pipeline need not have an agent.
            return Reading(is_model=True) if _is_generator(span) or _invokes_tools(span) else None
        if span.name == _CONFIRMATION or _DECISION in attributes:
            return Reading(refused=_refused(span))
        return Reading(
            call=_call(span) if _TOOL_NAME in attributes else None,
            is_model=is_component or span.name == _LLM,
            is_agent=True if is_component or span.name == "haystack.agent.run" else None,
            agent=content.text(attributes.get(_COMPONENT)) if is_component else None,
        )

    def read_model(self, span: Span) -> ModelReading | None:
        attributes = span.attributes
        given, said = attributes.get(_COMPONENT_INPUT), attributes.get(_COMPONENT_OUTPUT)
        if attributes.get(_COMPONENT_TYPE) == "Agent":
            return _conversation(given, said)
        if _is_generator(span):
            return changed(sent_messages.reading(said, given, given), asks=_asks(said))
        if _invokes_tools(span):
            return changed(sent_messages.reading(sent=said), asks=content.decoded(said) is NOT_RECORDED)
        return sent_messages.reading(attributes.get(f"{_LLM}.output"), tools=attributes.get("haystack.agent.tools"))

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        if _invokes_tools(span) or span.attributes.get(_COMPONENT_TYPE) == "Agent":
            return ModelCallReading(is_request=False)
        if span.name != _LLM and not _is_generator(span):
            return None
        place = _COMPONENT_PREFIX if _is_generator(span) else _LLM
        given, said = (content.decoded(span.attributes.get(f"{place}.{end}")) for end in ("input", "output"))
        user, system = model_calls.texts(content.field(given, "messages"))
        replies = content.field(said, "replies")
        about = content.field(replies[0], "meta") if isinstance(replies, list) and replies else NOT_RECORDED
        return ModelCallReading(
            model=content.text(content.field(about, "model")),
            input_tokens=model_calls.count(content.field(about, "usage", "prompt_tokens")),
            output_tokens=model_calls.count(content.field(about, "usage", "completion_tokens")),
            user_text=user,
            system_text=system,
        )


def _is_generator(span: Span) -> bool:
    """Return whether a span is that of a component that asks a model, such as `OpenAIChatGenerator`."""
    return str(span.attributes.get(_COMPONENT_TYPE, "")).endswith("ChatGenerator")


def _invokes_tools(span: Span) -> bool:
    return span.attributes.get(_COMPONENT_TYPE) == "ToolInvoker"


def _conversation(given: AttributeValue, said: AttributeValue) -> ModelReading:
    """Return the calls in the messages that an agent has added to its input."""
    before, after = (content.field(content.decoded(text), "messages") for text in (given, said))
    added = after[len(before) :] if isinstance(before, list) and isinstance(after, list) else []
    return ModelReading(
        requests=messages.requests([each for each in added if content.field(each, "role") == "assistant"]),
        asks=not isinstance(after, list),
        answers=Later(lambda: messages.answers(added)),
        failures=Later(lambda: messages.failures(added)),
    )


def _asks(said: AttributeValue) -> bool:
    replies = content.field(content.decoded(said), "replies")
    listed = replies if isinstance(replies, list) else ()
    return finish_reasons.asked_in([reply.get("meta") for reply in listed if isinstance(reply, dict)])


def _refused(span: Span) -> tuple[CallRequest, ...]:
    name = content.text(span.attributes.get(_TOOL_NAME))
    if name is None or span.attributes.get(_DECISION) != "reject":
        return ()
    return (CallRequest(name=name, call_id=content.text(span.attributes.get(_CALL_ID))),)


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    name = content.text(attributes.get(_TOOL_NAME))
    call = content.call(span, name, attributes.get("haystack.agent.step.tool.input"), attributes.get(_OUTPUT))
    if call.error is None and content.is_true(attributes.get(_ERROR)):
        failure = content.text(content.field(call.result, "error")) or "error"
        return changed(call, error=content.short(failure))
    return call
