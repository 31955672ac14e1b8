"""The JavaScript sides of Strands Agents, Google ADK and the OpenAI Agents SDK."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialects.spans import call, calls, event, read, span
from spanscore.model import Span, StatusCode

WEATHER = {"city": "Zürich", "days": 2}
SUNNY = {"city": "Zürich", "sky": "clear"}


def semconv_agent(name: str = "travel_agent", scope: str = "", number: int = 1, parent: int = 0) -> Span:
    """The run of an agent by the GenAI conventions."""
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
    return span(number, f"invoke_agent {name}", attributes, parent=parent, scope=scope)


def strands_tool(number: int, scope: str = "strands-agents", *, parent: int = 1, **fields: Any) -> Span:
    """An execution by Strands Agents."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_weather",
        "gen_ai.tool.call.id": f"tool_{number}",
        "gen_ai.event.start_time": "2026-01-01T00:00:00Z",
        **fields.pop("attributes", {}),
    }
    return span(number, "execute_tool get_weather", attributes, parent=parent, scope=scope, **fields)


@pytest.mark.parametrize(
    ("answer", "result"),
    [('[{"json":{"sky":"clear"}}]', {"sky": "clear"}), ('[{"text":"clear"}]', "clear"), ('[{"json":{"$value":7}}]', 7)],
    ids=["object", "string", "value"],
)
@pytest.mark.parametrize("scope", ["strands-agents", "my-service"])
def test_strands_writes_content_into_events(answer: str, result: Any, scope: str) -> None:
    """Arguments and results stand in events; the scope is the service's name when the environment gives one."""
    noted = (
        event("gen_ai.tool.message", {"role": "tool", "content": json.dumps(WEATHER), "id": "tool_2"}),
        event("gen_ai.choice", {"message": answer, "id": "tool_2"}),
    )
    executed = strands_tool(2, scope, attributes={"gen_ai.tool.status": "success"}, events=noted)

    assert calls(semconv_agent(scope=scope), executed) == [
        call(2, "get_weather", WEATHER, result=result, call_id="tool_2", agent="travel_agent")
    ]


def test_strands_tells_of_an_unknown_tool_with_a_status_of_its_own() -> None:
    """The span's status is OK: `gen_ai.tool.status` and the answer to the model tell."""
    answer = event("gen_ai.choice", {"message": '[{"text":"Unknown tool: get_weather"}]'})
    refused = strands_tool(2, attributes={"gen_ai.tool.status": "error"}, events=(answer,), status_code=StatusCode.OK)

    assert ["Unknown tool: get_weather"] == [made.error for made in calls(semconv_agent(), refused)]


def test_a_tool_and_the_tool_called_inside_it_may_start_together() -> None:
    """Start times are whole milliseconds: the outer call still comes first, whichever span arrives first."""
    outer = strands_tool(2, attributes={"gen_ai.tool.name": "ask_weather_agent"}, at_ms=5)
    inner = strands_tool(4, parent=3, at_ms=5)
    spans = (inner, semconv_agent("weather_agent", number=3, parent=2), outer, semconv_agent("orchestrator"))

    assert [("ask_weather_agent", "orchestrator"), ("get_weather", "weather_agent")] == [
        (made.name, made.agent) for made in calls(*spans)
    ]


