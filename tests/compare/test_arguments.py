from __future__ import annotations

from typing import Any

import pytest

from spanscore.compare.arguments import Comparison, parsed_path, value_at, without
from spanscore.model import NOT_RECORDED

VALUE = {"a": {"b": [1, {"c": 2}], "d": 3}, "e": 4}


def fits(comparison: Comparison, actual: Any, reference: Any) -> bool:
    """Compare two calls' arguments."""
    return comparison.fits(comparison.key(actual), comparison.key(reference))


class TestComparison:
    @pytest.mark.parametrize(
        ("comparison", "actual", "reference", "expected"),
        [
            (Comparison(), {"a": 1}, {"a": 1.0}, True),
            (Comparison(), NOT_RECORDED, {}, True),
            (Comparison(), None, {}, False),
            (Comparison(mode="ignore"), {"a": 1}, {}, True),
            (Comparison(mode="subset"), {"a": 1}, {"a": 1, "b": 2}, True),
            (Comparison(mode="subset"), {"a": 1, "b": 2}, {"a": 1}, False),
            (Comparison(mode="superset"), {"a": 1, "b": 2}, {"a": 1}, True),
            (Comparison(mode="superset"), {"a": [1]}, {"a": []}, False),
            (Comparison(mode="superset"), [1, 2], {}, True),
            (Comparison(ignored=(("a", "b"),)), VALUE, {"a": {"d": 3}, "e": 4}, True),
            (Comparison(ignored=(("e",),)), VALUE, {**VALUE, "a": 1}, False),
            (Comparison(only=(("a", "d"), ("e",))), VALUE, {"a": {"d": 3}, "e": 4.0}, True),
            (Comparison(only=(("x",),)), {}, {"a": 1}, True),
            (Comparison(only=(("x",),)), {"x": None}, {}, False),
            (Comparison(only=()), {"x": 1}, {"y": 2}, True),
        ],
    )
    def test_ways_to_compare(self, comparison: Comparison, actual: Any, reference: Any, *, expected: bool) -> None:
        """As a whole, not at all, by top-level containment, without some paths, or by some paths only."""
        assert expected == fits(comparison, actual, reference)


class TestPaths:
    @pytest.mark.parametrize("text", ["", "a..b", ".a", "a.", ".".join("a" * 65)])
    def test_refuses_what_is_no_path(self, text: str) -> None:
        """A path is keys joined by dots, and not endlessly long."""
        with pytest.raises(ValueError, match="keys joined by dots"):
            parsed_path(text)

    def test_lists_have_indexes(self) -> None:
        """A number is a list's index, and an object's key where there is an object."""
        assert 2 == value_at(VALUE, parsed_path("a.b.1.c"))
        assert "x" == value_at({"1": "x"}, parsed_path("1"))

    @pytest.mark.parametrize("text", ["x", "a.b.7", "a.b.-1", "a.b.x", "e.f", "a.b.99999999999999999999"])
    def test_absent(self, text: str) -> None:
        """Nothing stands at a path that leads nowhere, and it equals nothing."""
        assert value_at(VALUE, parsed_path(text)) not in (None, 1, 2, 3, 4)
        assert VALUE == without(VALUE, [parsed_path(text)])

    def test_without_copies(self) -> None:
        """Leaving something out keeps the other items of a list in place, and the original as it was."""
        before = repr(VALUE)

        assert {"a": {"b": [None, {}], "d": 3}} == without(VALUE, [("a", "b", "0"), ("a", "b", "1", "c"), ("e",)])
        assert before == repr(VALUE)
