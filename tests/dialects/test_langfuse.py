from __future__ import annotations

import json
from typing import Any

from dialects.spans import call, calls, read, span
from spanscore.model import Span, StatusCode

ERROR = {"status_code": StatusCode.ERROR, "status_message": "full"}


def observed(number: int, name: str, kind: str, parent: int = 0, fields: Any = None, **observation: Any) -> Span:
    """An observation."""
    attributes = {
        "langfuse.observation.type": kind,
        "session.id": "s-1",
        **{
            f"langfuse.observation.{key}": value if isinstance(value, str) else json.dumps(value)
            for key, value in observation.items()
        },
    }
    return span(number, name, attributes, parent=parent, scope="langfuse-sdk", **(fields or {}))


def metadata(span: Span, **values: Any) -> Span:
    """The same with LangChain's metadata, each value JSON."""
    added = {f"langfuse.observation.metadata.{key}": json.dumps(value) for key, value in values.items()}
    return span._replace(attributes={**span.attributes, **added})


def test_decorated_functions_and_the_manual_api() -> None:
    """The decorator wraps the arguments; a tool's own object stays as it is."""
    (trajectory,) = read(
        observed(1, "planner", "agent"),
        observed(2, "book", "tool", 1, input={"args": [], "kwargs": {"nights": 2}}, output={"content": "BK-1"}),
        observed(3, "pay", "tool", 1, input={"amount": 9.5}, output="ok"),
        observed(4, "ping", "tool", 1, input={"args": [], "kwargs": {}}, output="pong"),
        observed(5, "log", "tool", 1, input={"args": ["a"], "kwargs": {}}),
    )

    assert trajectory.calls == (
        call(2, "book", {"nights": 2}, result={"content": "BK-1"}, agent="planner"),
        call(3, "pay", {"amount": 9.5}, result="ok", agent="planner"),
        call(4, "ping", {}, result="pong", agent="planner"),
        call(5, "log", agent="planner"),
    )
    assert (trajectory.agent, trajectory.conversation_id) == ("planner", "s-1")


def test_positional_arguments_get_their_names_from_the_request() -> None:
    """The model named them."""
    request = {"id": "c1", "type": "function", "function": {"name": "log", "arguments": '{"text": "a"}'}}
    answer = {"role": "assistant", "content": None, "tool_calls": [request]}

    assert calls(
        observed(1, "llm", "generation", output=answer),
        observed(2, "log", "tool", input={"args": ["a"], "kwargs": {}}),
    ) == [call(2, "log", {"text": "a"}, call_id="c1")]


def test_a_failure_may_show_in_the_level_alone() -> None:
    """There is no exception event."""
    assert calls(
        observed(1, "book", "tool", input={}, level="ERROR", status_message="full"),
        observed(2, "book", "tool", input={}, level="ERROR", fields=ERROR),
    ) == [call(1, "book", {}, error="full"), call(2, "book", {}, error="full")]


def test_langchain_s_callback_handler() -> None:
    """The call id and the agent are metadata; what it takes for agents by their names are nodes of the graph."""
    message = {"content": '{"id": "BK-1"}', "type": "tool", "name": "book", "tool_call_id": "c1", "status": "success"}
    root = metadata(observed(1, "team", "chain"), is_langchain_root=True)
    node = metadata(observed(2, "agent", "agent", 1), langgraph_node="agent")
    run = metadata(observed(3, "booker", "chain", 1), langgraph_node="booker", lc_agent_name="booker")
    tool = observed(4, "book", "tool", 3, input={"nights": 2}, output=message)

    (trajectory,) = read(root, node, run, metadata(tool, tool_call_id="c1"), observed(5, "log", "tool", 2, input={}))

    assert trajectory.agent == "team"
    assert trajectory.calls == (
        call(4, "book", {"nights": 2}, result={"id": "BK-1"}, call_id="c1", agent="booker"),
        call(5, "log", {}, agent="team"),
    )


GRAPH = metadata(observed(1, "refunds", "span", input={"lg_name": "Command", "resume": True, "goto": []}))


def sent(*results: str) -> dict[str, Any]:
    """Messages of LangChain.js to a model: the role of a result is the name of its tool."""
    messages: list[dict[str, Any]] = [{"content": "Refund A-1", "role": "user"}]
    for number, (name, result) in enumerate(zip(("look_up", "refund"), results, strict=False)):
        function = {"name": name, "arguments": "{}"}
        asked = {"id": f"c{number}", "type": "function", "function": function}
        messages.append({"content": "", "role": "assistant", "tool_calls": [asked]})
        messages.append({"content": result, "additional_kwargs": {}, "role": name})
    return {"messages": messages, "tools": []}


def test_a_graph_of_javascript_that_continues() -> None:
    """The results are in the order of the requests, as they have no ids."""
    refund = metadata(observed(2, "refund", "tool", 1, input={}, output="ok"), lc_agent_name="refunds")
    (run,) = read(GRAPH, refund, observed(3, "ChatOpenAI", "generation", 1, input=sent("40", "ok")))

    assert [("look_up", True, 40), ("refund", False, "ok")] == [
        (each.name, each.restored, each.result) for each in run.calls
    ]
    assert (run.completeness.resumed, run.uncertain) == (True, ())


def test_a_graph_of_javascript_that_continues_with_a_refusal() -> None:
    """A refused call has no span."""
    refused = "User rejected the tool call for `refund` with id c1"
    (run,) = read(GRAPH, observed(3, "ChatOpenAI", "generation", 1, input=sent("40", refused)))

    assert (["look_up"], [("refund", "refused")]) == (
        [each.name for each in run.calls],
        [(each.name, each.state) for each in run.withheld],
    )


def test_an_interrupt_in_javascript_is_no_failure() -> None:
    """Its level is that of a failure, and its text names the exception; a user's own may have the same name."""
    told = 'GraphInterrupt: [\n  {\n    "id": "x",\n    "value": "ok?"\n  }\n]'
    waits, fails = (
        read(observed(1, "refunds", "agent"), observed(2, "refund", "tool", 1, level="ERROR", status_message=message))[
            0
        ]
        for message in (told, "GraphInterrupt: no")
    )

    assert ((), ("refund",)) == (waits.calls, waits.completeness.paused)
    assert (["GraphInterrupt: no"], ()) == ([each.error for each in fails.calls], fails.completeness.paused)
