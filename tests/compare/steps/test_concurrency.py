from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanscore.compare.effort import TooMuchWorkError
from spanscore.compare.steps._concurrency import has_times, overlapping
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
    assert not has_times(ToolCall(name="a"))
    assert not overlapping([ToolCall(name="a")], [0])


def test_bounded() -> None:
    """There is an end to it."""
    with pytest.raises(TooMuchWorkError):
        overlapping(calls(*((1 + index, 10_000) for index in range(2_000))), range(2_000))
