"""Where two values differ is found path by path and said in words."""

from __future__ import annotations

from collections.abc import Callable
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
    assert [Difference((), {"a": 1}, "a")] == differences({"a": 1}, "a", missing=False, extra=False)


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
        (Difference(("a",), 40, 400), "expected 40, got 400", "not the expected value"),
        (Difference(("a",), "40", 40), 'expected "40", got 40', "expected a string, got a number"),
        (Difference(("a",), [1], ABSENT), "expected [1], got nothing", "missing"),
        (Difference(("a",), ABSENT, None), "not expected, got null", "unexpected key"),
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
    ("one", "other", "words"),
    [
        (
            "x" * 50 + "a" * 100,
            "x" * 50 + "b" * 20,
            f'expected …{"x" * 15}{"a" * 65}…, got …{"x" * 15}{"b" * 20}"',
        ),
        ("x" * 39 + "a" * 64, "x" * 39, f'expected …{"x" * 15}{"a" * 64}", got …{"x" * 15}"'),
        ("x" * 38 + "a" * 90, "x" * 38, f'expected "{"x" * 38}{"a" * 40}…, got "{"x" * 38}"'),
        ("x" * 77 + "a", "x" * 77 + "b", f'expected "{"x" * 77}a", got "{"x" * 77}b"'),
    ],
    ids=["far behind", "just far enough", "not so far behind", "not long"],
)
def test_how_long_values_are_shown(one: str, other: str, words: str) -> None:
    """80 characters of each, from 15 before the place where they part if that is behind the 40th."""
    assert words == Difference((), one, other).words


def test_a_value_is_cut_where_it_is_longer_than_80_characters() -> None:
    """The last one says that there is more."""
    assert f'"{"x" * 78}"' == shown("x" * 78)
    assert f'"{"x" * 78}…' == shown("x" * 79)


def test_the_path_without_content() -> None:
    """What somebody may have named is not told: what was not expected, or what a schema does not name."""
    assert ("a", "b") == Difference(("a", "b"), 1, ABSENT).path_without_content
    assert ("a",) == Difference(("a", "b"), ABSENT, 1).path_without_content
    assert () == Difference(("a", "b"), 1, 2, ()).path_without_content


@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: {"a": value}], ids=["list", "object"])
def test_paths_end_at_32_steps(wrap: Callable[[Any], Any]) -> None:
    """Below it, values differ as a whole."""
    one, other = 1, 2
    for _ in range(32):
        one, other = wrap(one), wrap(other)

    assert [(32, 1, 2)] == [(len(each.path), each.expected, each.actual) for each in differences(one, other)]
    (deeper,) = differences(wrap(one), wrap(other))
    assert (32, wrap(1), wrap(2)) == (len(deeper.path), deeper.expected, deeper.actual)


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
