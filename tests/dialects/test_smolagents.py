from __future__ import annotations

import json
from typing import Any

from dialects.spans import call, calls, exception, read, span
from spanscore.model import Span, StatusCode

SCOPE = "openinference.instrumentation.smolagents"
RUN = span(1, "planner.run", {"openinference.span.kind": "AGENT", "input.value": "trip"}, scope=SCOPE)
SCHEMA = json.dumps({"city": {"type": "string"}, "days": {"type": "integer"}})


def tool(number: int, args: list[Any], kwargs: dict[str, Any], **attributes: Any) -> Span:
    """A tool span: it is named after the class, and its parameters are the schema."""
    given = json.dumps({"args": args, "sanitize_inputs_outputs": True, "kwargs": kwargs})
    held = {
        "openinference.span.kind": "TOOL",
        "tool.name": "get_weather",
        "tool.parameters": SCHEMA,
        "input.value": given,
        **attributes,
    }
    return span(number, "SimpleTool", held, parent=1, scope=SCOPE)


def test_tool_calling_agents_name_their_arguments() -> None:
    """Beside them stands a flag of the framework; the agent's name is in the name of its run."""
    (trajectory,) = read(RUN, tool(2, [], {"city": "Zürich", "days": 2}, **{"output.value": '{"sky": "clear"}'}))

    assert trajectory.calls == (
        call(2, "get_weather", {"city": "Zürich", "days": 2}, result={"sky": "clear"}, agent="planner"),
    )
    assert trajectory.agent == "planner"


def test_code_agents_pass_positional_arguments() -> None:
    """They get their names from the parameters, in their order; what is too many has none."""
    made = calls(tool(2, ["Paris", 2], {}), tool(3, ["Paris"], {"days": 2}), tool(4, ["Paris", 2, 3], {}))

    assert [{"city": "Paris", "days": 2}] * 2 == [each.arguments for each in made[:2]]
    assert made[2] == call(4, "get_weather")


def test_no_arguments_and_a_failure() -> None:
    """By status and exception event."""
    failed = tool(2, [], {})._replace(status_code=StatusCode.ERROR, events=(exception("ValueError", "full"),))

    assert calls(failed) == [call(2, "get_weather", {}, error="ValueError: full")]
