"""Where two values differ is found path by path and said in words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanscore.compare.differences import ABSENT, MOST, Difference, differences, path_text, shown
from spanscore.compare.matching import json_equal

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("expected", "actual", "found"),
    [
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 40}, {"a": 400}, [Difference(("a",), 40, 400)]),
        ({"a": 1}, {"a": True}, [Difference(path=("a",), expected=1, actual=True)]),
        ({"a": None}, {}, [Difference(("a",), None, ABSENT)]),
        ({}, {"a": None}, [Difference(("a",), ABSENT, None)]),
        ({"a": {"b": [1, {"c": 2}]}}, {"a": {"b": [1, {"c": 3}]}}, [Difference(("a", "b", 1, "c"), 2, 3)]),
        ({"a": [1]}, {"a": [1, 2]}, [Difference(("a",), [1], [1, 2])]),
        ({"a": 1}, "text", [Difference((), {"a": 1}, "text")]),
        ({"b": 1, "a": 1}, {"a": 2, "b": 2}, [Difference(("b",), 1, 2), Difference(("a",), 1, 2)]),
    ],
)
def test_paths(expected: Any, actual: Any, found: list[Difference]) -> None:
    """Objects are compared key by key, lists of one length item by item, all else as JSON."""
    assert found == differences(expected, actual)


@given(expected=JSON, actual=JSON)
def test_none_exactly_where_they_are_equal(expected: Any, actual: Any) -> None:
    """Two values without a difference are equal, and equal values have none."""
    assert json_equal(expected, actual) == (not differences(expected, actual))


def test_one_side_only() -> None:
    """Top-level keys of one side may be of no interest; below them every key counts."""
    expected, actual = {"a": {"x": 1}, "b": 1}, {"a": {}, "c": 1}

    assert ["a.x", "b"] == [path_text("", each.path)[1:] for each in differences(expected, actual, extra=False)]
    assert ["a.x", "c"] == [path_text("", each.path)[1:] for each in differences(expected, actual, missing=False)]


def test_is_bounded() -> None:
    """Of many differences the first are found; values that are too deep differ as a whole."""
    deep_one: list[Any] = []
    deep_other: list[Any] = [1]
    for _ in range(200):
        deep_one, deep_other = [deep_one], [deep_other]

    assert MOST == len(differences({str(n): n for n in range(99)}, {}))
    assert 1 == len(differences(deep_one, deep_other))


@pytest.mark.parametrize(
    ("difference", "words", "plain"),
    [
        (Difference(("a",), 40, 400), "expected 40, got 400", "another value"),
        (Difference(("a",), "40", 40), 'expected "40", got 40', "another value"),
        (Difference(("a",), [1], ABSENT), "expected [1], got nothing", "missing"),
        (Difference(("a",), ABSENT, None), "not expected, got null", "more than expected"),
    ],
)
def test_words(difference: Difference, words: str, plain: str) -> None:
    """Values are written as JSON, so that a text and a number look different; or they are left out."""
    assert (words, plain) == (difference.words, difference.words_without_content)


def test_long_values_are_shown_where_they_part() -> None:
    """Two long texts that begin alike are shown from shortly before the place where they differ."""
    common = "x" * 500
    told = Difference((), f"{common} one {common}", f"{common} two {common}").words

    assert ("one" in told, "two" in told, len(told) < 250) == (True, True, True)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), "refund"),
        (("items", 0, "sku"), "refund.items.0.sku"),
        (("a b", 'c"d'), 'refund["a b"]["c\\"d"]'),
        (("größe",), "refund.größe"),
    ],
)
def test_paths_in_words(path: tuple[str | int, ...], text: str) -> None:
    """Keys that are no words stand in brackets, so that a dot in a key is not taken for a step."""
    assert text == path_text("refund", path)


def test_what_cannot_be_written_is_said_to_be_so() -> None:
    """A value that no JSON can be made of does not stop an explanation."""
    endless: list[Any] = []
    endless.append(endless)

    assert "a value that cannot be shown" == shown(endless)
