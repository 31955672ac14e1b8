from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.runs import CUT_OFF, around_its_value, details_of, value_of
from spanscore.evaluators.tool_recovery import ToolRecovery
from spanscore.model import Completeness, Score, Skipped, ToolCall, Trajectory
from spanscore.model.outcomes import MendedBy
from spanscore.testing import check_evaluator


def run(text: str, completeness: Completeness | None = None) -> Trajectory:
    """A run of calls: `a! b a` is a call of a that fails, one of b and another of a."""
    calls = tuple(ToolCall(name=name[0], error="timeout" if name[1:] else None) for name in text.split())
    return Trajectory(calls=calls, completeness=completeness or Completeness())


@pytest.mark.parametrize(
    ("calls", "parameters", "value"),
    [
        ("", {}, 1.0),
        ("a b", {}, 1.0),
        ("a!", {}, 0.0),
        ("a! a", {}, 1.0),
        ("a a!", {}, 0.0),
        ("a! b a", {}, 1.0),
        ("a! b c a", {}, 1.0),
        ("a! b c d a", {}, 0.0),
        ("a! b c d a", {"within": None}, 1.0),
        ("a! a! a", {}, 1.0),
        ("a! a! a! a", {}, 2 / 3),
        ("a! a! a! a", {"max_retries": None}, 1.0),
        ("a! a! a", {"max_retries": 1}, 0.5),
        ("a! b", {"alternatives": {"a": ("b",)}}, 1.0),
        ("a! b!", {"alternatives": {"a": ("b",)}}, 0.0),
        ("a! c", {"alternatives": {"?": ("c",)}}, 1.0),
        ("b! c", {"alternatives": {"a": ("c",)}}, 0.0),
        ("a! a! a! b", {"alternatives": {"a": ("b",)}, "max_retries": 1}, 1.0),
    ],
)
def test_share_of_failed_calls(calls: str, parameters: dict[str, Any], value: float) -> None:
    """A failed call is recovered from where the tool, or one that does instead, succeeds soon enough."""
    assert value == value_of(ToolRecovery(**parameters).evaluate(run(calls)))


def test_what_is_told() -> None:
    """The failed calls that nothing made up for, and what made up for the others."""
    outcome = ToolRecovery().evaluate(run("a! a b!"))

    assert isinstance(outcome, Score)
    assert (
        "1 of 2 failed calls were recovered from. b failed, and no later call recovered from it (call 3)."
        == outcome.explanation
    )
    assert {"failed": 2, "recovered": 1} == details_of(outcome)["totals"]
    assert [{"call": 0, "by": 1}] == details_of(outcome)["recovered"]


def test_names_are_normalised() -> None:
    """On both sides, and of alternatives, too."""
    calls = (ToolCall(name="WebSearch", error="timeout"), ToolCall(name="mcp__cache__read_cache"))
    policy = ToolRecovery(tool_names="canonical", alternatives={"web_search": ("ReadCache",)})

    assert 1.0 == value_of(policy.evaluate(Trajectory(calls=calls)))
    assert ["web_search", "ReadCache"] == list(policy.named_tools())


def test_a_recovery_that_may_not_have_been_received() -> None:
    """Of a truncated trace only what was recovered is known."""
    reason = "the trace was cut off by a limit; missing calls (1) may be in the part not received"
    assert Skipped(reason) == ToolRecovery().evaluate(run("a!", CUT_OFF))
    assert 1.0 == value_of(ToolRecovery().evaluate(run("a! a", CUT_OFF)))


def test_the_threshold_itself_is_enough() -> None:
    """And with any greater one it does not pass."""
    assert (0.5, [True, True, False]) == around_its_value(ToolRecovery(), run("a! a b!"))


def test_a_recovery_may_come_behind_the_failure() -> None:
    """Where only some failures have to be recovered from, further ones anywhere raise the share."""
    for threshold, sides in ((1.0, MendedBy.BETWEEN | MendedBy.LATER), (0.9, MendedBy.ANY)):
        score = ToolRecovery(threshold=threshold).evaluate(run("a! b! b"))
        assert isinstance(score, Score)
        assert (0.5, False, sides) == (score.value, score.passed, score.mended_by)


def test_the_contract() -> None:
    """It evaluates whatever comes."""
    check_evaluator(ToolRecovery())
    check_evaluator(ToolRecovery(within=None, max_retries=None, alternatives={"*": ("b*",)}, tool_names="canonical"))


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=12),
    st.none() | st.integers(1, 5),
    st.none() | st.integers(1, 3),
    st.dictionaries(st.sampled_from("abc"), st.lists(st.sampled_from("abcd*?"), max_size=2), max_size=2),
)
def test_recovery(
    made: list[tuple[str, bool]], within: int | None, most: int | None, instead: dict[str, list[str]]
) -> None:
    """A failed call is recovered from by the first call behind it that succeeds in its place."""

    def helps(failed: int, index: int) -> bool:
        (tool, _), (name, has_failed) = made[failed], made[index]
        retries = sum(each == tool for each, _ in made[failed + 1 : index + 1])
        again = name == tool and (most is None or retries <= most)
        return not has_failed and (again or any(pattern in {name, "*", "?"} for pattern in instead.get(tool, ())))

    alternatives = {tool: tuple(others) for tool, others in instead.items()}
    recovery = ToolRecovery(within=within, max_retries=most, alternatives=alternatives)
    outcome = recovery.evaluate(run(" ".join(f"{name}!" if failed else name for name, failed in made)))
    end = len(made) if within is None else within
    expected = {
        failed: next(
            (index for index in range(failed + 1, min(len(made), failed + 1 + end)) if helps(failed, index)), None
        )
        for failed, (_, has_failed) in enumerate(made)
        if has_failed
    }

    found = {each["call"]: each["by"] for each in details_of(outcome)["recovered"]}
    assert {call: by for call, by in expected.items() if by is not None} == found
