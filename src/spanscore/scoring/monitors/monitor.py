"""A monitor: the evidence of each of its series, and its alarms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

from spanscore.model import Attributes
from spanscore.model.alarms import MonitorAlarm
from spanscore.scoring.monitors.e_detector import Evidence, Objective
from spanscore.scoring.monitors.failures import Failures
from spanscore.scoring.monitors.judged import judge_of, values_of
from spanscore.scoring.monitors.settings import MonitorSettings

MOST_SERIES: Final = 100
"""Series of their own; further ones count in `OTHER`."""
OTHER: Final = "_other"
NO_VALUE: Final = "(none)"
"""In names of series, for an attribute that a run does not have."""
UNSEEN_MINUTES: Final = 24 * 60
"""The minutes without a run after which a series gives way to a new one."""
SeriesKey: TypeAlias = tuple[str, ...]
"""The values of the attributes by which a monitor is split."""


class _MonitoredSeries(Failures):
    """The state of one series: 400 bytes, and as many again while runs fail too often."""

    __slots__ = ("alarms", "bad", "bad_before", "counted", "counted_before", "minute", "packed")

    def __init__(self) -> None:
        super().__init__()
        self.minute = 0
        """The minute of the last run."""
        self.bad = 0
        """The runs of that minute that failed, until its end."""
        self.counted = 0
        """The runs of that minute, until its end."""
        self.bad_before = 0
        """The runs that failed in the minutes before, since the start; negative for runs of an earlier process."""
        self.counted_before = 0
        self.alarms = 0
        self.packed = Evidence().packed()


class SeriesState(NamedTuple):
    """The evidence of a series as a gauge shows it."""

    evidence: float | None
    """As a share of that of an alarm; at least 1 during one. None if it is only compared with."""
    is_alarm: bool
    since: int
    """The minute since which the failures are more; 0 if they are not."""
    counted: int
    bad: int
    alarms: int

    def joined(self, other: SeriesState) -> SeriesState:
        """Return this state and that of another series with the same name as one: the worse evidence, and all runs."""
        worse = max(self, other, key=lambda each: (each.is_alarm, each.evidence or 0.0))
        runs, bad = self.counted + other.counted, self.bad + other.bad
        return worse._replace(counted=runs, bad=bad, alarms=self.alarms + other.alarms)


class SavedSeries(NamedTuple):
    """A series as it is stored."""

    key: SeriesKey
    minute: int
    bad: int
    counted: int
    packed: bytes
    traces: bytes
    reasons: dict[str, int]


class ObjectiveMonitor:
    """A monitor of how many runs fail.

    Args:
        name: its name.
        settings: its settings.
    """

    def __init__(self, name: str, settings: MonitorSettings) -> None:
        self.name: Final = name
        self.settings: Final = settings
        self.by: Final = tuple(settings.by)
        self.judge: Final = judge_of(settings.of)
        self.evaluator: Final = settings.of.evaluator or settings.of.score
        """The evaluator whose reasons it shows; None for those of all."""
        self._objective: Final = Objective(settings.at_most or 0)
        self._series: Final[dict[SeriesKey, _MonitoredSeries]] = {}
        self._touched: Final[dict[SeriesKey, _MonitoredSeries]] = {}
        """The series with runs in this minute."""
        self._full_until = 0
        """The minute up to which no series can give way."""
        self._dropped: Final[list[MonitorAlarm]] = []
        """The ends of alarms of series that gave way in this minute."""
        if not self.by:
            self._series[()] = _MonitoredSeries()  # so that its counts are 0 from the start, and not absent

    @property
    def threshold(self) -> float:
        """The evidence of an alarm."""
        return self.settings.minutes * max(1, len(self._series))

    def place(self, attributes: Attributes) -> SeriesKey | None:
        """Return the series of a run."""
        return values_of(attributes, self.by)

    def count(self, key: SeriesKey, minute: int, trace_id: bytes, bad_for: Iterable[str] | None) -> SeriesKey:
        """Count a run, and return the series in which it counts. Call `end` before the first run of another minute.

        Args:
            key: its series.
            minute: the minute.
            trace_id: its trace.
            bad_for: the reasons for which it is bad, none if they are not known; None if it is not bad.
        """
        series = self._series.get(key)
        if series is None:
            key = self._admitted(key, minute)
            series = self._series.get(key) or self._series.setdefault(key, _MonitoredSeries())
        if not series.counted:
            self._touched[key] = series
            series.minute = minute
        series.counted += 1
        if bad_for is not None:
            series.bad += 1
            series.add(trace_id, bad_for)
        return key

    def end(self) -> Iterator[MonitorAlarm]:
        """End the minute, and yield the alarms that begin or end with it."""
        yield from self._dropped
        self._dropped.clear()
        touched = list(self._touched.items())
        self._touched.clear()
        threshold = self.threshold
        for key, series in touched:
            before = Evidence.unpacked(series.packed)
            after = self._objective.after(before, series.minute, series.bad, series.counted, threshold)
            series.counted_before += series.counted
            series.bad_before += series.bad
            if after.is_alarm and not before.is_alarm:
                series.alarms += 1
                yield self._alarm(key, series, after.since, after.bad or series.bad, after.counted or series.counted)
            elif before.is_alarm and not after.is_alarm:
                bad, counted = before.portion_bad + series.bad, before.portion_counted + series.counted
                alarm = self._alarm(key, series, before.since, bad, counted)
                yield alarm._replace(is_over=True, good_since=before.portion)
            if not after.is_alarm and not after.counted:
                series.clear()
            series.packed = after.packed()
            series.bad = series.counted = 0

    def states(self) -> Iterator[tuple[SeriesKey, SeriesState]]:
        """Yield each series with its state; another thread may count meanwhile."""
        threshold = self.threshold
        for key, series in list(self._series.items()):
            found = Evidence.unpacked(series.packed)
            counted, bad = series.counted_before + series.counted, series.bad_before + series.bad
            share = max(found.value / threshold, float(found.is_alarm))
            yield key, SeriesState(share, found.is_alarm, found.since, counted, bad, series.alarms)

    def absent(self) -> tuple[int, tuple[str, ...]]:
        """Return the runs since the start, and the attributes in `by` that none of them has."""
        runs = sum(each.counted_before + each.counted for each in self._series.values())
        absent = (key for place, key in enumerate(self.by) if not any(each[place] for each in self._series))
        return runs, tuple(absent)

    def saved(self) -> Iterator[SavedSeries]:
        """Yield each series to be stored."""
        for key, each in self._series.items():
            minute = (each.minute, each.bad, each.counted)
            yield SavedSeries(key, *minute, each.packed, each.traces, each.reasons or {})

    def restore(self, saved: SavedSeries, *, lost_minutes: int) -> None:
        """Take over a series of an earlier process.

        Args:
            saved: the series.
            lost_minutes: the minutes whose runs may be missing, the last one of the series included; 0 if none are.
        """
        evidence = Evidence.unpacked(saved.packed)
        series = self._series[saved.key] = _MonitoredSeries()
        series.minute, series.traces, series.reasons = saved.minute, saved.traces, dict(saved.reasons) or None
        if lost_minutes:
            evidence = self._objective.least(evidence, lost_minutes)
        elif saved.counted:
            series.bad, series.counted = saved.bad, saved.counted
            series.bad_before, series.counted_before = -saved.bad, -saved.counted  # an earlier process counted them
            self._touched[saved.key] = series
        series.packed = evidence.packed()

    def set_back(self, minute: int) -> None:
        """Note that the clock was set back to a minute: no time of a series is later."""
        self._full_until = min(self._full_until, minute)
        for series in self._series.values():
            series.minute = min(series.minute, minute)
            found = Evidence.unpacked(series.packed)
            since, portion = min(found.since, minute), min(found.portion, minute)
            series.packed = found._replace(since=since, portion=portion).packed()

    def _admitted(self, key: SeriesKey, minute: int) -> SeriesKey:
        """Return the key under which runs of a new series count; one without runs for a day gives way."""
        own = len(self._series) - (self._other in self._series)
        if own < MOST_SERIES:
            return key
        if minute >= self._full_until:
            oldest = min((each for each in self._series if each != self._other), key=lambda of: self._series[of].minute)
            if (free_at := self._series[oldest].minute + UNSEEN_MINUTES) <= minute:
                self._give_way(oldest, minute)
                return key
            self._full_until = free_at
        return self._other

    def _give_way(self, key: SeriesKey, minute: int) -> None:
        found = Evidence.unpacked(self._series.pop(key).packed)
        if found.is_alarm:
            runs = (found.since, found.bad, found.counted)
            self._dropped.append(
                MonitorAlarm(self.name, series_name(key), minute, *runs, is_over=True, dropped="no run for a day")
            )

    @property
    def _other(self) -> SeriesKey:
        return (OTHER,) * len(self.by)

    def _alarm(self, key: SeriesKey, series: _MonitoredSeries, since: int, bad: int, counted: int) -> MonitorAlarm:
        return MonitorAlarm(
            monitor=self.name,
            series=series_name(key),
            minute=series.minute,
            since=since,
            bad=bad,
            counted=counted,
            objective=self._objective.at_most,
            traces=series.last_traces(),
            reasons=series.most_frequent(),
        )


def series_name(key: SeriesKey) -> str:
    """Return the name of a series for people: the values with ` / ` between them; empty if the monitor has no `by`."""
    return " / ".join(value or NO_VALUE for value in key)
