"""Langfuse's SDKs and callback handlers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from spanscore.contracts import CallReading, CallRequest, Markers, ModelCallReading, ModelReading, Reading, SentMessage
from spanscore.dialects import _content as content
from spanscore.dialects import _control_flow as control_flow
from spanscore.dialects import _model_call_reading as model_calls
from spanscore.dialects import _sent_messages as sent_messages
from spanscore.dialects._framework import FrameworkDialect
from spanscore.dialects._langgraph import INTEGRATION, continues, graph, stops_before_tools
from spanscore.dialects._tool_message import ToolMessage, tool_message
from spanscore.model import JSON, NOT_RECORDED, AttributeValue, LaterList, Recorded, Span, changed

_TYPE: Final = "langfuse.observation.type"
_INPUT: Final = "langfuse.observation.input"
_OUTPUT: Final = "langfuse.observation.output"
_MODEL: Final = "langfuse.observation.model.name"
_USAGE: Final = "langfuse.observation.usage_details"
_IS_LANGCHAIN: Final = "langfuse.observation.metadata.is_langchain_root"
_AGENT: Final = "lc_agent_name"
_LEVEL: Final = "langfuse.observation.level"
_MESSAGE: Final = "langfuse.observation.status_message"
_CALL_ID: Final = "langfuse.observation.metadata.tool_call_id"
_INTERRUPTS: Final = tuple(f"GraphInterrupt: {told}" for told in control_flow.INTERRUPTS_IN_JSON)
_OF_TOOLS: Final = '"additional_kwargs"'
_ROLES: Final = frozenset({"user", "human", "assistant", "ai", "system", "developer", "tool", "function"})


class Langfuse(FrameworkDialect):
    """Observations of Langfuse, Python and JavaScript: `@observe`, the manual API and the LangChain callback handler.

    Recorded with langfuse 3.15.0 and 5.0.4, and @langfuse/otel 5.11.1. A call has the `langfuse.observation.type`
    `tool`; its span is named after the tool, the arguments are in `langfuse.observation.input` and the result is in
    `langfuse.observation.output`. A failure may show only in `langfuse.observation.level`. An interrupt of
    LangGraph has no level of its own; its value is in `langfuse.observation.status_message`. In JavaScript its level is
    that of a failure, and in the messages to a model the role of a tool's result is the tool's name.
    """

    markers = Markers(attributes=frozenset({_TYPE}))
    reads = content.READS | {"langfuse.observation.*"}
    reads_for_model_calls = frozenset({_INPUT, _MODEL, _USAGE})

    def read(self, span: Span) -> Reading | None:
        kind = span.attributes.get(_TYPE)
        if kind == "tool":
            call = _call(span)
            return Reading(call=call, only_if_asked=call.agent is not None)
        is_root = not span.parent_span_id and content.is_true(content.decoded(span.attributes.get(_IS_LANGCHAIN)))
        run = graph(
            span.name, _metadata(span, "langgraph_node"), _metadata(span, _AGENT), is_marked=kind == "agent" or is_root
        )
        integration = _metadata(span, INTEGRATION) if run.is_agent else None
        return Reading(
            is_model=kind == "generation",
            is_agent=run.is_agent,
            agent=run.agent,
            waits=(CallRequest(name=""),) if _is_interrupted(span) else (),
            ends_asking=stops_before_tools(integration, span.attributes.get(_OUTPUT)),
            resumes=continues(span, _INPUT, integration),
        )

    def read_model(self, span: Span) -> ModelReading | None:
        sent = span.attributes.get(_INPUT)
        reading = sent_messages.reading(span.attributes.get(_OUTPUT), sent)
        return changed(reading, history=LaterList(lambda: _history(sent)))

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        attributes = span.attributes
        if attributes.get(_TYPE) != "generation":
            return None
        user, system = model_calls.texts(content.decoded(attributes.get(_INPUT)))
        used = content.decoded(attributes.get(_USAGE))
        return ModelCallReading(
            model=content.text(attributes.get(_MODEL)),
            input_tokens=model_calls.count(content.field(used, "input")),
            output_tokens=model_calls.count(content.field(used, "output")),
            user_text=user,
            system_text=system,
        )


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    given = attributes.get(_INPUT)
    message = _message(span)
    return CallReading(
        name=span.name,
        arguments=_arguments(span),
        sole_argument=content.sole_argument(given),
        result=message.content,
        error=content.error(span) or _level(span) or message.error,
        error_type=content.error_type(span),
        call_id=content.identifier(attributes.get(_CALL_ID)) or message.call_id,
        agent=_metadata(span, _AGENT),
        state="waits" if _is_interrupted(span) else "made",
    )


def _metadata(span: Span, key: str) -> str | None:
    return content.unquoted(span.attributes.get(f"langfuse.observation.metadata.{key}"))


def _arguments(span: Span) -> Recorded:
    """Return the arguments: Python's decorator wraps them, JavaScript's does not, but lists those without a name."""
    given = content.arguments(span.attributes.get(_INPUT))
    if span.resource.get("telemetry.sdk.language") == "nodejs":
        return given if isinstance(given, dict) else NOT_RECORDED
    return content.from_signature(given)


def _message(span: Span) -> ToolMessage:
    """Return what the tool returned: only LangChain's handler writes messages, a tool's own object stays as it is."""
    returned = content.decoded(span.attributes.get(_OUTPUT))
    is_own = isinstance(returned, dict) and not {"lc", "tool_call_id"} & returned.keys()
    return ToolMessage(returned) if is_own and _CALL_ID not in span.attributes else tool_message(returned)


def _level(span: Span) -> str | None:
    if span.attributes.get(_LEVEL) != "ERROR":
        return None
    return content.short(content.text(span.attributes.get(_MESSAGE)) or "error")


def _is_interrupted(span: Span) -> bool:
    told = content.text(span.attributes.get(_MESSAGE)) or ""
    if span.attributes.get(_LEVEL) == "ERROR":
        return told.startswith(_INTERRUPTS)
    return told.startswith(control_flow.INTERRUPTS)


def _history(sent: AttributeValue) -> Sequence[SentMessage]:
    told = content.decoded(sent) if isinstance(sent, str) and _OF_TOOLS in sent else None
    match told:
        case {"messages": list(listed)} | list(listed):
            return sent_messages.history([_typed(message) for message in listed])
    return sent_messages.history_in(sent)


def _typed(message: JSON) -> JSON:
    """Return a message with its role: for the result of a tool JavaScript writes the tool's name."""
    match message:
        case {"role": str(role), "content": said, "additional_kwargs": _, **others} if (
            role not in _ROLES and not others
        ):
            return {"role": "tool", "content": said}
    return message
