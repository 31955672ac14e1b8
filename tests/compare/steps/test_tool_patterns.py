from __future__ import annotations

import pytest

from spanscore.compare.steps.pattern import tool_pattern


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("search", "search", True),
        ("search", "Search", False),
        ("s*", "search", True),
        ("!s*", "search", False),
        ("!s*", "book", True),
        ("!search", "book", True),
        ("[a]", "[a]", True),
    ],
)
def test_matches(text: str, name: str, *, expected: bool) -> None:
    """A name, a glob, or all others."""
    assert tool_pattern(text, str).matches(name) is expected


def test_names_are_normalised_and_globs_are_not() -> None:
    """A glob is compared with normalised names as it is."""
    assert tool_pattern("SEARCH", str.lower).literal == "search"
    assert tool_pattern("!SEARCH", str.lower).matches("search") is False
    assert tool_pattern("S*", str.lower).matches("search") is False


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a", "a", True),
        ("a", "b", False),
        ("a*", "ab", True),
        ("a*", "b", False),
        ("!a", "a", False),
        ("a*", "b*", True),
    ],
)
def test_may_share(one: str, other: str, *, expected: bool) -> None:
    """Two patterns share a name; of two globs that is not found out."""
    assert tool_pattern(one, str).may_share(tool_pattern(other, str)) is expected
    assert tool_pattern(other, str).may_share(tool_pattern(one, str)) is expected
