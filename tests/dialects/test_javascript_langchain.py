"""LangChain.js and LangGraph.js under OpenInference and under Traceloop."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialects.spans import call, calls, exception, read, span
from spanscore.model import NOT_RECORDED, Span, StatusCode, Unit

WEATHER = {"city": "Zürich", "days": 2}
SUNNY = {"city": "Zürich", "sky": "clear"}


LANGCHAIN = "@arizeai/openinference-instrumentation-langchain"


def langchain_tool(number: int, given: str, content: Any, **fields: Any) -> Span:
    """An execution of LangChain.js under OpenInference."""
    message = {"status": "success", "content": content, "tool_call_id": f"call_{number}", "name": "lookup"}
    attributes = {
        "openinference.span.kind": "TOOL",
        "tool.name": "lookup",
        "input.value": given,
        "output.value": json.dumps({"output": {"lc": 1, "id": ["langchain_core"], "kwargs": message}}),
        **fields.pop("attributes", {}),
    }
    return span(number, "lookup", attributes, parent=1, scope=LANGCHAIN, **fields)


def langchain_model(number: int, *requests: tuple[str, dict[str, Any]]) -> Span:
    """A request to the model."""
    asked = [{"id": call_id, "name": "lookup", "args": given, "type": "tool_call"} for call_id, given in requests]
    generation = {"message": {"lc": 1, "kwargs": {"content": "", "tool_calls": asked}}}
    attributes = {"openinference.span.kind": "LLM", "output.value": json.dumps({"generations": [[generation]]})}
    return span(number, "Model", attributes, parent=1, scope=LANGCHAIN)


GRAPH = span(1, "travel_agent", {"openinference.span.kind": "CHAIN", "session.id": "sess-42"}, scope=LANGCHAIN)


def test_langchain_keeps_id_and_result_in_a_serialised_message() -> None:
    """The ToolMessage stands below `output` and `kwargs`; the graph's name is the agent's."""
    (trajectory,) = read(GRAPH, langchain_tool(2, json.dumps(WEATHER), json.dumps(SUNNY)))

    assert trajectory.calls == (call(2, "lookup", WEATHER, result=SUNNY, call_id="call_2", agent="travel_agent"),)
    assert "sess-42" == trajectory.conversation_id


@pytest.mark.parametrize("given", ["refunds", '{"topic": 1}', "42", "[1]"])
def test_langchain_drops_the_name_of_an_only_argument(given: str) -> None:
    """A single string is written bare, even if it is JSON itself: what the model asked for tells the truth."""
    executed = langchain_tool(3, given, "ok")

    assert [{"topic": given}] == [
        made.arguments for made in calls(GRAPH, langchain_model(2, ("call_3", {"topic": given})), executed)
    ]


def test_langchain_redacts_on_demand() -> None:
    """Hidden content is a mark in place of the text."""
    hidden = langchain_tool(2, "__REDACTED__", "", attributes={"output.value": "__REDACTED__"})

    assert calls(GRAPH, hidden) == [call(2, "lookup", agent="travel_agent")]


def test_langchain_names_a_nested_agent_in_the_metadata() -> None:
    """A graph below a tool is a chain like any other, but for the agent's name that its metadata repeats."""
    named = {"metadata": '{"lc_agent_name":"weather_agent","langgraph_node":"tools"}'}
    graph = span(3, "weather_agent", {"openinference.span.kind": "CHAIN", **named}, parent=2, scope=LANGCHAIN)
    inner = langchain_tool(4, json.dumps(WEATHER), "ok", attributes=named)._replace(parent_span_id=graph.span_id)

    assert [("travel_agent", 1), ("weather_agent", 1)] == [
        (run.agent, len(run.calls)) for run in read(GRAPH, langchain_tool(2, "{}", "ok"), graph, inner, unit=Unit.AGENT)
    ]


TRACELOOP = "@traceloop/instrumentation-langchain"


