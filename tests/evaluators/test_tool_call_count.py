from __future__ import annotations

from typing import Any

import pytest

from evaluators.runs import CUT_OFF, around_its_value, called, details_of, value_of
from spanscore.evaluators.tool_call_count import ToolCallCount
from spanscore.model import Score, Skipped
from spanscore.testing import check_evaluator

CRITERIA: dict[str, Any] = {"search": [">=", 1], "book": ["=", 2], "pay": ["<", 1]}


class TestValue:
    def test_share_of_tools(self) -> None:
        """The value is the share of tools that meet their criterion, and every tool is explained."""
        outcome = ToolCallCount(tool_calls_count=CRITERIA).evaluate(called("search", "book", "search", "other"))

        expected = Score(
            value=2 / 3,
            passed=False,
            explanation="2 of 3 tools have the expected number of calls ('book' was called 1 time, expected = 2).",
            details={
                "explained_tool_calls_count": {
                    "search": "Actual: 2, Expected: 1, Score: 1.0",
                    "book": "Actual: 1, Expected: 2, Score: 0.0",
                    "pay": "Actual: 0, Expected: 1, Score: 1.0",
                },
                "deviations": [
                    {
                        "kind": "count",
                        "tool": "book",
                        "call": None,
                        "span_id": None,
                        "reason": "book was called too rarely",
                        "expected": "= 2",
                    }
                ],
            },
        )

        assert expected == outcome

    def test_strict(self) -> None:
        """With `strict` one unmet criterion makes it 0, and every tool is still explained."""
        evaluator = ToolCallCount(tool_calls_count=CRITERIA, strict=True)

        assert 0.0 == value_of(evaluator.evaluate(called("search")))
        assert set(CRITERIA) == set(details_of(evaluator.evaluate(called("search")))["explained_tool_calls_count"])
        assert 1.0 == value_of(evaluator.evaluate(called("search", "book", "book")))

    @pytest.mark.parametrize(
        ("criterion", "counts"),
        [
            (["=", 2], {2}),
            (["==", 2], {2}),
            (2, {2}),
            ("= 2", {2}),
            ("==2", {2}),
            (["!=", 2], {0, 1, 3}),
            (" != 2 ", {0, 1, 3}),
            ([">", 2], {3}),
            (["<", 2], {0, 1}),
            ([">=", 2], {2, 3}),
            (("<=", 2), {0, 1, 2}),
        ],
    )
    def test_ways_to_write_a_criterion(self, criterion: Any, counts: set[int]) -> None:
        """A list, a text or a bare count; a tool that was never called has 0 calls."""
        evaluator = ToolCallCount(tool_calls_count={"a": criterion})

        assert counts == {count for count in range(4) if value_of(evaluator.evaluate(called(*["a"] * count))) == 1}

    def test_names_are_exact_unless_told_otherwise(self) -> None:
        """Case and spaces count; canonical names find every way to write a tool."""
        run = called("Web Search", "mcp__x__web_search")

        assert 0.0 == value_of(ToolCallCount(tool_calls_count={"web_search": 2}).evaluate(run))
        assert 1.0 == value_of(ToolCallCount(tool_calls_count={"WebSearch": 2}, tool_names="canonical").evaluate(run))

    def test_the_first_call_too_many_deviates(self) -> None:
        """Where there are too few, it is the tool; what the sentence has no room for is there all the same."""
        names = "abcdefgh"
        outcome = ToolCallCount(tool_calls_count=dict.fromkeys(names, 1), strict=True).evaluate(called("a", "x", "a"))

        assert isinstance(outcome, Score)
        assert [("a", 2), *((name, None) for name in names[1:])] == [
            (each["tool"], each["call"]) for each in outcome.details["deviations"]
        ]
        assert outcome.explanation.startswith(
            "0 of 8 tools have the expected number of calls "
            "('a' was called 2 times, expected = 1; 'b' was called 0 times, expected = 1;"
        )
        assert outcome.explanation.endswith("; ...); strict requires all.")

    def test_names_the_tools_that_it_counts(self) -> None:
        """As they are written in the configuration."""
        assert list(CRITERIA) == list(ToolCallCount(tool_calls_count=CRITERIA).named_tools())


class TestParameters:
    @pytest.mark.parametrize(
        ("criterion", "reason"),
        [
            ("= -1", "at least 0, not -1"),
            ("3", "must be"),
            ("!! 3", "unknown operator '!!'; allowed: = == != > < >= <="),
        ],
    )
    def test_refuses_what_is_no_criterion(self, criterion: str, reason: str) -> None:
        """A criterion that means nothing is an error that names the tool and says what is allowed."""
        with pytest.raises(ValueError, match=r"tool_calls_count\.search: ") as error:
            ToolCallCount(tool_calls_count={"search": criterion})

        assert reason in str(error.value)


class TestThreshold:
    def test_the_value_itself_is_enough(self) -> None:
        """A value that is the threshold passes, and with any greater threshold it does not."""
        evaluator = ToolCallCount(tool_calls_count=CRITERIA)
        run = called("search", "book")

        assert (2 / 3, [True, True, False]) == around_its_value(evaluator, run)


class TestContract:
    def test_is_kept(self) -> None:
        """It evaluates whatever comes."""
        check_evaluator(ToolCallCount(tool_calls_count=CRITERIA))
        check_evaluator(ToolCallCount(tool_calls_count=CRITERIA, tool_names="canonical", aliases={"find": "search"}))

    def test_truncated(self) -> None:
        """Calls that are missing from a truncated trace do not count against the agent; what was seen does."""
        evaluator = ToolCallCount(tool_calls_count={"search": 2})

        reason = "the trace was cut off by a limit; missing calls (1) may be in the part not received"
        assert Skipped(reason) == evaluator.evaluate(called("search", completeness=CUT_OFF))
        both = ToolCallCount(tool_calls_count={"search": 1, "book": 2, "pay": 0})
        assert Skipped(reason.replace("(1)", "(2)")) == both.evaluate(called("search", "pay", completeness=CUT_OFF))
        assert 0.0 == value_of(evaluator.evaluate(called(*["search"] * 3, completeness=CUT_OFF)))


def test_a_number_that_is_not_allowed() -> None:
    """Such a number is neither too large nor too small."""
    outcome = ToolCallCount(tool_calls_count={"search": ["!=", 2]}).evaluate(called("search", "search"))

    (deviation,) = details_of(outcome)["deviations"]
    assert "search was called a number of times that is not allowed" == deviation["reason"]
