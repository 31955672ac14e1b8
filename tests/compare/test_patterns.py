"""Patterns run on RE2."""

from __future__ import annotations

import pytest

from spanscore.compare._patterns import compiled, is_found, is_whole


def test_found_and_whole() -> None:
    """A pattern is found somewhere, or matches the whole text; whatever the text is made of."""
    assert (True, False) == (is_found("b+", "abbc"), is_whole("b+", "abbc"))
    assert (True, True) == (is_found("é.", "né\ud800"), is_whole("né.", "né\ud800"))
    assert is_whole("a|ab", "ab")


@pytest.mark.parametrize("pattern", ["(", "(?=x)", r"(a)\1", "(a{1000}){1000}"])
def test_what_could_not_be_linear_is_refused(pattern: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The message names the pattern, and why; RE2 itself writes nothing."""
    compiled.cache_clear()
    with pytest.raises(ValueError, match=r"is not one of RE2: \w"):
        compiled(pattern)
    assert ("", "") == capfd.readouterr()
