"""Runs that went through monitors, in the order of their minutes: the alarms that there would have been."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from spanscore.model import Report
from spanscore.model.alarms import MonitorAlarm
from spanscore.scoring.monitors.monitor import SeriesKey, series_name
from spanscore.scoring.monitors.monitors import Monitors, new_monitor
from spanscore.scoring.monitors.settings import MonitorSettings

SUGGESTED: Final = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)
"""The objectives that are tried."""
LEAST_ALLOWED: Final = 10
"""The failures that an objective must allow in the runs, for them to say that it fits: for 1 % of 1,000 runs."""
LEAST_OF_HOUR: Final = 20
"""The runs of an hour below which its share says little."""

_MINUTE_NS: Final = 60 * 10**9
_HOUR: Final = 60


class JudgedRun(NamedTuple):
    """A run that a monitor counts."""

    minute: int
    trace_id: bytes
    key: SeriesKey
    bad_for: tuple[str, ...] | None
    """The reasons for which it is bad; None if it is not."""


class Suggestion(NamedTuple):
    """An objective that would fit."""

    runs: int
    """The runs of the largest series."""
    at_most: float | None
    """The least objective without an alarm in these runs; None if there is none, or too few runs."""
    below: float | None = None
    """The objective below it, if it raises an alarm."""
    alarm: MonitorAlarm | None = None
    """The first alarm that it raises; with `at_most` None that at the largest objective."""


class Hour(NamedTuple):
    """The runs of an hour."""

    begin: int
    """Its first minute, since the Unix epoch."""
    bad: int
    counted: int


@dataclass(slots=True)
class WatchedSeries:
    """A series, and its alarms."""

    runs: list[JudgedRun] = field(default_factory=list)
    alarms: list[MonitorAlarm] = field(default_factory=list)

    @property
    def bad(self) -> int:
        """The number of bad runs."""
        return sum(run.bad_for is not None for run in self.runs)

    def worst_hour(self) -> Hour | None:
        """Return the hour with the largest share of bad runs, of those with at least 20 runs; None without such."""
        counted = Counter(run.minute // _HOUR for run in self.runs)
        bad = Counter(run.minute // _HOUR for run in self.runs if run.bad_for is not None)
        hours = [Hour(hour * _HOUR, bad[hour], runs) for hour, runs in counted.items() if runs >= LEAST_OF_HOUR]
        return max(hours, key=lambda hour: (hour.bad / hour.counted, -hour.begin), default=None)

    def first_bad(self, alarm: MonitorAlarm, most: int) -> list[bytes]:
        """Return the first traces that failed in the minutes that an alarm is about."""
        found = (run.trace_id for run in self.runs if run.bad_for is not None and run.minute >= alarm.since)
        return [trace_id for trace_id, _ in zip(found, range(most), strict=False)]


class WatchedRuns:
    """Runs, judged as each monitor does."""

    def __init__(self, settings: Mapping[str, MonitorSettings]) -> None:
        self.settings: Final = settings
        self.without_end = 0
        """The number of runs that were left out because their end is not known."""
        self.passed_without_end = 0
        """The number of runs among them that are bad for no monitor."""
        self.attributes: Final[set[str]] = set()
        """The names of attributes that runs have."""
        self._judging: Final = Monitors(settings)
        self._runs: Final[dict[str, list[JudgedRun]]] = {name: [] for name in settings}

    def add(self, report: Report) -> None:
        """Judge a run. Its minute is that of the end of the evaluated span."""
        run = report.trajectory
        judged = self._judging.judged(report)
        if judged and run.end_ns is None:
            self.without_end += 1
            self.passed_without_end += all(bad_for is None for _, _, bad_for in judged)
            return
        self.attributes.update(run.attributes)
        for monitor, key, bad_for in judged:
            self._runs[monitor.name].append(JudgedRun((run.end_ns or 0) // _MINUTE_NS, run.trace_id, key, bad_for))

    def series(self, name: str) -> dict[str, WatchedSeries]:
        """Return the series of a monitor by their names, with their alarms."""
        found: dict[str, WatchedSeries] = {}
        for key, run in self._counted(name, self.settings[name], found):
            found.setdefault(series_name(key), WatchedSeries()).runs.append(run)
        return found

    def absent(self, name: str) -> tuple[str, ...]:
        """Return the attributes in `by` of a monitor that no run has."""
        runs = self._runs[name]
        by = self.settings[name].by if runs else ()
        return tuple(key for place, key in enumerate(by) if not any(run.key[place] for run in runs))

    def suggested(self, name: str) -> Suggestion:
        """Return the least objective at which these runs raise no alarm, of those that allow ten failures in them.

        The monitor has an objective.
        """
        runs = max(Counter(run.key for run in self._runs[name]).values(), default=0)
        found = Suggestion(runs, None)
        for share in SUGGESTED:
            if share * runs < LEAST_ALLOWED:
                continue
            alarm = self._first_alarm_at(name, share)
            if alarm is None:
                return found._replace(at_most=share)
            found = Suggestion(runs, None, share, alarm)
        return found

    def _first_alarm_at(self, name: str, at_most: float) -> MonitorAlarm | None:
        found: dict[str, WatchedSeries] = {}
        for _ in self._counted(name, replace(self.settings[name], at_most=at_most), found):
            if found:
                break
        return next((alarm for series in found.values() for alarm in series.alarms), None)

    def _counted(
        self, name: str, settings: MonitorSettings, found: dict[str, WatchedSeries]
    ) -> Iterable[tuple[SeriesKey, JudgedRun]]:
        """Count the runs of a monitor, and yield them with their series. Alarms are added to the series in `found`."""
        monitor = new_monitor(name, settings)
        minute = 0
        for run in sorted(self._runs[name], key=lambda run: run.minute):
            if run.minute != minute:
                _note(monitor.end(), found)
                minute = run.minute
            yield monitor.count(run.key, run.minute, run.trace_id, run.bad_for), run
        _note(monitor.end(), found)


def _note(alarms: Iterable[MonitorAlarm], found: dict[str, WatchedSeries]) -> None:
    for alarm in alarms:
        found.setdefault(alarm.series, WatchedSeries()).alarms.append(alarm)
