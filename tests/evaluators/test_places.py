"""Scores name calls by their place in the run, also if calls are left out before evaluating."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import spanscore
from evaluators.test_mended_by import CALLS, OTHERS, REFERENCE, policies, ran
from examples import at_most
from spanscore.compare.alignment import whole
from spanscore.model import Outcome, Score, Skipped, ToolCall, Trajectory


def texts(outcome: Outcome) -> list[str]:
    """The texts of an outcome that name calls by their number."""
    assert isinstance(outcome, (Score, Skipped))
    if isinstance(outcome, Skipped):
        return [outcome.reason]
    return [outcome.explanation, outcome.without_content or outcome.explanation]


@at_most(500)
@given(CALLS, st.sets(st.sampled_from("abcd")), st.one_of(policies(), *map(st.just, OTHERS)))
def test_calls_are_named_by_their_place(
    calls: list[ToolCall], ignored: set[str], configured: tuple[str, dict[str, Any]]
) -> None:
    """The scores of a run without some calls and of a run that never had them differ in these numbers only."""
    evaluator = spanscore.evaluator(configured[0], configured[1])
    run = ran(calls)
    kept = [index for index, call in enumerate(calls) if call.name not in ignored]
    score = evaluator.evaluate(run.keeping(kept))
    alone = evaluator.evaluate(ran([calls[index] for index in kept]))

    def renumbered(text: str) -> str:
        return re.sub(r"\(call (\d+)\)", lambda match: f"(call {kept[int(match[1]) - 1] + 1})", text)

    assert texts(score) == [renumbered(text) for text in texts(alone)]
    if isinstance(score, Score):
        check_places(score, run)


def check_places(score: Score, run: Trajectory) -> None:
    """Check each index of a call in the details of a score."""
    for row in whole(score.details.get("deviations", ())):
        assert row["call"] is None or run.names[row["call"]] == row["tool"]
    for entry in whole(score.details.get("alignment", ())):
        if entry["status"] not in {"folded", "cut"} and entry["call"] is not None:
            name = run.names[entry["call"]]
            assert name == entry["actual"] or (entry["status"] == "order" and name == entry["expected"])
    for loop in score.details.get("loops", ()):
        assert [run.names[index] for index in loop["calls"][: len(loop["tools"])]] == loop["tools"]
    for row in score.details.get("matches", ()):
        if isinstance(row, dict):
            assert run.names[row["actual"]] == row["name"]
    for row in score.details.get("invalid", ()):
        assert run.names[row["call"]] == row["tool"]
    for row in score.details.get("recovered", ()):
        assert run.calls[row["call"]].error is not None
        assert run.calls[row["by"]].error is None


def test_failed_calls_that_are_left_out() -> None:
    """The failed call keeps its number."""
    run = ran([ToolCall(name="a", error="timeout"), ToolCall(name="a", arguments={"x": 1}), ToolCall(name="c")])
    evaluator = spanscore.evaluator("trajectory_match", {"reference": REFERENCE, "include_failed": False})
    score = evaluator.evaluate(run)

    assert isinstance(score, Score)
    assert "expected b, got c (call 3)" in score.explanation
    check_places(score, run)


def test_calls_that_took_expected_ones() -> None:
    """The details of expected arguments and results name the calls by the same indexes."""
    run = ran([ToolCall(name="b"), ToolCall(name="a", arguments={"x": 1}, result=1)]).keeping([1])
    args = spanscore.evaluator("tool_call_args", {"tool_calls": [{"name": "a", "args": {"x": 1}}]}).evaluate(run)
    output = spanscore.evaluator("tool_call_output", {"tool_outputs": [{"name": "a", "output": 1}]}).evaluate(run)

    assert isinstance(args, Score)
    assert isinstance(output, Score)
    assert {"a_0": "Actual: call 1, Expected: x, Score: 1.0"} == args.details["explained_tool_calls_args"]
    assert {"a_0": "Actual: call 1, Score: 1.0"} == output.details["explained_tool_outputs"]


def test_left_out_twice() -> None:
    """Calls that are left out by their tool, and then by their failure, are all counted."""
    run = ran([ToolCall(name="c"), ToolCall(name="a", error="timeout"), ToolCall(name="d"), ToolCall(name="e")])
    evaluator = spanscore.evaluator("trajectory_match", {"reference": [], "include_failed": False})
    score = evaluator.evaluate(run.keeping([1, 2, 3]))

    assert isinstance(score, Score)
    assert [2, 3] == [row["call"] for row in score.details["deviations"]]
