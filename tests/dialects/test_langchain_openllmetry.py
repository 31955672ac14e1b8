from __future__ import annotations

import json
from typing import Any

import pytest

from dialects.spans import call, calls, exception, read, span
from spanscore.model import Span, StatusCode

SCOPE = "opentelemetry.instrumentation.langchain"
PROPERTIES = "traceloop.association.properties"


def given(arguments: dict[str, Any], **fields: Any) -> str:
    """What LangChain's callbacks were told when a tool started."""
    return json.dumps({"input_str": repr(arguments), "inputs": arguments, "metadata": {}, "tags": [], **fields})


def returned(content: str, call_id: str) -> str:
    """What they were told when it ended."""
    message = {"content": content, "type": "tool", "tool_call_id": call_id, "status": "success"}
    constructor = {"lc": 1, "type": "constructor", "id": ["langchain", "ToolMessage"], "kwargs": message}
    return json.dumps({"output": constructor, "kwargs": {}})


def test_with_the_convention() -> None:
    """The call id stands beside the arguments."""
    run = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"}
    wrapped = given({"city": "Zürich"}, kwargs={"tool_call_id": "c1"})
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_weather",
        "gen_ai.tool.call.arguments": wrapped,
        "traceloop.entity.input": wrapped,
        "gen_ai.tool.call.result": returned('{"sky": "clear"}', "c1"),
        "traceloop.entity.name": "get_weather",
        "traceloop.span.kind": "tool",
        f"{PROPERTIES}.session_id": "s-1",
    }
    spans = [
        span(1, "invoke_agent planner", run, scope=SCOPE),
        span(2, "execute_tool get_weather", attributes, parent=1, scope=SCOPE),
    ]

    (trajectory,) = read(*spans)

    assert trajectory.calls == (
        call(2, "get_weather", {"city": "Zürich"}, result={"sky": "clear"}, call_id="c1", agent="planner"),
    )
    assert trajectory.conversation_id == "s-1"


def tool_0x(number: int, **attributes: Any) -> Span:
    """A tool span of the versions for LangChain 0.3."""
    held = {"traceloop.span.kind": "tool", "traceloop.entity.name": "book", **attributes}
    return span(number, "book.tool", held, parent=1, scope=SCOPE)


def test_before_the_convention() -> None:
    """The graph is a workflow, and a failed call has no result to tell its id."""
    graph = {"traceloop.span.kind": "workflow", "traceloop.entity.name": "planner"}
    made = {"traceloop.entity.input": given({"nights": 2}), "traceloop.entity.output": returned("BK-1", "c2")}
    failed = tool_0x(3, **{"traceloop.entity.input": given({"nights": 3})})
    failed = failed._replace(status_code=StatusCode.ERROR, events=(exception("ValueError", "full"),))

    (trajectory,) = read(span(1, "planner.workflow", graph, scope=SCOPE), tool_0x(2, **made), failed)

    assert trajectory.calls == (
        call(2, "book", {"nights": 2}, result="BK-1", call_id="c2", agent="planner"),
        call(3, "book", {"nights": 3}, error="ValueError: full", agent="planner"),
    )
    assert trajectory.agent == "planner"


@pytest.mark.parametrize("printed", [{"input_str": "{'nights': 2}"}, {"input_str": '{"nights": 2}', "tags": []}])
def test_arguments_that_are_only_printed(printed: dict[str, Any]) -> None:
    """As older versions do."""
    assert calls(tool_0x(2, **{"traceloop.entity.input": json.dumps(printed)})) == [call(2, "book", {"nights": 2})]


def test_with_content_off() -> None:
    """Names remain."""
    assert calls(tool_0x(2)) == [call(2, "book")]


def test_an_agent_within_a_graph_is_named_by_its_properties() -> None:
    """On the spans of the agent's graph and on those of its tools."""
    named = {f"{PROPERTIES}.lc_agent_name": "booker"}
    inner = {"traceloop.span.kind": "task", "traceloop.entity.name": "booker", **named}
    tool = {"traceloop.entity.input": given({}), **named}
    spans = [
        span(1, "team.workflow", {"traceloop.span.kind": "workflow", "traceloop.entity.name": "team"}, scope=SCOPE),
        tool_0x(3, **tool)._replace(parent_span_id=bytes(7) + b"\x02"),
        span(2, "execute_task booker", inner, parent=1, scope=SCOPE),
    ]

    (trajectory,) = read(*spans)

    assert (trajectory.agent, [made.agent for made in trajectory.calls]) == ("team", ["booker"])


JAVASCRIPT = "@traceloop/instrumentation-langchain"
USER = {"lc": 1, "id": ["langchain_core", "messages", "HumanMessage"], "kwargs": {"content": "Refund A-1"}}


