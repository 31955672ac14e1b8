"""Matchers of arrays and mappings."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from spanscore.compare.matchers.base import EarlierResults
from spanscore.compare.matchers.compiler import matcher
from spanscore.compare.matchers.structures import Keys


@pytest.mark.parametrize(
    ("expected", "actual", "matches"),
    [
        ({"$subset": {"a": {"b": 1}}}, {"a": {"b": 1, "c": 2}, "d": 3}, True),
        ({"$subset": {"a": {"b": 1}}}, {"a": {"c": 2}}, False),
        ({"$subset": {"a": [{"b": 1}]}}, {"a": [{"b": 1, "c": 2}]}, False),
        ({"$subset": {"a": {"$one_of": [{"b": 1}, 2]}}}, {"a": {"b": 1, "c": 2}}, True),
        ({"$subset": {}}, {"a": 1}, True),
        ({"$subset": {}}, {}, True),
        ({"$subset": {}}, "text", False),
        ({"$subset": {}}, [1], False),
        ({"$subset": {"a": {}}}, {"a": None}, False),
        ({"$subset": {"a": {}}}, {"a": {"b": 1}}, True),
        ({"a": {"$subset": {}}}, {"a": {"b": 1}, "c": 1}, False),
        ({"$contains": "b"}, "abc", True),
        ({"$contains": "B"}, "abc", False),
        ({"$contains": 1}, [0, 1.0], True),
        ({"$contains": 1}, [True], False),
        ({"$contains": {"$subset": {"a": 1}}}, [0, {"a": 1, "b": 2}], True),
        ({"$contains": {"$regex": "b"}}, "abc", False),
        ({"$contains": "a"}, {"a": 1}, False),
        ({"$unordered": []}, [], True),
        ({"$unordered": []}, {}, False),
        ([{"$any": True}, 1], [None, 1], True),
        ([{"$any": True}, 1], [None], False),
        ([{"$any": True}], "x", False),
    ],
)
def test_matching(expected: Any, actual: Any, *, matches: bool) -> None:
    """As the specification has it, and a mismatch is told exactly where there is one."""
    assert matches == matcher(expected).matches(actual, EarlierResults.nothing())
    assert matches == (not matcher(expected).differences(actual))


def test_unordered_finds_the_pairing_there_is() -> None:
    """The item that fits both is left to what nothing else fits; large arrays take no time."""
    for order in permutations([1, 2, "x"]):
        expected = {"$unordered": [{"$any": True}, {"$type": "integer"}, {"$range": [2, 2]}]}
        assert matcher(expected).matches(list(order), EarlierResults.nothing())
    numbers = list(range(4_000))
    assert matcher({"$unordered": [*numbers, {"$type": "string"}]}).matches(
        ["x", *numbers[::-1]], EarlierResults.nothing()
    )


def test_words_are_cut() -> None:
    """What is expected is told, but not without end."""
    assert '{"a": 1 to 2}' == matcher({"a": {"$range": [1, 2]}}).words
    assert "[1, string] in any order" == matcher({"$unordered": [1, {"$type": "string"}]}).words
    assert "[1, string]" == matcher([1, {"$type": "string"}]).words
    assert "a value that contains 1 to 2" == matcher({"$contains": {"$range": [1, 2]}}).words
    assert 80 == len(matcher([{"$type": "string"}] * 100).words)


def test_the_share_of_keys() -> None:
    """A key that may be missing counts as one that matches; what is no mapping has none."""
    compiled = matcher({"a": {"$range": [1, 2]}, "b": {"$optional": 1}, "c": 1, "d": 1})

    assert isinstance(compiled, Keys)
    assert 0.75 == compiled.share({"a": 1, "c": 1, "d": 2, "e": 1}, EarlierResults.nothing())
    assert 0.0 == compiled.share([1], EarlierResults.nothing())
