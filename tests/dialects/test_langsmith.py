from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest

from dialects.spans import call, calls, exception, read, span
from spanscore.model import AttributeValue, Span, StatusCode


def run(number: int, name: str, kind: str, parent: int = 0, metadata: Any = None, **attributes: Any) -> Span:
    """A run; what it was given is the prompt, what it returned the completion."""
    told = {f"langsmith.metadata.{key}": value for key, value in (metadata or {}).items()}
    encoded = {f"gen_ai.{key}": json.dumps(value) for key, value in attributes.items()}
    return span(number, name, {"langsmith.span.kind": kind, **told, **encoded}, parent=parent, scope="langsmith")


def test_a_tool_of_a_graph() -> None:
    """The result is a tool message; the session is metadata, and so is the agent within a graph."""
    message = {"content": '{"id": "BK-1"}', "type": "tool", "name": "book", "tool_call_id": "c1", "status": "success"}
    session = {"session_id": "s-1", "thread_id": "t-1"}
    booker = {"lc_agent_name": "booker", "langgraph_node": "booker"}
    tool = run(4, "book", "tool", 3, booker, prompt={"nights": 2}, completion={"output": message})
    tool = tool._replace(attributes={**tool.attributes, "gen_ai.tool.call.id": "c1", "gen_ai.tool.name": "book"})

    (trajectory,) = read(
        run(1, "team", "chain", metadata=session),
        run(2, "agent", "chain", 1, {"langgraph_node": "agent"}),
        run(3, "booker", "chain", 1, booker),
        tool,
        run(5, "log", "tool", 2, prompt={}, completion={"output": "done"}),
    )

    assert trajectory.calls == (
        call(4, "book", {"nights": 2}, result={"id": "BK-1"}, call_id="c1", agent="booker"),
        call(5, "log", {}, result="done", agent="team"),
    )
    assert (trajectory.agent, trajectory.conversation_id) == ("team", "s-1")


def test_the_status_of_a_failed_tool_is_chance() -> None:
    """The exception event is what tells."""
    failed = run(1, "book", "tool", prompt={}, completion={})

    assert [None, "ValueError: full", "ValueError: full"] == [
        made.error
        for made in calls(
            failed._replace(status_code=StatusCode.OK),
            failed._replace(
                span_id=bytes(7) + b"\x02", status_code=StatusCode.OK, events=(exception("ValueError", "full"),)
            ),
            failed._replace(
                span_id=bytes(7) + b"\x03", status_code=StatusCode.ERROR, events=(exception("ValueError", "full"),)
            ),
        )
    ]


def test_the_claude_agent_sdk_wraps_arguments() -> None:
    """Its conversation is a run of an agent without a name. A traced function may have an argument of that name."""
    claude = {"ls_integration": "claude-agent-sdk"}

    (trajectory,) = read(
        run(1, "claude.conversation", "chain", metadata=claude),
        run(2, "mcp__a__book", "tool", 1, claude, prompt={"input": {"city": "Oslo"}}),
        run(3, "search", "tool", 1, prompt={"input": {"city": "Oslo"}}),
    )

    assert trajectory.calls == (
        call(2, "mcp__a__book", {"city": "Oslo"}),
        call(3, "search", {"input": {"city": "Oslo"}}),
    )
    assert trajectory.agent is None


@pytest.mark.parametrize("encoded", [str.encode, lambda text: b64encode(text.encode()).decode()])
def test_bytes_of_earlier_versions(encoded: Callable[[str], AttributeValue]) -> None:
    """They hold JSON in which LangChain's arguments are printed, and a store keeps them as base64.

    A tool's own argument may have the name of what is around them.
    """
    message = {"output": {"content": "full", "type": "tool", "tool_call_id": "c1", "status": "error"}}
    failed = run(2, "book", "tool", 1, prompt={"input": "{'city': 'Zürich'}"}, completion=message)
    done = run(3, "ask", "tool", 1, prompt={"input": "{'input': 'Oslo'}"}, completion={"output": "fine"})

    assert calls(run(1, "travel", "chain"), _in_bytes(failed, encoded), _in_bytes(done, encoded)) == [
        call(2, "book", {"city": "Zürich"}, result="full", error="full", call_id="c1", agent="travel"),
        call(3, "ask", {"input": "Oslo"}, result="fine", agent="travel"),
    ]


def test_a_text_that_looks_like_base64() -> None:
    """A result is left as it is, unless it holds JSON."""
    made = run(2, "book", "tool", 1)

    (told,) = calls(
        run(1, "travel", "chain"), made._replace(attributes={**made.attributes, "gen_ai.completion": "W3C0"})
    )

    assert told.result == "W3C0"


def test_a_model_in_bytes() -> None:
    """The calls that it asked for, and their results, are in bytes, too."""
    asked = {"type": "ai", "content": "", "tool_calls": [{"name": "no_such_tool", "args": {"x": 1}, "id": "c1"}]}
    told = {"type": "tool", "content": "not a valid tool", "tool_call_id": "c1", "name": "no_such_tool"}

    (made,) = calls(
        run(1, "travel", "chain"),
        _in_bytes(run(2, "ChatOpenAI", "llm", 1, prompt={"messages": []}, completion={"output": asked})),
        _in_bytes(run(3, "ChatOpenAI", "llm", 1, prompt={"messages": [[asked, told]]}, completion={})),
    )

    assert (made.name, made.arguments, made.result) == ("no_such_tool", {"x": 1}, "not a valid tool")


def _in_bytes(written: Span, encoded: Callable[[str], AttributeValue] = str.encode) -> Span:
    told = {key: encoded(str(value)) for key, value in written.attributes.items() if key.startswith("gen_ai.")}
    return written._replace(attributes={**written.attributes, **told})
