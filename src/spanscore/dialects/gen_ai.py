"""The GenAI semantic conventions of OpenTelemetry, every version seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from spanscore.contracts import (
    CallReading,
    CaptureSetting,
    Markers,
    ModelCallReading,
    ModelReading,
    Precedence,
    Reading,
    SentMessage,
)
from spanscore.dialects import _content as content
from spanscore.dialects import _control_flow as control_flow
from spanscore.dialects import _finish_reasons as finish_reasons
from spanscore.dialects import _model_call_reading as model_calls
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import _sent_messages as sent_messages
from spanscore.dialects import openinference
from spanscore.dialects._message_events import CHOICE, ROLES, SENT, TEXT_ROLES, message_list, message_of
from spanscore.dialects._tool_message import tool_message
from spanscore.dialects._walked_messages import walked
from spanscore.model import (
    EMPTY,
    LOG_RECORD,
    NOT_RECORDED,
    Attributes,
    Later,
    LaterList,
    OnFirstUse,
    Recorded,
    Span,
    changed,
)

OPERATION: Final = "gen_ai.operation.name"
TOOL_NAME: Final = "gen_ai.tool.name"
ARGUMENTS: Final = "gen_ai.tool.call.arguments"
RESULT: Final = "gen_ai.tool.call.result"
CALL_ID: Final = "gen_ai.tool.call.id"
AGENT: Final = "gen_ai.agent.name"
CONVERSATION: Final = "gen_ai.conversation.id"
RESPONSE: Final = "gen_ai.response.id"
EXECUTE_TOOL: Final = "execute_tool"

_HANDOFF_TARGET: Final = "gen_ai.agent.handoff.target.name"
_HANDOFFS: Final = frozenset({"handoff", "agent_handoff"})
_CREATION: Final = "create_agent"
"""Says that an agent is there. Its runs have spans of their own, often in other traces."""
_TOOL_SPAN: Final = f"{EXECUTE_TOOL} "
_MESSAGE: Final = "tool_call_id"
"""A field of each message with a tool's result."""
_MESSAGE_FIELDS: Final = frozenset(
    {
        _MESSAGE,
        "content",
        "name",
        "type",
        "status",
        "id",
        "artifact",
        "additional_kwargs",
        "response_metadata",
        "role",
    }
)
"""All fields of a `ToolMessage`: an object with others is a tool's own."""

_AGENT_FRAMEWORK: Final = frozenset({"agent_framework", "Experimental.Microsoft.Agents.AI"})
"""The scopes whose runs, in Python and .NET, end with a finish reason that asks for tools only if a person has to
approve a call."""
_SESSION: Final = "session.id"
_CONVERSATIONS: Final = (CONVERSATION, _SESSION)
DEFINITIONS: Final = "gen_ai.tool.definitions"
_WORKFLOW: Final = "gen_ai.workflow.name"
OUTPUT: Final = "gen_ai.output.messages"
INPUT: Final = "gen_ai.input.messages"
_ELSEWHERE: Final = frozenset(f"{key}_ref" for key in (INPUT, OUTPUT, ARGUMENTS, RESULT))
"""Keys for the address of content that an instrumentation has uploaded instead of recorded."""

READS: Final = frozenset(
    {
        OPERATION,
        TOOL_NAME,
        ARGUMENTS,
        RESULT,
        CALL_ID,
        AGENT,
        CONVERSATION,
        RESPONSE,
        _SESSION,
        DEFINITIONS,
        OUTPUT,
        INPUT,
        _WORKFLOW,
        *_ELSEWHERE,
        openinference.KIND,
        openinference.INPUT,
        *content.READS,
        *finish_reasons.READS,
    }
)
"""The attributes that the conventions define and a dialect may look at."""

INSTRUCTIONS: Final = "gen_ai.system_instructions"
READS_FOR_MODEL_CALLS: Final = model_calls.READS | {INPUT, INSTRUCTIONS}
"""Keys for the usage of a model request and for its input."""

