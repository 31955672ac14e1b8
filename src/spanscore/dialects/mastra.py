"""Mastra."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, CallRequest, Markers, ModelCallReading, ModelReading, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_call_reading as model_calls
from spanscore.dialects import _sent_messages as sent_messages
from spanscore.dialects import gen_ai, openinference
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import NOT_RECORDED, Recorded, Span, StatusCode, changed

_TYPE: Final = "mastra.span.type"
_STEP: Final = "model_step"
_SENT: Final = f"mastra.{_STEP}.input"
_STEP_INDEX: Final = f"mastra.{_STEP}.step_index"
_IS_CONTINUED: Final = f"mastra.{_STEP}.is_continued"
_CALLS: Final = frozenset({"tool_call", "mcp_tool_call", "provider_tool_call"})
_RUN: Final = "agent_run"
_RUN_INPUT: Final = (f"mastra.{_RUN}.input", openinference.INPUT)
_RUN_OUTPUT: Final = (f"mastra.{_RUN}.output", openinference.OUTPUT)
_RESUMED: Final = "mastra.metadata.resumed"
_REFUSALS: Final = ("Tool input validation failed", "Tool output validation failed")
_CONVERSATION: Final = ("threadId", "sessionId", "conversationId")


class Mastra(FrameworkDialect):
    """Spans of Mastra's exporters: its own, the OpenTelemetry bridge and the one for Arize (recorded with core 1.71.0).

    A call has the `mastra.span.type` `tool_call`, `mcp_tool_call` or `provider_tool_call`. A span of type
    `client_tool_call`, for an unknown tool or one that the client executes, is no call. The model's requests are in
    spans of type `model_step`, not in the chat spans. If arguments or results fail validation, the status is OK and
    the result has the failure. The span of a suspended run names the call that waits; if content is hidden, only its
    last step shows that it did not end. The span of the resumed run says whether the call was approved.
    """

    markers = Markers(attributes=frozenset({_TYPE}))
    reads = (
        gen_ai.READS
        | openinference.READS
        | {
            _TYPE,
            "metadata",
            "mastra.metadata.*",
            f"mastra.{_STEP}.output",
            _STEP_INDEX,
            _IS_CONTINUED,
            *_RUN_INPUT,
            *_RUN_OUTPUT,
        }
    )
    reads_for_model_calls = model_calls.READS | {_SENT}

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        kind = content.text(attributes.get(_TYPE))
        return Reading(
            call=_call(span) if kind in _CALLS else None,
            not_a_call=kind == "client_tool_call",
            is_model=kind == _STEP,
            conversation_id=_conversation(span),
            waits=_waits(span) if kind == _RUN else _cut(span) if kind == _STEP else (),
            refused=_refused(span) if kind == _RUN else (),
            resumes=kind == _RUN and content.is_true(attributes.get(_RESUMED)),
        )

    def read_model(self, span: Span) -> ModelReading | None:
        return sent_messages.reading(span.attributes.get("mastra.model_step.output"))

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        if _TYPE not in span.attributes:
            return None
        # The chat span is around the steps of the loop, and the chunks are parts of a step's answer.
        is_step = span.attributes[_TYPE] == _STEP
        sent = content.decoded(span.attributes.get(_SENT))
        reading = model_calls.reading(span.attributes, model_calls.texts(sent))
        return changed(reading, is_request=None if is_step else False)


def _conversation(span: Span) -> str | None:
    """Return the id among the metadata that the application gives: attributes, or in the exporter for Arize JSON."""
    named = content.first_text(span.attributes, [f"mastra.metadata.{key}" for key in _CONVERSATION])
    if named or span.attributes.get(_TYPE) != _RUN:
        return named
    metadata = content.decoded(span.attributes.get("metadata"))
    return next((told for key in _CONVERSATION if (told := content.text(content.field(metadata, key)))), None)


def _waits(span: Span) -> tuple[CallRequest, ...]:
    told = content.first_text(span.attributes, _RUN_OUTPUT) or ""
    done = content.decoded(told) if "suspended" in told else NOT_RECORDED
    if "suspended" not in (content.field(done, "status"), content.field(done, "finishReason")):
        return ()
    return (_named_in(done) or CallRequest(name=""),)


def _cut(span: Span) -> tuple[CallRequest, ...]:
    """Return an unnamed call if the run was suspended in this step; the exporter for Arize does not show that."""
    ended = span.end_ns and span.status_code != StatusCode.ERROR
    is_cut = _STEP_INDEX in span.attributes and _IS_CONTINUED not in span.attributes
    return (CallRequest(name=""),) if ended and is_cut else ()


def _refused(span: Span) -> tuple[CallRequest, ...]:
    told = content.first_text(span.attributes, _RUN_INPUT) or ""
    given = content.decoded(told) if "approved" in told else NOT_RECORDED
    within = (given, content.field(given, "resumeData"))
    named = _named_in(given) if any(content.field(each, "approved") is False for each in within) else None
    return () if named is None else (named,)


def _named_in(value: Recorded) -> CallRequest | None:
    """Return the call that an object names, itself or in one of its fields."""
    for each in (value, *(value.values() if isinstance(value, dict) else ())):
        call_id = content.text(content.field(each, "toolCallId"))
        if call_id is not None:
            return CallRequest(name=content.text(content.field(each, "toolName")) or "", call_id=call_id)
    return None


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    call = content.call(
        span,
        content.first_text(attributes, (gen_ai.TOOL_NAME, openinference.TOOL_NAME)),
        attributes.get(gen_ai.ARGUMENTS, attributes.get(openinference.INPUT)),
        attributes.get(gen_ai.RESULT, attributes.get(openinference.OUTPUT)),
        attributes.get(gen_ai.CALL_ID, attributes.get("tool_call.id")),
    )
    refusal = _refusal(call.result)
    return call if refusal is None or call.error is not None else changed(call, error=refusal)


def _refusal(result: Recorded) -> str | None:
    message = content.text(content.field(result, "message"))
    if content.field(result, "error") is True and message and message.startswith(_REFUSALS):
        return content.short(message)
    return None
