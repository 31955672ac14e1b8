"""Claude Code's own telemetry."""

from __future__ import annotations

import re
from typing import Final

from spanscore.contracts import CallReading, CaptureSetting, Markers, ModelReading, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _finish_reasons as finish_reasons
from spanscore.dialects import gen_ai
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import NOT_RECORDED, Attributes, Recorded, Span

_SCOPE: Final = "com.anthropic.claude_code.tracing"
_LOG_SCOPE: Final = "com.anthropic.claude_code.events"
_PREFIX: Final = "claude_code."
_TYPE: Final = "span.type"
_EVENT: Final = "event.name"
_BODY: Final = "body"
_NAME: Final = "tool_name"
_CALL_ID: Final = "tool_use_id"
_SUBAGENT: Final = "subagent_type"
_SESSION: Final = "session.id"
_STOP_REASON: Final = "stop_reason"
_ERROR_TYPE: Final = "error_type"
_INPUT: Final = "tool_input"
_PARAMETERS: Final = "tool_parameters"
_PROMPT: Final = "user_prompt"
_CONTINUES: Final = "Continue from where you left off."
"""The prompt that Claude Code writes itself where a session goes on."""
_FINISH_REASONS: Final = (_STOP_REASON, *finish_reasons.READS)

_ANY_MCP_TOOL: Final = "mcp_tool"
"""The name of every MCP tool in log events."""
_NOT_IN_A_NAME: Final = re.compile(r"[^a-zA-Z0-9_-]")
_LEFT_OUT: Final = re.compile(r"<nested>|…|.*…\[\d+ (?:chars|items)\]", re.DOTALL)
"""The mark in a call's arguments if a log event leaves some of them out."""


class ClaudeCode(FrameworkDialect):
    """Spans and log events of Claude Code (recorded with 2.1.197 and 2.1.330).

    The tool's name is in `tool_name`, with the MCP server as the model called it. One call has several spans: a
    failure is on `claude_code.tool.execution`, and a refusal on `claude_code.tool.blocked_on_user`, both below the
    span of the call; a refused call was not made. Arguments are only in log events; results are in few spans.
    """

    markers = Markers(
        scopes=frozenset({_SCOPE}),
        span_names=(_PREFIX,),
        log_names=(f"{_PREFIX}tool_result", f"{_PREFIX}tool_decision"),
    )
    reads = gen_ai.READS | {
        _TYPE,
        _EVENT,
        _BODY,
        _NAME,
        _CALL_ID,
        _SUBAGENT,
        _ERROR_TYPE,
        _INPUT,
        _PARAMETERS,
        _PROMPT,
        *_FINISH_REASONS,
        "error",
        "success",
        "decision",
    }
    capture_settings = (
        CaptureSetting("OTEL_LOG_TOOL_DETAILS=1", ("arguments",)),
        CaptureSetting("CLAUDE_CODE_ENHANCED_TELEMETRY_BETA=1 OTEL_LOG_TOOL_CONTENT=1", ("results",)),
        CaptureSetting("OTEL_LOG_USER_PROMPTS=1", ("user messages",)),
    )

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        kind = attributes.get(_TYPE)
        if kind == "tool":
            # What runs below is the work of the agent that the call starts, where it starts one.
            agent = content.text(attributes.get(_SUBAGENT))
            return Reading(call=_call(span), is_agent=True if agent else None, agent=agent)
        if kind == "tool.execution":
            failed = CallReading(error=_failure(span), error_type=content.error_type(span))
            return Reading(call=failed, part_of_call=True)
        if kind == "tool.blocked_on_user" and _is_refused(attributes):
            return Reading(call=CallReading(state="refused"), part_of_call=True)
        if kind == "llm_request":
            return Reading(is_model=True, ends_asking=attributes.get(_STOP_REASON) == "tool_use")
        event = _event(span)
        if event == "tool_result" or (event == "tool_decision" and _is_refused(attributes)):
            return Reading(call=_logged(attributes), conversation_id=content.text(attributes.get(_SESSION)))
        return Reading(resumes=True) if attributes.get(_PROMPT) == _CONTINUES else None

    def read_model(self, span: Span) -> ModelReading | None:
        return ModelReading(asks=finish_reasons.asks(span.attributes, _FINISH_REASONS))


def _event(span: Span) -> str | None:
    """Return which log event it is; None for a span. Its name is too common: the body, or the scope, says whose."""
    attributes = span.attributes
    body = content.text(attributes.get(_BODY)) or ""
    names = (span.name, body, content.text(attributes.get(_EVENT)) or "" if span.scope == _LOG_SCOPE else "")
    found = (name for name in names if name.startswith(_PREFIX) or (name and span.scope == _LOG_SCOPE))
    return None if _TYPE in attributes else next((name.removeprefix(_PREFIX) for name in found), None)


def _is_refused(attributes: Attributes) -> bool:
    return attributes.get("decision") == "reject"


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    return CallReading(
        name=content.text(attributes.get(_NAME)) or content.text(attributes.get(gen_ai.TOOL_NAME)),
        result=content.decoded(content.in_event(span, "tool.output", "output")),
        error=content.error(span),
        error_type=content.error_type(span),
        call_id=content.identifier(attributes.get(gen_ai.CALL_ID)) or content.identifier(attributes.get(_CALL_ID)),
    )


def _failure(span: Span) -> str | None:
    told = content.text(span.attributes.get("error"))
    failed = content.is_false(span.attributes.get("success"))
    if told and content.exception(span) is None:
        return content.named(content.error_type(span), told)
    return content.error(span) or ("error" if failed else None)


def _logged(attributes: Attributes) -> CallReading:
    error, error_type = None, None
    if attributes.get("success") in (False, "false"):
        error_type = content.text(attributes.get(_ERROR_TYPE))
        error = content.named(error_type, content.text(attributes.get("error")) or "") or "error"
    return CallReading(
        name=_name(attributes),
        arguments=_arguments(content.arguments(attributes.get(_INPUT))),
        error=error,
        error_type=error_type,
        call_id=content.identifier(attributes.get(_CALL_ID)),
        state="refused" if _is_refused(attributes) else "made",
    )


def _name(attributes: Attributes) -> str | None:
    name = content.text(attributes.get(_NAME))
    if name != _ANY_MCP_TOOL:
        return name
    parameters = content.decoded(attributes.get(_PARAMETERS))
    parts = [content.text(content.field(parameters, key)) for key in ("mcp_server_name", "mcp_tool_name")]
    known = [_NOT_IN_A_NAME.sub("_", part) for part in parts if part]
    return "__".join(("mcp", *known)) if len(known) == len(parts) else None


def _arguments(given: Recorded) -> Recorded:
    """Return arguments that are whole: text that is long, and what is nested or numerous, is left out in part."""
    waiting: list[Recorded] = [given]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend((*value, *value.values()))
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, str) and _LEFT_OUT.fullmatch(value):
            return NOT_RECORDED
    return given
