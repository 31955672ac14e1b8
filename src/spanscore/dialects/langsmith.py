"""LangSmith in OpenTelemetry mode."""

from __future__ import annotations

from base64 import b64decode
from typing import Final

from spanscore.contracts import CallReading, CaptureSetting, Markers, ModelCallReading, ModelReading, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_call_reading as model_calls
from spanscore.dialects import _sent_messages as sent_messages
from spanscore.dialects import gen_ai
from spanscore.dialects._framework import FrameworkDialect
from spanscore.dialects._langgraph import continues, graph, stops_before_tools
from spanscore.dialects._tool_message import ToolMessage, output_message
from spanscore.model import NOT_RECORDED, AttributeValue, Recorded, Span, changed

_KIND: Final = "langsmith.span.kind"
_PROMPT: Final = "gen_ai.prompt"
_COMPLETION: Final = "gen_ai.completion"
_BASE64: Final = ("eyJ", "e30=", "W3s", "W10=")
"""Beginnings of an object, or of a list of objects, in base64."""
_CONTENT: Final = (_PROMPT, _COMPLETION)
_AGENT: Final = "langsmith.metadata.lc_agent_name"
_NODE: Final = "langsmith.metadata.langgraph_node"
_INTEGRATION: Final = "langsmith.metadata.ls_integration"
_CLAUDE: Final = "claude-agent-sdk"
_CONVERSATION: Final = tuple(
    f"langsmith.metadata.{key}" for key in ("session_id", "sessionId", "thread_id", "threadId", "conversation_id")
)


class Langsmith(FrameworkDialect):
    """Spans of LangSmith's SDKs, Python and JavaScript, that export OpenTelemetry (recorded with 0.15.1 and 0.10.5).

    A call has the `langsmith.span.kind` `tool`, the arguments in `gen_ai.prompt` and the result in
    `gen_ai.completion`. Many failed calls have the status OK and show the failure only in an exception event.
    Earlier versions (recorded with 0.4.28) write bytes, and LangChain's arguments as Python prints them.
    LangSmith's exporter also marks spans of the Vercel AI SDK, but adds nothing to them.
    """

    markers = Markers(attributes=frozenset({_KIND}))
    reads = gen_ai.READS | {_PROMPT, _COMPLETION, "langsmith.*", "ai.operationId"}
    reads_for_model_calls = model_calls.READS | {_PROMPT}
    capture_settings = (
        CaptureSetting("LANGSMITH_HIDE_INPUTS=false", ("arguments", "user messages")),
        CaptureSetting("LANGSMITH_HIDE_OUTPUTS=false", ("results", "tool calls")),
    )

    def read(self, span: Span) -> Reading | None:
        span = _readable(span)
        attributes = span.attributes
        kind = attributes.get(_KIND)
        node, agent = content.text(attributes.get(_NODE)), content.text(attributes.get(_AGENT))
        run = graph(span.name, node, agent, is_marked=not span.parent_span_id) if kind == "chain" else Reading()
        integration = content.text(attributes.get(_INTEGRATION)) if run.is_agent else None
        if _is_claude(span):
            run = changed(run, agent=None)  # its name is the same for all
        return Reading(
            call=_call(span) if kind == "tool" and "ai.operationId" not in attributes else None,
            is_model=kind == "llm",
            is_agent=run.is_agent,
            agent=run.agent,
            conversation_id=content.first_text(attributes, _CONVERSATION),
            ends_asking=stops_before_tools(integration, attributes.get(_COMPLETION)),
            resumes=kind == "chain" and continues(span, _PROMPT, integration),
        )

    def read_model(self, span: Span) -> ModelReading | None:
        span = _readable(span)
        return sent_messages.reading(span.attributes.get(_COMPLETION), span.attributes.get(_PROMPT))

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        if span.attributes.get(_KIND) != "llm":
            return None
        span = _readable(span)
        return model_calls.reading(span.attributes, model_calls.texts(content.decoded(span.attributes.get(_PROMPT))))


def _readable(span: Span) -> Span:
    """Return the span with text in place of bytes, in which a tool's printed arguments are no longer wrapped."""
    told = {key: value for key in _CONTENT if (value := _unpacked(span.attributes.get(key))) is not None}
    if not told:
        return span
    match content.decoded(told.get(_PROMPT)):
        case {"input": str(printed), **others} if not others and span.attributes.get(_KIND) == "tool":
            told[_PROMPT] = printed
    return span._replace(attributes={**span.attributes, **told})


def _unpacked(value: AttributeValue) -> str | None:
    """Return the text of bytes, also where a store keeps them as base64: no JSON begins so."""
    if isinstance(value, str) and value.startswith(_BASE64):
        try:
            return b64decode(value, validate=True).decode()
        except ValueError:
            return None
    return value.decode(errors="replace") if isinstance(value, bytes) else None


def _is_claude(span: Span) -> bool:
    return span.attributes.get(_INTEGRATION) == _CLAUDE


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    given = attributes.get(_PROMPT)
    message = _message(content.decoded(attributes.get(_COMPLETION)))
    return CallReading(
        name=content.text(attributes.get(gen_ai.TOOL_NAME)) or span.name,
        arguments=_named(content.arguments(given), is_wrapped=_is_claude(span)),
        sole_argument=content.sole_argument(given),
        result=message.content,
        error=content.error(span) or message.error,
        error_type=content.error_type(span),
        call_id=content.identifier(attributes.get(gen_ai.CALL_ID)) or message.call_id,
        agent=content.text(attributes.get(_AGENT)),
    )


def _named(arguments: Recorded, *, is_wrapped: bool) -> Recorded:
    """Return the arguments of a traced function unless they were positional: then their names are lost.

    The integration with the Claude Agent SDK wraps the arguments in an object.
    """
    match arguments:
        case {"input": dict(inner), **others} if is_wrapped and not others:
            return inner
        case {"args": [_, _, *_], **others} if not others:
            return NOT_RECORDED
    return arguments


def _message(completion: Recorded) -> ToolMessage:
    """Return what the tool returned: LangChain's message, what JavaScript wraps as it is no object, or all of it."""
    match completion:
        case {"outputs": returned, **others} if not others:
            return ToolMessage(returned)
        case {"output": _}:
            return output_message(completion)
    return ToolMessage(completion)
