"""The function wrappers of Langfuse, LangSmith, Traceloop and OpenInference for JavaScript."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialects.spans import call, calls, exception, read, span
from spanscore.model import Span, StatusCode

NODE = {"telemetry.sdk.language": "nodejs"}
WEATHER = {"city": "Zürich", "days": 2}


def langfuse(number: int, kind: str, name: str, *, parent: int = 0, **content: Any) -> Span:
    """An observation of Langfuse."""
    attributes = {f"langfuse.observation.{key}": value for key, value in content.items()}
    return span(
        number,
        name,
        {"langfuse.observation.type": kind, "session.id": "sess-42", **attributes},
        parent=parent,
        scope="langfuse-sdk",
        resource=NODE,
    )


def test_langfuse_failures_may_show_in_the_level_alone() -> None:
    """`observe()` leaves the status unset and writes the error as the result."""
    failed = langfuse(
        2,
        "tool",
        "charge_card",
        parent=1,
        input='{"amount":1}',
        output='{"error":"Error: declined"}',
        level="ERROR",
        status_message="declined",
    )

    assert calls(langfuse(1, "agent", "travel_agent"), failed) == [
        call(
            2, "charge_card", {"amount": 1}, result={"error": "Error: declined"}, error="declined", agent="travel_agent"
        )
    ]


@pytest.mark.parametrize("given", [{"args": [], "kwargs": {"x": 1}}, {"args": [1]}, {"kwargs": {}}])
def test_langfuse_wraps_arguments_in_python_only(given: dict[str, Any]) -> None:
    """In JavaScript an object with the keys `args` and `kwargs` is what the tool was given."""
    executed = langfuse(1, "tool", "apply", input=json.dumps(given), output='{"content":"x"}')

    assert calls(executed) == [call(1, "apply", given, result={"content": "x"})]


def test_langfuse_writes_several_arguments_as_a_list() -> None:
    """Their names are lost, so they count as not recorded."""
    assert calls(langfuse(1, "tool", "apply", input='["x",2]', output="ok")) == [call(1, "apply", result="ok")]


def langsmith(number: int, kind: str, name: str, *, parent: int = 0, **fields: Any) -> Span:
    """A traced function of LangSmith."""
    attributes = {
        "langsmith.span.kind": kind,
        "langsmith.metadata.session_id": "sess-42",
        **({"gen_ai.operation.name": "execute_tool"} if kind == "tool" else {}),
        **fields.pop("attributes", {}),
    }
    return span(number, name, attributes, parent=parent, scope="langsmith", **fields)


@pytest.mark.parametrize(
    ("completion", "result"),
    [('{"outputs":"BK-1001"}', "BK-1001"), ('{"outputs":[1]}', [1]), ('{"content":"x"}', {"content": "x"})],
    ids=["string", "list", "object"],
)
def test_langsmith_wraps_what_is_no_object(completion: str, result: Any) -> None:
    """The tool's name is the span's; an object stays as it is, whatever its keys."""
    attributes = {"gen_ai.prompt": json.dumps(WEATHER), "gen_ai.completion": completion}
    executed = langsmith(2, "tool", "get_weather", parent=1, attributes=attributes)

    (trajectory,) = read(langsmith(1, "chain", "travel_agent"), executed)

    assert trajectory.calls == (call(2, "get_weather", WEATHER, result=result, agent="travel_agent"),)
    assert "sess-42" == trajectory.conversation_id


def test_langsmith_failures_have_status_ok_and_an_exception() -> None:
    """The event is the only true sign."""
    attributes = {"gen_ai.prompt": '{"args":["x",2]}'}
    failed = langsmith(
        1, "tool", "f", status_code=StatusCode.OK, events=(exception("Error", "declined"),), attributes=attributes
    )

    assert calls(failed) == [call(1, "f", error="Error: declined")]


def test_traceloops_wrapper_wraps_the_arguments() -> None:
    """`withTool` writes them as Python's decorator does; a tool's own `kwargs` stay inside."""
    given = {"args": [1], "kwargs": {"a": 1}}
    executed = span(
        2,
        "apply.tool",
        {
            "traceloop.span.kind": "tool",
            "traceloop.entity.name": "apply",
            "traceloop.entity.input": json.dumps({"args": [], "kwargs": given}),
            "traceloop.entity.output": '"done"',
            "gen_ai.agent.name": "travel_agent",
            "traceloop.association.properties.session_id": "sess-42",
        },
        scope="@traceloop/node-server-sdk",
    )

    assert calls(executed) == [call(2, "apply", given, result="done", agent="travel_agent")]


def core(number: int, kind: str, name: str, *, parent: int = 0, **attributes: Any) -> Span:
    """A function wrapped by openinference-core."""
    added = {f"{key}.value": value for key, value in attributes.items()}
    return span(
        number,
        name,
        {"openinference.span.kind": kind, "session.id": "sess-42", **added},
        parent=parent,
        scope="openinference-core",
    )


def test_openinference_core_names_tools_and_agents_by_their_spans() -> None:
    """There is no other name."""
    executed = core(2, "TOOL", "get_weather", parent=1, input=json.dumps(WEATHER), output="sunny")

    (trajectory,) = read(core(1, "AGENT", "travel_agent"), executed)

    assert trajectory.calls == (call(2, "get_weather", WEATHER, result="sunny", agent="travel_agent"),)
    assert ("travel_agent", "sess-42") == (trajectory.agent, trajectory.conversation_id)


def test_openinference_core_writes_several_arguments_as_a_list() -> None:
    """Their names are lost, so they count as not recorded."""
    assert calls(core(1, "TOOL", "apply", input='["x",2]', output="ok")) == [call(1, "apply", result="ok")]
