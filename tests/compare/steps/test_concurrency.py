from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanscore.compare.effort import TooMuchWorkError
from spanscore.compare.steps._concurrency import has_times, overlapping, ran_together
from spanscore.model import ToolCall


def calls(*times: tuple[int, int]) -> list[ToolCall]:
    """Calls with these starts and ends."""
    return [ToolCall(name="a", start_ns=start, end_ns=end) for start, end in times]


def test_sets() -> None:
    """A call may be of several sets; one that only touches another is not of its set."""
    found = overlapping(calls((1, 5), (2, 9), (5, 7), (20, 30)), range(4))

    assert {index: len(sets) for index, sets in found.items()} == {0: 1, 1: 2, 2: 1, 3: 1}
    assert set(found[0]) & set(found[1])
    assert not set(found[0]) & set(found[2])


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 4)), max_size=6))
def test_pairs(times: list[tuple[int, int]]) -> None:
    """Two calls share a set exactly when there is a moment at which both ran."""
    made = calls(*((start, start + length) for start, length in times))
    found = overlapping(made, range(len(made)))

    for one, other in combinations(range(len(made)), 2):
        moment = max(made[one].start_ns, made[other].start_ns)
        both_ran = all(made[each].start_ns == moment or made[each].end_ns > moment for each in (one, other))

        assert bool(set(found[one]) & set(found[other])) == both_ran


def test_only_what_is_timed() -> None:
    """A call without times is of no set."""
    assert [False, False, False, True] == [has_times(call) for call in calls((0, 0), (0, 5), (5, 0), (1, 1))]
    assert not overlapping([ToolCall(name="a")], [0])


@pytest.mark.parametrize(
    ("one", "other", "parallel", "turn"),
    [
        ({"turn": 1}, {"turn": 1}, True, True),
        ({"turn": 1}, {"turn": 2}, False, False),
        ({}, {}, False, False),
        ({"start_ns": 1, "end_ns": 5}, {"start_ns": 4, "end_ns": 9}, True, False),
        ({"start_ns": 4, "end_ns": 9}, {"start_ns": 1, "end_ns": 5}, True, False),
        ({"start_ns": 1, "end_ns": 5}, {"start_ns": 5, "end_ns": 9}, False, False),
        ({"start_ns": 5, "end_ns": 5}, {"start_ns": 5, "end_ns": 9}, True, False),
        ({"start_ns": 1, "end_ns": 5}, {"start_ns": 2}, False, False),
        ({"start_ns": 1, "end_ns": 5, "turn": 1}, {"turn": 1}, True, True),
    ],
)
def test_ran_together(one: dict[str, Any], other: dict[str, Any], parallel: bool, turn: bool) -> None:  # noqa: FBT001
    """In one model turn, or at one time, for which touching is not enough."""
    first, second = ToolCall(name="a", **one), ToolCall(name="b", **other)

    assert (parallel, turn) == (ran_together(first, second, "parallel"), ran_together(first, second, "turn"))


def test_bounded() -> None:
    """Each call costs as many steps as calls run at its start, itself included: 250,000 do for 706 at a time."""
    at_one_time = [(1 + index, 10_000) for index in range(707)]
    assert 706 == len(overlapping(calls(*at_one_time), range(706)))
    with pytest.raises(TooMuchWorkError):
        overlapping(calls(*at_one_time), range(707))
