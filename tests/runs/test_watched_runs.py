"""Runs that went through monitors: the same alarms as live, the worst hour, and the objective that fits."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from scoring.monitors.runs_of_shop import monitored, run_of_shop
from spanscore.model import Report
from spanscore.model.alarms import MonitorAlarm
from spanscore.runs.watched_runs import Hour, Suggestion, WatchedRuns
from spanscore.scoring.monitors.monitors import Monitors

NOON = 483_334 * 60
MINUTE_NS = 60 * 10**9
STREAMS = st.lists(
    st.tuples(st.integers(NOON, NOON + 40), st.sampled_from(["shop", "store"]), st.booleans()), max_size=150
)


def ended(report: Report, minute: int) -> Report:
    """Return the report of a run that ends in a minute."""
    return replace(report, trajectory=replace(report.trajectory, end_ns=minute * MINUTE_NS + 7))


def summary(alarms: list[MonitorAlarm]) -> list[tuple[object, ...]]:
    """Return alarms in their order, without their traces, whose order within a minute is not that of another door."""
    return sorted((each.minute, each.series, each.is_over, each.since, each.bad, each.counted) for each in alarms)


@given(STREAMS, st.randoms(use_true_random=False))
def test_recordings_give_the_alarms_of_live_runs(stream: list[tuple[int, str, bool]], order: object) -> None:
    """Where runs fall into the same minutes; a recording may have them in any order."""
    settings = {"one": monitored(by=("service.name",), days=1, at_most=0.3)}
    live, watched = Monitors(settings), WatchedRuns(settings)
    alarms: list[MonitorAlarm] = []
    for minute, service, bad in sorted(stream, key=lambda run: run[0]):
        alarms += live.count(run_of_shop(service=service, bad=bad), minute)
    alarms += live.advance(NOON + 100)
    shuffled = list(stream)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    for minute, service, bad in shuffled:
        watched.add(ended(run_of_shop(service=service, bad=bad), minute))
    found = watched.series("one")

    assert summary(alarms) == summary([alarm for series in found.values() for alarm in series.alarms])
    assert len(stream) == sum(len(series.runs) for series in found.values())


def watched_hours(*shares: tuple[int, int]) -> WatchedRuns:
    """Return runs of hours, each with its bad runs and its runs, spread over the hour."""
    watched = WatchedRuns({"one": monitored()})
    for hour, (bad, counted) in enumerate(shares):
        for number in range(counted):
            is_bad = number * bad // counted < (number + 1) * bad // counted
            watched.add(ended(run_of_shop(bad=is_bad), NOON + hour * 60 + number * 60 // counted))
    return watched


def test_the_worst_hour() -> None:
    """Of hours with at least twenty runs."""
    series = watched_hours((2, 40), (10, 40), (5, 19)).series("one")[""]

    assert Hour(NOON + 60, 10, 40) == series.worst_hour()
    assert 17 == series.bad
    assert watched_hours((5, 19)).series("one")[""].worst_hour() is None


def test_the_suggestion_raises_no_alarm() -> None:
    """It is the least one that does not; with all runs bad there is none up to 50 %."""
    watched = watched_hours((2, 40), (8, 40), (8, 40), (8, 40))
    found = watched.suggested("one")
    suggested = found.at_most

    assert suggested is not None
    assert (0.07, NOON + 60, 160) == (found.below, min(found.alarm.minute, NOON + 60), found.runs)  # type: ignore[union-attr]
    for share, expected in ((suggested, False), (0.01, True)):
        settings = {"one": replace(watched.settings["one"], at_most=share)}
        again = WatchedRuns(settings)
        for run in watched.series("one")[""].runs:
            again.add(ended(run_of_shop(bad=run.bad_for is not None), run.minute))
        assert expected is any(series.alarms for series in again.series("one").values())
    assert watched_hours((60, 60), (60, 60)).suggested("one").at_most is None


def test_few_runs_suggest_little() -> None:
    """An objective has to allow ten failures in them."""
    assert Suggestion(19, None) == watched_hours((0, 19)).suggested("one")
    assert Suggestion(100, 0.1) == watched_hours((0, 100)).suggested("one")
    assert Suggestion(1_000, 0.01) == watched_hours((0, 1_000)).suggested("one")


def test_attributes_that_no_run_has() -> None:
    """They are named; one that some run has is not."""
    watched = WatchedRuns({"one": monitored(by=("service.name", "gen_ai.agent"))})
    assert () == watched.absent("one")
    watched.add(ended(run_of_shop(), NOON))

    assert ("gen_ai.agent",) == watched.absent("one")


def test_an_alarm_has_its_first_traces() -> None:
    """They begin with the minute since which it counts."""
    watched = WatchedRuns({"one": monitored()})
    for minute in range(20):
        watched.add(ended(run_of_shop(bad=minute >= 10, number=minute + 1), NOON + minute))
    series = watched.series("one")[""]
    (alarm,) = series.alarms

    assert [number.to_bytes(16, "big") for number in (11, 12, 13)] == series.first_bad(alarm, 3)


def test_a_run_without_an_end_has_no_minute() -> None:
    """It is left out, and counted."""
    watched = WatchedRuns({"one": monitored()})
    watched.add(run_of_shop())
    watched.add(run_of_shop(bad=True))

    assert ({}, 2, 1) == (watched.series("one"), watched.without_end, watched.passed_without_end)
