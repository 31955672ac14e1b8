"""Two versions that run at the same time, compared."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.monitors.runs_of_shop import run_of_shop
from spanscore.emitters.alarm_event import alarm_attributes, alarm_sentence
from spanscore.model import Report
from spanscore.model.alarms import MonitorAlarm
from spanscore.runs.watched_runs import WatchedRuns
from spanscore.scoring.monitors.monitor import SeriesState
from spanscore.scoring.monitors.monitors import Monitors
from spanscore.scoring.monitors.settings import MonitoredRuns, MonitorSettings
from spanscore.scoring.monitors.versions import NEW, STABLE, VersionComparison

NOON = 20_139 * 24 * 60 + 12 * 60
NEVER = 1e13
RUN = st.tuples(st.booleans(), st.booleans())
MINUTES = st.lists(st.lists(RUN, max_size=6), max_size=40)


def comparing(false_alarm: float = 0.01) -> dict[str, MonitorSettings]:
    """Return the settings of a monitor that compares the versions 1 and 2."""
    new, stable = {"service.version": "2.*"}, {"service.version": "1.*"}
    of = MonitoredRuns(evaluator="rules")
    return {"new_version": MonitorSettings(of=of, new=new, stable=stable, false_alarm=false_alarm)}


def run_of(version: str, *, bad: bool = False) -> Report:
    """Return the report of a run of a version."""
    report = run_of_shop(bad=bad)
    return replace(report, trajectory=replace(report.trajectory, attributes={"service.version": version}))


def after(minutes: list[list[tuple[bool, bool]]]) -> VersionComparison:
    """Return the comparison after minutes, each with its runs: whether of the new version, and whether bad."""
    found = VersionComparison()
    for minute, runs in enumerate(minutes, start=1):
        for is_new, is_bad in runs:
            found = found.counting(minute, is_new=is_new, is_bad=is_bad)
        found = found.after_minute(NEVER)
    return found


@given(MINUTES)
def test_evidence_has_bounds(minutes: list[list[tuple[bool, bool]]]) -> None:
    """It is never below 0, and counts are those of the runs."""
    found = after(minutes)

    assert all(product > 0 for product in found.products)
    runs = [run for minute in minutes for run in minute]
    assert (sum(is_new for is_new, _ in runs), sum(not is_new for is_new, _ in runs)) == (found.new, found.stable)


@given(MINUTES, st.data())
def test_more_failures_of_the_new_version_are_more_evidence(
    minutes: list[list[tuple[bool, bool]]], data: st.DataObject
) -> None:
    """And failures of the stable one are less."""
    worse = [[(new, bad or (new and data.draw(st.booleans()))) for new, bad in runs] for runs in minutes]
    better = [[(new, bad or (not new and data.draw(st.booleans()))) for new, bad in runs] for runs in minutes]

    assert after(better).value <= after(minutes).value * (1 + 1e-9)
    assert after(minutes).value <= after(worse).value * (1 + 1e-9)


@given(MINUTES, MINUTES)
def test_unknown_minutes_are_no_evidence(
    known: list[list[tuple[bool, bool]]], lost: list[list[tuple[bool, bool]]]
) -> None:
    """Whatever the runs of lost minutes were, the evidence without them is at most that with them."""
    lost = lost[:2]

    assert after(known).least(len(lost)).value <= after([*known, *lost]).value * (1 + 1e-9)


def test_a_block_has_runs_of_both() -> None:
    """It ends with the first minute after which both have a run; then the difference of their rates counts."""
    found = after([[(True, True)], [(True, False)], [(False, False)]])

    assert pytest.approx((1.025, 1.05, 1.1, 1.2, 1.4)) == found.products
    assert (0, 0) == (found.block_new, found.block_stable)
    assert (1.0,) * 5 == after([[(True, True)], [(True, True)]]).products


def states(monitors: Monitors) -> dict[tuple[str, ...], SeriesState]:
    """Return the state of each version."""
    return dict(monitors.each[0].states())


def test_which_runs_count() -> None:
    """Those of one version; both and neither do not."""
    monitors = Monitors(comparing())
    for report in (run_of("2.0"), run_of("2.1", bad=True), run_of("1.9"), run_of("3.0"), run_of_shop()):
        monitors.count(report, NOON)

    found = states(monitors)
    assert [(2, 1), (1, 0)] == [(found[key].counted, found[key].bad) for key in (NEW, STABLE)]
    assert found[STABLE].evidence is None


def minutes_of(
    monitors: Monitors, chance: random.Random, begin: int, minutes: int, rates: tuple[float, float]
) -> list[MonitorAlarm]:
    """Count ten runs a minute of each version that fail at these rates, the new one's first; return the alarms."""
    alarms = []
    for minute in range(begin, begin + minutes):
        for version, rate in zip(("2.0", "1.0"), rates, strict=True):
            for _ in range(10):
                alarms += monitors.count(run_of(version, bad=chance.random() < rate), minute)
    return alarms


