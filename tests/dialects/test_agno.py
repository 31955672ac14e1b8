from __future__ import annotations

from typing import Any

from dialects.spans import call, calls, read, span
from spanscore.model import Span, StatusCode

SCOPE = "openinference.instrumentation.agno"


def tool(number: int, **attributes: Any) -> Span:
    """A tool span."""
    held = {"openinference.span.kind": "TOOL", "tool.name": "book", **attributes}
    return span(number, "book", held, parent=1, scope=SCOPE)


def test_results_are_python_reprs() -> None:
    """Arguments are JSON, results are printed; the session stands on the agent's span alone."""
    run = {"openinference.span.kind": "AGENT", "agent.name": "planner", "session.id": "s-1"}
    booked = tool(2, **{"input.value": '{"hotel": "Ritz"}', "output.value": "{'id': 'BK-1', 'paid': True}"})

    (trajectory,) = read(span(1, "planner.run", run, scope=SCOPE), booked)

    assert trajectory.calls == (
        call(2, "book", {"hotel": "Ritz"}, result={"id": "BK-1", "paid": True}, agent="planner"),
    )
    assert (trajectory.agent, trajectory.conversation_id) == ("planner", "s-1")


def test_tool_parameters_are_the_arguments() -> None:
    """Other instrumentors keep the tool's schema there."""
    assert calls(tool(2, **{"tool.parameters": '{"hotel": "Ritz"}'})) == [call(2, "book", {"hotel": "Ritz"})]


def test_a_failure_is_a_status_and_the_text_for_the_model() -> None:
    """There is no exception event."""
    failed = tool(2, **{"input.value": "{}", "output.value": "no rooms"})
    failed = failed._replace(status_code=StatusCode.ERROR, status_message="no rooms")

    assert calls(failed) == [call(2, "book", {}, result="no rooms", error="no rooms")]
