"""Koog, as 1.1.1 writes it; the tool spans of its source are the same from 0.6.4."""

from __future__ import annotations

import uuid
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dialects.spans import call, calls, read, span
from spanscore.model import Span, StatusCode

HIDDEN = "HIDDEN:non-empty"


def step(number: int, operation: str, of: str, *, parent: int = 0, **attributes: Any) -> Span:
    """A span of one step; `of` is the agent or the tool, as its name says."""
    held = {"gen_ai.operation.name": operation, "koog.event.id": f"event-{number}", **attributes}
    return span(number, f"{operation} {of}", held, parent=parent, scope="travel")


def agent(number: int, name: str, *, parent: int = 0, **attributes: Any) -> Span:
    """The run of an agent."""
    return step(number, "invoke_agent", name, parent=parent, **{"gen_ai.agent.id": name, **attributes})


def tool(number: int, given: str, answer: str, *, parent: int = 0, **attributes: Any) -> Span:
    """A call of the tool `book`."""
    held = {
        "gen_ai.tool.name": "book",
        "gen_ai.tool.call.id": f"c{number}",
        "gen_ai.tool.call.arguments": given,
        "gen_ai.tool.call.result": answer,
    }
    return step(number, "execute_tool", "book", parent=parent, **held, **attributes)


def test_the_id_of_an_agent_is_its_name() -> None:
    """Koog has no other, and writes it once when the agent is made and once when it runs."""
    made = step(1, "create_agent", "planner", **{"gen_ai.agent.id": "planner"})

    (trajectory,) = read(made, agent(2, "planner", parent=1), tool(3, '{"nights": 2}', '"BK-1"', parent=2))

    assert trajectory.agent == "planner"
    assert trajectory.calls == (call(3, "book", {"nights": 2}, result="BK-1", call_id="c3", agent="planner"),)


def test_a_random_id_is_no_name() -> None:
    """An agent that was given none gets one at each start."""
    (trajectory,) = read(agent(1, str(uuid.UUID(int=7, version=4))), tool(2, "{}", "1", parent=1))

    assert (trajectory.agent, trajectory.calls[0].agent) == (None, None)


def test_a_name_that_somebody_added_comes_first() -> None:
    """An adapter of the user's own may write what Koog does not."""
    (trajectory,) = read(agent(1, "agent-7", **{"gen_ai.agent.name": "planner"}))

    assert trajectory.agent == "planner"


def test_hidden_content_is_not_recorded() -> None:
    """Arguments and result are hidden unless the feature is told to be verbose."""
    assert calls(tool(1, HIDDEN, HIDDEN)) == [call(1, "book", call_id="c1")]


def test_what_failed_has_no_result() -> None:
    """An empty object stands there."""
    failed = tool(1, '{"nights": 2}', "{}", **{"error.type": "java.io.IOException"})._replace(
        status_code=StatusCode.ERROR, status_message="no line"
    )
    kind = "java.io.IOException"

    assert calls(failed) == [call(1, "book", {"nights": 2}, error=f"{kind}: no line", error_type=kind, call_id="c1")]


def test_a_tool_that_does_not_exist_has_neither_description_nor_result() -> None:
    """Its status is OK; one that exists may well return an empty object."""
    unknown = tool(1, '{"a": 1}', "{}")
    known = tool(2, "{}", "{}", **{"gen_ai.tool.description": ""})

    assert calls(unknown, known) == [
        call(1, "book", {"a": 1}, error="no such tool", call_id="c1"),
        call(2, "book", {}, result={}, call_id="c2"),
    ]


@given(st.text(min_size=1).filter(lambda name: name.count("-") != 4))
def test_any_other_id_is_a_name(name: str) -> None:
    """The developer may call an agent what they like."""
    (trajectory,) = read(agent(1, name))

    assert trajectory.agent == name