def adk_tool(number: int, name: str, arguments: str, response: str) -> Span:
    """An execution by Google ADK."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": f"call_{number}",
        "gcp.vertex.agent.tool_call_args": arguments,
        "gcp.vertex.agent.tool_response": response,
        "gcp.vertex.agent.llm_response": "{}",
    }
    return span(number, f"execute_tool {name}", attributes, parent=1, scope="gcp.vertex.agent")


@pytest.mark.parametrize(
    ("response", "result"),
    [('{"results":[1,2]}', [1, 2]), ('{"result":"BK-1001"}', "BK-1001"), ('{"sky":"clear"}', {"sky": "clear"})],
    ids=["list", "scalar", "object"],
)
def test_adk_wraps_what_is_no_object(response: str, result: Any) -> None:
    """Lists and scalars get an object around them."""
    assert calls(semconv_agent(), adk_tool(2, "f", '{"x":1}', response)) == [
        call(2, "f", {"x": 1}, result=result, call_id="call_2", agent="travel_agent")
    ]


def test_adk_writes_empty_objects_when_content_is_off() -> None:
    """Both texts are `{}` then: not recorded, which is not the same as empty."""
    assert calls(semconv_agent(), adk_tool(2, "f", "{}", "{}")) == [
        call(2, "f", call_id="call_2", agent="travel_agent")
    ]


def test_adk_leaves_a_span_without_attributes_when_the_tool_raised() -> None:
    """Neither status nor event: that nothing is there is the sign. The model's request completes the call."""
    asked = {"content": {"parts": [{"functionCall": {"id": "call_1", "name": "f", "args": {"x": 1}}}]}}
    model = span(
        2,
        "call_llm",
        {"gcp.vertex.agent.llm_response": json.dumps(asked), "gcp.vertex.agent.session_id": "sess-42"},
        parent=1,
        scope="gcp.vertex.agent",
    )
    raised = span(3, "execute_tool f", parent=1, scope="gcp.vertex.agent")

    (trajectory,) = read(semconv_agent(), model, raised)

    assert trajectory.calls == (
        call(3, "f", {"x": 1}, error="the tool raised", call_id="call_1", agent="travel_agent"),
    )
    assert "sess-42" == trajectory.conversation_id


def test_adk_adds_one_span_to_a_parallel_batch() -> None:
    """`execute_tool (merged)` looks like a call in every attribute."""
    merged = adk_tool(3, "(merged tools)", "N/A", "{}")._replace(name="execute_tool (merged)")

    assert ["f"] == [made.name for made in calls(semconv_agent(), adk_tool(2, "f", '{"x":1}', '{"y":2}'), merged)]


AGENTS = "@arizeai/openinference-instrumentation-openai-agents"


def agents_span(number: int, name: str, kind: str, parent: int = 0, **attributes: Any) -> Span:
    """A span of the OpenAI Agents SDK under OpenInference."""
    return span(number, name, {"openinference.span.kind": kind, **attributes}, parent=parent, scope=AGENTS)


def test_openai_agents_hand_off_is_no_call() -> None:
    """In JavaScript it even has a tool's name, which is not the one that the model called."""
    spans = (
        agents_span(1, "trip workflow", "AGENT"),
        agents_span(2, "triage", "AGENT", 1, **{"graph.node.id": "triage"}),
        agents_span(3, "handoff to refunds", "TOOL", 2, **{"tool.name": "handoff_to_refunds", "input.value": "{}"}),
        agents_span(4, "refunds", "AGENT", 1, **{"graph.node.id": "refunds"}),
        agents_span(5, "lookup", "TOOL", 4, **{"tool.name": "lookup", "input.value": '{"topic":"x"}'}),
    )

    assert calls(*spans) == [call(5, "lookup", {"topic": "x"}, agent="refunds")]
    assert "triage" == read(*spans)[0].agent


def test_openai_agents_never_ends_the_trace_of_a_run_that_threw() -> None:
    """The root is missing: the run's own span stands for it."""
    spans = (
        agents_span(2, "travel_agent", "AGENT", 1, **{"graph.node.id": "travel_agent"}),
        agents_span(
            3, "charge_card", "TOOL", 2, **{"tool.name": "charge_card", "input.value": '{"amount":1}'}
        )._replace(status_code=StatusCode.ERROR, status_message="Error: declined"),
    )

    (trajectory,) = read(*spans)

    assert trajectory.calls == (call(3, "charge_card", {"amount": 1}, error="Error: declined", agent="travel_agent"),)
    assert 1 == trajectory.completeness.parents_missing


def test_openai_agents_leaves_out_arguments_that_failed_validation() -> None:
    """The request tells what they were."""
    model = agents_span(
        3,
        "generation",
        "LLM",
        2,
        **{
            "llm.output_messages.0.message.tool_calls.0.tool_call.id": "call_1",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "lookup",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"topic":7}',
        },
    )
    refused = agents_span(4, "lookup", "TOOL", 2, **{"tool.name": "lookup", "output.value": "Invalid input"})
    spans = (agents_span(2, "travel_agent", "AGENT", **{"graph.node.id": "travel_agent"}), model, refused)

    assert calls(*spans) == [
        call(4, "lookup", {"topic": 7}, result="Invalid input", call_id="call_1", agent="travel_agent")
    ]