def traceloop_tool(number: int, given: Any, message: dict[str, Any] | None, *, parent: int = 0, **fields: Any) -> Span:
    """An execution of LangChain.js under Traceloop: the class of the tool stands for its name."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "traceloop.span.kind": "task",
        "traceloop.entity.name": "DynamicStructuredTool",
        **({} if given is None else {"traceloop.entity.input": json.dumps({"args": [json.dumps(given)]})}),
        **({} if message is None else {"traceloop.entity.output": json.dumps({"lc": 1, "kwargs": message})}),
    }
    return span(number, "execute_tool DynamicStructuredTool", attributes, parent=parent, scope=TRACELOOP, **fields)


def test_traceloop_tells_a_tools_name_only_in_its_answer() -> None:
    """Every other field has the class; arguments are JSON text within JSON."""
    message = {"content": json.dumps(SUNNY), "tool_call_id": "call_1", "name": "get_weather", "status": "success"}

    assert calls(traceloop_tool(1, WEATHER, message)) == [
        call(1, "get_weather", WEATHER, result=SUNNY, call_id="call_1")
    ]


@pytest.mark.parametrize("given", [WEATHER, None], ids=["content on", "content off"])
def test_a_call_whose_name_is_lost_is_still_a_call(given: Any) -> None:
    """On failure there is no answer, and with content off nowhere a name: never the class instead."""
    failed = traceloop_tool(1, given, None, status_code=StatusCode.ERROR, events=(exception("Error", "timed out"),))

    arguments = NOT_RECORDED if given is None else given
    assert calls(failed) == [call(1, "unknown", arguments, error="Error: timed out")]


@pytest.mark.parametrize(
    "envelope",
    [lambda added: {"messages": added}, lambda added: {"output": [{"update": {"messages": added}, "goto": []}]}],
    ids=["StateGraph", "createAgent"],
)
def test_below_a_span_of_the_application_lost_names_are_found_in_the_steps(envelope: Any) -> None:
    """The steps of the graph hold the model's requests: the one with the same arguments names the failed call."""
    asked = [{"id": "call_1", "name": "get_weather", "args": WEATHER, "type": "tool_call"}]
    said = {"lc": 1, "id": ["langchain_core", "messages", "AIMessage"], "kwargs": {"content": "", "tool_calls": asked}}
    step = span(
        2,
        "workflow RunnableSequence",
        {
            "gen_ai.operation.name": "workflow",
            "traceloop.span.kind": "workflow",
            "traceloop.workflow.name": "RunnableSequence",
            "traceloop.entity.output": json.dumps(envelope([said])),
        },
        parent=1,
        scope=TRACELOOP,
    )
    failed = traceloop_tool(3, WEATHER, None, parent=1, status_code=StatusCode.ERROR, status_message="timed out")

    assert calls(span(1, "POST /chat"), step, failed) == [
        call(3, "get_weather", WEATHER, error="timed out", call_id="call_1")
    ]


def test_a_step_alone_in_its_trace_makes_no_call() -> None:
    """Without a span above, every span is a trace of its own: a request there says nothing about executions."""
    asked = [{"id": "call_1", "name": "get_weather", "args": WEATHER, "type": "tool_call"}]
    said = {"lc": 1, "id": ["langchain_core", "messages", "AIMessage"], "kwargs": {"tool_calls": asked}}
    attributes = {
        "traceloop.workflow.name": "RunnableSequence",
        "traceloop.entity.output": json.dumps({"messages": [said]}),
        "gen_ai.operation.name": "workflow",
    }

    assert [] == calls(span(1, "workflow RunnableSequence", attributes, scope=TRACELOOP))


@pytest.mark.parametrize(("resume", "expected"), [(True, True), (None, False)])
def test_a_graph_that_is_given_an_answer_continues(resume: Any, *, expected: bool) -> None:
    """The `Command` is its input. With hidden content nothing else may show it."""
    command = json.dumps({"lg_name": "Command", "resume": resume, "goto": []})
    root = GRAPH._replace(attributes={**GRAPH.attributes, "input.value": command})

    (run,) = read(root, langchain_model(2))

    assert expected is run.completeness.begin_unseen


def test_a_refusal_in_a_serialised_message() -> None:
    """LangChain.js writes messages as the arguments of their constructors, and those of tools without a type."""
    kwargs = {"id": "m1", "content": "", "tool_calls": [{"id": "c1", "name": "refund", "args": {"order_id": "A-1"}}]}
    refused = "User rejected the tool call for `refund` with id c1"
    refusal = {"content": refused, "tool_call_id": "c1", "status": "error"}
    messages = [
        {"lc": 1, "id": ["langchain_core", "messages", kind], "kwargs": held}
        for kind, held in (("HumanMessage", {"content": "Refund."}), ("AIMessage", kwargs), ("ToolMessage", refusal))
    ]
    first = langchain_model(2)
    numbered = {"llm.input_messages.2.message.role": "tool", "llm.input_messages.2.message.content": refused}
    given = {**first.attributes, **numbered, "input.value": json.dumps({"messages": [messages]})}

    (run,) = read(GRAPH, first._replace(attributes=given))

    assert [("refund", "refused")] == [(each.name, each.state) for each in run.withheld]
    assert (run.calls, run.completeness.resumed) == ((), True)
