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
