"""Calls that repeat themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanscore.compare.effort import TooMuchWorkError
from spanscore.compare.loops import Alike, Loop, cycles, repeated

LONG = "x" * 3_000


@pytest.mark.parametrize(
    ("symbols", "least", "anywhere", "adjacent"),
    [
        ("", 1, [], []),
        ("aba", 3, [], []),
        ("aaa", 3, [[0, 1, 2]], [[0, 1, 2]]),
        ("abaca", 3, [[0, 2, 4]], []),
        ("baaab", 2, [[0, 4], [1, 2, 3]], [[1, 2, 3]]),
        ("aabaa", 2, [[0, 1, 3, 4]], [[0, 1], [3, 4]]),
        ("ab", 1, [[0], [1]], [[0], [1]]),
    ],
)
def test_repeated(symbols: str, least: int, anywhere: list[list[int]], adjacent: list[list[int]]) -> None:
    """The same call so often, anywhere or one right after the other: a round of one call."""
    for is_adjacent, expected in ((False, anywhere), (True, adjacent)):
        found = list(repeated(symbols, least, adjacent=is_adjacent))
        assert [Loop("identical", calls, 1) for calls in expected] == found, is_adjacent


@pytest.mark.parametrize(
    ("symbols", "longest", "times", "expected"),
    [
        ("ababab", 4, 3, [([0, 1, 2, 3, 4, 5], 2)]),
        ("ababa", 4, 3, []),
        ("cabababa", 4, 3, [([1, 2, 3, 4, 5, 6], 2)]),
        ("ababd", 4, 2, [([0, 1, 2, 3], 2)]),
        ("abcabc", 3, 2, [([0, 1, 2, 3, 4, 5], 3)]),
        ("abcabc", 2, 2, []),
        ("abababab", 4, 2, [([*range(8)], 2)]),
        ("aaaaaa", 3, 2, []),
        ("ababxcdcd", 4, 2, [([0, 1, 2, 3], 2), ([5, 6, 7, 8], 2)]),
        ("ababcababc", 5, 2, [([0, 1, 2, 3], 2), ([5, 6, 7, 8], 2), ([*range(10)], 5)]),
    ],
)
def test_cycles(symbols: str, longest: int, times: int, expected: list[tuple[list[int], int]]) -> None:
    """Rounds of two calls or more without a gap; a round that is made of shorter ones is those."""
    assert [Loop("cycle", calls, length) for calls, length in expected] == list(cycles(symbols, longest, times))


@given(st.text("abc", max_size=12), st.integers(2, 4), st.integers(2, 4))
def test_cycles_against_all_ways_to_place_them(symbols: str, longest: int, times: int) -> None:
    """A call is in a cycle where some round of at least two tools comes so often around it."""
    expected = set()
    for length in range(2, longest + 1):
        for start in range(len(symbols) - length * times + 1):
            part = symbols[start : start + length * times]
            if part == part[:length] * times and len(set(part)) > 1:
                expected |= {*range(start, start + length * times)}
    found = {call for loop in cycles(symbols, longest, times) for call in loop.calls}
    assert found <= expected
    assert bool(found) == bool(expected)


@pytest.mark.parametrize(
    ("least", "one", "other", "is_alike"),
    [
        (1.0, "abcd", "abcd", True),
        (0.51, "abcd", "abce", False),
        (0.5, "abcd", "abce", True),  # with the quotes both have 4 pieces, of which 2 are shared
        (0.1, "abc", "xyz", False),
        (1.0, 1, 1.0, False),
        (1.0, 1, 1, True),
        (1.0, "", "", True),
        (0.1, 1, 2, False),
        (1.0, LONG[:1_999] + "y", LONG[:1_999] + "z", True),  # the texts begin with a quote
        (1.0, LONG[:1_998] + "y", LONG[:1_998] + "z", False),
    ],
)
def test_alike(least: float, one: object, other: object, is_alike: bool) -> None:  # noqa: FBT001
    """By the share of pieces of three characters; of long arguments the beginning is compared."""
    alike = Alike(least)

    assert [0, 0 if is_alike else 1] == [alike.group("a", each) for each in (one, other)]


def test_groups_of_one_tool_are_numbered() -> None:
    """Each takes the first group that it is like; another tool has groups of its own."""
    alike = Alike(0.9)

    assert [0, 1, 0, 1, 2] == [alike.group("a", each) for each in ("Paris", "Rome", "Paris", "Rome", "Berlin")]
    assert 0 == alike.group("b", "Rome")


def test_comparisons_are_bounded() -> None:
    """The last that may be made is made."""
    alike = Alike(1.0)
    for number in range(141):
        assert number == alike.group("a", number + 1_000)  # compared with all before it: 9,870 in all
    assert 129 == alike.group("a", 1_129)

    with pytest.raises(TooMuchWorkError, match="looking for similar arguments takes more than 10000 comparisons"):
        alike.group("a", 1_000)
