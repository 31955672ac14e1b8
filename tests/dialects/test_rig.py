"""Rig."""

from __future__ import annotations

from typing import Any

import pytest

from dialects.spans import call, calls, event, span
from spanscore.model import Span, StatusCode
from traces import PARIS, agent, asked, model


def tool(number: int, name: str | None = "book", **attributes: Any) -> Span:
    """A tool's span, as of rig-agent 0.44.0, with content switched off; its tracer has a name that the user chose."""
    held = {"target": "rig_agent::agent::telemetry", "gen_ai.operation.name": "execute_tool"}
    named = {} if name is None else {"gen_ai.tool.name": name, "gen_ai.tool.call.id": f"c{number}"}
    own = {f"gen_ai.tool.{key.replace('_', '.')}": value for key, value in attributes.items() if key != "target"}
    other = {key: value for key, value in attributes.items() if key == "target"}
    return span(number, "execute_tool", {**held, "gen_ai.tool.type": "function", **named, **own, **other}, scope="app")


@pytest.mark.parametrize(
    ("told", "error", "error_type"),
    [
        ({"call_outcome": "success"}, None, None),
        ({"call_outcome": "error", "error_type": "timeout"}, "timeout", "timeout"),
        ({"call_outcome": "error"}, "error", None),
        ({"error_type": "network"}, "network", "network"),
        ({"call_outcome": "denied"}, "denied", "denied"),
        ({"call_outcome": "skipped"}, None, None),
    ],
    ids=["success", "error", "untyped", "type alone", "refused by the tool", "skipped by a hook"],
)
def test_the_outcome_says_whether_a_call_failed(told: Any, error: str | None, error_type: str | None) -> None:
    """The status of its span never does."""
    (made,) = calls(tool(1, **told))

    assert made == call(1, "book", call_id="c1", error=error)
    assert made.error_type == error_type


def test_what_the_model_was_told_is_the_message() -> None:
    """It stands where a result does, with content switched on."""
    content = {"call_arguments": '{"nights": 2}', "call_result": "the hotel is full\nsorry"}

    assert calls(tool(1, call_outcome="error", error_type="provider", **content)) == [
        call(
            1,
            "book",
            {"nights": 2},
            result="the hotel is full\nsorry",
            call_id="c1",
            error="provider: the hotel is full",
        )
    ]


def test_a_result_that_says_error_is_none() -> None:
    """The tool has not failed."""
    content = {"call_arguments": "{}", "call_result": '{"error": "no such policy"}'}

    assert calls(tool(1, call_outcome="success", **content)) == [
        call(1, "book", {}, result={"error": "no such policy"}, call_id="c1")
    ]


def test_a_status_counts_first() -> None:
    """Whoever set it."""
    failed = tool(1, call_outcome="error", error_type="other")._replace(
        status_code=StatusCode.ERROR, status_message="cancelled"
    )

    assert [each.error for each in calls(failed)] == ["cancelled"]


def test_a_span_without_a_name_is_of_a_call_that_did_not_run() -> None:
    """Its arguments were no JSON, which the model was told; the model's request, where recorded, names the tool."""
    assert calls(tool(1, None)) == [call(1, "unknown", error="rejected")]

    requested = model(2, asked("search", PARIS, "c9"), parent=1)
    rejected = tool(3, None)._replace(parent_span_id=requested.parent_span_id)
    assert calls(agent(1), requested, rejected) == [
        call(3, "search", PARIS, call_id="c9", error="rejected", agent="planner")
    ]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("Error while executing tool: Toolset error: the hotel is full", "Toolset error: the hotel is full"),
        ("Error while calling tool: the hotel is full", "the hotel is full"),
        ("Error while calling tool: ", "error"),
        ("executed tool book with args {}. result: Error while calling tool: x", None),
    ],
)
def test_before_there_were_outcomes_a_line_of_the_log_tells(line: str, error: str | None) -> None:
    """As of rig-core 0.38.2, at once and streamed: events of `tracing` are those of the span."""
    logged = tool(1, target="rig_core::agent::prompt_request")._replace(events=(event(line, {"level": "WARN"}),))

    assert calls(logged) == [call(1, "book", call_id="c1", error=error)]


@pytest.mark.parametrize("target", ["rigid::tools", "my_app", ""])
def test_other_programs_in_rust_have_targets_too(target: str) -> None:
    """What they log in a tool's span is theirs."""
    logged = tool(1, target=target)._replace(events=(event("Error while calling tool: x"),))

    assert calls(logged) == [call(1, "book", call_id="c1")]
    assert calls(tool(1, None, target=target)) == [call(1, "unknown")]
