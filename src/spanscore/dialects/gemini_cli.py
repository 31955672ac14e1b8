"""Gemini CLI."""

from __future__ import annotations

import re
from typing import Final

from spanscore.contracts import CallReading, CaptureSetting, Markers, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import gen_ai
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import JSON, NOT_RECORDED, Recorded, Span, changed

_SCOPE: Final = "gemini-cli"
_TOOL_SPAN: Final = "tool_call"
_AGENT_SPAN: Final = "agent_call"
_BATCH_SPAN: Final = "schedule_tool_calls"
_TOOL_EVENT: Final = "gemini_cli.tool_call"

_CALL_ID: Final = "gen_ai.tool.call_id"
_EVENT: Final = "event.name"
_FUNCTION: Final = "function_name"
_SESSION: Final = "session.id"
_ERROR_TYPE: Final = "error_type"

_FAILED: Final = frozenset({"error", "cancelled"})
_OUTCOME: Final = "outcome"
"""The decision of the user, or of a rule, on a possible call: unless refused, the call has its own span."""
_STATUS: Final = re.compile(r'\{"status":"(\w+)"')
_UNTRUSTED: Final = re.compile(r"\A<untrusted_context>\n(.*)\n</untrusted_context>\s*\Z", re.DOTALL)
"""The mark around a tool's result that asks the model not to obey it."""


class GeminiCli(FrameworkDialect):
    """Spans and log events `gemini_cli.tool_call` of Gemini CLI (recorded with 0.61.0).

    Each batch of calls is a trace of its own. A failed call has the status OK; its content has the failure. A call
    of an unknown tool, or with arguments that the tool does not take, is only in a log event. Log events have
    neither the call's id nor a result.
    """

    markers = Markers(scopes=frozenset({_SCOPE}), log_names=(_TOOL_EVENT,))
    reads = gen_ai.READS | {
        _CALL_ID,
        _EVENT,
        _FUNCTION,
        _ERROR_TYPE,
        "function_args",
        "success",
        "error",
        "error.message",
    }
    capture_settings = (CaptureSetting("GEMINI_TELEMETRY_TRACES_ENABLED=true GEMINI_TELEMETRY_LOG_PROMPTS=true"),)

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        if _TOOL_EVENT in (span.name, attributes.get(_EVENT)):
            return Reading(call=_logged(span), conversation_id=content.text(attributes.get(_SESSION)))
        if span.name == _TOOL_SPAN:
            return Reading(call=_call(span))
        if span.name == _AGENT_SPAN:
            # The span itself names the program: a sub-agent's name stands in what it was asked.
            asked = content.decoded(attributes.get(gen_ai.INPUT))
            name = content.field(asked, "agent_name")
            return Reading(is_agent=True, agent=content.text(name))
        if span.name == _BATCH_SPAN:
            call = _never_run(span)
            is_run = call is None and not span.parent_span_id
            agent = content.text(attributes.get(gen_ai.AGENT)) if is_run else None
            return Reading(call=call, is_agent=is_run or None, agent=agent)
        return None


def _never_run(span: Span) -> CallReading | None:
    """Return the only call of a batch where it has no span of its own, as its tool was never started."""
    came = content.decoded(span.attributes.get(gen_ai.OUTPUT))
    only = came[0] if isinstance(came, list) and len(came) == 1 else NOT_RECORDED
    failed = content.text(content.field(only, "status")) in _FAILED
    is_started = content.field(only, _OUTCOME) not in (NOT_RECORDED, "cancel")
    return _reading(span, content.field(only, "request"), only) if failed and not is_started else None


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    told = attributes.get(gen_ai.OUTPUT)
    call = _reading(span, content.decoded(attributes.get(gen_ai.INPUT)), content.decoded(told))
    # The status comes first, so that it can be read where what follows is cut.
    status = _STATUS.match(told) if isinstance(told, str) else None
    is_cut = call.error is None and status is not None and status[1] in _FAILED
    return changed(call, error="error") if is_cut else call


def _reading(span: Span, asked: Recorded, came: Recorded) -> CallReading:
    attributes = span.attributes
    name = content.text(attributes.get(gen_ai.TOOL_NAME)) or content.text(content.field(asked, "name"))
    call_id = content.identifier(attributes.get(_CALL_ID)) or content.text(content.field(asked, "callId"))
    failed = content.text(content.field(came, "status")) in _FAILED
    response = _response(came)
    kind = content.error_type(span) or content.text(content.field(came, "response", "errorType"))
    message = content.text(content.field(response, "error")) or ""
    return CallReading(
        name=name,
        arguments=_arguments(content.field(asked, "args")),
        result=NOT_RECORDED if failed else _result(content.field(response, "output")),
        error=content.error(span) or ((content.named(kind, message) or "error") if failed else None),
        error_type=kind if failed else content.error_type(span),
        # Newer versions write the tool's name before the id that the model gave.
        call_id=call_id.removeprefix(f"{name}__") if call_id else None,
    )


def _arguments(args: Recorded) -> Recorded:
    return args if isinstance(args, dict) else NOT_RECORDED


def _response(came: Recorded) -> Recorded:
    """Return what the tool's answer to the model was, which stands in the first part that is one."""
    parts = content.field(came, "response", "responseParts")
    found: list[JSON] = parts if isinstance(parts, list) else []
    answers = (content.field(part, "functionResponse", "response") for part in found)
    return next((answer for answer in answers if answer is not NOT_RECORDED), NOT_RECORDED)


def _result(output: Recorded) -> Recorded:
    if not isinstance(output, str):
        return output
    marked = _UNTRUSTED.match(output)
    return content.decoded(marked[1] if marked else output)


def _logged(span: Span) -> CallReading:
    attributes = span.attributes
    kind = content.error_type(span) or content.text(attributes.get(_ERROR_TYPE))
    message = content.first_text(attributes, ("error.message", "error")) or ""
    failed = content.is_false(attributes.get("success"))
    return CallReading(
        name=content.text(attributes.get(_FUNCTION)),
        arguments=content.arguments(attributes.get("function_args")),
        error=(content.named(kind, message) or "error") if failed else None,
        error_type=kind if failed else None,
    )
