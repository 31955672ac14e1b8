from __future__ import annotations

from typing import Any

from dialects.spans import call, calls, exception, read, span
from spanscore.model import Span, StatusCode

SCOPE = "openinference.instrumentation.beeai"


def node(number: int, name: str, kind: str, parent: int = 0, **attributes: Any) -> Span:
    """A span of an agent, a tool or one of their events."""
    held = {key.replace("__", "."): value for key, value in attributes.items()}
    return span(number, name, {"openinference.span.kind": kind, **held}, parent=parent, scope=SCOPE)


def test_arguments_are_unwrapped_and_events_are_no_calls() -> None:
    """The options of a tool stand beside its arguments. An event of a tool or an agent is a span of the same kind."""
    given = '{"input": {"city": "Oslo"}, "options": null}'
    failed = node(3, "search", "TOOL", 1, tool__name="search", input__value=given, output__value="no")
    failed = failed._replace(status_code=StatusCode.ERROR, events=(exception("ToolError", "no"),))
    event = node(4, "error", "TOOL", 3, input__value='{"error": "no"}', metadata__path="tool.search.error")

    (trajectory,) = read(
        node(1, "planner", "AGENT", agent__name="planner"),
        node(2, "final_answer", "AGENT", 1, metadata__path="agent.requirement.final_answer"),
        failed,
        event._replace(status_code=StatusCode.ERROR, events=(exception("ToolError", "no"),)),
    )

    assert trajectory.calls == (
        call(
            3, "search", {"city": "Oslo"}, result="no", error="ToolError: no", error_type="ToolError", agent="planner"
        ),
    )
    assert [each.agent for each in trajectory.invocations or ()] == ["planner"]


def test_an_argument_of_the_tool_may_be_called_input() -> None:
    """Other keys beside it say that nothing is wrapped."""
    given = '{"input": {"a": 1}, "mode": "fast"}'

    assert calls(node(1, "run", "TOOL", tool__name="run", input__value=given)) == [
        call(1, "run", {"input": {"a": 1}, "mode": "fast"})
    ]


def event(number: int, name: str, kind: str, parent: int, **attributes: Any) -> Span:
    """A span of the first versions, which is an event."""
    return node(number, name, kind, parent, target=name, **attributes)


def test_in_the_first_versions_the_events_of_a_tool_are_one_call() -> None:
    """The start tells the arguments, and the end the result or the failure; the agent repeats both."""
    asked = '{"query": "Oslo"}'
    failed = event(7, "tool.search.wikipedia.error-1", "TOOL", 5)._replace(status_code=StatusCode.ERROR)

    assert calls(
        node(1, "beeai-framework-main", "AGENT"),
        event(2, "agent.react.update-1", "AGENT", 1, tool__name="Wikipedia", tool__parameters="null"),
        event(3, "tool.search.wikipedia.start-1", "TOOL", 1, tool__parameters=asked),
        event(4, "tool.search.wikipedia.success-1", "TOOL", 1, tool__parameters=asked, output__value='["a city"]'),
        event(5, "agent.react.update-2", "AGENT", 1, tool__name="Wikipedia", tool__parameters=asked),
        event(6, "tool.search.wikipedia.start-2", "TOOL", 1, tool__parameters='{"query": "Bern"}'),
        failed,
        event(8, "tool.search.wikipedia.finish-2", "TOOL", 1),
    ) == [
        call(3, "wikipedia", {"query": "Oslo"}, result=["a city"]),
        call(6, "wikipedia", {"query": "Bern"}, error="error"),
    ]
