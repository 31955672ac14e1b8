"""Logfire's own instrumentations."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, Markers, ModelCallReading, ModelReading, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_call_reading as model_calls
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import _sent_messages as sent_messages
from spanscore.dialects import mcp
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import JSON, NOT_RECORDED, LaterList, Span, changed

_SPAN_TYPE: Final = "logfire.span_type"
_SCOPE: Final = "logfire.openai_agents"
_MCP: Final = "logfire.mcp"
_RAW_INPUT: Final = "raw_input"
_SENT: Final = ("events", "request_data", "input")
_MODEL_SPANS: Final = ("Responses API", "Chat completion")


class Logfire(FrameworkDialect):
    """Spans of Logfire's `instrument_openai_agents` and `instrument_mcp`, also pending ones (5.2.0 to 6.0.0b8).

    The names of spans are templates: every call has the name `Function: {name}`. The tool's name is in `name`, the
    arguments are in `input` and the result is in `output`. A span with the `logfire.span_type` `pending_span`
    announces a span that still runs; it is no call. A tool that waits for approval has a span without a result; one
    that was refused has none. Of MCP's SDK before version 2, client and server each have a span of a call, with the
    whole messages in `request` and `response`.
    """

    markers = Markers(attributes=frozenset({_SPAN_TYPE}), scopes=frozenset({_SCOPE, _MCP}))
    reads = content.READS.union(
        {_SPAN_TYPE, "agent_name", "name", "group_id", "input", "output", "request", "response", "response_data"},
        {"events", _RAW_INPUT},
    )
    reads_for_model_calls = model_calls.READS | {*_SENT}

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        if attributes.get(_SPAN_TYPE) == "pending_span":
            return Reading(not_a_call=True, is_agent=False)
        if span.scope == _MCP:
            return _tool_of_server(span)
        if span.scope != _SCOPE:
            return None
        name = content.text(attributes.get("name"))
        is_agent = span.name.startswith("Agent run")
        call = _call(span, name) if span.name.startswith("Function: ") else None
        return Reading(
            call=call,
            only_if_asked=call is not None,
            refuses_silently=call is None,
            not_a_call=span.name.startswith("Handoff: "),
            is_model=span.name.startswith(_MODEL_SPANS),
            is_agent=True if is_agent else None,
            agent=content.text(attributes.get("agent_name")) or (name if is_agent else None),
            conversation_id=content.text(attributes.get("group_id")),
        )

    def read_model(self, span: Span) -> ModelReading | None:
        if span.scope != _SCOPE:
            return None
        said = [content.decoded(span.attributes.get(key)) for key in ("response_data", "output")]
        said.append(content.field(content.decoded(span.attributes.get("response")), "output"))
        events = content.decoded(span.attributes.get("events"))
        if isinstance(events, list):
            said.append([event for event in events if content.field(event, "event.name") == "gen_ai.choice"])
        sent = span.attributes.get(_RAW_INPUT) or span.attributes.get("input")
        return changed(
            sent_messages.reading(sent=sent),
            history=LaterList(lambda: sent_messages.without_hand_offs(sent_messages.history_in(sent))),
            requests=messages.requests([part for part in said if isinstance(part, (list, dict))]),
        )

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        attributes = span.attributes
        if span.scope != _SCOPE or not span.name.startswith(_MODEL_SPANS):
            return None
        sent = [content.decoded(attributes.get(key)) for key in _SENT]
        return model_calls.reading(
            attributes, model_calls.texts([part for part in sent if isinstance(part, (list, dict))])
        )


def _call(span: Span, name: str | None) -> CallReading:
    """Return the call, which may wait if it has neither a result nor a failure."""
    call = content.call(span, name, span.attributes.get("input"), span.attributes.get("output"))
    may_wait = call.result is None and call.error is None
    return changed(call, state="uncertain", result=NOT_RECORDED) if may_wait else call


def _tool_of_server(span: Span) -> Reading | None:
    """Return the reading of a request to an MCP server, None if it calls no tool."""
    request = content.decoded(span.attributes.get("request"))
    if content.field(request, "method") != "tools/call":
        return None
    params = content.field(request, "params")
    response = content.decoded(span.attributes.get("response"))
    response = response if response is NOT_RECORDED else _without_nulls(response)
    result = mcp.returned(response)
    failed = content.field(response, "isError") is True
    given = content.field(params, "arguments")
    return Reading(
        call=CallReading(
            name=content.text(content.field(params, "name")),
            arguments=given if isinstance(given, dict) else NOT_RECORDED,
            result=result,
            error=content.error(span) or (content.short(str(result)) or "error" if failed else None),
            error_type=content.error_type(span),
        )
    )


def _without_nulls(answer: JSON) -> JSON:
    """Return an MCP server's answer without the fields that it and its parts leave empty: Logfire writes them."""
    if not isinstance(answer, dict):
        return answer
    parts = answer.get("content")
    if isinstance(parts, list):
        parts = [_told(part) if isinstance(part, dict) else part for part in parts]
    return _told({**answer, "content": parts})


def _told(node: dict[str, JSON]) -> dict[str, JSON]:
    return {key: value for key, value in node.items() if value is not None}