_CHAT: Final = "chat"
_MODEL_OPERATIONS: Final = frozenset({_CHAT, "generate_content", "text_completion", "responses"})
_CONTENT_EVENT: Final = "gen_ai.client.inference.operation.details"
_PREFIX: Final = "gen_ai."


class GenAi:
    """Everything that follows the GenAI semantic conventions: agent-framework, semantic-kernel, autogen and others.

    A span that says that one agent hands over to another is no tool call, even where it is written as `execute_tool`.
    A span that creates an agent is not read: a trace without other spans is no run.
    Content is read from span attributes, and in the same way from span events and from log records of a model's span.
    """

    precedence = Precedence.CONVENTION
    markers = Markers(
        attributes=frozenset({OPERATION, AGENT, CALL_ID, CONVERSATION, _SESSION, _HANDOFF_TARGET}),
        span_names=(_TOOL_SPAN,),
        log_names=(_CONTENT_EVENT, *ROLES),
    )
    reads = READS
    reads_for_model_calls = READS_FOR_MODEL_CALLS
    result_keys = frozenset({RESULT})
    telling_words: ClassVar = {INPUT: messages.WORDS_OF_ANSWERS, RESULT: (*control_flow.WORDS, _MESSAGE)}
    capture_settings = (
        CaptureSetting(
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY "
            "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental",
            scopes=("opentelemetry.instrumentation.genai.",),
        ),
        CaptureSetting("ENABLE_SENSITIVE_DATA=true", scopes=("agent_framework",)),
        CaptureSetting(
            "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true",
            ("arguments", "results"),
            ("semantic_kernel.",),
        ),
    )

    def read(self, span: Span) -> Reading | None:
        attributes, is_log = span.attributes, span.kind == LOG_RECORD
        operation = content.text(attributes.get(OPERATION))
        if operation == _CREATION:
            return None
        is_call = operation == EXECUTE_TOOL or (OPERATION not in attributes and _is_unmarked_call(span))
        is_model = (is_log and not is_call) or operation in _MODEL_OPERATIONS
        is_workflow = operation == "invoke_workflow" and not is_log
        is_of_framework = operation == "invoke_agent" and span.scope in _AGENT_FRAMEWORK
        return Reading(
            call=call(span) if is_call else None,
            part_of_call=is_call and is_log,
            not_a_call=operation in _HANDOFFS or (_HANDOFF_TARGET in attributes and operation in {None, EXECUTE_TOOL}),
            is_model=is_model,
            is_agent=True if operation == "invoke_agent" and not is_log else None,
            is_workflow=is_workflow,
            agent=content.text(attributes.get(_WORKFLOW if is_workflow else AGENT)),
            conversation_id=content.first_text(attributes, _CONVERSATIONS),
            response_id=content.text(attributes.get(RESPONSE)),
            ends_asking=is_of_framework and finish_reasons.asks(attributes, finish_reasons.READS),
            # With content, the messages to models show a refusal.
            refuses_silently=is_of_framework and OUTPUT not in attributes,
            content_elsewhere=not _ELSEWHERE.isdisjoint(attributes),
            of_span=_moved(span) if is_log and is_model else {},
        )

    def read_model(self, span: Span) -> ModelReading | None:
        output = span.attributes.get(OUTPUT)
        said: Recorded = NOT_RECORDED
        if span.events or span.is_log or not isinstance(output, str) or messages.may_ask(output):
            said = message_list(span, OUTPUT, {CHOICE})
        parts = walked(said)
        requests = messages.requests(parts) if parts else ()
        asks = (
            bool(requests)
            or finish_reasons.asks(span.attributes, finish_reasons.READS, output)
            or finish_reasons.asked_in(said)
        )
        tools = span.attributes.get(DEFINITIONS)
        definitions = EMPTY if tools is None else Later(lambda: messages.definitions(content.decoded(tools)))
        if not (parts or span.events or span.is_log or INPUT in span.attributes):
            return ModelReading(requests=requests, asks=asks, tool_definitions=definitions)
        by_provider = Later(lambda: messages.answers_of_provider(parts))
        sent = OnFirstUse(lambda: _answers(span))
        return ModelReading(
            requests=requests,
            asks=asks,
            answers=Later(
                lambda: {**by_provider.content(), **sent.content().results, **sent.content().refusals},
            ),
            refused=Later(lambda: sent.content().refusals),
            by_provider=by_provider if parts else EMPTY,
            failures=Later(lambda: {**messages.failures(parts), **sent.content().failures}),
            tool_definitions=definitions,
            history=LaterList(lambda: _history(span)),
        )

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        is_model = span.is_log or content.text(span.attributes.get(OPERATION)) in _MODEL_OPERATIONS
        return model_call(span) if is_model else None


