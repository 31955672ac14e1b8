from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.runs import CUT_OFF, around_its_value, called, details_of, value_of
from spanscore.evaluators.tool_call_trajectory import ToolCallTrajectory
from spanscore.model import Score, ToolCall, Trajectory
from spanscore.model.outcomes import MendedBy
from spanscore.testing import check_evaluator

RUN = Trajectory.from_calls(
    [
        {"name": "search", "sequence": 3, "duration_ms": 10},
        {"name": "search", "sequence": 4, "duration_ms": 40, "error": "timeout"},
        {"name": "book", "sequence": 7, "duration_ms": 20},
        {"name": "book", "sequence": 7, "duration_ms": 30.5},
    ]
)


def measured(trajectory: Trajectory, name: str) -> Any:
    """One of the measurements."""
    return details_of(ToolCallTrajectory().evaluate(trajectory))["measurements"][name]


class TestMeasurements:
    def test_all_of_them(self) -> None:
        """The value is the share of calls that did not fail; everything else is measured beside it."""
        expected = Score(
            value=0.75,
            passed=False,
            explanation="1 of 4 tool calls failed. search failed: timeout (call 2).",
            details={
                "measurements": {
                    "tool_calls_total": 4,
                    "tool_calls_failed": 1,
                    "tool_call_sequence_gaps": 2,
                    "all_tool_calls_succeeded": False,
                    "consecutive_same_tool_calls": 2,
                    "per_tool_failure_rate": {"book": 0.0, "search": 0.5},
                    "tool_call_latency_p50_ms": 20.0,
                    "tool_call_latency_p95_ms": 40.0,
                },
                "gates_exceeded": [],
                "deviations": [
                    {
                        "kind": "error",
                        "tool": "search",
                        "call": 1,
                        "span_id": None,
                        "reason": "search failed: error",
                        "path": "",
                        "actual": "timeout",
                    }
                ],
            },
            without_content="1 of 4 tool calls failed. search failed (call 2).",
        )

        assert expected == ToolCallTrajectory().evaluate(RUN)

    def test_without_calls(self) -> None:
        """A run that called no tool is healthy."""
        outcome = ToolCallTrajectory().evaluate(called())

        assert isinstance(outcome, Score)
        assert (1.0, True, "No tool was called.") == (outcome.value, outcome.passed, outcome.explanation)
        assert outcome.details["measurements"]["all_tool_calls_succeeded"]

    @pytest.mark.parametrize(
        ("sequence", "gaps"),
        [
            ([None, None, None], 0),
            ([0, 1, 2], 0),
            ([5, 6], 0),
            ([2, 0], 1),
            ([1, 1, 4], 2),
            ([0, None, 3], 2),
            ([-3, 10**20], 10**20 + 2),
        ],
    )
    def test_sequence_gaps(self, sequence: list[int | None], gaps: int) -> None:
        """Numbers missing from the smallest seen; calls without a number, numbered by their order, have no gaps."""
        assert gaps == measured(
            Trajectory(calls=tuple(ToolCall(name="a", sequence=number) for number in sequence)),
            "tool_call_sequence_gaps",
        )

    @given(st.permutations(range(8)))
    def test_sequence_gaps_do_not_depend_on_the_order(self, order: list[int]) -> None:
        """Calls that run at once may come in any order."""
        calls = tuple(ToolCall(name="a", sequence=2 * number) for number in order)

        assert 7 == measured(Trajectory(calls=calls), "tool_call_sequence_gaps")

    def test_latency_of_calls_that_were_seen(self) -> None:
        """A call that only a model's request tells of, or that has not ended, has no latency; another may take none."""
        calls = (
            ToolCall(name="a", start_ns=10, end_ns=10),
            ToolCall(name="a", span_id=bytes(8), start_ns=10, end_ns=0),
            ToolCall(name="a", span_id=bytes(8), start_ns=10, end_ns=3_000_010),
            ToolCall(name="a", span_id=bytes(8), start_ns=10, end_ns=5),
        )

        assert 0.0 == measured(Trajectory(calls=calls), "tool_call_latency_p50_ms")
        assert 3.0 == measured(Trajectory(calls=calls), "tool_call_latency_p95_ms")
        assert 0.0 == measured(Trajectory(calls=calls[:2]), "tool_call_latency_p95_ms")


class TestGates:
    @pytest.mark.parametrize(
        ("gate", "limit", "actual"),
        [
            ("max_failed", 1, 1),
            ("max_sequence_gaps", 2, 2),
            ("max_consecutive_same_tool", 2, 2),
            ("max_latency_p95_ms", 40.0, 40),
        ],
    )
    def test_gates_hold_up_to_their_limit(self, gate: str, limit: Any, actual: float) -> None:
        """A gate fails the run, whatever its value, when the measurement is beyond the limit."""
        held = ToolCallTrajectory(threshold=0.5, **{gate: limit}).evaluate(RUN)
        broken = ToolCallTrajectory(threshold=0.5, **{gate: limit - 1}).evaluate(RUN)

        assert isinstance(held, Score)
        assert isinstance(broken, Score)
        assert (True, False) == (held.passed, broken.passed)
        tools = " ('search', 'book')" if gate == "max_consecutive_same_tool" else ""
        assert [f"{gate} is {actual}{tools}, the limit is {limit - 1:g}"] == broken.details["gates_exceeded"]
        assert broken.explanation.startswith(f"1 of 4 tool calls failed; {gate} is {actual}{tools}, ")

    def test_the_first_repeat_too_many_deviates(self) -> None:
        """It is the call behind as many as are allowed, and only where a gate says how many are."""
        run = called(*"aabbb")

        told = details_of(ToolCallTrajectory(max_consecutive_same_tool=1).evaluate(run))["deviations"]
        assert [("rule", "b", 3, "max_consecutive_same_tool: 1")] == [
            (each["kind"], each["tool"], each["call"], each["expected"]) for each in told
        ]
        limit = details_of(ToolCallTrajectory(max_latency_p95_ms=-1).evaluate(run))["deviations"]
        assert ["exceeds max_latency_p95_ms"] == [each["reason"] for each in limit]

    def test_without_gates_the_threshold_decides(self) -> None:
        """A value that is the threshold passes, and with any greater threshold it does not."""
        assert (0.75, [True, True, False]) == around_its_value(ToolCallTrajectory(), RUN)


class TestContract:
    def test_is_kept(self) -> None:
        """It evaluates whatever comes."""
        check_evaluator(ToolCallTrajectory())
        check_evaluator(ToolCallTrajectory(max_failed=0, max_latency_p95_ms=1, tool_names="canonical"))

    def test_truncated(self) -> None:
        """A truncated trace is measured as far as it was received."""
        assert 1.0 == value_of(ToolCallTrajectory().evaluate(called("a", completeness=CUT_OFF)))


@pytest.mark.parametrize(
    ("evaluator", "expected"),
    [
        (ToolCallTrajectory(), MendedBy.NOTHING),
        (ToolCallTrajectory(threshold=0.9), MendedBy.ANY),
        (ToolCallTrajectory(threshold=0.9, max_failed=0), MendedBy.NOTHING),
        (ToolCallTrajectory(threshold=0.9, max_failed=1), MendedBy.ANY),
    ],
)
def test_more_failed_calls_than_allowed_stay(evaluator: ToolCallTrajectory, expected: MendedBy) -> None:
    """Further calls change the share of those that failed, but not their number."""
    outcome = evaluator.evaluate(RUN)

    assert isinstance(outcome, Score)
    assert (False, expected) == (outcome.passed, outcome.mended_by)
