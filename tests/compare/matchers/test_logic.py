"""Matchers of matchers; tests/compare/test_matchers.py has their algebra, and keys that are not there."""

from __future__ import annotations

from typing import Any

import pytest

from spanscore.compare.matchers.base import EarlierResults
from spanscore.compare.matchers.compiler import matcher
from spanscore.model import NOT_RECORDED


@pytest.mark.parametrize("actual", [None, False, 0, "", [], {}])
def test_any_is_every_recorded_value(actual: Any) -> None:
    """Null too; what was not recorded is no value, and neither `$any` nor `$not` matches it."""
    assert matcher({"$any": True}).matches(actual, EarlierResults.nothing())
    assert not matcher({"$absent": True}).matches(actual, EarlierResults.nothing())
    for expected in ({"$any": True}, {"$not": 1}, {"$one_of": [{"$any": True}]}, {"$schema": {}}, {"$from": "*"}):
        assert not matcher(expected).matches(NOT_RECORDED, EarlierResults.nothing())


@pytest.mark.parametrize(
    ("expected", "is_text"),
    [
        ("x", True),
        ({"$glob": "x"}, True),
        ({"$contains": "x"}, True),
        ({"$not": {"$regex": "x"}}, True),
        ({"$one_of": ["x", {"$date": "2026-11-01"}]}, True),
        ({"$all_of": [{"$length": 3}, {"$glob": "x"}]}, True),
        ({"$one_of": ["x", 1]}, False),
        ({"$any": True}, False),
        ({"$contains": 1}, False),
        ({"a": {"$glob": "x"}}, False),
    ],
)
def test_what_is_of_texts(expected: Any, *, is_text: bool) -> None:
    """It is compared with the content of a result."""
    assert is_text == matcher(expected).is_text


def test_words() -> None:
    """They are made of those of the parts."""
    expected = {"$one_of": [1, {"$all_of": [{"$not": "x"}, {"$type": "string"}]}, {"$optional": {"$any": True}}]}

    assert 'one of 1, not "x" and string, nothing or any value' == matcher(expected).words


def test_many_values_are_not_compared_one_by_one() -> None:
    """Ten thousand calls against four thousand values."""
    compiled, seen = matcher({"$one_of": list(range(4_000))}), EarlierResults.nothing()

    assert 4_000 == sum(compiled.matches(number, seen) for number in range(10_000))
