"""The Claude Agent SDK under OpenInference."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialects.spans import call, calls, exception, read, span
from spanscore.model import Span, StatusCode

JAVASCRIPT = "@arizeai/openinference-instrumentation-claude-agent-sdk"
PYTHON = "openinference.instrumentation.claude_agent_sdk"


def query(scope: str = JAVASCRIPT) -> Span:
    """The root: an agent without a name."""
    attributes = {"openinference.span.kind": "AGENT", "session.id": "sess-42", "input.value": "go"}
    return span(1, "ClaudeAgent.query", attributes, scope=scope)


def tool(number: int, name: str, output: Any, scope: str = JAVASCRIPT, **fields: Any) -> Span:
    """A call; the arguments stand twice."""
    given = '{"topic":"refunds"}'
    attributes = {
        "openinference.span.kind": "TOOL",
        "tool.name": name,
        "input.value": given,
        "tool.parameters": given,
        **({} if output is None else {"output.value": json.dumps(output)}),
    }
    return span(number, name, attributes, parent=1, scope=scope, **fields)


@pytest.mark.parametrize("scope", [JAVASCRIPT, PYTHON])
def test_results_are_taken_out_of_their_content_block(scope: str) -> None:
    """An MCP tool answers with text blocks, and the text of a single one is mostly JSON."""
    blocks = [{"type": "text", "text": '{"error":"policy not found"}'}]

    (trajectory,) = read(query(scope), tool(2, "mcp__travel__lookup_policy", blocks, scope))

    assert trajectory.calls == (
        call(2, "mcp__travel__lookup_policy", {"topic": "refunds"}, result={"error": "policy not found"}),
    )
    assert (None, "sess-42") == (trajectory.agent, trajectory.conversation_id)


def test_several_blocks_and_the_results_of_built_in_tools_stay_as_they_are() -> None:
    """Only a single text block is the wrapping of one value."""
    blocks = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    shell = {"stdout": "hi", "stderr": ""}

    assert [blocks, shell] == [
        made.result for made in calls(query(), tool(2, "mcp__travel__list", blocks), tool(3, "Bash", shell))
    ]


def test_a_failure_has_a_status_and_an_exception() -> None:
    """There is no result then."""
    failed = tool(
        2,
        "mcp__travel__lookup_policy",
        None,
        status_code=StatusCode.ERROR,
        status_message="no such policy",
        events=(exception("Error", "no such policy"),),
    )

    assert calls(query(), failed) == [
        call(2, "mcp__travel__lookup_policy", {"topic": "refunds"}, error="Error: no such policy")
    ]


def test_hidden_content_is_not_recorded() -> None:
    """OpenInference writes a mark in its place."""
    hidden = tool(2, "Bash", None)
    marked = {"input.value": "__REDACTED__", "tool.parameters": "__REDACTED__", "output.value": "__REDACTED__"}

    assert calls(query(), hidden._replace(attributes={**hidden.attributes, **marked})) == [call(2, "Bash")]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Claude requested permissions to use pay, but you haven't granted it yet.", []),
        ("PreToolUse:pay hook error: not today", []),
        ("card declined", ["pay"]),
    ],
)
def test_a_call_that_nobody_allowed_was_not_made(message: str, expected: list[str]) -> None:
    """Claude Code's own words stand in the status; a refusal in the person's words looks like a failure."""
    raised = (exception("Exception", message),)
    refused = tool(2, "pay", None, PYTHON, status_code=StatusCode.ERROR, status_message=message, events=raised)

    (trajectory,) = read(query(PYTHON), refused)

    assert expected == [each.name for each in trajectory.calls]
    assert (not expected) == bool(trajectory.withheld)


def test_a_sub_agent_has_the_name_that_its_call_gives_it() -> None:
    """The span of its run is called as the tool is."""
    given = json.dumps({"subagent_type": "payer", "prompt": "pay"})
    outer = tool(2, "Agent", None, PYTHON)
    run = {"openinference.span.kind": "AGENT", "agent.name": "Agent"}
    spans = (
        query(PYTHON),
        outer._replace(attributes={**outer.attributes, "input.value": given}),
        span(3, "ClaudeAgentSDK.Agent", run, parent=2, scope=PYTHON),
        tool(4, "pay", None, PYTHON)._replace(parent_span_id=(3).to_bytes(8, "big")),
    )

    assert [("Agent", None), ("pay", "payer")] == [(each.name, each.agent) for each in calls(*spans)]
