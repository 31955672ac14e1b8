"""OpenAI's Codex CLI."""

from __future__ import annotations

import re
from typing import Final

from spanscore.contracts import CallReading, CaptureSetting, Markers, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_messages as messages
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import EMPTY, NOT_RECORDED, Attributes, Span

_TOOL_RESULT: Final = "codex.tool_result"
_RESULT_READY: Final = "codex.tool_result_ready"
_DISPATCH: Final = "dispatch_tool_call"
_MCP_CALL: Final = "mcp.tools.call"
_TURN: Final = "run_turn"

_EVENT: Final = "event.name"
_NAME: Final = "tool_name"
_NAMESPACE: Final = "tool_namespace"
_CALL_ID: Final = "call_id"
_MCP_NAME: Final = "tool.name"
_MCP_SERVER: Final = "mcp.server.name"
_MCP_CALL_ID: Final = "tool.call_id"
_CONVERSATION: Final = "conversation.id"
_MODULE: Final = "code.module.name"
_LOGGED_SERVER: Final = "mcp_server"

_MCP: Final = "mcp__"
_OURS: Final = "codex"
_HEADER: Final = re.compile(
    r"(?:(?:Chunk ID|Wall time|Exit code|Original token count):[^\n]*\n|Process [^\n]*\n)+Output:\n?", re.IGNORECASE
)
"""The text that Codex puts before a tool's result in its message to the model."""


class Codex(FrameworkDialect):
    """Spans and log events of Codex CLI, OpenAI's coding agent (recorded with 0.140 and 0.169).

    Arguments and results are only in the log event `codex.tool_result`. A call has several spans: one named after
    the tool, with namespace and name joined; `mcp.tools.call`, the client's request to an MCP server; and
    `dispatch_tool_call`, whose event `codex.tool_result_ready` says whether the call succeeded. A command that
    fails is a success to Codex: its exit code is part of the output.
    """

    markers = Markers(
        attributes=frozenset({_CALL_ID, _MCP_CALL_ID}), span_names=(_DISPATCH, _TURN), log_names=(_TOOL_RESULT,)
    )
    reads = content.READS | {
        _EVENT,
        _NAME,
        _NAMESPACE,
        _MCP_NAME,
        _MCP_SERVER,
        _CONVERSATION,
        _MODULE,
        _LOGGED_SERVER,
        "success",
        "arguments",
        "output",
        "output_truncated",
    }
    capture_settings = (CaptureSetting("log_user_prompt = true in [otel] of config.toml", ("user messages",)),)

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        conversation = content.text(attributes.get(_CONVERSATION))
        if _TOOL_RESULT in (span.name, attributes.get(_EVENT)):
            return Reading(call=_logged(attributes), conversation_id=conversation)
        return _read_span(span, conversation) if _is_ours(span) else None


def _read_span(span: Span, conversation: str | None) -> Reading | None:
    attributes = span.attributes
    if span.name == _TURN:
        return Reading(is_agent=True, conversation_id=conversation)
    if span.name == _MCP_CALL:
        return Reading(call=_requested(span), conversation_id=conversation)
    if span.name.startswith(_DISPATCH):
        return Reading(call=_dispatched(span), part_of_call=True)
    # Other spans tell the tool's name and the call's id as well: that of the call itself is named after the tool.
    if span.name == attributes.get(_NAME) and content.text(attributes.get(_CALL_ID)):
        return Reading(call=_call(span), conversation_id=conversation)
    return None


def _is_ours(span: Span) -> bool:
    """Return whether a span is of Codex: the scope is the name of the program, which an editor may replace."""
    module = content.text(span.attributes.get(_MODULE)) or ""
    return span.scope.lower().startswith(_OURS) or module.startswith(_OURS)


def _call(span: Span) -> CallReading:
    ready = _event(span, _RESULT_READY)
    name = _named(content.text(ready.get(_NAME)), ready.get(_NAMESPACE))
    return CallReading(
        name=name or _separable(span.name),
        error=content.error(span),
        error_type=content.error_type(span),
        call_id=content.identifier(span.attributes.get(_CALL_ID)),
    )


def _requested(span: Span) -> CallReading:
    attributes = span.attributes
    server = content.text(attributes.get(_MCP_SERVER))
    name = content.text(attributes.get(_MCP_NAME))
    return CallReading(
        name=_named(name, f"{_MCP}{server}" if server else None),
        error=content.error(span),
        error_type=content.error_type(span),
        call_id=content.identifier(attributes.get(_MCP_CALL_ID)),
    )


def _dispatched(span: Span) -> CallReading:
    told = _event(span, _TOOL_RESULT)
    return CallReading(
        # Last to be asked: better run together than not at all.
        name=_named(content.text(told.get(_NAME)), told.get(_NAMESPACE)),
        error="error" if content.is_false(told.get("success")) else content.error(span),
    )


def _event(span: Span, name: str) -> Attributes:
    """Return the attributes of an event, which is called after a line of the source where an attribute names it."""
    return next(
        (event.attributes for event in span.events if name in (event.name, event.attributes.get(_EVENT))), EMPTY
    )


def _logged(attributes: Attributes) -> CallReading:
    given = attributes.get("arguments")
    output = content.text(attributes.get("output"))
    told = "" if output is None else _HEADER.sub("", output, count=1) if _HEADER.match(output) else output
    server = content.text(attributes.get(_LOGGED_SERVER))
    answer = messages.told(content.decoded(told)) if server else content.decoded(told)
    failed = content.is_false(attributes.get("success"))
    whole = output is not None and attributes.get("output_truncated") not in (True, "true")
    # What a patch is, is no JSON: the tool takes nothing but its text.
    is_bare = isinstance(given, str) and not given.lstrip().startswith("{")
    return CallReading(
        name=_logged_name(attributes, server),
        arguments=content.arguments(given),
        sole_argument=content.sole_argument(given) if is_bare and given else None,
        result=answer if whole and not failed else NOT_RECORDED,
        error=(content.short(answer if isinstance(answer, str) else told) or "error") if failed else None,
        call_id=content.identifier(attributes.get(_CALL_ID)),
    )


def _logged_name(attributes: Attributes, server: str | None) -> str | None:
    """Return the name of a tool, which older versions write without a namespace but run together with the server's."""
    name = content.text(attributes.get(_NAME))
    joined = f"{_MCP}{server}"
    if name is not None and server and name.startswith(joined):
        return _named(name.removeprefix(joined).removeprefix("__"), joined)
    return _named(name, attributes.get(_NAMESPACE))


def _named(name: str | None, namespace: object) -> str | None:
    """Return the name of a tool; of an MCP server's tool with the server, as it is called in other programs too."""
    if name is None or not isinstance(namespace, str) or not namespace.startswith(_MCP) or name.startswith(_MCP):
        return name
    return f"{namespace.removesuffix('__')}__{name}"


def _separable(name: str) -> str | None:
    """Return a name that separates server and tool; None if they are run together."""
    return None if name.startswith(_MCP) and "__" not in name.removeprefix(_MCP) else name