def model_call(span: Span) -> ModelCallReading:
    """Return the request of a span as the conventions have it: frameworks write them beside what is their own."""
    sent = message_list(span, INPUT, TEXT_ROLES)
    instructions = content.decoded(span.attributes.get(INSTRUCTIONS))
    return model_calls.reading(span.attributes, model_calls.texts(sent, instructions))


def _answers(span: Span) -> messages.AnswersInMessages:
    in_text = sent_messages.answers_in(span.attributes.get(INPUT))
    return in_text or messages.answers_in_messages(message_list(span, INPUT, SENT))


def _history(span: Span) -> Sequence[SentMessage]:
    if INPUT in span.attributes:
        return sent_messages.history_in(span.attributes[INPUT])
    return sent_messages.history(message_list(span, INPUT, SENT))


def _is_unmarked_call(span: Span) -> bool:
    """Return whether a span without an operation is a tool call: by its name, or by the tool's name and a call id.

    A tool span gets its attributes at the end, which never comes where the tool raises.
    """
    return span.name.startswith(_TOOL_SPAN) or (CALL_ID in span.attributes and TOOL_NAME in span.attributes)


def call(span: Span) -> CallReading:
    """Return the tool call of a span as the conventions have it: dialects replace what a framework does otherwise."""
    attributes = span.attributes
    name = content.text(attributes.get(TOOL_NAME)) or _name_in(span.name)
    # OpenInference, told to write both conventions, has the tool's schema for its arguments.
    is_both = openinference.KIND in attributes and openinference.INPUT in attributes
    given = None if is_both else attributes.get(ARGUMENTS)
    read = content.call(span, name, given, attributes.get(RESULT), attributes.get(CALL_ID))
    held = attributes.get(RESULT)
    if not isinstance(held, str) or _MESSAGE not in held:
        return read
    # Instrumentations of LangChain write the message to the model that holds the result.
    if isinstance(read.result, dict) and not {_MESSAGE} <= read.result.keys() <= _MESSAGE_FIELDS:
        return read
    message = tool_message(read.result)
    if message.content is NOT_RECORDED or message.call_id is None or read.call_id not in {None, message.call_id}:
        return read
    return changed(read, result=message.content, call_id=message.call_id, error=read.error or message.error)


def _name_in(span_name: str) -> str | None:
    return span_name.removeprefix(EXECUTE_TOOL).strip() or None if span_name.startswith(EXECUTE_TOOL) else None


def _moved(record: Span) -> Attributes:
    """Return what a log record holds of the span of a request to a model: by its attributes, or as one message."""
    if record.name in ROLES:
        message: dict[str, Any] = {**message_of(record.name, record.attributes)}
        return {OPERATION: _CHAT, OUTPUT if record.name == CHOICE else INPUT: [message]}
    told = content.with_texts(record).attributes
    return {OPERATION: _CHAT, **{key: value for key, value in told.items() if key.startswith(_PREFIX)}}