def said(number: int, *requests: dict[str, Any]) -> dict[str, Any]:
    """A model's message."""
    kwargs = {"id": f"m{number}", "content": "", "tool_calls": list(requests)}
    return {"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", "AIMessage"], "kwargs": kwargs}


def answered(call_id: str, content: str) -> dict[str, Any]:
    """The result of a call: its message has no type."""
    kwargs = {"content": content, "tool_call_id": call_id}
    return {"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", "ToolMessage"], "kwargs": kwargs}


def part(number: int, name: str, given: Any, told: Any, space: str = "", **fields: Any) -> Span:
    """A step of a graph, or the graph: all of them stand beside each other."""
    separators = f",{space}", f":{space}"
    attributes = {
        "traceloop.span.kind": "workflow",
        "traceloop.workflow.name": name,
        "traceloop.entity.input": json.dumps(given, separators=separators),
        "traceloop.entity.output": json.dumps(told, separators=separators),
    }
    return span(number, f"workflow {name}", attributes, parent=1, scope=JAVASCRIPT, **fields)


def executed(number: int, content: str | None, call_id: str, **fields: Any) -> Span:
    """A call, of which only the result names the tool's call."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "traceloop.entity.name": "issue_refund",
        "traceloop.entity.input": json.dumps({"args": ['{"order_id":"A-1"}']}),
    }
    if content is not None:
        attributes["traceloop.entity.output"] = json.dumps(answered(call_id, content))
    return span(number, "execute_tool DynamicStructuredTool", attributes, parent=1, scope=JAVASCRIPT, **fields)


LOOKUP = {"name": "lookup_order", "args": {"order_id": "A-1"}, "id": "c1"}
REFUND = {"name": "issue_refund", "args": {"order_id": "A-1"}, "id": "c2"}
BEFORE = [USER, said(1, LOOKUP), answered("c1", "40"), said(2, REFUND)]
RESUMED = {"lg_name": "Command", "resume": {"decisions": [{"type": "approve"}]}, "goto": []}
ROOT = span(1, "POST /refunds", {}, scope="app")


@pytest.mark.parametrize("space", ["", " "])
def test_a_graph_of_javascript_that_continues(space: str) -> None:
    """A middleware repeats the message that a person has decided about; a Collector may have written the JSON anew."""
    (run,) = read(
        ROOT,
        part(2, "CompiledStateGraph", RESUMED, {}, space),
        part(3, "RunnableSequence", {"messages": BEFORE}, {"messages": [said(2, REFUND)]}, space),
        executed(4, "ok", "c2"),
        part(5, "RunnableSequence", {"messages": [*BEFORE, answered("c2", "ok")]}, {"messages": [said(3)]}, space),
    )

    assert [("lookup_order", True), ("issue_refund", False)] == [(made.name, made.restored) for made in run.calls]
    assert (run.calls[0].result, run.completeness.resumed, run.uncertain) == (40, True, ())


def test_a_graph_of_javascript_that_continues_with_a_refusal() -> None:
    """The refusal is the result of the call, in the framework's words."""
    refusal = answered("c2", "User rejected the tool call for `issue_refund` with id c2")

    (run,) = read(
        ROOT,
        part(2, "CompiledStateGraph", RESUMED, {}),
        part(3, "RunnableSequence", {"messages": BEFORE}, {"messages": [said(2, REFUND), refusal]}),
        part(4, "RunnableSequence", {"messages": [*BEFORE, refusal]}, {"messages": [said(3)]}),
    )

    assert ["lookup_order"] == [made.name for made in run.calls]
    assert [("issue_refund", "refused")] == [(each.name, each.state) for each in run.withheld]


def test_a_graph_of_javascript_that_pauses_in_a_tool() -> None:
    """The step that calls the tool fails as well, and stands beside it: both are one pause."""
    raised = {
        "events": (exception("GraphInterrupt", '[\n  {\n    "id": "x",\n    "value": "ok?"\n  }\n]'),),
        "status_code": StatusCode.ERROR,
    }
    step = part(5, "RunnableSequence", {"messages": BEFORE[:1]}, None, **raised)._replace(end_ns=ROOT.end_ns * 2)

    (run,) = read(
        ROOT,
        part(2, "CompiledStateGraph", {"messages": []}, {}),
        part(3, "RunnableSequence", {"messages": BEFORE[:1]}, {"messages": [said(1, REFUND)]}),
        step,
        executed(6, None, "c2", **raised),
    )

    assert ((), ("issue_refund",)) == (run.calls, run.completeness.paused)
