from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanscore.config import build_evaluator
from spanscore.model import Score, ToolCall, Trajectory
from spanscore.runs.learn import plain
from spanscore.runs.learn.structure import learned_steps, rare_tools

RUNS = st.lists(st.lists(st.sampled_from("abcde"), max_size=8), min_size=1, max_size=8)


def learned(*runs: str) -> Any:
    """The steps of runs whose calls have names of one letter."""
    return plain(learned_steps([list(run) for run in runs]))


def fits(steps: Any, run: str) -> bool:
    """Whether the steps let a run through, and nothing beside them."""
    evaluator = build_evaluator("expected_trajectory", {"steps": steps, "other_calls": "forbid"})
    outcome = evaluator.evaluate(Trajectory(calls=tuple(ToolCall(name=name) for name in run)))
    assert isinstance(outcome, Score)
    return outcome.passed


@pytest.mark.parametrize(
    ("runs", "steps"),
    [
        (["abc"] * 3, ["a", "b", "c"]),
        (["abc", "ac"] * 2, ["a", {"optional": ["b"]}, "c"]),
        (["abcd", "acbd"] * 4, ["a", {"any_order": ["b", "c"]}, "d"]),
        (["abcz", "adz", "abcz", "adz"], ["a", {"one_of": [["b", "c"], ["d"]]}, "z"]),
        (["apz", "appz", "apppz"], ["a", {"repeat": ["p"], "min": 1, "max": 4}, "z"]),
        (["az", "appz", "apz"], ["a", {"repeat": ["p"], "min": 0, "max": 3}, "z"]),
        (["retc", "retetc", "retetetc"], ["r", {"repeat": ["e", "t"], "min": 1, "max": 4}, "c"]),
        (["aba"] * 3, ["a", "b", "a"]),
        ([""], []),
    ],
)
def test_runs_are_taken_apart(runs: list[str], steps: Any) -> None:
    """Into sequences, what is optional, in any order, one or the other, and rounds, with room where counts vary."""
    assert steps == learned(*runs)


def test_tools_that_may_be_missing_keep_their_order_where_few_runs_have_both() -> None:
    """Rather than letting all of them come in any order."""
    runs = ["lvns"] * 2 + ["lvn"] * 6 + ["lr"] * 14 + ["lrs"] * 8

    steps = learned(*runs)

    assert ["l", {"one_of": [["v", "n"], ["r"]]}, {"optional": ["s"]}] == steps
    assert not fits(steps, "lnv")
    assert not fits(steps, "lvnr")


def test_an_order_seen_twice_is_no_order_of_many_runs() -> None:
    """Two calls that few of many runs make both may come in any order."""
    steps = learned(*["axz"] * 10, *["ayz"] * 10, *["axyz"] * 2, *["az"] * 8)

    assert fits(steps, "axyz")
    assert fits(steps, "ayxz")


def test_tools_of_hardly_any_run_are_told_apart() -> None:
    """Nothing can be said of where their calls stand."""
    assert ["x"] == rare_tools([["a", "b"]] * 29 + [["a", "x", "b"]])


@given(RUNS)
def test_every_run_fits_what_is_learned(runs: list[list[str]]) -> None:
    """Whatever they are."""
    rare = rare_tools(runs)
    known = ["".join(name for name in run if name not in rare) for run in runs]

    steps = learned(*known)

    assert all(fits(steps, run) for run in known)
