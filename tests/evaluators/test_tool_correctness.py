from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evaluators.runs import CUT_OFF, called, passed_with, value_of
from spanscore.evaluators.tool_correctness import ToolCorrectness
from spanscore.model import Score, Skipped
from spanscore.testing import check_evaluator

NAMES = st.lists(st.sampled_from(["search", "Search", "a.search", "book", "mcp__x__book"]), max_size=5)


class TestValue:
    def test_sets_of_names(self) -> None:
        """The value is 1 only when exactly the expected tools were used; what differs is listed."""
        evaluator = ToolCorrectness(expected_tools=("WebSearch", "book"))

        expected = Score(
            value=0.0,
            passed=False,
            explanation=(
                "2 tools expected, 2 called: 1 missing, 1 unexpected. "
                "book was not called; Pay was called, but not expected (call 2)."
            ),
            details={
                "missing": ["book"],
                "extra": ["pay"],
                "canonical": {"WebSearch": "web_search", "book": "book", "web_search": "web_search", "Pay": "pay"},
                "deviations": [
                    {"kind": "missing", "tool": "book", "call": None, "span_id": None, "reason": "book was not called"},
                    {"kind": "unexpected", "tool": "Pay", "call": 1, "span_id": None, "reason": "Pay was not expected"},
                ],
            },
        )

        assert expected == evaluator.evaluate(called("web_search", "Pay", "web_search"))
        assert 1.0 == value_of(evaluator.evaluate(called("mcp__hotels__book", "web.web_search")))

    def test_other_ways_to_compare(self) -> None:
        """Names are compared in canonical form unless told otherwise."""
        run = called("Search", "other.book")

        assert 0.0 == value_of(ToolCorrectness(expected_tools=("search", "book"), namespaces="keep").evaluate(run))
        assert 0.0 == value_of(ToolCorrectness(expected_tools=("search", "book"), tool_names="exact").evaluate(run))
        assert 1.0 == value_of(
            ToolCorrectness(expected_tools=("find", "book"), aliases={"search": "find"}).evaluate(run)
        )

    def test_nothing_expected(self) -> None:
        """An empty list expects that no tool is called; no list expects nothing and skips."""
        assert 1.0 == value_of(ToolCorrectness(expected_tools=()).evaluate(called()))
        assert 0.0 == value_of(ToolCorrectness(expected_tools=()).evaluate(called("search")))
        assert Skipped("no expected tools are given") == ToolCorrectness().evaluate(called("search"))

    @given(expected=NAMES, actual=NAMES, data=st.data())
    def test_neither_order_nor_number_matters(
        self, expected: list[str], actual: list[str], data: st.DataObject
    ) -> None:
        """The outcome depends on the sets alone."""
        one = ToolCorrectness(expected_tools=tuple(expected)).evaluate(called(*actual))
        shuffled = data.draw(st.permutations(expected * 2)), data.draw(st.permutations(actual * 2))
        other = ToolCorrectness(expected_tools=tuple(shuffled[0])).evaluate(called(*shuffled[1]))

        assert value_of(one) == value_of(other)


class TestThreshold:
    def test_the_value_itself_is_enough(self) -> None:
        """It is 0 or 1: 1 passes with the greatest threshold, and 0 with the smallest only."""
        evaluator = ToolCorrectness(expected_tools=("search",))

        assert passed_with(evaluator, 1.0, called("search"))
        assert [True, False] == [passed_with(evaluator, threshold, called("book")) for threshold in (0.0, 5e-324)]


class TestContract:
    def test_is_kept(self) -> None:
        """It evaluates whatever comes."""
        check_evaluator(ToolCorrectness(expected_tools=("search", "book")))
        check_evaluator(ToolCorrectness())

    def test_truncated(self) -> None:
        """Tools that are missing from a truncated trace do not count against the agent."""
        evaluator = ToolCorrectness(expected_tools=("search", "book"))

        assert isinstance(evaluator.evaluate(called("search", completeness=CUT_OFF)), Skipped)
        assert 0.0 == value_of(evaluator.evaluate(called("search", "book", "pay", completeness=CUT_OFF)))
