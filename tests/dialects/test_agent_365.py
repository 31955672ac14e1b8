"""Microsoft Agent 365's observability, as version 2.0.0 writes it."""

from __future__ import annotations

from typing import Any

from dialects.spans import call, exception, read, span
from spanscore.model import Span, StatusCode

SCOPE = "microsoft_agents_a365.observability.core.config"


def node(number: int, name: str, operation: str | None = None, parent: int = 1, **attributes: Any) -> Span:
    """A span of an extension; keys are below `gen_ai`."""
    held = {f"gen_ai.{key.replace('__', '.')}": value for key, value in attributes.items()}
    told = {"gen_ai.operation.name": operation} if operation else {}
    return span(number, name, {**told, **held}, parent=parent, scope=SCOPE)


def test_a_graph_is_an_agent() -> None:
    """A graph is the root, without an operation. The scope alone marks its steps, so that an interrupt is seen."""
    root = span(1, "shop", {"microsoft.session.id": "s-1"}, scope=SCOPE)
    made = node(3, "execute_tool book", "execute_tool", tool__name="book", tool__call__result="BK-1")
    stopped = node(4, "Approval.after_model", None)._replace(
        status_code=StatusCode.ERROR, events=(exception("langgraph.errors.GraphInterrupt", "(Interrupt(value=1),)"),)
    )

    (run,) = read(root, node(2, "chat m", "chat"), made, stopped)

    assert run.calls == (call(3, "book", result="BK-1", agent="shop"),)
    assert (run.agent, run.conversation_id, run.completeness.paused) == ("shop", "s-1", ("",))


def test_the_openai_agents_sdk() -> None:
    """The agent's name is in the name of its span; a tool that waits has no result."""
    run = node(2, "invoke_agent shop", "invoke_agent")
    waits = node(4, "execute_tool pay", "execute_tool", 2, tool__name="pay", tool__call__arguments="{}")
    before = node(1, "Agent workflow", "chain", 0), run, node(3, "chat m", "chat", 2)

    (paused,) = read(*before, waits)
    (whole,) = read(*before, waits, node(5, "chat m", "chat", 2))

    assert (paused.agent, paused.calls, paused.completeness.paused) == ("shop", (), ("pay",))
    assert whole.calls == (call(4, "pay", {}, agent="shop"),)


def test_without_content_no_tool_waits() -> None:
    """None has a result then."""
    run = node(1, "invoke_agent shop", "invoke_agent", 0), node(2, "chat m", "chat")
    (made,) = read(*run, node(3, "execute_tool pay", "execute_tool", tool__name="pay"))
    assert (made.names, made.completeness.paused) == (("pay",), ())


def test_the_attribute_of_an_agent_wins() -> None:
    """A root without a session is no agent."""
    made = node(2, "execute_tool pay", "execute_tool", tool__name="pay", tool__call__result="ok")
    for root, expected in (
        (node(1, "invoke_agent shop v1", "invoke_agent", 0, agent__name="shop"), "shop"),
        (node(1, "GET /", None, 0), None),
    ):
        (run,) = read(root, made)
        assert run.agent == expected
