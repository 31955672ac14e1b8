from __future__ import annotations

import json
from typing import Any

import pytest

from dialects.spans import call, calls, event, exception, span
from spanscore.model import Span, StatusCode
from traces import PARIS, tool

OPENLLMETRY = "opentelemetry.instrumentation.mcp.instrumentation"


def test_the_sdk_s_own_client_and_server() -> None:
    """They tell no arguments; the id of the JSON-RPC request is not the model's."""
    client = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "book", "jsonrpc.request.id": "3"}
    server = {**client, "gen_ai.operation.name": "execute_tool", "error.type": "tool_error"}

    assert calls(
        span(1, "MCP send tools/call book", client, kind=3, status_code=StatusCode.OK),
        span(2, "tools/call book", server, kind=2, parent=1, status_code=StatusCode.ERROR),
    ) == [call(1, "book", error="tool_error")]


@pytest.mark.parametrize(
    ("name", "scope", "expected"),
    [
        ("travel_book", "mcp-python-sdk", ["travel_book"]),
        ("rebook", "mcp-python-sdk", ["rebook", "book"]),
        ("travel_book", "shop", ["travel_book", "book"]),
    ],
)
def test_an_agent_may_know_a_tool_by_a_prefix(name: str, scope: str, expected: list[str]) -> None:
    """The request to the server below the agent's call is the same call if another instrumentation writes it."""
    held = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": "c1"}
    client = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "book"}

    made = calls(
        span(1, f"execute_tool {name}", held, scope="shop"),
        span(2, "MCP send tools/call book", client, parent=1, scope=scope),
    )

    assert expected == [each.name for each in made]


def test_a_tool_that_calls_one_of_which_its_name_ends_is_two_calls() -> None:
    """If the inner one is no request to a server."""
    held = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "safe_book", "gen_ai.tool.call.id": "c1"}
    other = {"openinference.span.kind": "TOOL", "tool.name": "book"}

    made = calls(span(1, "safe_book", held, scope="shop"), span(2, "book", other, parent=1, scope="other"))

    assert ["safe_book", "book"] == [each.name for each in made]


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


def test_a_call_that_names_no_tool() -> None:
    """The name of its method is none: a gateway's span may say no more."""
    assert [each.name for each in calls(span(1, "tools/call", {"mcp.method.name": "tools/call"}))] == ["unknown"]


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ({"content": [{"type": "text", "text": '{"id": 7}'}], "isError": False}, {"id": 7}),
        ({"content": [{"type": "text", "text": "Zürich"}], "structuredContent": {"result": "Zürich"}}, "Zürich"),
        ({"content": [], "structuredContent": {"id": 7}}, {"id": 7}),
        ({"content": [{"type": "image", "data": "AA=="}]}, [{"type": "image", "data": "AA=="}]),
        ({"content": [1], "rows": 1}, {"content": [1], "rows": 1}),
        ({"content": "text"}, {"content": "text"}),
    ],
    ids=["one text", "text first", "structured", "no text", "of a tool", "no parts"],
)
def test_the_protocol_s_answer_holds_what_the_tool_returned(answer: Any, result: Any) -> None:
    """Servers and gateways that record content write the whole of it."""
    method = {
        "mcp.method.name": "tools/call",
        "gen_ai.tool.name": "book",
        "gen_ai.tool.call.result": json.dumps(answer),
    }

    assert calls(span(1, "tools/call book", method)) == [call(1, "book", result=result)]


def test_the_protocol_s_answer_tells_of_a_failure() -> None:
    """Whose text says why."""
    answer = json.dumps({"content": [{"type": "text", "text": "no rooms\nat all"}], "isError": True})
    method = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "book", "gen_ai.tool.call.result": answer}

    assert calls(span(1, "tools/call book", method)) == [call(1, "book", result="no rooms\nat all", error="no rooms")]


def envoy(number: int, name: str, *, routed: bool = True, **fields: Any) -> Span:
    """A span of Envoy AI Gateway in its default vocabulary, as of 0.4 and later (c217da8)."""
    attributes = {
        "mcp.protocol.version": "2025-06-18",
        "mcp.transport": "http",
        "mcp.request.id": "{3}",
        "mcp.method.name": "tools/call",
        "mcp.tool.name": name,
    }
    backend = {"mcp.backend.name": name.partition("__")[0], "mcp.session.id": "s", "mcp.session.new": False}
    events = (*([event("route to backend", backend)] if routed else ()), *fields.pop("events", ()))
    return span(number, "CallTool", attributes, kind=3, scope="envoyproxy/ai-gateway", events=events, **fields)


