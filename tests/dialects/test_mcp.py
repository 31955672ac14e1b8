from __future__ import annotations

import json
from typing import Any

import pytest

from dialects.spans import call, calls, span
from spanscore.model import StatusCode

OPENLLMETRY = "opentelemetry.instrumentation.mcp.instrumentation"


def test_the_sdk_s_own_client_and_server() -> None:
    """They tell no arguments; the id of the JSON-RPC request is not the model's."""
    client = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "book", "jsonrpc.request.id": "3"}
    server = {**client, "gen_ai.operation.name": "execute_tool", "error.type": "tool_error"}

    assert calls(
        span(1, "MCP send tools/call book", client, kind=3, status_code=StatusCode.OK),
        span(2, "tools/call book", server, kind=2, parent=1, status_code=StatusCode.ERROR),
    ) == [call(1, "book", error="tool_error")]


def test_other_methods_are_no_calls() -> None:
    """Nor is the listing of tools."""
    assert calls(span(1, "tools/list", {"mcp.method.name": "tools/list"})) == []


@pytest.mark.parametrize(
    ("output", "result", "error"),
    [
        ({"result": '{"sky": "clear"}'}, {"sky": "clear"}, None),
        ({"result": "no rooms", "is_error": True}, "no rooms", "no rooms"),
    ],
)
def test_openllmetry(output: Any, result: Any, error: str | None) -> None:
    """Name and arguments stand in the entity's input; the streams of the connection are noise below."""
    attributes = {
        "traceloop.span.kind": "tool",
        "traceloop.entity.name": "book",
        "traceloop.entity.input": json.dumps({"tool_name": "book", "arguments": {"nights": 2}}),
        "traceloop.entity.output": json.dumps(output),
    }
    noise = {"mcp.response.value": '{"isError": true}', "mcp.request.id": "8"}

    assert calls(
        span(1, "book.tool", attributes, scope=OPENLLMETRY),
        span(2, "ResponseStreamWriter", noise, parent=1, scope=OPENLLMETRY, status_code=StatusCode.ERROR),
    ) == [call(1, "book", {"nights": 2}, result=result, error=error)]


@pytest.mark.parametrize("params", [{"args": ["book", {"nights": 2}]}, {"name": "book", "arguments": {"nights": 2}}])
def test_openlit(params: Any) -> None:
    """It writes how the client's method was called, and nests two spans of one call."""
    request = json.dumps({"method": "call_tool", "params": params})
    response = json.dumps({"content": [], "isError": True})
    attributes = {"mcp.method": "call_tool", "mcp.request.payload": request, "mcp.response.payload": response}
    inner = {**attributes, "mcp.response.payload": '{"type": "mcp_coroutine"}'}

    assert calls(span(1, "mcp tools/call", attributes), span(2, "mcp tools/call", inner, parent=1)) == [
        call(1, "book", {"nights": 2}, error="the tool failed")
    ]
