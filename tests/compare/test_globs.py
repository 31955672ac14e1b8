from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import at_most
from spanscore.compare.globs import glob_matcher, is_glob, value_matches

PATTERNS = st.text("ab*?[", max_size=8)
NAMES = st.text("ab[\n", max_size=10)


def by_regular_expression(pattern: str, name: str) -> bool:
    """Say what a glob means, in the slow and plain way."""
    special = {"*": ".*", "?": "."}
    expression = "".join(special.get(character, re.escape(character)) for character in pattern)
    return re.fullmatch(expression, name, re.DOTALL) is not None


class TestGlobMatcher:
    @pytest.mark.parametrize(
        ("pattern", "name", "expected"),
        [
            ("shop-*", "shop-eu", True),
            ("shop-*", "Shop-eu", False),
            ("*", "", True),
            ("", "", True),
            ("delete_?", "delete_", False),
            ("[ab]", "a", False),
            ("[ab]", "[ab]", True),
            ("lookup[0]", "lookup[0]", True),
            ("lookup[0]*", "lookup[0]_all", True),
            ("a[*]b", "a*b", False),
            ("a?b", "a*b", True),
            ("a*a", "a", False),
        ],
    )
    def test_matches_whole_names(self, pattern: str, name: str, *, expected: bool) -> None:
        """`*` is any run of characters, `?` is one, all else is itself, and case counts."""
        assert expected == glob_matcher(pattern)(name)

    @at_most(500)
    @given(pattern=PATTERNS, name=NAMES)
    def test_means_what_the_regular_expression_means(self, pattern: str, name: str) -> None:
        """Looking for each piece once, leftmost, never misses a match."""
        assert by_regular_expression(pattern, name) == glob_matcher(pattern)(name)

    def test_a_megabyte_made_to_be_slow(self) -> None:
        """A name that would take a backtracking matcher for ever is answered at once."""
        assert not glob_matcher("*a*a*a*a*a?a?a*b")("a" * 1_000_000)


@pytest.mark.parametrize(
    ("pattern", "value", "expected"),
    [
        ("shop-*", "shop-eu", True),
        ("shop-*", "eu", False),
        ("true", True, True),
        ("True", True, False),
        ("false", False, True),
        ("5", 5, True),
        ("0.5", 0.5, True),
        ("5", 6, False),
        ("eu", ["us", "eu"], True),
        ("eu", ["us", ["eu"]], False),
        ("*", [], False),
        ("*", None, False),
        ("*", {"a": "b"}, False),
        ("*", b"eu", False),
    ],
)
def test_values_of_attributes(pattern: str, value: Any, *, expected: bool) -> None:
    """Booleans and numbers match as JSON writes them, and a list where one of its items does."""
    assert expected == value_matches(glob_matcher(pattern), value)


class TestIsGlob:
    def test_plain_names(self) -> None:
        """Only stars and question marks make a glob."""
        assert [False, False, True, True] == [is_glob(text) for text in ("search", "[a-z]", "s*", "s?")]
