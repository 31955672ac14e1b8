from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import at_most
from spanscore.runs.diff.samples import Sample, Stratum
from spanscore.runs.diff.significance import (
    Chances,
    holm,
    pass_interval,
    pass_test,
    score_interval,
    score_test,
)

SIDES = st.lists(st.booleans(), min_size=1, max_size=3)
STRATA = st.lists(st.tuples(SIDES, SIDES), min_size=2, max_size=4)


def strata(*cases: tuple[Sequence[float], Sequence[float]]) -> list[Stratum]:
    """Cases with the scores of the base and of the new version; a run passes at 1."""
    return [Stratum(*([Sample(float(value), value == 1) for value in side] for side in case)) for case in cases]


def counted(cases: Sequence[Stratum]) -> Chances:
    """The same test by trying all ways to share the runs of each case out."""
    ways = [
        [sum(run.passed for run in chosen) for chosen in combinations([*case.new, *case.base], len(case.new))]
        for case in cases
    ]
    totals = [sum(each) for each in product(*ways)]
    seen = sum(run.passed for case in cases for run in case.new)
    return Chances(
        sum(total <= seen for total in totals) / len(totals), sum(total >= seen for total in totals) / len(totals)
    )


@at_most(50)
@given(STRATA)
def test_passes_by_case_are_counted_out(cases: list[tuple[list[bool], list[bool]]]) -> None:
    """Exactly: as many ways as there are to share the runs of each case out."""
    sides = strata(*cases)

    assert counted(sides) == pytest.approx(pass_test(sides))


def test_one_run_a_case_is_mcnemars_test() -> None:
    """Six cases that only the base passes, one that only the new version does: 8 of 128 ways are as bad."""
    cases = strata(*[((1,), (0,))] * 6, ((0,), (1,)), *[((1,), (1,))] * 13)

    assert pass_test(cases) == pytest.approx((8 / 128, 127 / 128))


def test_without_cases_boschloo_finds_what_fisher_does_not() -> None:
    """19 of 20 against 14 of 20: 0.046 by Fisher's test, one-sided, and half of that by Boschloo's."""
    (found,) = [pass_test(strata(([1] * 19 + [0], [1] * 14 + [0] * 6)))]

    assert 0.0232 == pytest.approx(found.worse, abs=1e-4)
    assert 1 == found.better


def test_scores_are_exchanged_within_a_case_only() -> None:
    """Cases that differ among themselves hide nothing: ten that all fall a little are one of 1,024 ways."""
    cases = strata(*[((0.1 * number + 0.02,), (0.1 * number,)) for number in range(9)], ((0.9,), (0.88,)))

    found = score_test(cases)

    assert 1 / 1024 == pytest.approx(found.worse, abs=1e-3)
    assert found == score_test(cases)


def test_intervals_are_those_that_newcombe_published() -> None:
    """56 of 70 against 48 of 80: 0.2, from 0.0524 to 0.3339 at 95 %."""
    base, new = [1] * 48 + [0] * 32, [1] * 56 + [0] * 14

    found = pass_interval(strata((base, new)), 0.95)

    assert (0.2, 0.0524, 0.3339) == pytest.approx(found, abs=1e-4)


@at_most(50)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=30))
def test_intervals_of_pairs_are_the_same_from_both_sides(pairs: list[tuple[bool, bool]]) -> None:
    """Exchanged, the difference changes its sign and nothing else; what agrees more often is known better."""
    found = pass_interval(strata(*[((base,), (new,)) for base, new in pairs]), 0.9)
    back = pass_interval(strata(*[((new,), (base,)) for base, new in pairs]), 0.9)

    assert (-back.difference, -back.high, -back.low) == pytest.approx(found)
    assert -1 - 1e-9 <= found.low <= found.difference <= found.high <= 1 + 1e-9


def test_pairs_that_agree_have_a_narrower_interval_than_runs_that_are_none() -> None:
    """What makes cases hard is the same in both versions."""
    pairs = [((1,), (1,))] * 12 + [((0,), (0,))] * 7 + [((1,), (0,))]
    together = ([case[0][0] for case in pairs], [case[1][0] for case in pairs])

    paired, apart = pass_interval(strata(*pairs), 0.9), pass_interval(strata(together), 0.9)

    assert paired.difference == pytest.approx(apart.difference)
    assert paired.high - paired.low < 0.7 * (apart.high - apart.low)


def test_scores_have_an_interval_where_they_spread() -> None:
    """By Welch: t with 4 degrees of freedom for two equal spreads of three."""
    found = score_interval(strata(([0.5, 0.6, 0.7], [0.2, 0.3, 0.4])), 0.9)

    assert (-0.3, -0.3 - 2.1318 * math.sqrt(0.02 / 3), -0.3 + 2.1318 * math.sqrt(0.02 / 3)) == pytest.approx(
        found, abs=1e-4
    )
    assert (-1, 1) == score_interval(strata(([0.5], [0.2])), 0.9)[1:]


def test_chances_are_adjusted_for_their_number() -> None:
    """The least counts for all, the next for all but one, and none is below one before it."""
    assert [0.03, 0.06, 0.06, 0.02] == pytest.approx(holm([0.01, 0.04, 0.03, 0.005]))
    assert [] == holm([])
