from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.runs import CUT_OFF, NO_ARGUMENTS, around_its_value, called, details_of, made, value_of
from examples import at_most
from spanscore.compare.matching import json_equal
from spanscore.evaluators.tool_call_args import ExpectedArgs, ToolCallArgs
from spanscore.model import NOT_RECORDED, Score, Skipped
from spanscore.testing import check_evaluator

ARGUMENTS = st.dictionaries(st.sampled_from("xy"), st.sampled_from([0, 1, True, [1], 2]), max_size=2)
CALLS = st.lists(st.tuples(st.sampled_from("ab"), ARGUMENTS), max_size=7)


def expecting(*calls: tuple[str, dict[str, Any]], **parameters: Any) -> ToolCallArgs:
    """An evaluator that expects these calls."""
    return ToolCallArgs(tool_calls=tuple(ExpectedArgs(name=name, args=args) for name, args in calls), **parameters)


def hits(expected: list[tuple[str, dict[str, Any]]], actual: list[tuple[str, dict[str, Any]]], *, subset: bool) -> int:
    """Count the expected calls that find a call, looking at every call for each."""
    left = list(actual)
    count = 0
    for tool, wanted in expected:
        for index, (name, arguments) in enumerate(left):
            kept = {key: arguments[key] for key in wanted if key in arguments} if subset else arguments
            if name == tool and json_equal(kept, wanted):
                del left[index]
                count += 1
                break
    return count


class TestValue:
    def test_share_of_expected_calls(self) -> None:
        """The value is the share of expected calls that a call fits; what differs is told, argument by argument."""
        evaluator = expecting(("search", {"city": "Paris"}), ("book", {}), ("search", {"city": "Rome", "days": 2}))
        outcome = evaluator.evaluate(made(("search", {"city": "Paris", "limit": 3}), ("book", [1]), ("search", {})))

        expected = Score(
            value=2 / 3,
            passed=False,
            explanation=(
                "2 of 3 expected calls were made with at least the expected arguments. search.city: expected "
                '"Rome", got nothing and search.days: expected 2, got nothing (call 3).'
            ),
            details={
                "explained_tool_calls_args": {
                    "search_0": "Actual: call 0, Expected: city, Score: 1.0",
                    "book_0": "Actual: call 1, Expected: anything, Score: 1.0",
                    "search_1": "Actual: no matching call, Expected: city, days, Score: 0.0",
                },
                "deviations": [
                    {
                        "kind": "arguments",
                        "tool": "search",
                        "call": 2,
                        "span_id": None,
                        "reason": "search.city: missing",
                        "path": "city",
                        "expected": "Rome",
                        "more": [{"path": "days", "expected": 2}],
                    }
                ],
            },
            without_content=(
                "2 of 3 expected calls were made with at least the expected arguments. search.city: missing and "
                "search.days: missing (call 3)."
            ),
        )

        assert expected == outcome

    @pytest.mark.parametrize(
        ("expected", "actual", "as_subset", "as_a_whole"),
        [
            ({"x": 1}, {"x": 1.0}, 1.0, 1.0),
            ({"x": 1}, {"x": 1, "y": 2}, 1.0, 0.0),
            ({"x": True}, {"x": 1}, 0.0, 0.0),
            ({"x": None}, {}, 0.0, 0.0),
            ({"x": [1]}, {"x": [1, 2]}, 0.0, 0.0),
            ({"x": 1}, [1], 0.0, 0.0),
            ({}, [1], 1.0, 0.0),
            ({}, NOT_RECORDED, 1.0, 1.0),
            ({"x": 1}, NOT_RECORDED, 0.0, 0.0),
        ],
    )
    def test_what_fits(self, expected: dict[str, Any], actual: Any, as_subset: float, as_a_whole: float) -> None:
        """Top-level arguments are compared as JSON: those expected only, or all of them."""
        run = made(("a", actual))

        assert as_subset == value_of(expecting(("a", expected)).evaluate(run))
        assert as_a_whole == value_of(expecting(("a", expected), subset=False).evaluate(run))

    def test_what_differs_is_what_is_compared(self) -> None:
        """Further arguments only where the whole is."""
        run = made(("a", {"x": 2, "y": 1}))

        for subset, paths in ((True, ["x"]), (False, ["x", "y"])):
            (row,) = details_of(expecting(("a", {"x": 1}), subset=subset).evaluate(run))["deviations"]
            assert paths == [row["path"], *(each["path"] for each in row.get("more", ()))]

    def test_takes_the_first_that_fits(self) -> None:
        """A call serves one expected call only, and an undemanding one may take what a later one needs."""
        evaluator = expecting(("a", {}), ("a", {"x": 1}))

        assert 0.5 == value_of(evaluator.evaluate(made(("a", {"x": 1}), ("a", {}))))
        assert 1.0 == value_of(evaluator.evaluate(made(("a", {}), ("a", {"x": 1}))))

    def test_what_was_not_called_is_missing(self) -> None:
        """A call that fits none is told beside the nearest that is left of its tool, each beside another one."""
        evaluator = expecting(("b", {"x": 1}), ("a", {"x": 1, "y": 1}), ("a", {"x": 2, "y": 2}), ("a", {"x": 3}))
        outcome = evaluator.evaluate(made(("a", {"x": 9, "y": 9}), ("a", {"x": 9, "y": 1})))

        told = [(each["kind"], each["tool"], each["call"]) for each in details_of(outcome)["deviations"]]
        assert [("missing", "b", None), ("arguments", "a", 1), ("arguments", "a", 0), ("missing", "a", None)] == told

    def test_strict(self) -> None:
        """With `strict` one expected call without a fitting one makes it 0."""
        evaluator = expecting(("a", {"x": 1}), ("b", {}), strict=True)

        assert 0.0 == value_of(evaluator.evaluate(made(("a", {"x": 1}))))
        assert 1.0 == value_of(evaluator.evaluate(made(("b", {}), ("a", {"x": 1}), ("c", {}))))

    @at_most(300)
    @given(expected=CALLS.filter(bool), actual=CALLS, subset=st.booleans())
    def test_finds_what_looking_at_all_finds(
        self, expected: list[tuple[str, dict[str, Any]]], actual: list[tuple[str, dict[str, Any]]], *, subset: bool
    ) -> None:
        """Looking up calls by what they have takes the same calls as looking at each of them."""
        outcome = expecting(*expected, subset=subset).evaluate(made(*actual))

        assert hits(expected, actual, subset=subset) / len(expected) == value_of(outcome)


