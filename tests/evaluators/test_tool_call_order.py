from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.runs import CUT_OFF, aligned, around_its_value, called, details_of, value_of
from spanscore.evaluators.tool_call_order import ToolCallOrder
from spanscore.model import Score, Skipped
from spanscore.testing import check_evaluator

NAMES = st.lists(st.sampled_from("abc"), max_size=8)


class TestValue:
    def test_longest_common_subsequence(self) -> None:
        """The value is the share of expected calls made in order, whatever lies between them."""
        outcome = ToolCallOrder(tool_calls_order=("a", "b", "c", "d")).evaluate(called("x", "a", "c", "b", "d"))

        expected = Score(
            value=0.75,
            passed=False,
            explanation=(
                "3 of 4 expected calls were made in order, among 5 calls. c was called out of order (call 3)."
            ),
            details={
                "lcs": ["a", "b", "d"],
                "totals": {"expected": 4, "actual": 5},
                "alignment": [
                    {"expected": None, "actual": "x", "status": "ignored", "call": 0},
                    {"expected": "a", "actual": "a", "status": "ok", "call": 1},
                    {"expected": None, "actual": "c", "status": "ignored", "call": 2},
                    {"expected": "b", "actual": "b", "status": "ok", "call": 3},
                    {"expected": "c", "actual": None, "status": "order", "call": 2},
                    {"expected": "d", "actual": "d", "status": "ok", "call": 4},
                ],
                "deviations": [
                    {"kind": "order", "tool": "c", "call": 2, "span_id": None, "reason": "c was called out of order"}
                ],
            },
        )

        assert expected == outcome

    @pytest.mark.parametrize(
        ("actual", "value"), [("abc", 1.0), ("abcx", 0.0), ("ab", 0.0), ("acb", 0.0), ("", 0.0), ("ABC", 0.0)]
    )
    def test_strict(self, actual: str, value: float) -> None:
        """With `strict` the calls are exactly the expected ones."""
        evaluator = ToolCallOrder(tool_calls_order=("a", "b", "c"), strict=True)

        assert value == value_of(evaluator.evaluate(called(*actual)))

    def test_strict_is_aligned_by_position(self) -> None:
        """What is wrong in a strict comparison is wrong in its place."""
        outcome = ToolCallOrder(tool_calls_order=("a", "b"), strict=True).evaluate(called("b", "b", "a"))

        assert [("a", "b", "wrong"), ("b", "b", "ok"), (None, "a", "extra")] == aligned(outcome)

    def test_names_are_listed_as_expected(self) -> None:
        """Names that are compared in canonical form are listed the way the configuration has them."""
        evaluator = ToolCallOrder(tool_calls_order=("WebSearch",), tool_names="canonical")

        assert ["WebSearch"] == details_of(evaluator.evaluate(called("web_search")))["lcs"]

    @settings(deadline=None)
    @given(expected=NAMES.filter(bool), actual=NAMES, extra=NAMES)
    def test_more_calls_never_lower_it(self, expected: list[str], actual: list[str], extra: list[str]) -> None:
        """Further calls at the end can only help, and the expected calls alone are enough."""
        evaluator = ToolCallOrder(tool_calls_order=tuple(expected))

        assert value_of(evaluator.evaluate(called(*actual))) <= value_of(evaluator.evaluate(called(*actual, *extra)))
        assert 1.0 == value_of(evaluator.evaluate(called(*expected)))

    def test_ten_thousand_by_ten_thousand(self) -> None:
        """Long runs are compared as well: the common subsequence of two runs of numbered tools."""
        expected = [f"t{number % 701}" for number in range(10_000)]
        outcome = ToolCallOrder(tool_calls_order=tuple(expected)).evaluate(called("x", *expected[:-1]))

        assert 0.9999 == value_of(outcome)
        assert expected[:-1] == details_of(outcome)["lcs"]


class TestThreshold:
    def test_the_value_itself_is_enough(self) -> None:
        """A value that is the threshold passes, and with any greater threshold it does not."""
        evaluator = ToolCallOrder(tool_calls_order=("a", "b", "c"))
        run = called("a", "c")

        assert (2 / 3, [True, True, False]) == around_its_value(evaluator, run)


class TestContract:
    def test_is_kept(self) -> None:
        """It evaluates whatever comes."""
        check_evaluator(ToolCallOrder(tool_calls_order=("search", "book")))
        check_evaluator(ToolCallOrder(tool_calls_order=("search", "book"), strict=True, tool_names="sanitized"))

    def test_truncated(self) -> None:
        """Expected calls that are missing from a truncated trace do not count against the agent."""
        evaluator = ToolCallOrder(tool_calls_order=("a", "b"))

        reason = "the trace was cut off by a limit; missing calls (1) may be in the part not received"

        assert Skipped(reason) == evaluator.evaluate(called("a", completeness=CUT_OFF))
        assert 1.0 == value_of(evaluator.evaluate(called("a", "b", completeness=CUT_OFF)))
