"""Repeated runs: the interval against the equation that defines it, pass^k against all ways to draw runs."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emitters.reports import NOT_PASSED, PASSED, SKIPPED, report
from spanscore.runs.repeats import Repeats, wilson_interval

COUNTS = st.integers(1, 300).flatmap(lambda runs: st.tuples(st.integers(0, runs), st.just(runs)))


@given(counts=COUNTS)
def test_the_ends_are_where_the_score_test_just_holds(counts: tuple[int, int]) -> None:
    """At each end, the rate that was seen is 1.96 standard errors away, the error being that of the end."""
    passed, runs = counts
    for end in wilson_interval(passed, runs):
        assert math.isclose(
            (passed / runs - end) ** 2, 1.959964**2 * end * (1 - end) / runs, rel_tol=1e-5, abs_tol=1e-9
        )


def test_three_lucky_runs() -> None:
    """3 / (3 + 1.96²): far from 0.9."""
    assert (pytest.approx(0.43850, abs=1e-5), 1.0) == wilson_interval(3, 3)
    assert (0.0, pytest.approx(0.56150, abs=1e-5)) == wilson_interval(0, 3)


@given(runs=st.lists(st.booleans(), min_size=1, max_size=8), data=st.data())
def test_pass_hat_is_the_share_of_draws_that_all_pass(runs: list[bool], data: st.DataObject) -> None:
    """Drawn without putting one back."""
    k = data.draw(st.integers(1, len(runs)))
    draws = [all(draw) for draw in combinations(runs, k)]

    found = Repeats(sum(runs), runs.count(False)).pass_hat(k)
    assert found is not None
    assert math.isclose(sum(draws) / len(draws), found, abs_tol=1e-12)


@pytest.mark.parametrize("k", [0, 4])
def test_k_that_cannot_be_drawn(k: int) -> None:
    """Of fewer runs nothing can be said."""
    assert Repeats(1, 2).pass_hat(k) is None


@pytest.mark.parametrize(
    ("passed", "failed", "none", "why"),
    [
        (3, 0, 0, "3 of 3 runs passed, 95 % interval 0.439 to 1.000: its lower end is below 0.9"),
        (35, 0, 0, ""),  # 35 / (35 + 1.96²) = 0.901
        (34, 0, 0, "34 of 34 runs passed, 95 % interval 0.898 to 1.000: its lower end is below 0.9"),
        (0, 0, 2, "no run has a verdict, which is no pass"),
        (100, 0, 1, "1 of 101 runs without a verdict, which is no pass"),
    ],
)
def test_the_gate(passed: int, failed: int, none: int, why: str) -> None:
    """On the lower end; a run that was not measured is never a pass."""
    assert why == Repeats(passed, failed, none).why_below(0.9)


def test_runs_are_counted_by_their_verdict() -> None:
    """Those without one are in no rate."""
    repeats = Repeats()
    for outcome in (PASSED, PASSED, NOT_PASSED, SKIPPED):
        repeats.add(report(outcome))

    assert (2, 1, 1, 4) == (repeats.passed, repeats.failed, repeats.none, repeats.runs)
    assert (2 / 3, pytest.approx(1 / 3), None) == (repeats.pass_rate, repeats.pass_hat(2), repeats.pass_hat(4))
    assert (None, None) == (Repeats().pass_rate, Repeats().interval)
