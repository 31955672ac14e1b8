"""Values looked for in texts that become known in turn."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanscore.compare.effort import Effort, TooMuchWorkError
from spanscore.compare.provenance import Sources, leaves, texts

WORDS = st.lists(st.sampled_from(["ab", "abcd", "ABCD", "b c", "12", "1,2"]), max_size=3)


def test_leaves_are_the_texts_and_numbers_in_order_with_their_paths() -> None:
    """Booleans, null, blank texts and numbers too long to be written are none."""
    value = {"a": [1, {"b": "x"}], "c": True, "d": None, "e": " ", "f": 2.5, "g": 1 << 5_000}
    assert list(leaves(value, Effort())) == [(("a", 0), 1), (("a", 1, "b"), "x"), (("f",), 2.5)]


SAID = "Refund order R-1 of November 3, 2026, to Anna Müller: 1,234.50 EUR, please. "
SAID += "7.5 of 1.234,75 or 2'000; 3.456.789 ok.Next"


@pytest.mark.parametrize(
    ("value", "grade"),
    [
        ("R-1", "exact"),
        ("Refund", "exact"),
        ("please.", "exact"),
        ("Anna Müller", "exact"),
        ("R-2", "unseen"),
        ("ok.", "exact"),
        ("\t", "unseen"),
        ("R-1\n", "derived"),
        ("anna müller", "derived"),
        ("Novem", "derived"),
        ("ovem", "derived"),
        ("refu", "derived"),
        ("Nov", "unseen"),
        ("nna", "unseen"),
        ("ann", "unseen"),
        (3, "exact"),
        (4, "unseen"),
        (7.5, "exact"),
        (-7.5, "unseen"),
        (1234.5, "derived"),
        ("1234.5", "derived"),
        ("1.234,50", "derived"),
        ("1'234.5", "derived"),
        (1234.75, "derived"),
        ("1,234.51", "unseen"),
        (2000, "derived"),
        (3456789, "derived"),
        ("2000", "derived"),
        ("2026-11-03", "derived"),
        ("2026-11-04", "unseen"),
    ],
)
def test_forms_of_a_value(value: str | float, grade: str) -> None:
    """Exact in whole words; derived in other formats, case, untrimmed, or from 4 characters of a text on."""
    assert grade == Sources([[SAID]]).grade(value, 1)


@pytest.mark.parametrize(
    ("said", "days"),
    [
        ("2026-11-03", ["2026-11-03"]),
        ("on 2026/11/3.", ["2026-11-03"]),
        ("3.11.2026", ["2026-11-03"]),
        ("3/11/2026", ["2026-11-03", "2026-03-11"]),
        ("31/12/2026", ["2026-12-31"]),
        ("12/31/2026", ["2026-12-31"]),
        ("12/32/2026", []),
        ("0/12/2026", []),
        ("2026-13-01", []),
        ("2026-01-32", []),
        ("2026-01-00", []),
        ("2026-00-01", []),
        ("2026-12-31", ["2026-12-31"]),
        ("2026-01-01", ["2026-01-01"]),
        ("12026-11-03", []),
        ("2026-11-031", []),
        ("3rd November 2026", ["2026-11-03"]),
        ("3. dec. 2026", ["2026-12-03"]),
        ("January 1st, 2026", ["2026-01-01"]),
        ("Sept 9 2026", ["2026-09-09"]),
        ("Nov 3, 20261", []),
    ],
)
def test_days(said: str, days: list[str]) -> None:
    """Written as in ISO 8601, in figures either way round, or with the name of a month; only days that there are."""
    asked = ("2026-11-03", "2026-03-11", "2026-12-31", "2026-12-03", "2026-01-01", "2026-09-09")
    asked += ("2026-01-32", "2026-01-00", "2026-13-01", "2026-00-01")
    sources = Sources([[said]])

    assert sorted(days) == sorted(day for day in asked if sources.grade(f"{day}T00:00:00Z", 1) == "derived")


@pytest.mark.parametrize(
    ("value", "is_seen"),
    [
        ("2026-11-03 00:00", True),
        ("2026-11-03T00:00:00.000+02:00", True),
        ("03.11.2026", True),
        ("November 3rd 2026", True),
        ("2026-11-03T00:01", False),
        ("2026-11-03T09:00:00Z", False),
    ],
)
def test_forms_of_a_day(value: str, is_seen: bool) -> None:  # noqa: FBT001
    """In any form, and at midnight; another time is another value."""
    assert ("derived" if is_seen else "unseen") == Sources([["3 Nov 2026"]]).grade(value, 1)


def test_the_first_part_with_a_form_counts() -> None:
    """Of numbers and days that come again, too."""
    parts = [["nothing"], ["1,234 on 3 Nov 2026"], ["1234 on 3 Nov 2026"], ["1,234 and 1234 on 3 Nov 2026"]]
    sources = Sources(parts)

    for value, grades in (
        (1234, "unseen unseen derived exact exact"),
        ("2026-11-03", "unseen unseen" + " derived" * 3),
    ):
        assert grades.split() == [sources.grade(value, known) for known in range(5)], value


def test_texts_beside_each_other_are_apart() -> None:
    """Nothing is found across the end of a text, or of a part."""
    sources = Sources([["ab", "cd"], ["ef 1", "2"]])

    assert ["unseen"] * 4 == [sources.grade(text, 2) for text in ("ab cd", "abcd", "cdef", "12")]


def test_words_are_looked_for_so_often() -> None:
    """A text that is inside words again and again is given up; the last look still finds it."""
    for before, grade in ((999, "exact"), (1_000, "unseen")):
        assert grade == Sources([[f"{'xab ' * before}ab"]]).grade("ab", 1), before


def test_values_that_are_copied_whole_need_no_search() -> None:
    """So many others are looked for in a text of a million characters; one that was looked for is known."""
    sources = Sources([["x" * 994_109, *(f"k-{number}" for number in range(1_000))]])

    assert all(sources.grade(f"k-{number}", 1) == "exact" for number in range(1_000))
    assert all(sources.grade(number, 1) == "unseen" for number in range(-1_333, -1_000) for _ in range(2))
    with pytest.raises(TooMuchWorkError, match="there are too many values and texts to look through"):
        sources.grade("another", 1)


def test_long_numbers_are_no_numbers() -> None:
    """Up to 40 characters, with their separators."""
    for zeros, grade in ((38, "derived"), (39, "unseen")):
        number = "1" + "0" * zeros
        assert grade == Sources([[f"1,{'0' * zeros}"]]).grade(number, 1)


def test_numbers_of_another_type_are_other_values() -> None:
    """1 and "1" are looked for each in its way; a number is known by its value."""
    sources = Sources([["x1x 2.0"]])

    assert ("unseen", "exact", "exact") == (sources.grade(1, 1), sources.grade(2, 1), sources.grade(2.0, 1))
    assert ("exact", "unseen") == (sources.grade("2.0", 1), sources.grade("20", 1))


@pytest.mark.parametrize("many", [[0] * (100_000 + 5), {str(number): "x" for number in range(100_000 + 5)}])
def test_so_many_leaves_are_looked_at(many: Any) -> None:
    """Of a longer value the beginning; the value itself is looked at first."""
    assert 100_000 - 1 == sum(1 for _ in leaves(many, Effort()))
    named = len(many) if isinstance(many, dict) else 0
    assert named + 100_000 - 1 == sum(1 for _ in texts(many))


@pytest.mark.parametrize(("bits", "is_number"), [(1_024, True), (1_025, False)])
def test_long_integers(bits: int, is_number: bool) -> None:  # noqa: FBT001
    """A number that nobody writes out is none."""
    assert is_number == bool(list(leaves((1 << bits) - 1, Effort()))) == bool(list(texts((1 << bits) - 1)))


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
        Sources([["x" * (16 << 20)]])
    Sources([["x" * ((16 << 20) - 1)]])


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