class TestThreshold:
    def test_the_value_itself_is_enough(self) -> None:
        """A value that is the threshold passes, and with any greater threshold it does not."""
        evaluator = expecting(("a", {"x": 1}), ("b", {"x": 2}))
        run = made(("a", {"x": 1}), ("b", {"x": 3}))

        assert (0.5, [True, True, False]) == around_its_value(evaluator, run)


class TestContract:
    def test_is_kept(self) -> None:
        """It evaluates whatever comes."""
        for parameters in ({}, {"subset": False}, {"strict": True}, {"tool_names": "canonical"}):
            check_evaluator(expecting(("search", {"city": "Paris"}), ("book", {}), **parameters))

    def test_needs_recorded_arguments(self) -> None:
        """Arguments that the spans do not hold make it skip, if they had to be compared."""
        run = called("search", "search", "book", completeness=NO_ARGUMENTS)
        reason = "arguments of 2 calls of 'search' were not recorded"

        assert Skipped(reason) == expecting(("search", {"city": "Paris"})).evaluate(run)
        assert 1.0 == value_of(expecting(("search", {})).evaluate(run))
        assert isinstance(expecting(("search", {}), subset=False).evaluate(run), Skipped)
        assert 0.0 == value_of(expecting(("pay", {"x": 1})).evaluate(run))

    def test_truncated(self) -> None:
        """Expected calls that are missing from a truncated trace do not count against the agent."""
        reason = "the trace was cut off by a limit; missing calls (1) may be in the part not received"
        evaluator = expecting(("a", {"x": 1}), ("b", {}))
        assert Skipped(reason) == evaluator.evaluate(made(("a", {"x": 1}), completeness=CUT_OFF))

    def test_repeated_names_have_labels_of_their_own(self) -> None:
        """Every expected call is explained."""
        outcome = expecting(*[("a", {})] * 3).evaluate(made(("a", {})))

        assert ["a_0", "a_1", "a_2"] == list(details_of(outcome)["explained_tool_calls_args"])


def test_arguments_are_a_mapping() -> None:
    """Or one matcher for all of them."""
    with pytest.raises(ValueError, match=r"^tool_calls\[1\]\.args: must be a mapping, or a matcher, not \[1\]$"):
        check_evaluator(expecting(("a", {}), ("a", [1])))
