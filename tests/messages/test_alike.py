"""Texts that look alike and are not the same."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import at_most
from spanscore.messages.alike import apart, paths_apart, told_apart

NFC, NFD = "caf\u00e9", "cafe\u0301"


@pytest.mark.parametrize(
    ("one", "other", "written"),
    [
        (NFC, NFD, (r"caf\u00e9", r"cafe\u0301")),
        ("ab", "a\u200bb", ("ab", r"a\u200bb")),
        ("ab", "\ufeffab", ("ab", r"\ufeffab")),
        ("ab", "a\u3164b", ("ab", r"a\u3164b")),
        ("a b", "a\u00a0b", ("a b", r"a\u00a0b")),
        ("a b", "a  b", ("a b", r"a \u0020b")),
        ("a\u2009b", "a\u2003b", (r"a\u2009b", r"a\u2003b")),
        ("\u4eba a", "\u4eba\u200d a", ("\u4eba a", "\u4eba\\u200d a")),
    ],
    ids=ascii,
)
def test_texts_that_look_alike_are_escaped(one: str, other: str, written: tuple[str, str]) -> None:
    """Composed letters, characters that show nothing and blanks; letters of other scripts stay readable."""
    assert written == apart(one, other)
    assert (written[1], written[0]) == apart(other, one)


@pytest.mark.parametrize(("one", "other"), [(NFC, "tea"), (NFC, "cafe"), (NFD, "tea"), ("a", "b"), ("\u200b", "x")])
def test_others_stay_as_they_are(one: str, other: str) -> None:
    """What differs to the eye needs no escape."""
    assert (one, other) == apart(one, other)


@pytest.mark.parametrize("words", ['one of "{}", "tea"', "enum: ['{}', 'tea']", 'a value that contains "{}"'])
def test_a_value_in_words_may_look_like_what_came(words: str) -> None:
    """An expectation in words quotes its texts."""
    assert (words.format(r"caf\u00e9"), r'"cafe\u0301"') == apart(words.format(NFC), f'"{NFD}"')
    assert (words.format(NFC), '"milk"') == apart(words.format(NFC), '"milk"')
    assert (words.format(NFC), f'"{NFC}"') == apart(words.format(NFC), f'"{NFC}"')


def test_of_many_texts_those_that_look_alike_are_escaped() -> None:
    """Texts that look like none of the others are left out."""
    assert {NFC: r"caf\u00e9", NFD: r"cafe\u0301"} == told_apart([NFC, "tea", NFD, "na\u00efve"])
    assert {} == told_apart([NFC, NFC, "tea"])


def test_paths_that_look_alike() -> None:
    """Keys that are no words stand in brackets, which tell nobody why."""
    assert [r"s.caf\u00e9", r's["cafe\u0301"]', "s.tea"] == paths_apart([f"s.{NFC}", f's["{NFD}"]', "s.tea"])


@at_most(300)
@given(st.text(st.sampled_from("ae\u0301\u00e9\u200b\u00a0 \u4eba\u3164\t"), max_size=6), st.data())
def test_what_is_written_apart_differs(text: str, data: st.DataObject) -> None:
    """Whatever is changed that cannot be seen, what is written differs to the eye."""
    place = data.draw(st.integers(0, len(text)))
    other = text[:place] + data.draw(st.sampled_from("\u200b\u2060\ufeff")) + text[place:]

    one, changed = apart(text, other)
    assert one != changed
    assert [True, True] == [unicodedata.is_normalized("NFD", each.replace("\u4eba", "")) for each in (one, changed)]
    assert not {"\u200b", "\u2060", "\ufeff"} & {*one, *changed}
