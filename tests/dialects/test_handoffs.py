"""A hand-off from one agent to another is no tool call, whichever dialects read its span."""

from __future__ import annotations

from typing import Any

import pytest

from dialects.spans import call, calls, span
from spanscore.model import NOT_RECORDED

TARGET = {"gen_ai.agent.handoff.target.name": "clerk", "gen_ai.agent.handoff.source.name": "triage"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "transfer_to_clerk", "gen_ai.tool.call.id": "c1"}


@pytest.mark.parametrize(
    ("attributes", "fields"),
    [
        (TOOL | TARGET, {}),
        ({"gen_ai.tool.name": "transfer_to_clerk"} | TARGET, {}),
        (TARGET | {"openinference.span.kind": "TOOL", "tool.name": "transfer_to_clerk"}, {}),
        (TARGET | {"traceloop.span.kind": "tool", "traceloop.entity.name": "transfer_to_clerk"}, {}),
        (TOOL | TARGET | {"gcp.vertex.agent.tool_call_args": "{}"}, {"scope": "gcp.vertex.agent"}),
        (TOOL | TARGET, {"scope": "strands.telemetry.tracer"}),
        (TOOL | TARGET, {"scope": "github.copilot"}),
        ({"gen_ai.operation.name": "handoff"}, {}),
        ({"gen_ai.operation.name": "agent_handoff", "openinference.span.kind": "TOOL"}, {}),
    ],
)
def test_what_says_that_it_hands_over_is_no_call(attributes: dict[str, Any], fields: dict[str, Any]) -> None:
    """The attribute tells, or the operation; calls beside it are calls."""
    agent = span(1, "invoke_agent triage", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "triage"})
    handoff = span(2, "execute_tool transfer_to_clerk", attributes, parent=1, **fields)
    beside = span(3, "execute_tool look", TOOL | {"gen_ai.tool.name": "look"}, parent=1)

    assert calls(agent, handoff, beside) == [call(3, "look", NOT_RECORDED, call_id="c1", agent="triage")]


def test_a_tool_that_a_framework_runs_for_the_purpose_is_a_call() -> None:
    """Its span says nothing of a hand-off."""
    assert [found.name for found in calls(span(1, "execute_tool transfer_to_clerk", TOOL))] == ["transfer_to_clerk"]


def test_a_run_of_the_agent_that_took_over_stays_one() -> None:
    """It may tell from whom; the calls that its model asks for are calls."""
    asked = '[{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "look", "arguments": {}}]}]'
    run = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "clerk"} | TARGET
    model = span(2, "chat", {"gen_ai.operation.name": "chat", "gen_ai.output.messages": asked}, parent=1)

    assert [(found.name, found.agent) for found in calls(span(1, "invoke_agent clerk", run), model)] == [
        ("look", "clerk")
    ]
