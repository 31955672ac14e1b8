"""Trajectories that are built by hand."""

from __future__ import annotations

from typing import Any

import pytest

from spanscore.model import Trajectory

TOO_LONG = 10**4_300


@pytest.mark.parametrize(
    "value", [TOO_LONG, -TOO_LONG, [1, {"a": (TOO_LONG,)}]], ids=["positive", "negative", "nested"]
)
@pytest.mark.parametrize("key", ["arguments", "result"])
def test_an_integer_that_is_too_long_to_be_written_is_refused(key: str, value: Any) -> None:
    """The message names the call."""
    with pytest.raises(ValueError, match=r"^call 1 \('search'\): an integer has more than 4,300 digits$"):
        Trajectory.from_calls([{"name": "x"}, {"name": "search", key: {"n": value}}])


def test_the_longest_integer_is_taken() -> None:
    """An integer of 4,300 digits."""
    (call,) = Trajectory.from_calls([{"name": "search", "arguments": {"n": TOO_LONG - 1}}]).calls
    assert {"n": TOO_LONG - 1} == call.arguments


def test_values_that_hold_themselves_are_walked_once() -> None:
    """A caller's list that is in itself does not hang."""
    value: list[Any] = [1]
    value.append(value)
    assert 1 == len(Trajectory.from_calls([{"name": "search", "result": value}]).calls)
