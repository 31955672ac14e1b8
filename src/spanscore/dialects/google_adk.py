"""Google's Agent Development Kit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import ClassVar, Final

from spanscore.contracts import (
    CallReading,
    CaptureSetting,
    Markers,
    ModelCallReading,
    ModelReading,
    Reading,
    SentMessage,
)
from spanscore.dialects import _content as content
from spanscore.dialects import _model_call_reading as model_calls
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import _sent_messages as sent_messages
from spanscore.dialects import gen_ai, openinference
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import JSON, NOT_RECORDED, Later, LaterList, Recorded, Span, changed

_ARGUMENTS: Final = "gcp.vertex.agent.tool_call_args"
_RESPONSE: Final = "gcp.vertex.agent.tool_response"
_LLM_RESPONSE: Final = "gcp.vertex.agent.llm_response"
_LLM_REQUEST: Final = "gcp.vertex.agent.llm_request"
_SESSION: Final = "gcp.vertex.agent.session_id"
_TOOL_TYPE: Final = "gen_ai.tool.type"
_JAVA_ID: Final = "gen_ai.tool_call.id"
_NOT_SPECIFIED: Final = "<not specified>"
_JAVA_RAISED: Final = {"status": "error", "message": "An internal error occurred."}
"""The result that ADK for Java writes if a tool's function has thrown; it never has the exception."""
_OWN_TOOLS: Final = frozenset({"transfer_to_agent", "exit_loop", "set_model_response", "finish_task"})
_OWN_TYPES: Final = frozenset({"AgentTool", "TransferToAgentTool", "ExitLoopTool", "SetModelResponseTool"})
"""Tools of ADK itself, which ask nobody. After some of them no model is asked."""
_SCOPE: Final = "gcp.vertex.agent"
_TOOL_SPAN: Final = "execute_tool "
_FIRST_TOOL_SPAN: Final = re.compile(r"tool_call \[(.+)\]")
_SETTING: Final = (
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY "
    "(JavaScript and Java: ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true)"
)
_OF_ADK: Final = frozenset(
    {gen_ai.OPERATION, gen_ai.TOOL_NAME, _ARGUMENTS, _RESPONSE, _LLM_RESPONSE, openinference.KIND}
)
"""Of which every tool span has one, unless the tool raised; others may be an application's."""
_AGENT_RUN: Final = re.compile(r"agent_run \[(.+)\]")
_OF_ANOTHER: Final = "For context:"
"""Begins a message in the user's role that tells what another agent did, each part after the agent's name in brackets.

A user may begin so, too.
"""
_CALLED: Final = re.compile(r"\[[^]\n]*\] called tool `([^`\n]+)` with parameters:\s*(.+)", re.DOTALL)
_RETURNED: Final = re.compile(r"\[[^]\n]*\] (?:tool )?`([^`\n]+)` (?:tool )?returned result:\s*(.+)", re.DOTALL)
_QUOTED: Final = re.compile(r"<<<BEGIN_\w+>>>\n(.*)\n<<<END_\w+>>>", re.DOTALL)


class GoogleAdk(FrameworkDialect):
    """Spans of Google ADK, Python, JavaScript, Java and Go: its own, and OpenInference's.

    Recorded with 1.5.0 and 2.13.0 (Python), 2.0.0 (JavaScript), 0.5.0 and 1.8.0 (Java), 1.5.0 (Go). A span
    `execute_tool (merged)` is beside every batch of parallel calls, or above it; it is no call. A tool that raised
    may leave a tool span without ADK's attributes. Without content, arguments and response are both the text `{}`; in
    Go content cannot be switched off. Versions before 1.0 have two spans of a call: `tool_call [X]` with the arguments
    and `tool_response`.
    """

    markers = Markers(
        attributes=frozenset({_ARGUMENTS, _LLM_RESPONSE, _SESSION}),
        scopes=frozenset({_SCOPE, "openinference.instrumentation.google_adk"}),
    )
    reads = (
        gen_ai.READS
        | openinference.READS
        | {_ARGUMENTS, _RESPONSE, _LLM_RESPONSE, _LLM_REQUEST, _SESSION, _JAVA_ID, _TOOL_TYPE}
    )
    reads_for_model_calls = model_calls.READS | {_LLM_REQUEST}
    result_keys = frozenset[str]()
    telling_words: ClassVar = {_LLM_REQUEST: ("functionResponse", "function_response")}
    # `EVENT_ONLY` and `true` give the user's messages and no arguments: the setting is not yet the one for arguments.
    capture_settings = (
        CaptureSetting(_SETTING, ("arguments", "results"), (_SCOPE,)),
        CaptureSetting(_SETTING, ("user messages", "tool calls"), (_SCOPE,)),
    )

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        is_call = (
            span.name.startswith(_TOOL_SPAN)
            or attributes.get(gen_ai.OPERATION) == gen_ai.EXECUTE_TOOL
            or _FIRST_TOOL_SPAN.fullmatch(span.name) is not None
        )
        agent_run = _AGENT_RUN.fullmatch(span.name)
        return Reading(
            call=_call(span) if is_call else None,
            not_a_call=is_call and ("(merged" in span.name or attributes.get(gen_ai.TOOL_NAME) == "(merged tools)"),
            is_model=_LLM_RESPONSE in attributes and _RESPONSE not in attributes and not is_call,
            is_agent=True if agent_run else None,
            agent=agent_run[1] if agent_run else None,
            conversation_id=content.text(attributes.get(_SESSION)),
        )

    def read_model(self, span: Span) -> ModelReading | None:
        return changed(
            sent_messages.reading(span.attributes.get(_LLM_RESPONSE)),
            answers=Later(lambda: _answers(span)),
            history=LaterList(lambda: tuple(map(_message, sent_messages.history(_spoken(span))))),
        )

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        config = content.field(content.decoded(span.attributes.get(_LLM_REQUEST)), "config")
        instructions = [content.field(config, key) for key in ("system_instruction", "systemInstruction")]
        told = next((each for each in instructions if each is not NOT_RECORDED), None)
        reading = model_calls.reading(span.attributes, model_calls.texts(_sent(span), told))
        # Under OpenInference the run of an agent says that it is a request.
        is_run = span.name.startswith("invoke_agent ")
        return changed(reading, is_request=False if is_run else None)


