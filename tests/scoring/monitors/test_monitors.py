"""Which runs monitors count, in which series, what an alarm says, and what they keep."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import field, make_dataclass, replace

import pytest

from cases import failing
from scoring.monitors.runs_of_shop import DAY_S, monitored, run_of_shop
from spanscore.model import Evaluation, Failed, Report, Score, Skipped, ToolCall
from spanscore.model.alarms import MonitorAlarm
from spanscore.scoring.monitors.monitor import MOST_SERIES, OTHER, UNSEEN_MINUTES, SeriesState, series_name
from spanscore.scoring.monitors.monitors import Monitors
from spanscore.scoring.monitors.settings import MonitoredRuns, MonitorSettings

BY = ("service.name",)
NOON = 12 * 60


def states(monitors: Monitors) -> dict[tuple[str, ...], SeriesState]:
    """Return the state of each series of the first monitor."""
    return dict(monitors.each[0].states())


def counts(settings: MonitorSettings, *reports: Report) -> tuple[int, int]:
    """Return the runs that a monitor counted, and those of them that are bad."""
    monitors = Monitors({"one": settings})
    for report in reports:
        monitors.count(report, NOON)
    found = states(monitors).values()
    return sum(each.counted for each in found), sum(each.bad for each in found)


def evaluated(outcome: Score | Skipped | Failed, name: str = "rules", **more: bool) -> Report:
    """Return the report of a run with one evaluation."""
    return run_of_shop(evaluations=(Evaluation(name=name, type="any", outcome=outcome, **more),))


def test_what_counts() -> None:
    """Verdicts count, and nothing that is none."""
    failed_call = (ToolCall(name="issue_refund", error="TimeoutError"), ToolCall(name="issue_refund"))
    rules, score = MonitoredRuns(evaluator="rules", fails=True), MonitoredRuns(score="health", below=0.8)
    verdict, tool = MonitoredRuns(verdict="fail"), MonitoredRuns(tool="issue_refund", fails=True)
    cases = {
        "passed": (rules, run_of_shop(), (1, 0)),
        "failed": (rules, run_of_shop(bad=True), (1, 1)),
        "skipped": (rules, evaluated(Skipped("nothing recorded")), (0, 0)),
        "went wrong": (rules, evaluated(Failed("ValueError", "")), (0, 0)),
        "informational": (rules, evaluated(Score(0.0, passed=False), informational=True), (0, 0)),
        "another evaluator": (rules, evaluated(Score(0.0, passed=False), "health"), (0, 0)),
        "score below": (score, evaluated(Score(0.79, passed=True), "health"), (1, 1)),
        "score at the limit": (score, evaluated(Score(0.8, passed=False), "health"), (1, 0)),
        "score for information": (score, evaluated(Score(0.1, passed=True), "health", informational=True), (1, 1)),
        "no score": (score, evaluated(Skipped("nothing recorded"), "health"), (0, 0)),
        "verdict": (verdict, run_of_shop(bad=True), (1, 1)),
        "no verdict": (verdict, evaluated(Skipped("nothing recorded")), (0, 0)),
        "tool failed once": (tool, run_of_shop(calls=failed_call), (1, 1)),
        "tool worked": (tool, run_of_shop(calls=failed_call[1:]), (1, 0)),
        "tool not called": (tool, run_of_shop(calls=(ToolCall(name="search", error="x"),)), (0, 0)),
        "unrecognised": (rules, run_of_shop(bad=True, recognised=False), (0, 0)),
    }

    def check(of: MonitoredRuns, report: Report, expected: tuple[int, int]) -> None:
        assert expected == counts(monitored(of), report)

    assert [] == failing(check, cases)


def test_a_run_counts_once() -> None:
    """At its first closing that is not paused, whether it failed while it paused or not; no later revision."""
    rules = monitored()

    assert (1, 1) == counts(rules, run_of_shop(bad=True), run_of_shop(bad=True, revision=1))
    assert (0, 0) == counts(rules, run_of_shop(bad=True, paused=True), run_of_shop(paused=True))
    assert (1, 0) == counts(rules, run_of_shop(paused=True), run_of_shop(revision=1, paused_before=True, resumed=True))
    assert (1, 1) == counts(rules, run_of_shop(bad=True, paused=True), run_of_shop(bad=True, revision=1, resumed=True))
    assert (1, 0) == counts(rules, run_of_shop(revision=2, paused_before=True))


def bad_minutes(monitors: Monitors, minutes: range, bad: int, runs: int = 10) -> Iterator[MonitorAlarm]:
    """Count runs in minutes, the first of each of them bad ones, and yield the alarms."""
    for minute in minutes:
        for number in range(runs):
            yield from monitors.count(run_of_shop(bad=number < bad, number=minute * 100 + number), minute)


def test_an_alarm_says_what_fails_since_when() -> None:
    """The event has the minute, the share, the last traces and the reasons; one event when it is over."""
    monitors = Monitors({"refund_policy": monitored(by=BY)})
    assert [] == list(bad_minutes(monitors, range(NOON, NOON + 30), 0))

    (alarm,) = bad_minutes(monitors, range(NOON + 30, NOON + 50), 3)
    assert ("refund_policy", "shop", NOON + 30, False) == (alarm.monitor, alarm.series, alarm.since, alarm.is_over)
    assert (alarm.minute - alarm.since + 1) * 10 == alarm.counted
    assert (3 * alarm.counted // 10, 0.05) == (alarm.bad, alarm.objective)
    assert 10 == len(alarm.traces)
    assert (alarm.minute * 100 + 2).to_bytes(16, "big") == alarm.traces[-1]
    assert ("rules: check_policy was not called",) == alarm.reasons

    (over,) = bad_minutes(monitors, range(NOON + 50, NOON + 250), 0)
    assert over.is_over
    assert (0, NOON + 30) == (over.bad, over.since)
    assert 60 == over.minute - over.good_since + 1
    assert {(False, 1)} == {(each.is_alarm, each.alarms) for each in states(monitors).values()}


def test_a_minute_without_runs_does_nothing() -> None:
    """A series is as it was, however long nobody calls."""
    busy, quiet = Monitors({"one": monitored()}), Monitors({"one": monitored()})
    for number, minute in enumerate((1, 2, 3)):
        for monitors, at in ((busy, minute), (quiet, minute * 1000)):
            monitors.count(run_of_shop(bad=number == 1), at)
    busy.advance(4)
    quiet.advance(9000)

    assert [each.evidence for each in states(busy).values()] == [each.evidence for each in states(quiet).values()]


def test_a_clock_that_goes_back_begins_no_minute() -> None:
    """Runs count in the last minute that there was."""
    monitors = Monitors({"one": monitored()})
    monitors.count(run_of_shop(), 100)
    monitors.count(run_of_shop(), 90)
    before = states(monitors)[()]
    monitors.advance(101)

    assert 2 == before.counted
    assert before.evidence < states(monitors)[()].evidence


def test_values_of_series() -> None:
    """They are as `match` compares them; one that a run does not have is empty, and `(none)` in the name."""
    monitors = Monitors({"one": monitored(by=("service.name", "spanscore.missing"))})
    monitors.count(run_of_shop(service="shop\n"), NOON)

    assert {("shop", "")} == states(monitors).keys()
    assert "shop / (none)" == series_name(("shop", ""))


def test_there_are_never_more_than_a_hundred_series() -> None:
    """The 101st counts in `_other`, until a series has had no run for a day; sums stay exact."""
    monitors = Monitors({"one": monitored(by=BY)})
    for number in range(MOST_SERIES + 5):
        monitors.count(run_of_shop(service=f"shop-{number}"), NOON)
    assert 5 == states(monitors)[OTHER,].counted
    assert MOST_SERIES + 1 == len(states(monitors))

    for number in range(1, MOST_SERIES):
        monitors.count(run_of_shop(service=f"shop-{number}"), NOON + UNSEEN_MINUTES - 1)
    monitors.count(run_of_shop(service="late"), NOON + UNSEEN_MINUTES - 1)
    assert ("late",) not in states(monitors)
    monitors.count(run_of_shop(service="late"), NOON + UNSEEN_MINUTES)
    found = states(monitors)
    assert ("late",) in found
    assert ("shop-0",) not in found
    assert MOST_SERIES + 1 == len(found)


def test_an_alarm_of_a_series_that_gives_way_ends() -> None:
    """After a day without a run, if room is needed: whoever was told of the alarm is told of its end."""
    monitors = Monitors({"one": monitored(by=BY)})
    assert 1 == len(list(bad_minutes(monitors, range(NOON, NOON + 40), 10)))
    for number in range(MOST_SERIES):
        monitors.count(run_of_shop(service=f"shop-{number}"), NOON + 40 + UNSEEN_MINUTES)
    (told,) = monitors.advance(NOON + 41 + UNSEEN_MINUTES)

    assert ("shop", True, "no run for a day") == (told.series, told.is_over, told.dropped)
    assert ("shop",) not in states(monitors)


def test_a_minute_that_comes_again_is_one() -> None:
    """A clock that is corrected by some minutes does not make more minutes of the same time."""
    monitors = Monitors({"one": monitored()})
    for minute in (NOON + 5, NOON, NOON + 5, NOON + 1, NOON + 5):
        assert [] == monitors.count(run_of_shop(bad=True), minute)
    assert [0] == [each.evidence for each in states(monitors).values()]


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_clock_that_was_wrong_blinds_no_monitor(*, is_restarted: bool) -> None:
    """Minutes count from the right time on, also for an alarm of the wrong one, and after a restart."""
    settings = {"one": monitored(by=BY)}
    monitors = Monitors(settings)
    assert 1 == len(list(bad_minutes(monitors, range(NOON + 10**6, NOON + 10**6 + 20), 10)))
    if is_restarted:
        state, monitors = monitors.saved(is_end=True), Monitors(settings)
        assert [] == monitors.restore(state)

    (over,) = bad_minutes(monitors, range(NOON, NOON + 200), 0)
    assert over.is_over
    assert over.since <= over.good_since <= over.minute < NOON + 200
    (alarm,) = bad_minutes(monitors, range(NOON + 200, NOON + 220), 10)
    assert NOON + 200 == alarm.since


def test_more_series_need_more_evidence() -> None:
    """The rate of false alarms is that of the whole monitor."""
    alone, many = (Monitors({"one": monitored(by=BY)}) for _ in range(2))
    for number in range(50):
        many.count(run_of_shop(service=f"shop-{number}"), NOON)

    def minutes_to_alarm(monitors: Monitors) -> int:
        return next(iter(bad_minutes(monitors, range(NOON + 1, NOON + 100), 2))).minute

    assert minutes_to_alarm(alone) < minutes_to_alarm(many)


def counted_for(monitors: Monitors, minutes: int, bad: int = 2) -> list[MonitorAlarm]:
    """Count minutes of ten runs."""
    return list(bad_minutes(monitors, range(NOON, NOON + minutes), bad))


def test_a_restart_goes_on() -> None:
    """After an orderly end nothing is missing, a minute that was not over included; counters begin at 0."""
    settings = {"one": monitored(by=BY)}
    whole, first, second = Monitors(settings), Monitors(settings), Monitors(settings)
    counted_for(whole, 5)
    counted_for(first, 5)
    second.restore(first.saved(is_end=True))
    for monitors in (whole, second):
        monitors.advance(NOON + 5)

    (one,), (other,) = states(whole).values(), states(second).values()
    assert (one.evidence, one.since) == (other.evidence, other.since)
    assert [(50, 10), (0, 0)] == [(each.counted, each.bad) for each in (one, other)]


def test_after_a_kill_there_is_no_more_evidence() -> None:
    """What was counted after the state was stored is missing; at no later minute is there more evidence for that."""
    settings = {"one": monitored(by=BY)}
    for stored in range(1, 12):
        whole, before = Monitors(settings), Monitors(settings)
        counted_for(whole, 12, bad=1)
        counted_for(before, stored, bad=1)
        state = before.saved(is_end=False)
        after = Monitors(settings)
        after.restore(state)
        list(bad_minutes(after, range(NOON + stored + 1, NOON + 12), 1))
        for monitors in (whole, after):
            monitors.advance(NOON + 12)
        (one,), (other,) = states(whole).values(), states(after).values()
        assert other.evidence <= one.evidence


def test_an_alarm_survives_a_restart() -> None:
    """It is not told again, and ends as it would have."""
    settings = {"one": monitored()}
    first, second = Monitors(settings), Monitors(settings)
    assert 1 == len(counted_for(first, 40, bad=5))
    second.restore(first.saved(is_end=False))

    assert states(second)[()].is_alarm
    assert [] == list(bad_minutes(second, range(NOON + 40, NOON + 60), 5))


def test_other_settings_begin_anew() -> None:
    """The state belongs to the settings with which it was gathered; other monitors keep theirs."""
    first = Monitors({"one": monitored(), "two": monitored(), "gone": monitored()})
    counted_for(first, 5)
    second = Monitors({"one": monitored(at_most=0.1), "two": monitored(), "new": monitored()})
    assert [] == second.restore(first.saved(is_end=True))

    assert [0, 1, 0] == [sum((state.evidence or 0) > 0 for _, state in each.states()) for each in second.each]


def test_what_is_at_its_default_is_no_setting() -> None:
    """A setting that a later version adds, `fails` and the order of keys forget nothing."""
    later = make_dataclass("Later", [("room", float, field(default=1.0))], bases=(MonitorSettings,), frozen=True)
    of = MonitoredRuns(evaluator="rules")
    written = MonitoredRuns(evaluator="rules", fails=True)
    new, stable = {"service.version": "2.*", "service.name": "shop"}, {"service.version": "1.*"}
    turned = dict(reversed(new.items()))

    def stored(**settings: MonitorSettings) -> bytes:
        return Monitors(settings).saved(is_end=True)

    before = stored(one=monitored(), two=MonitorSettings(of=of, new=new, stable=stable, false_alarm=0.01))
    one = later(of=written, at_most=0.05, one_false_alarm_per_s=30 * DAY_S)
    two = later(of=written, new=turned, stable=stable, false_alarm=0.01)
    assert before == stored(one=one, two=two)
    assert before != stored(one=replace(one, room=2.0), two=two)


def test_a_dropped_alarm_ends() -> None:
    """Of monitors whose settings are others, and of those that are gone."""
    first = Monitors({"one": monitored(by=BY), "two": monitored(), "gone": monitored()})
    assert 3 == len(counted_for(first, 40, bad=5))
    dropped = Monitors({"one": monitored(at_most=0.1, by=BY), "two": monitored()}).restore(first.saved(is_end=True))

    assert [("one", "shop", True), ("gone", "", True)] == [
        (each.monitor, each.series, each.is_over) for each in dropped
    ]
    assert ["its settings changed", "the monitor was removed"] == [each.dropped for each in dropped]


@pytest.mark.parametrize("state", [b"", b"{}", b"\x93\x01\xc3\x90\x90", b"\x93\x01\xc3\x91\x93\xa1a\xa1b\x91\x90"])
def test_a_damaged_state_is_refused(state: bytes) -> None:
    """It is one error, whatever the bytes are."""
    with pytest.raises(ValueError, match="cannot be read"):
        Monitors({"one": monitored()}).restore(state)


def test_cost_and_memory_of_many_monitors() -> None:
    """50 monitors of 100 series: below 4 MB, even while all of them fail, and some microseconds a run and monitor."""
    settings = {f"m{number}": monitored(by=BY) for number in range(50)}
    reports = [
        run_of_shop(bad=True, service=f"shop-{number % 100}", reason=f"tool_{number % 7} was not called")
        for number in range(1000)
    ]
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        monitors = Monitors(settings)
        for report in reports:
            monitors.count(report, NOON)
        monitors.advance(NOON + 1)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 4_000_000

    monitors, good = Monitors(settings), [run_of_shop(service=f"shop-{number % 100}") for number in range(300)]
    begin = time.process_time()
    for report in good:
        monitors.count(report, NOON)
    assert time.process_time() - begin < 10e-6 * len(good) * len(settings)  # 1 µs where nothing else runs
