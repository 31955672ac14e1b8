"""Pydantic AI's own instrumentation, where it differs from the GenAI semantic conventions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

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
from spanscore.dialects import _control_flow as control_flow
from spanscore.dialects import _model_call_reading as model_calls
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import _sent_messages as sent_messages
from spanscore.dialects import gen_ai
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import JSON, NOT_RECORDED, AttributeValue, Later, LaterList, Recorded, Span

_RUNNING_TOOL: Final = "running tool"
_EVENTS: Final = "events"
_FINAL: Final = "final_result"
_DEFERRED: Final = ("calls", "approvals")
_BEGINNING: Final = ('{"calls":[', '{"calls": [')
"""The beginning of a result that holds such calls."""
_SENT: Final = tuple(f"gen_ai.{role}.message" for role in ("user", "assistant", "tool"))
_PARAMETERS: Final = "model_request_parameters"
_MESSAGE: Final = "logfire.msg"
_OUTPUT_FUNCTION: Final = "running output function"
"""The beginning of the message of a span that runs a function on the output, which is marked as a tool."""
_KINDS: Final = ("unapproved", "external")
"""The kinds of tools that a run does not execute by itself."""


class PydanticAi(FrameworkDialect):
    """Pydantic AI, every version of its instrumentation.

    Versions 1 and 2 call a tool span `running tool` and write `tool_arguments` and `tool_response`; the model's
    messages then stand in one attribute as a list of events. Later versions follow the GenAI semantic conventions. A
    run that ends with calls for somebody else to approve or to make has them as its result; also without content, the
    model's span says of which tools these are. A request for an output tool, such as `final_result`, is the run's
    structured output and no call; nor is the span of an output function, which is marked as one.
    """

    markers = Markers(scopes=frozenset({"pydantic-ai"}), span_names=(_RUNNING_TOOL,))
    reads = gen_ai.READS | {
        _EVENTS,
        _FINAL,
        _PARAMETERS,
        _MESSAGE,
        control_flow.DEFERRAL,
        "agent_name",
        "tool_arguments",
        "tool_response",
    }
    reads_for_model_calls = model_calls.READS
    capture_settings = (CaptureSetting("InstrumentationSettings(include_content=True)"),)

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        if (content.text(attributes.get(_MESSAGE)) or "").startswith(_OUTPUT_FUNCTION):
            return Reading(not_a_call=True)
        agent = content.text(attributes.get("agent_name"))
        is_call = span.name == _RUNNING_TOOL and gen_ai.TOOL_NAME in attributes
        return Reading(
            call=_call(span) if is_call else None,
            is_model=_EVENTS in attributes and not is_call,
            is_agent=True if agent is not None else None,
            agent=agent,
            waits=tuple(_unapproved(span) if agent is None else _deferred(span)),
            may_wait=_leaves_calls(span) and not any(key in attributes for key in (gen_ai.OUTPUT, _EVENTS)),
            refuses_silently=True,
        )

    def read_model(self, span: Span) -> ModelReading | None:
        events = content.decoded(span.attributes.get(_EVENTS))
        return ModelReading(
            requests=messages.requests(_named(events, "gen_ai.choice")),
            output_tools=Later(lambda: _output_tools(span.attributes.get(_PARAMETERS))),
            answers=Later(lambda: messages.answers(_named(events, "gen_ai.tool.message"))),
            history=LaterList(lambda: sent_messages.history(_named(events, *_SENT))),
        )

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        if _EVENTS not in span.attributes:
            return None
        events = content.decoded(span.attributes.get(_EVENTS))
        return model_calls.reading(span.attributes, model_calls.texts(events))


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    return content.call(
        span,
        content.text(attributes.get(gen_ai.TOOL_NAME)),
        attributes.get("tool_arguments"),
        attributes.get("tool_response"),
        attributes.get(gen_ai.CALL_ID),
    )


def _deferred(span: Span) -> Iterator[CallRequest]:
    """Yield the calls of a run's result that somebody has to approve, or to make."""
    told = span.attributes.get(_FINAL)
    if isinstance(told, str) and told.startswith(_BEGINNING) and content.decoded(told) is NOT_RECORDED:
        yield CallRequest(name="")  # it is cut off
        return
    if not isinstance(told, str) or not all(f'"{key}"' in told for key in _DEFERRED):
        return
    result = content.decoded(told)
    for key in _DEFERRED:
        parts = content.field(result, key)
        for part in parts if isinstance(parts, list) else ():
            match part:
                case {"part_kind": "tool-call", "tool_name": str(name), "tool_call_id": str(call_id), "args": given}:
                    yield CallRequest(name=name, arguments=content.arguments(given), call_id=call_id)


def _unapproved(span: Span) -> Iterator[CallRequest]:
    """Yield the calls of a model's answer that a run leaves to somebody else, unless they are executed afterwards."""
    parameters = span.attributes.get(_PARAMETERS)
    if not _leaves_calls(span):
        return
    tools = content.field(content.decoded(parameters), "function_tools")
    listed = tools if isinstance(tools, list) else []
    names = {content.field(tool, "name") for tool in listed if content.field(tool, "kind") in _KINDS}
    told = content.decoded(content.first_text(span.attributes, (gen_ai.OUTPUT, _EVENTS)))
    said = told if gen_ai.OUTPUT in span.attributes else _named(told, "gen_ai.choice")
    yield from (request for request in messages.requests(said) if request.name in names)


def _leaves_calls(span: Span) -> bool:
    """Return whether a model could ask for calls that the run leaves to somebody else."""
    parameters = span.attributes.get(_PARAMETERS)
    return isinstance(parameters, str) and any(f'"{kind}"' in parameters for kind in _KINDS)


def _output_tools(parameters: AttributeValue) -> dict[str, JSON]:
    """Return the tools that hand in the output; where nothing lists them, the one that has its usual name."""
    listed = content.field(content.decoded(parameters), "output_tools")
    if not isinstance(listed, list):
        return {_FINAL: None}
    return {name: tool for tool in listed if isinstance(tool, dict) and (name := content.text(tool.get("name")))}


def _named(events: Recorded, *names: str) -> list[Any]:
    """Return the events of these names: the list holds the history that the model was sent, and its answer."""
    if not isinstance(events, list):
        return []
    return [event for event in events if isinstance(event, dict) and event.get("event.name") in names]
