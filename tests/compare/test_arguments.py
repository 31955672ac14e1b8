from __future__ import annotations

from typing import Any

import pytest

from spanscore.compare.arguments import ArgumentComparison
from spanscore.compare.differences import Difference
from spanscore.compare.effort import Effort
from spanscore.model import NOT_RECORDED

VALUE: dict[str, Any] = {"a": {"b": [1, {"c": 2}], "d": 3}, "e": 4}


def fits(comparison: ArgumentComparison, actual: Any, reference: Any) -> bool:
    """Compare two calls' arguments."""
    return comparison.fits(comparison.key(actual), comparison.key(reference))


class TestComparison:
    @pytest.mark.parametrize(
        ("comparison", "actual", "reference", "expected"),
        [
            (ArgumentComparison(), {"a": 1}, {"a": 1.0}, True),
            (ArgumentComparison(), NOT_RECORDED, {}, True),
            (ArgumentComparison(), None, {}, False),
            (ArgumentComparison(mode="ignore"), {"a": 1}, {}, True),
            (ArgumentComparison(mode="subset"), {"a": 1}, {"a": 1, "b": 2}, True),
            (ArgumentComparison(mode="subset"), {"a": 1, "b": 2}, {"a": 1}, False),
            (ArgumentComparison(mode="superset"), {"a": 1, "b": 2}, {"a": 1}, True),
            (ArgumentComparison(mode="subset"), {"a": 1}, {"a": 1.0}, True),
            (ArgumentComparison(mode="superset"), {"a": 1}, {"a": 1.0}, True),
            (ArgumentComparison(mode="superset"), {"a": [1]}, {"a": []}, False),
            (ArgumentComparison(mode="superset"), [1, 2], {}, True),
            (ArgumentComparison(ignored=(("a", "b"),)), VALUE, {"a": {"d": 3}, "e": 4}, True),
            (ArgumentComparison(ignored=(("e",),)), VALUE, {**VALUE, "a": 1}, False),
            (ArgumentComparison(only=(("a", "d"), ("e",))), VALUE, {"a": {"d": 3}, "e": 4.0}, True),
            (ArgumentComparison(only=(("x",),)), {}, {"a": 1}, True),
            (ArgumentComparison(only=(("x",),)), {"x": None}, {}, False),
            (ArgumentComparison(only=(("x",),)), {"x": [True]}, {"x": [1]}, False),
            (ArgumentComparison(only=()), {"x": 1}, {"y": 2}, True),
        ],
    )
    def test_ways_to_compare(
        self, comparison: ArgumentComparison, actual: Any, reference: Any, *, expected: bool
    ) -> None:
        """As a whole, not at all, by top-level containment, without some paths, or by some paths only."""
        assert expected == fits(comparison, actual, reference)

    def test_what_has_to_be_recorded(self) -> None:
        """Arguments are looked at unless they are ignored, or no path of them is compared."""
        looked_at = [
            ArgumentComparison(),
            ArgumentComparison(mode="subset"),
            ArgumentComparison(mode="ignore", only=(("a",),)),
        ]
        ignored = [ArgumentComparison(mode="ignore"), ArgumentComparison(only=())]

        assert [True] * 3 == [each.looks_at_arguments for each in looked_at]
        assert [False] * 2 == [each.looks_at_arguments for each in ignored]

    def test_kinds(self) -> None:
        """Some compare arguments as a whole, some by what is contained."""
        path = (("a",),)
        ways = [
            ArgumentComparison(),
            ArgumentComparison(ignored=path),
            ArgumentComparison(only=path),
            ArgumentComparison(mode="subset"),
        ]
        ways += [ArgumentComparison(mode="superset"), ArgumentComparison(mode="superset", only=path)]

        assert [True, False, False, False, False, False] == [each.is_equality for each in ways]
        assert [False, False, False, True, True, False] == [each.by_containment for each in ways]

    @pytest.mark.parametrize(
        ("comparison", "paths"),
        [
            (ArgumentComparison(), [("a",), ("b", "c"), ("d",), ("e",)]),
            (ArgumentComparison(mode="subset"), [("a",), ("b", "c"), ("e",)]),
            (ArgumentComparison(mode="superset"), [("a",), ("b", "c"), ("d",)]),
            (ArgumentComparison(ignored=(("a",), ("b", "c"))), [("d",), ("e",)]),
            (ArgumentComparison(only=(("b",), ("d",), ("e",), ("x",))), [("b", "c"), ("d",), ("e",)]),
        ],
    )
    def test_differences(self, comparison: ArgumentComparison, paths: list[tuple[str, ...]]) -> None:
        """They are told as far as arguments are compared, with their whole paths."""
        reference, actual = {"a": 1, "b": {"c": 1}, "d": 1}, {"a": 2, "b": {"c": 2}, "e": 1}

        assert paths == [each.path for each in comparison.differences(reference, actual)]
        assert [] == comparison.differences(reference, reference)

    def test_calls_without_arguments_have_none(self) -> None:
        """What was not recorded differs as an empty object does."""
        assert [("a",)] == [each.path for each in ArgumentComparison().differences({"a": 1}, NOT_RECORDED)]
        assert [("a",)] == [each.path for each in ArgumentComparison().differences(NOT_RECORDED, {"a": 1})]

    def test_partners_are_the_nearest_first(self) -> None:
        """Of those that contain the arguments the smallest, of those that are contained the largest."""
        sets = [frozenset(text) for text in ("abc", "a", "ab", "x")]

        assert {sets[1]: [sets[1], sets[2], sets[0]]} == ArgumentComparison(mode="subset").partners(
            [sets[1]], sets, Effort()
        )
        assert {sets[0]: [sets[0], sets[2], sets[1]]} == ArgumentComparison(mode="superset").partners(
            [sets[0]], sets, Effort()
        )


def test_a_difference_has_its_path_in_the_arguments() -> None:
    """With `only`, what is compared has the paths for keys."""
    comparison = ArgumentComparison(only=(("a", "b"), ("e",)))
    compared = comparison.compared(VALUE)

    assert {"a.b": VALUE["a"]["b"], "e": 4} == compared
    assert ("a", "b", 1, "c") == comparison.at_its_path(Difference(("a.b", 1, "c"), 3, 2)).path
    assert ("e",) == comparison.at_its_path(Difference(("e",), 3, 4)).path


def test_one_matcher_for_all_arguments_has_no_place_at_some_paths() -> None:
    """With `only`, a value of matchers by key is compared, and a matcher of the whole is refused."""
    comparison = ArgumentComparison(only=(("a",),))
    with pytest.raises(ValueError, match="args: one matcher for all arguments cannot be compared at some paths only"):
        comparison.matcher({"$type": "object"}, "args", str)

    assert comparison.matcher({"a": {"$type": "number"}}, "args", str)[1] is not None
