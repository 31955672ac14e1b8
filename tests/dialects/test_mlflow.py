from __future__ import annotations

import json
from typing import Any

from dialects.spans import call, calls, exception, read, span, span_id
from spanscore.model import Span, StatusCode


def traced(number: int, name: str, kind: str, **attributes: Any) -> Span:
    """A span of MLflow's: every attribute is JSON, plain strings too."""
    held = {"mlflow.spanType": kind, **{f"mlflow.{key}": value for key, value in attributes.items()}}
    encoded = {key: json.dumps(value) for key, value in held.items()}
    return span(number, name, encoded, parent=number - 1, scope="mlflow.tracing.provider")


def test_quotes_are_stripped() -> None:
    """The tool's name is the function's, the agent's the span's."""
    run = traced(1, "planner", "AGENT", spanFunctionName="agent")
    tool = traced(
        2, "book_1", "TOOL", spanFunctionName="book", spanInputs={"nights": 2}, spanOutputs={"content": "BK-1"}
    )

    (trajectory,) = read(run, tool)

    assert trajectory.calls == (call(2, "book", {"nights": 2}, result={"content": "BK-1"}, agent="planner"),)


def test_langchain_autologging() -> None:
    """The result is a tool message; the call id has an attribute; the metadata names the agent."""
    metadata = {"metadata": json.dumps({"lc_agent_name": "clerk"})}
    message = {"type": "tool", "name": "book", "content": '{"id": "BK-1"}', "tool_call_id": "c1", "status": "success"}
    root = traced(1, "team", "CHAIN")
    run = traced(2, "clerk", "CHAIN")
    node = traced(3, "tools", "CHAIN")
    tool = traced(4, "book", "TOOL", spanInputs={"nights": 2}, spanOutputs=message)
    bare = traced(5, "book", "TOOL", spanInputs={})._replace(parent_span_id=node.span_id)

    spans = [root, *(each._replace(attributes={**each.attributes, **metadata}) for each in (run, node))]
    tool = tool._replace(attributes={**tool.attributes, **metadata, "tool_call_id": '"c1"'})
    bare = bare._replace(attributes={**bare.attributes, "tool_call_id": "null"})
    (trajectory,) = read(*spans, tool, bare)

    assert trajectory.agent == "team"
    assert trajectory.calls == (
        call(4, "book", {"nights": 2}, result={"id": "BK-1"}, call_id="c1", agent="clerk"),
        call(5, "book", {}, agent="clerk"),
    )


def test_a_failure_and_the_ids_of_the_model_s_answer() -> None:
    """Tools that the application traces itself have no call id."""
    request = {"id": "c1", "type": "function", "function": {"name": "book", "arguments": "{}"}}
    model = traced(1, "llm", "CHAT_MODEL", spanOutputs={"choices": [{"message": {"tool_calls": [request]}}]})
    failed = traced(2, "book", "TOOL", spanInputs={})
    failed = failed._replace(status_code=StatusCode.ERROR, events=(exception("ValueError", "full"),))

    assert calls(model, failed) == [call(2, "book", {}, call_id="c1", error="ValueError: full")]


def test_an_agent_has_its_own_name_where_the_span_has_that_of_a_method() -> None:
    """So autologging does with agents of Pydantic AI, whose two spans are one run. Some agents have no name."""

    def autologged(number: int, method: str, name: str, parent: int = 0) -> Span:
        return span(number, method, {"mlflow.spanType": '"AGENT"', "name": name}, parent=parent)

    tool = span(3, "book", {"mlflow.spanType": '"TOOL"', "mlflow.spanInputs": "{}"}, parent=2)
    named = (autologged(1, "Agent.run_sync", '"planner"'), autologged(2, "Agent.run", '"planner"', 1), tool)
    nameless = (autologged(1, "Agent.run_sync", "null"), tool._replace(parent_span_id=span_id(1)))

    assert calls(*named) == [call(3, "book", {}, agent="planner")]
    assert [run.agent for run in read(*named)] == ["planner"]
    assert [run.agent for run in read(*nameless)] == ["Agent.run_sync"]


def agents_run(*spans: Span) -> tuple[Span, ...]:
    """A run of the OpenAI Agents SDK: the method's span is around that of the agent."""
    root = traced(1, "AgentRunner.run", "AGENT", **{"openai.agent_run_root": True})
    asked = [{"type": "function_call", "call_id": "c1", "name": "book", "arguments": "{}"}]
    return root, traced(2, "desk", "AGENT"), traced(3, "Response", "CHAT_MODEL", spanOutputs=asked), *spans


def test_a_tool_of_openai_agents_whose_output_is_null_waits_at_the_end() -> None:
    """The span of a function that returns nothing has the function's name."""
    (run,) = read(*agents_run(traced(4, "book", "TOOL", spanInputs={}, spanOutputs=None)))
    (made,) = read(*agents_run(traced(4, "book", "TOOL", spanFunctionName="book", spanInputs={}, spanOutputs=None)))

    assert (run.agent, run.calls, run.completeness.paused) == ("desk", (), ("book",))
    assert made.calls == (call(4, "book", {}, result=None, call_id="c1", agent="desk"),)


def test_a_hand_off_of_openai_agents_is_no_call() -> None:
    """The next model is sent its result."""
    asked = [{"type": "function_call", "call_id": "c2", "name": "transfer_to_x", "arguments": "{}"}]
    sent = [*asked, {"type": "function_call_output", "call_id": "c2", "output": '{"assistant": "x"}'}]
    (run,) = read(
        *agents_run(),
        traced(4, "book", "TOOL", spanInputs={}, spanOutputs='{"id": 7}'),
        traced(5, "Response", "CHAT_MODEL", spanOutputs=asked),
        traced(6, "Handoff", "CHAIN", spanInputs={"from_agent": "desk"}, spanOutputs={"to_agent": "x"}),
        traced(7, "Response", "CHAT_MODEL", spanInputs=sent, spanOutputs="Done."),
    )

    assert [(each.name, each.result) for each in run.calls] == [("book", {"id": 7})]
