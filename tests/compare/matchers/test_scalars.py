"""Matchers of single values say yes and no as they are told, and of wrong ones what is wrong."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanscore.compare.matchers.base import EarlierResults
from spanscore.compare.matchers.compiler import matcher

VALUES = [None, True, 0, 2.0, 2.5, "", "R-12", [], [1], {}, {"a": 1}]


def matched(expected: Any) -> list[Any]:
    """Return which of the values match."""
    compiled = matcher(expected)
    return [value for value in VALUES if compiled.matches(value, EarlierResults.nothing())]


@pytest.mark.parametrize(
    ("types", "matching"),
    [
        ("string", ["", "R-12"]),
        ("integer", [0, 2.0]),
        ("number", [0, 2.0, 2.5]),
        ("boolean", [True]),
        ("array", [[], [1]]),
        ("object", [{}, {"a": 1}]),
        ("null", [None]),
        (["null", "boolean"], [None, True]),
    ],
)
def test_types(types: Any, matching: list[Any]) -> None:
    """Booleans are no numbers, and a number without a fraction is an integer."""
    assert repr(matching) == repr(matched({"$type": types}))


@pytest.mark.parametrize(
    ("expected", "text", "matches"),
    [
        ({"$glob": "*.pdf"}, "a.pdf", True),
        ({"$glob": "*.pdf"}, "a.pdf\n", False),
        ({"$glob": "?[a]"}, "x[a]", True),
        ({"$glob": "a*"}, "ba", False),
        ({"$regex": "R-\\d+"}, "R-12", True),
        ({"$regex": "R-\\d+"}, "xR-12", False),
        ({"$regex": "R-\\d+"}, "R-12x", False),
        ({"$regex": "a|ab"}, "ab", True),
        ({"$regex": "."}, "é", True),
        ({"$regex": "."}, "\ud800", True),
        ({"$ignore_case": "Berlin"}, "BERLIN", True),
        ({"$ignore_case": "straße"}, "STRASSE", True),
        ({"$ignore_case": "Berlin"}, "Berlin ", False),
    ],
)
def test_texts(expected: Any, text: str, *, matches: bool) -> None:
    """Whole strings are compared, and nothing but strings matches."""
    compiled = matcher(expected)

    assert matches == compiled.matches(text, EarlierResults.nothing())
    assert not any(compiled.matches(value, EarlierResults.nothing()) for value in VALUES if not isinstance(value, str))


def test_a_pattern_made_to_be_slow() -> None:
    """It takes time linear in the text, where Python's own would not end."""
    for expected in ({"$regex": "(a*)*b"}, {"$regex": "(a|a)*b"}, {"$glob": "*a" * 30 + "b"}):
        assert not matcher(expected).matches("a" * 100_000, EarlierResults.nothing())


@pytest.mark.parametrize(
    ("expected", "actual", "matches"),
    [
        ({"$near": 40, "within": 0.01}, 40.01, True),
        ({"$near": 40, "within": 0.01}, 40.010001, False),
        ({"$near": 1, "within": 0.1}, 1.1, True),
        ({"$near": 0.3, "within": 0}, 0.3, True),
        ({"$near": 200, "percent": 1}, 202, True),
        ({"$near": 200, "percent": 10}, 220, True),
        ({"$near": 200, "percent": 10}, 221, False),
        ({"$near": -200, "percent": 1}, -197.9, False),
        ({"$near": 1, "within": 1}, True, False),
        ({"$near": 1, "within": 1}, "1", False),
        ({"$near": 1, "within": 1}, math.nan, False),
        pytest.param({"$near": 1, "within": 1}, 10**5_000, False, id="a number longer than Python writes"),
        ({"$range": [0, 100]}, 0, True),
        ({"$range": [0, 100]}, 100.0, True),
        ({"$range": [0, 100]}, 100.5, False),
        ({"$range": [None, 1]}, -(10**30), True),
        ({"$range": [1, None]}, 0.9, False),
        ({"$range": [0, 1]}, True, False),
        ({"$length": 3}, "abc", True),
        ({"$length": 3}, [1, 2], False),
        ({"$length": [1, 5]}, {"a": 1}, True),
        ({"$length": [1, 5]}, "", False),
        ({"$length": [None, 0]}, [], True),
        ({"$length": 1}, 1, False),
    ],
)
def test_numbers_and_lengths(expected: Any, actual: Any, *, matches: bool) -> None:
    """Ends are included, as they are written in decimals."""
    assert matches == matcher(expected).matches(actual, EarlierResults.nothing())


@given(st.decimals(-100, 100, places=2), st.decimals(0, 10, places=2), st.decimals(-100, 100, places=2))
def test_near_is_what_decimals_say(wanted: Decimal, within: Decimal, actual: Decimal) -> None:
    """Whatever the nearest binary fractions are."""
    compiled = matcher({"$near": float(wanted), "within": float(within)})

    assert (abs(wanted - actual) <= within) == compiled.matches(float(actual), EarlierResults.nothing())


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        ({"$near": 40, "within": 0.01}, "40 ± 0.01"),
        ({"$near": 40, "percent": 1}, "40 ± 1 %"),
        ({"$range": [0, 100]}, "0 to 100"),
        ({"$range": [0, None]}, "at least 0"),
        ({"$range": [None, 5]}, "at most 5"),
        ({"$range": [None, None]}, "a number"),
        ({"$length": 3}, "length 3"),
        ({"$length": [1, 5]}, "length 1 to 5"),
        ({"$type": ["string", "null"]}, "string or null"),
        ({"$glob": "*.pdf"}, 'text like "*.pdf"'),
        ({"$ignore_case": "Berlin"}, '"Berlin" in any case'),
    ],
)
def test_words(expected: Any, words: str) -> None:
    """What is expected is told with its numbers."""
    assert words == matcher(expected).words


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"$type": "strng"}, "not \"strng\"; did you mean 'string'?"),
        ({"$type": []}, "or a list of them"),
        ({"$type": 1}, "not 1"),
        ({"$glob": 1}, "must be a text, not 1"),
        ({"$regex": "("}, "not one of RE2"),
        ({"$regex": None}, "must be a text, not null"),
        ({"$near": "40", "within": 1}, 'must be a number, not "40"'),
        ({"$near": True, "within": 1}, "must be a number, not true"),
        ({"$near": 40}, "either 'within' or 'percent'"),
        ({"$near": 40, "within": 1, "percent": 1}, "either 'within' or 'percent'"),
        ({"$near": 40, "within": -1}, "'within' must be a number of at least 0, not -1"),
        ({"$range": [1]}, "must be two numbers or null, such as [0, 100], not [1]"),
        ({"$range": [3, 1]}, "the first of [3, 1] must not be greater than the second"),
        ({"$range": [True, 1]}, "must be two numbers"),
        ({"$length": -1}, "must be a whole number of at least 0, or two of them such as [1, 5], not -1"),
        ({"$length": None}, "must be a whole number"),
        ({"$length": [1, "x"]}, "must be two whole numbers of at least 0 or null"),
    ],
)
def test_mistakes(expected: Any, message: str) -> None:
    """A wrong parameter says what is allowed."""
    with pytest.raises(ValueError, match=re.escape(message)):
        matcher(expected)
