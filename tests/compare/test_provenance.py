"""Values looked for in texts that become known in turn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanscore.compare.effort import TooMuchWorkError
from spanscore.compare.provenance import LONGEST, Sources, leaves, texts

WORDS = st.lists(st.sampled_from(["ab", "abcd", "ABCD", "b c", "12", "1,2"]), max_size=3)


def test_leaves_are_the_texts_and_numbers_in_order_with_their_paths() -> None:
    """Booleans, null, blank texts and numbers too long to be written are none."""
    value = {"a": [1, {"b": "x"}], "c": True, "d": None, "e": " ", "f": 2.5, "g": 1 << 5_000}
    assert list(leaves(value)) == [(("a", 0), 1), (("a", 1, "b"), "x"), (("f",), 2.5)]


def test_texts_hold_keys_too() -> None:
    """Objects are keyed by ids as often as by names."""
    assert sorted(texts({"R-1": [1, "x", None, True]})) == ["1", "R-1", "x"]


def test_a_part_counts_from_when_it_is_known() -> None:
    """The first part that holds a value decides, in each form."""
    sources = Sources([["Abcd"], ["abcd"]])
    assert [sources.grade("abcd", known) for known in range(3)] == ["unseen", "derived", "exact"]


def test_texts_that_are_too_long_are_refused() -> None:
    """At the bound, before anything is looked for."""
    with pytest.raises(TooMuchWorkError):
        Sources([["x" * LONGEST]])


@given(parts=st.lists(WORDS, max_size=4), leaf=st.sampled_from(["ab", "abcd", "c", "12"]), known=st.integers(0, 4))
def test_grades_are_those_of_looking_at_every_text(parts: list[list[str]], leaf: str, known: int) -> None:
    """By a search through all texts for words, and for parts from 4 characters on."""
    seen = [text for part in parts[:known] for text in part]
    is_exact = any(leaf in text.split() or leaf in text.replace(",", " ").split() for text in seen)
    folded = [text.casefold() for text in seen]
    is_derived = any(leaf in text.split() or (len(leaf) >= 4 and leaf in text) for text in folded)
    is_derived = is_derived or (leaf == "12" and "1,2" in seen)
    expected = "exact" if is_exact else "derived" if is_derived else "unseen"
    assert Sources(parts).grade(leaf, known) == expected
