"""The OpenAI Agents SDK under OpenInference, OpenLLMetry, Weave and OpenTelemetry's own instrumentation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from spanscore.contracts import CallReading, CallRequest, CaptureSetting, Markers, ModelReading, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import _sent_messages as sent_messages
from spanscore.dialects import gen_ai, openinference
from spanscore.dialects._framework import FrameworkDialect
from spanscore.dialects._literals import printed
from spanscore.model import JSON, NOT_RECORDED, Attributes, LaterList, Recorded, Span, StatusCode, changed

_PYTHON: Final = "openinference.instrumentation.openai_agents"
_JAVASCRIPT: Final = "@arizeai/openinference-instrumentation-openai-agents"
_OTHERS: Final = (
    "opentelemetry.instrumentation.openai_agents",
    "opentelemetry.instrumentation.genai.openai_agents",
    "weave.openai_agents",
)
_HANDOFF: Final = "handoff to "
_REDACTED: Final = "__REDACTED__"
_REFUSED: Final = ' was manually rejected by user."}'
"""The end of the message with which JavaScript fails a refused call; the beginning may be the person's own words."""
_RESPONSE: Final = "resp_"
_CALLS: Final = ("function_call", "tool_calls")
"""Words of calls in the input of a run, by the API of its model."""
_PRINTED: Final = ("{'", "ResponseFunctionToolCall(")


class OpenaiAgents(FrameworkDialect):
    """The OpenAI Agents SDK, Python and JavaScript, under OpenInference, OpenLLMetry, Weave and OpenTelemetry.

    OpenInference writes a hand-off as a tool span, and the trace itself as an agent without a name. A tool that waits
    for approval has a span without a result in Python, and none in JavaScript, where the trace then has no result; one
    that was refused has failed there.
    OpenTelemetry's instrumentation prints what the model asked for as Python does.
    """

    markers = Markers(scopes=frozenset({_PYTHON, _JAVASCRIPT, *_OTHERS}))
    reads = gen_ai.READS | openinference.READS
    capture_settings = (
        CaptureSetting(
            "OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA=true", scopes=(_PYTHON, "opentelemetry.instrumentation.")
        ),
    )

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        kind = attributes.get(openinference.KIND)
        if kind == "TOOL" and span.name.startswith(_HANDOFF):
            return Reading(not_a_call=True)
        if kind == "TOOL":
            return Reading(call=_call(span, openinference.call(span), openinference.OUTPUT), only_if_asked=True)
        if attributes.get(gen_ai.OPERATION) == gen_ai.EXECUTE_TOOL:
            return Reading(call=_call(span, gen_ai.call(span), gen_ai.RESULT), only_if_asked=True)
        if kind == "AGENT" and not any(key in attributes for key in openinference.AGENT_NAME):
            ends = _has_no_result(span)
            is_hidden = ends and attributes[openinference.INPUT] == _REDACTED
            waits = (CallRequest(name=""),) if is_hidden else ()
            return Reading(
                is_agent=False,
                ends_asking=ends and not is_hidden,
                waits=waits,
                resumes=_continues(span),
                refuses_silently=span.scope != _JAVASCRIPT,
            )
        if span.scope == _JAVASCRIPT:
            return None
        response_id = content.text(attributes.get(gen_ai.RESPONSE)) or ""
        leaves_out = span.scope == _OTHERS[0] and response_id.startswith(_RESPONSE) and not _has_calls(attributes)
        return Reading(refuses_silently=True, leaves_out_calls=leaves_out)

    def read_model(self, span: Span) -> ModelReading | None:
        said = span.attributes.get(gen_ai.OUTPUT)
        is_printed = isinstance(said, str) and any(map(said.__contains__, _PRINTED))
        sent = span.attributes.get(gen_ai.INPUT)
        return ModelReading(
            requests=messages.requests(list(_printed_parts(content.decoded(said)))) if is_printed else (),
            history=LaterList(
                lambda: sent_messages.without_hand_offs(openinference.history(span) or sent_messages.history_in(sent))
            ),
        )


def _call(span: Span, call: CallReading, result: str) -> CallReading | None:
    """Return the call if it was refused, or may wait, as it has neither a result nor a failure.

    Else return None: the conventions suffice.
    """
    if span.status_code == StatusCode.ERROR and span.status_message.endswith(_REFUSED):
        return changed(call, state="refused")
    if span.scope == _JAVASCRIPT and span.status_code == StatusCode.ERROR and not span.status_message:
        return changed(call, refusal="hidden at start")
    if span.scope == _JAVASCRIPT or result in span.attributes or call.error is not None:
        return None
    # With OpenInference's switch for the GenAI conventions the id stands there alone.
    call_id = call.call_id or content.text(span.attributes.get(gen_ai.CALL_ID))
    return changed(call, state="uncertain", call_id=call_id)


def _has_calls(attributes: Attributes) -> bool:
    """Return whether the messages to a model have calls: with the Responses API, some versions leave them out."""
    sent = attributes.get(gen_ai.INPUT)
    return isinstance(sent, str) and "tool_call" in sent


def _has_no_result(span: Span) -> bool:
    is_told = openinference.INPUT in span.attributes and openinference.OUTPUT not in span.attributes
    return span.scope == _JAVASCRIPT and is_told and span.status_code == StatusCode.OK


def _continues(span: Span) -> bool:
    """Return whether a run in JavaScript is given more than texts of a user: it begins with calls, or their results."""
    given = span.attributes.get(openinference.INPUT)
    if span.scope != _JAVASCRIPT or not isinstance(given, str) or not any(map(given.__contains__, _CALLS)):
        return False
    match content.decoded(given):
        case [*_, {"type": "function_call" | "function_call_result"} | {"role": "tool"} | {"tool_calls": [_, *_]}]:
            return True
    return False


def _printed_parts(told: Recorded) -> Iterator[JSON]:
    for message in told if isinstance(told, list) else ():
        parts = content.field(message, "parts")
        for part in parts if isinstance(parts, list) else ():
            text = content.field(part, "content")
            if isinstance(text, str) and text.startswith(_PRINTED):
                value = printed(text)
                if value is not NOT_RECORDED:
                    yield value