def test_an_alarm_stays() -> None:
    """It says what both did, and does not end while the settings are the same, also over a restart."""
    monitors, chance = Monitors(comparing()), random.Random(1)
    assert [] == minutes_of(monitors, chance, NOON, 100, (0.1, 0.1))
    (alarm,) = minutes_of(monitors, chance, NOON + 100, 200, (0.4, 0.1))

    assert ("new", NOON, None) == (alarm.series, alarm.since, alarm.objective)
    assert alarm.stable is not None
    assert alarm_sentence(alarm) == (
        f"new_version: {alarm.bad} of {alarm.counted:,} runs of new failed, "
        f"and {alarm.stable[0]} of {alarm.stable[1]:,} runs of stable, since 12:00 UTC"
    )
    told = alarm_attributes(alarm)
    assert "spanscore.monitor.objective" not in told
    assert alarm.stable == (told["spanscore.monitor.stable.runs.bad"], told["spanscore.monitor.stable.runs"])
    assert (10, 1) == (len(alarm.traces), len(alarm.reasons))

    again = Monitors(comparing())
    again.restore(monitors.saved(is_end=False))
    assert [] == minutes_of(again, chance, NOON + 300, 100, (0.0, 0.5))
    assert states(again)[NEW].is_alarm
    assert (1000, 1000) == (states(again)[NEW].counted, states(again)[STABLE].counted)
    anew = Monitors(comparing(0.02))
    anew.restore(monitors.saved(is_end=False))
    assert not states(anew)[NEW].is_alarm


def test_rates_that_drift_together_are_no_alarm() -> None:
    """Both versions fail more by day; only their difference counts."""
    monitors, chance = Monitors(comparing()), random.Random(2)
    for hour in range(10):
        rate = 0.05 + 0.04 * hour
        assert [] == minutes_of(monitors, chance, NOON + hour * 60, 60, (rate, rate))


def test_recordings_are_compared_too() -> None:
    """The same alarm comes out of recorded runs."""
    watched = WatchedRuns(comparing())
    for minute in range(60):
        for version, bad in (("2.0", True), ("1.0", False)):
            report = run_of(version, bad=bad)
            watched.add(replace(report, trajectory=replace(report.trajectory, end_ns=(NOON + minute) * 60 * 10**9)))
    found = watched.series("new_version")

    assert {"new", "stable"} == found.keys()
    (alarm,) = found["new"].alarms
    assert alarm.stable == (0, alarm.counted)


def test_a_clock_that_was_wrong() -> None:
    """A comparison continues at the right time, and has no begin that is still to come."""
    monitors, chance = Monitors(comparing()), random.Random(1)
    assert [] == minutes_of(monitors, chance, NOON + 10**6, 5, (0.1, 0.1))
    (alarm,) = minutes_of(monitors, chance, NOON, 200, (0.4, 0.1))

    assert (NOON, True) == (alarm.since, alarm.minute < NOON + 200)
