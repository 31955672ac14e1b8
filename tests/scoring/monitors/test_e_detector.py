"""The evidence that runs fail too often, as a pure function of minutes."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanscore.scoring.monitors.e_detector import MOST, Evidence, Objective

OBJECTIVES = st.floats(0.001, 0.5)
MINUTES = st.lists(st.integers(1, 50).flatmap(lambda runs: st.tuples(st.integers(0, runs), st.just(runs))), max_size=60)
NEVER = 10 * MOST


def after(objective: Objective, minutes: list[tuple[int, int]], threshold: float = NEVER) -> Evidence:
    """Return the evidence after minutes, each with its bad runs and its runs."""
    found = Evidence()
    for minute, (bad, counted) in enumerate(minutes, start=1):
        found = objective.after(found, minute, bad, counted, threshold)
    return found


@given(OBJECTIVES, MINUTES)
def test_evidence_has_bounds(at_most: float, minutes: list[tuple[int, int]]) -> None:
    """It is never below 0, above its bound, or infinite."""
    found = after(Objective(at_most), minutes)

    assert all(0 <= bet <= MOST for bet in found.bets)
    assert 1 <= found.growth <= MOST
    assert found.bad <= found.counted


@given(OBJECTIVES, MINUTES, st.data())
def test_more_failures_are_more_evidence(at_most: float, minutes: list[tuple[int, int]], data: st.DataObject) -> None:
    """Whichever runs fail besides, no bet gets less, and so no alarm comes later."""
    objective = Objective(at_most)
    worse = [(data.draw(st.integers(bad, counted)), counted) for bad, counted in minutes]

    fewer, more = after(objective, minutes), after(objective, worse)
    assert all(one <= other * (1 + 1e-12) for one, other in zip(fewer.bets, more.bets, strict=True))


@given(OBJECTIVES, MINUTES)
def test_a_minute_at_the_objective_adds_one(at_most: float, minutes: list[tuple[int, int]]) -> None:
    """On average over the minutes that there may be, the evidence grows by one a minute: that bounds false alarms."""
    objective, before = Objective(at_most), after(Objective(at_most), minutes)._replace(is_alarm=False)
    if max(before.bets) >= MOST / 1000:
        return
    good, bad = (objective.after(before, 1, failed, 1, NEVER).value for failed in (0, 1))

    assert (1 - at_most) * good + at_most * bad == pytest.approx(before.value + 1)


@given(OBJECTIVES, MINUTES, st.integers(0, 3))
def test_unknown_minutes_are_no_evidence(at_most: float, minutes: list[tuple[int, int]], lost: int) -> None:
    """Whatever the runs of lost minutes were, the evidence without them is at most that with them."""
    objective = Objective(at_most)
    known = after(objective, minutes[: len(minutes) - lost])
    whole = after(objective, minutes)

    assert objective.least(known, lost).value <= whole.value * (1 + 1e-12)


@given(MINUTES)
def test_it_is_packed_whole(minutes: list[tuple[int, int]]) -> None:
    """What is packed comes back."""
    found = after(Objective(0.05), minutes, threshold=100)

    assert found == Evidence.unpacked(found.packed())


def test_an_alarm_begins_and_ends() -> None:
    """It says since when, and ends with the first hour of a hundred runs that meets the objective."""
    objective, found, minute = Objective(0.05), Evidence(), 0
    while not found.is_alarm:
        minute += 1
        assert minute < 40
        found = objective.after(found, minute, 3 if minute > 20 else 0, 10, threshold=43_200)

    assert (21, 27) == (found.since, minute)
    assert (3 * 7, 10 * 7) == (found.bad, found.counted)
    frozen = found.bets
    for later in range(minute + 1, minute + 61):
        found = objective.after(found, later, 1, 10, threshold=43_200)
    assert (True, frozen, minute + 61) == (found.is_alarm, found.bets, found.portion)
    for later in range(minute + 61, minute + 121):
        assert found.is_alarm
        found = objective.after(found, later, 0, 10, threshold=43_200)
    assert Evidence() == found


def test_an_hour_with_few_runs_ends_no_alarm() -> None:
    """A portion has a hundred runs, however long that takes."""
    found = Evidence(is_alarm=True, portion=1)
    objective = Objective(0.05)
    for minute in range(1, 100):
        found = objective.after(found, minute, 0, 1, threshold=43_200)
        assert found.is_alarm

    assert not objective.after(found, 100, 0, 1, threshold=43_200).is_alarm


@pytest.mark.parametrize(("runs", "slowest"), [(1, 113 * 2), (10, 20 * 2), (100, 12 * 2)])
def test_it_finds_a_change_soon(runs: int, slowest: int) -> None:
    """From 5 % to 15 %: within twice the median of the campaign, in a run that is always the same."""
    objective, found, chance = Objective(0.05), Evidence(), random.Random(runs)
    for minute in range(1, 200):
        found = objective.after(found, minute, sum(chance.random() < 0.05 for _ in range(runs)), runs, 43_200)
    begin = 200
    assert not found.is_alarm
    for minute in range(begin, begin + slowest):
        found = objective.after(found, minute, sum(chance.random() < 0.15 for _ in range(runs)), runs, 43_200)

    assert found.is_alarm
