from __future__ import annotations

from typing import Any

import pytest

from dialects.spans import call, calls, event, exception, read, span
from spanscore.model import Span, SpanEvent, StatusCode

SCOPE = "strands.telemetry.tracer"
RUN = span(
    1,
    "invoke_agent planner",
    {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner", "session.id": "s-1"},
    scope=SCOPE,
)


def tool(number: int, status: str = "success", events: tuple[Any, ...] = (), **attributes: Any) -> Span:
    """A tool span."""
    held = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "book",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.status": status,
        **attributes,
    }
    return span(number, "execute_tool book", held, parent=1, scope=SCOPE, events=events)


@pytest.mark.parametrize(
    "written",
    [
        tool(
            2,
            events=(
                event("gen_ai.tool.message", {"role": "tool", "content": '{"nights": 2}', "id": "c1"}),
                event("gen_ai.choice", {"message": '[{"text": "{\\"id\\": \\"BK-1\\"}"}]', "id": "c1"}),
            ),
        ),
        tool(
            2,
            **{
                "gen_ai.tool.call.arguments": '{"nights": 2}',
                "gen_ai.tool.call.result": '[{"text": "{\\"id\\": \\"BK-1\\"}"}]',
            },
        ),
        tool(
            2,
            **{
                "openinference.span.kind": "TOOL",
                "tool.name": "book",
                "tool.call_id": "c1",
                "input.value": '{"nights": 2}',
                "output.value": '{"id": "BK-1"}',
            },
        ),
    ],
)
def test_content_in_events_in_attributes_and_under_openinference(written: Span) -> None:
    """The result is a block of text."""
    (trajectory,) = read(RUN, written)

    assert trajectory.calls == (call(2, "book", {"nights": 2}, result={"id": "BK-1"}, call_id="c1", agent="planner"),)
    assert (trajectory.agent, trajectory.conversation_id) == ("planner", "s-1")


def test_no_arguments() -> None:
    """Structured and empty is there."""
    assert calls(tool(2, **{"gen_ai.tool.call.arguments": {}})) == [call(2, "book", {}, call_id="c1")]


def test_failures() -> None:
    """By status and exception, or by a status of its own: the tool returned one."""
    raised = tool(2, "error")._replace(status_code=StatusCode.ERROR, events=(exception("ValueError", "full"),))
    returned = tool(4, "error", **{"gen_ai.tool.call.result": '[{"text": "no rooms"}]'})

    assert [made.error for made in calls(raised, returned)] == ["ValueError: full", "no rooms"]


def test_definitions_stand_on_the_tool_s_span() -> None:
    """They are read when asked for."""
    schema = '{"type": "object", "properties": {"nights": {"type": "integer"}}}'

    (trajectory,) = read(RUN, tool(2, **{"gen_ai.tool.json_schema": schema}))

    assert dict(trajectory.tool_definitions) == {
        "book": {"type": "object", "properties": {"nights": {"type": "integer"}}}
    }


@pytest.mark.parametrize(
    ("attributes", "ends"),
    [
        ({}, [event("gen_ai.choice", {"finish_reason": "interrupt"})]),
        (
            {},
            [
                event(
                    "gen_ai.client.inference.operation.details",
                    {"gen_ai.output.messages": '[{"role": "assistant", "parts": [], "finish_reason": "interrupt"}]'},
                )
            ],
        ),
        ({"llm.output_messages.0.message.finish_reason": "interrupt"}, []),
    ],
    ids=["earlier conventions", "present conventions", "OpenInference"],
)
def test_a_run_that_is_interrupted_waits(attributes: dict[str, Any], ends: list[SpanEvent]) -> None:
    """Its span ends with that reason."""
    interrupted = RUN._replace(attributes={**RUN.attributes, **attributes}, events=tuple(ends))

    assert [("",), ()] == [read(run)[0].completeness.paused for run in (interrupted, RUN)]


def test_the_status_until_1_0() -> None:
    """The attribute of the status had another name: a failure shows only there."""
    failed = tool(2, events=(event("gen_ai.choice", {"message": '[{"text": "Error: ValueError - full"}]'}),))
    kept = {key: value for key, value in failed.attributes.items() if key != "gen_ai.tool.status"}

    (made,) = calls(RUN, failed._replace(attributes={**kept, "tool.status": "error"}))

    assert made.error == "Error: ValueError - full"


def test_the_first_versions() -> None:
    """They have names of their own."""
    run = span(
        1, "Strands Agent", {"gen_ai.agent.name": "planner", "gen_ai.agent.tools": '["book"]'}, scope="strands-agents"
    )
    sent = '[{"role": "user", "content": [{"toolResult": {"toolUseId": "c2", "content": [{"text": "gone"}]}}]}]'
    model = span(
        2, "Model invoke", {"gen_ai.completion": "[]", "gen_ai.prompt": sent}, parent=1, scope="strands-agents"
    )
    held = {
        "tool.name": "book",
        "tool.id": "c1",
        "tool.parameters": '{"nights": 2}',
        "tool.result": '[{"text": "{\\"id\\": \\"BK-1\\"}"}]',
        "tool.status": "success",
    }
    done = span(3, "Tool: book", held, parent=1, scope="strands-agents")
    failed = {**held, "tool.id": "c2", "tool.status": "error", "tool.result": '[{"text": "full"}]'}

    assert calls(run, model, done, span(4, "Tool: book", failed, parent=1, scope="strands-agents")) == [
        call(3, "book", {"nights": 2}, result={"id": "BK-1"}, call_id="c1", agent="planner"),
        call(4, "book", {"nights": 2}, result="full", error="full", call_id="c2", agent="planner"),
    ]
