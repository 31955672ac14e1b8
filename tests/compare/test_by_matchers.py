"""Calls are found for expected ones with matchers."""

from __future__ import annotations

from typing import Any

import pytest

from spanscore.compare.bipartite import maximum_matching
from spanscore.compare.by_matchers import Untaken, differing, fitting, need_sources, passed, run_of
from spanscore.compare.effort import MAX_COMPARISONS, TooMuchWorkError
from spanscore.compare.expected import UnrecordedError
from spanscore.compare.matchers.base import Matcher, Results
from spanscore.compare.matching import common_subsequence, json_key
from spanscore.compare.names import exact
from spanscore.compare.reference import ComparableCall
from spanscore.model import Completeness, ToolCall, Trajectory

ANY = {"x": {"$any": True}}


def wanted(*arguments: Any) -> list[ComparableCall]:
    """Expect calls of `a`."""
    return [ComparableCall.read("a", each, "it") for each in arguments]


def matchers(*arguments: Any) -> list[Matcher]:
    """The matchers of expected arguments."""
    return [each.matcher for each in wanted(*arguments) if each.matcher]


def calls(*arguments: Any) -> tuple[ToolCall, ...]:
    """Make calls of `a`."""
    return tuple(ToolCall(name="a", arguments=each) for each in arguments)


def test_a_call_without_arguments_passed_none() -> None:
    """Matchers compare an empty object then."""
    assert {} == passed(ToolCall(name="a"))
    assert [1] == passed(ToolCall(name="a", arguments=[1]))


def test_each_takes_the_first_that_fits() -> None:
    """Of its tool, and none that is taken, here or otherwise."""
    taken = {0}
    untaken = Untaken(["a", "b", "a", "a"], taken)

    assert [2, 3, None] == [untaken.take("a", lambda _: True) for _ in range(3)]
    assert [None, 1] == [untaken.take("b", lambda _, fits=fits: fits) for fits in (False, True)]
    assert untaken.take("c", lambda _: True) is None


def test_looking_ends_at_a_limit() -> None:
    """Exactly as many comparisons are made as are allowed."""
    untaken = Untaken(["a"] * (MAX_COMPARISONS // 10))
    for _ in range(10):
        assert untaken.take("a", lambda _: False) is None
    with pytest.raises(TooMuchWorkError):
        untaken.take("a", lambda _: False)


def test_plain_and_with_matchers_side_by_side() -> None:
    """Equal calls are one symbol; plain ones are found by their keys, others by matching."""
    expected = wanted({"x": 1}, ANY, {"x": 1})
    made = calls({"x": 1}, {"x": 1}, {"x": 2}, {"y": 1})
    found = fitting(
        ["a"] * 4,
        made,
        expected,
        key=lambda _, arguments: json_key(arguments),
        matches=lambda each, index: each.fits(made[index].arguments, Results().before(index)),
    )

    assert found.made[0] == found.made[1] != found.made[2]
    assert found.wanted[0] == found.wanted[2]
    assert [2, 1, 0] == [len(found.partners[symbol]) for symbol in found.made[1:]]
    assert 3 == len(maximum_matching(*found))
    assert 2 == len(common_subsequence(*found))


def test_what_looks_back_tells_equal_calls_apart() -> None:
    """The same arguments may have come from a result for the one, and not for the other."""
    expected = wanted({"x": {"$from": "a"}})
    made = tuple(ToolCall(name="a", arguments={"x": 1}, result=1) for _ in range(2))
    run = run_of(Trajectory(calls=made), ["a", "a"], matchers({"x": {"$from": "a"}}))
    found = fitting(
        ["a"] * 2,
        made,
        expected,
        key=lambda _, arguments: json_key(arguments),
        matches=lambda each, index: each.fits(made[index].arguments, run.before(index)),
    )

    assert [(1, 0)] == maximum_matching(*found)


def test_results_that_were_not_recorded() -> None:
    """They are asked for only of the tools that are looked at."""
    trajectory = Trajectory(calls=calls({}), completeness=Completeness(results_recorded=False))

    for tool in ("a", "*"):
        with pytest.raises(UnrecordedError, match=r"^results of 1 call of 'a' were not recorded$"):
            need_sources(trajectory, exact, matchers({"x": {"$from": tool}}))
    need_sources(trajectory, exact, matchers({"x": {"$from": "b"}}))
    with pytest.raises(UnrecordedError, match=r"^results of 1 call of 'a' were not recorded$"):
        need_sources(trajectory, exact, matchers({"x": {"$from": "a"}, "y": {"$from": "b"}}, {"x": {"$from": "c"}}))


def test_differences() -> None:
    """Of matchers and of plain values, by the places of both calls."""
    differ = differing(
        wanted({"x": {"$range": [0, 1]}}, {"x": 1}), calls({"x": 2, "y": 1}, {"y": 2}), Results(), extra=False
    )

    assert ["expected 0 to 1, got 2", "not expected, got 1"] == [each.words for each in differ(0, 0)]
    assert ["expected 1, got 2"] == [each.words for each in differ(1, 0)]
    assert ["expected 1, got nothing"] == [each.words for each in differ(1, 1)]