def test_envoy_ai_gateway() -> None:
    """The tool's name stands in an attribute of its own, with the backend's in front; other methods are no calls."""
    listed = span(1, "ListTools", {"mcp.method.name": "tools/list"}, kind=3)
    why = "tool returned isError=true: no rooms"
    failed = {"status_code": StatusCode.ERROR, "status_message": why, "events": (exception("internal_error", why),)}

    assert calls(listed, envoy(2, "rooms__book"), envoy(3, "rooms__book", at_ms=9, **failed)) == [
        call(2, "rooms__book"),
        call(3, "rooms__book", at_ms=9, error=f"internal_error: {why}"),
    ]


def test_a_call_through_envoy_ai_gateway_is_one() -> None:
    """The agent's span, its client's, the gateway's and the server's, which knows the tool without the backend."""
    server = span(4, "tools/call book", {"mcp.method.name": "tools/call", "gen_ai.tool.name": "book"}, parent=3, kind=2)
    client = span(2, "HTTP POST", {"http.request.method": "POST"}, parent=1, kind=3)

    assert calls(tool(1, "rooms__book", PARIS, "c1"), client, envoy(3, "rooms__book", parent=2), server) == [
        call(1, "rooms__book", PARIS, call_id="c1")
    ]


def test_a_gateway_s_tool_and_another_below_it_are_two_calls() -> None:
    """A name that merely ends alike is another tool's: only what the gateway itself put in front is left away."""
    server = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "book"}

    assert [
        each.name for each in calls(envoy(1, "a__book", routed=False), span(2, "tools/call book", server, parent=1))
    ] == [
        "a__book",
        "book",
    ]


def agentgateway(number: int, attributes: dict[str, Any], name: str = "tools/call", **fields: Any) -> Span:
    """A span of agentgateway for one request, with a status only where HTTP failed, as of 1.4.1 (75b4e6c)."""
    route = {
        "gateway": "default/gw",
        "route": "default/mcp",
        "http.status": 200,
        "protocol": "mcp",
        "url.scheme": "http",
    }
    return span(number, name, {**route, **attributes}, kind=2, scope="agentgateway", **fields)


CALLED = {"mcp.method.name": "tools/call", "mcp.target": "rooms", "mcp.resource.type": "tool", "mcp.session.id": "s"}


def test_agentgateway() -> None:
    """An error of the protocol shows in attributes; the answer to a tool that failed is none of those."""
    wrong = {**CALLED, "gen_ai.tool.name": "boko", "mcp.error.code": -32602, "mcp.error.message": "tool not found"}
    coded = {**CALLED, "gen_ai.tool.name": "book", "mcp.error.code": -32603}

    made = calls(
        agentgateway(1, {**CALLED, "gen_ai.tool.name": "book"}),
        agentgateway(2, wrong, at_ms=5),
        agentgateway(3, coded, at_ms=9),
        agentgateway(4, {"mcp.method.name": "server/discover", "mcp.error.code": -32601, "mcp.error.message": "no"}),
    )

    assert made == [
        call(1, "book"),
        call(2, "boko", at_ms=5, error="-32602: tool not found"),
        call(3, "book", at_ms=9, error="-32603"),
    ]
    assert [each.error_type for each in made] == [None, "-32602", "-32603"]


def test_agentgateway_s_first_versions() -> None:
    """From 0.10 to 1.0.0: another name for the method, and the tool as a resource."""
    old = {"mcp.method": "tools/call", "mcp.target": "rooms", "mcp.resource.name": "book"}

    assert calls(
        agentgateway(1, {**old, "mcp.resource.type": "tool"}, "POST /*"),
        agentgateway(2, {**old, "mcp.method": "prompts/get", "mcp.resource.type": "prompt"}, "POST /*"),
    ) == [call(1, "book")]


@pytest.mark.parametrize("called", ["rooms_book", "book", "mcp__gateway__rooms_book"])
def test_a_call_through_agentgateway_is_one(called: str) -> None:
    """With several targets the agent knows each tool by its target's name in front."""
    names = {**CALLED, "gen_ai.tool.name": "book", "mcp.error.code": -32000, "mcp.error.message": "full"}
    inner = span(3, "tools/call rooms", parent=2, scope="agentgateway")
    outbound = {"mcp.target": "rooms", "mcp.method.name": "tools/call", "gen_ai.tool.name": "book"}
    server = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "book", "gen_ai.operation.name": "execute_tool"}

    assert calls(
        tool(1, called, PARIS, "c1"),
        agentgateway(2, names, parent=1),
        inner,
        span(4, "tools/call rooms_book", outbound, parent=3, kind=3, scope="agentgateway"),
        span(5, "tools/call book", server, parent=4, kind=2),
    ) == [call(1, called, PARIS, call_id="c1", error="-32000: full")]
