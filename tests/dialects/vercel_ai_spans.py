"""Spans as the Vercel AI SDK writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dialects.spans import span
from spanscore.model import Span

SCOPE = "ai"
WEATHER = {"city": "Zürich", "days": 2}
SUNNY = {"city": "Zürich", "sky": "clear"}


def root(number: int = 1, agent: str = "travel-agent", parent: int = 0) -> Span:
    """A run of generateText."""
    return span(
        number,
        "ai.generateText",
        {
            "ai.operationId": "ai.generateText",
            "ai.telemetry.functionId": agent,
            "ai.telemetry.metadata.sessionId": "sess-42",
        },
        parent=parent,
        scope=SCOPE,
    )


def tool(number: int, name: str, call_id: str, *, parent: int = 1, **fields: Any) -> Span:
    """An execution as versions 4 to 6 write it."""
    more = fields.pop("attributes", {})
    return span(
        number,
        "ai.toolCall",
        {"ai.operationId": "ai.toolCall", "ai.toolCall.name": name, "ai.toolCall.id": call_id, **more},
        parent=parent,
        scope=SCOPE,
        **fields,
    )


def model(number: int, tool_calls: Any, *, operation: str = "ai.generateText.doGenerate", parent: int = 1) -> Span:
    """One request to the model and the calls it asked for."""
    return span(
        number,
        operation,
        {"ai.operationId": operation, "ai.response.toolCalls": json.dumps(tool_calls)},
        parent=parent,
        scope=SCOPE,
    )


def semconv_tool(number: int, attributes: Mapping[str, Any], **fields: Any) -> Span:
    """An execution as version 7 writes it."""
    return span(
        number,
        "execute_tool lookup_policy",
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "lookup_policy",
            "gen_ai.tool.call.id": "call_1",
            **attributes,
        },
        parent=1,
        scope="gen_ai",
        **fields,
    )


def semconv_root(**attributes: Any) -> Span:
    """A run of version 7, named after the model."""
    named = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "travel-agent"}
    return span(1, "invoke_agent scripted-1", {**named, **attributes}, scope="gen_ai")