def _sent(span: Span) -> Recorded:
    """Return the messages that the model was sent: its instructions may have a user's role."""
    return content.field(content.decoded(span.attributes.get(_LLM_REQUEST)), "contents")


def _spoken(span: Span) -> Recorded:
    """Return the messages that the model was sent, with the calls of other agents as calls.

    ADK tells an agent of them in messages of the user's role: of those that stood before a transfer, for example.
    """
    attributes = span.attributes
    told = content.first(attributes.get(_LLM_REQUEST), attributes.get(gen_ai.INPUT))
    if not (isinstance(told, str) and _OF_ANOTHER in told):
        return _sent(span)
    sent = _sent(span) if _LLM_REQUEST in attributes else content.decoded(told)
    return [*chain.from_iterable(map(_of_agent, sent))] if isinstance(sent, list) else sent


def _of_agent(message: JSON) -> Iterator[JSON]:
    parts = content.field(message, "parts")
    texts = [_text(part) for part in parts] if isinstance(parts, list) else []
    if not (texts and texts[0].startswith(_OF_ANOTHER) and any(text.startswith("[") for text in texts[1:])):
        yield message
        return
    for text in texts[1:]:
        if called := _CALLED.fullmatch(text):
            part = {"type": "tool_call", "name": called[1], "arguments": _unquoted(called[2])}
        elif returned := _RETURNED.fullmatch(text):
            part = {"type": "tool_call_response", "name": returned[1], "response": _unquoted(returned[2])}
        else:
            part = {"type": "text", "content": text}
        yield {"role": "tool" if "response" in part else "assistant", "parts": [part]}


def _text(part: JSON) -> str:
    told = (content.field(part, key) for key in ("text", "content"))
    return next((each for each in told if isinstance(each, str)), "")


def _unquoted(text: str) -> JSON:
    quoted = _QUOTED.fullmatch(text)
    told = content.decoded(quoted[1] if quoted else text)
    return None if told is NOT_RECORDED else told


def _answers(span: Span) -> dict[str, JSON]:
    told = {call_id: _unwrapped(answer) for call_id, answer in messages.answers(_sent(span)).items()}
    return {call_id: answer for call_id, answer in told.items() if answer is not NOT_RECORDED}


def _message(sent: SentMessage) -> SentMessage:
    answers = tuple(changed(answer, result=_unwrapped(answer.result)) for answer in sent.answers)
    return changed(sent, answers=answers) if answers else sent


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    is_go = _LLM_RESPONSE not in attributes and _TOOL_TYPE not in attributes
    content_off = attributes.get(_ARGUMENTS) == "{}" == attributes.get(_RESPONSE) and not is_go
    answer = content.first(attributes.get(_RESPONSE), attributes.get(gen_ai.RESULT))
    result = content.decoded(answer)
    if _NOT_SPECIFIED in (answer, attributes.get(_JAVA_ID)):
        result = NOT_RECORDED  # Java's is a placeholder wherever its id is: there was no answer
    elif answer is None:
        result = content.field(content.decoded(attributes.get(openinference.OUTPUT)), "response")
    error = content.error(span)
    if error is None and result == _JAVA_RAISED:
        error = _JAVA_RAISED["message"]
    name = content.text(attributes.get(gen_ai.TOOL_NAME)) or _name_in(span.name)
    error = error or ("the tool raised" if _OF_ADK.isdisjoint(attributes) else None)
    is_hidden = content_off or result is NOT_RECORDED
    may_ask = name not in _OWN_TOOLS and content.text(attributes.get(_TOOL_TYPE)) not in _OWN_TYPES
    return CallReading(
        name=name,
        arguments=NOT_RECORDED if content_off else _arguments(span),
        result=NOT_RECORDED if content_off else _unwrapped(result),
        error=error,
        state="uncertain" if is_hidden and may_ask and error is None else "made",
        refusal="hidden at start" if is_hidden and may_ask and error is not None else "shown",
        error_type=content.error_type(span),
        call_id=content.identifier(attributes.get(gen_ai.CALL_ID)) or content.identifier(attributes.get(_JAVA_ID)),
    )


def _name_in(span_name: str) -> str:
    first = _FIRST_TOOL_SPAN.fullmatch(span_name)
    # Java's versions 1.0 to 1.3 put the tool into brackets as well.
    return first[1] if first else span_name.removeprefix(_TOOL_SPAN).strip("[]")


def _arguments(span: Span) -> Recorded:
    attributes = span.attributes
    if openinference.TOOL_NAME in attributes and openinference.INPUT not in attributes and not span.dropped_attributes:
        return {}  # OpenInference names the tool, then writes its arguments unless there are none
    keys = (_ARGUMENTS, gen_ai.ARGUMENTS, openinference.INPUT)
    return content.arguments(content.first(*(attributes.get(key) for key in keys)))


def _unwrapped(result: Recorded) -> Recorded:
    """Return what the tool returned: ADK wraps whatever is no object."""
    if isinstance(result, dict) and len(result) == 1:
        return next((result[key] for key in ("result", "results") if key in result), result)
    return result
