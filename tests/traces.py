"""Spans of agents, models and tools, written by the GenAI semantic conventions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dialects.spans import span
from spanscore.model import AttributeValue, Span

PARIS = {"city": "Paris"}
BERN = {"city": "Bern"}


def agent(number: int, name: str | None = "planner", **fields: Any) -> Span:
    """A run of an agent."""
    named = {} if name is None else {"gen_ai.agent.name": name}
    return span(number, "invoke_agent", {"gen_ai.operation.name": "invoke_agent", **named}, **fields)


def tool(number: int, name: str, arguments: Any = None, call_id: str | None = None, **fields: Any) -> Span:
    """An execution of a tool."""
    attributes: dict[str, Any] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    if arguments is not None:
        attributes["gen_ai.tool.call.arguments"] = json.dumps(arguments)
    if call_id is not None:
        attributes["gen_ai.tool.call.id"] = call_id
    return span(number, f"execute_tool {name}", attributes, **fields)


def asked(name: str, arguments: Any = None, call_id: str | None = None) -> dict[str, Any]:
    """A model's request for a call."""
    request = {"type": "tool_call", "name": name, "id": call_id, "arguments": arguments}
    return {key: value for key, value in request.items() if value is not None}


def model(number: int, *requests: dict[str, Any], told: dict[str, Any] | None = None, **fields: Any) -> Span:
    """A model's answer that asks for calls, after it was told what earlier ones returned."""
    parts = [{"type": "tool_call_response", "id": key, "response": value} for key, value in (told or {}).items()]
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps([{"role": "tool", "parts": parts}]),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": list(requests)}]),
    }
    return span(number, "chat", attributes, **fields)


def lasting(spanned: Span, ms: int) -> Span:
    """The same span, so many milliseconds long."""
    return spanned._replace(end_ns=spanned.start_ns + ms * 1_000_000)


def having(spanned: Span, attributes: Mapping[str, AttributeValue]) -> Span:
    """The same span with more attributes."""
    return spanned._replace(attributes={**spanned.attributes, **attributes})
