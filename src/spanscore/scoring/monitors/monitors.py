"""All monitors of a process."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Final, NamedTuple, TypeAlias

from msgspec import MsgspecError, json
from msgspec.msgpack import Decoder, Encoder

from spanscore.model import Report
from spanscore.model.alarms import MonitorAlarm
from spanscore.reports.reasons import Reason, reasons
from spanscore.scoring.monitors.e_detector import Evidence
from spanscore.scoring.monitors.judged import is_counted
from spanscore.scoring.monitors.monitor import ObjectiveMonitor, SavedSeries, SeriesKey, series_name
from spanscore.scoring.monitors.settings import MonitoredRuns, MonitorSettings
from spanscore.scoring.monitors.versions import VersionComparison, VersionMonitor

_LOST_MINUTES: Final = 2
"""The minutes in which a process may have counted runs after it stored its state last."""
_SET_BACK: Final = 5
"""A clock is off by fewer minutes, and is corrected; by more it was set back, and would not catch up soon."""
_CHANGED: Final = "its settings changed"
_REMOVED: Final = "the monitor was removed"
_MOST_TEXTS: Final = 1_024


class _SavedMonitor(NamedTuple):
    name: str
    settings: str
    series: list[SavedSeries]


class _Saved(NamedTuple):
    minute: int
    is_end: bool
    """Whether no further run was counted."""
    monitors: list[_SavedMonitor]


Monitor: TypeAlias = ObjectiveMonitor | VersionMonitor
Judged: TypeAlias = tuple[Monitor, SeriesKey, tuple[str, ...] | None]
"""A monitor that counts a run, the series of the run, and the reasons for which it is bad, or None."""

_ENCODER: Final = Encoder()
_DECODER: Final = Decoder(_Saved)


class Monitors:
    """Counts runs for all monitors. Pure: the caller passes the minute.

    If the clock goes back by up to five minutes, the last minute continues until the clock has caught up. If it goes
    back by more, that minute ends, and minutes count from there.

    Args:
        settings: the settings of each monitor, by name.
    """

    def __init__(self, settings: Mapping[str, MonitorSettings]) -> None:
        self.each: Final = tuple(new_monitor(name, each) for name, each in settings.items())
        """The monitors."""
        self._minute = 0
        self._texts: Final[dict[str, str]] = {}

    def count(self, report: Report, minute: int) -> list[MonitorAlarm]:
        """Count the run of a report, and return the alarms of the minutes that have ended.

        Args:
            report: the report, of any revision.
            minute: the minute since the Unix epoch.
        """
        alarms = self.advance(minute)
        for monitor, key, bad_for in self.judged(report):
            monitor.count(key, self._minute, report.trajectory.trace_id, bad_for)
        return alarms

    def judged(self, report: Report) -> list[Judged]:
        """Return the monitors that count a report."""
        found: list[Judged] = []
        if not is_counted(report):
            return found
        evaluations = {each.name: each for each in report.evaluations}
        keys: dict[tuple[str, ...] | None, SeriesKey | None] = {}
        known: tuple[Reason, ...] | None = None
        texts: dict[str | None, tuple[str, ...]] = {}
        for monitor in self.each:
            is_bad = monitor.judge(report, evaluations)
            if is_bad is None:
                continue
            if monitor.by is None or (key := keys.get(monitor.by)) is None:
                key = keys[monitor.by] = monitor.place(report.trajectory.attributes)
            if key is None:
                continue
            bad_for = texts.get(monitor.evaluator) if is_bad else None
            if is_bad and bad_for is None:
                known = self._reasons(report) if known is None else known
                of_it = (each.text for each in known if monitor.evaluator in {None, each.evaluator})
                bad_for = texts[monitor.evaluator] = tuple(dict.fromkeys(of_it))
            found.append((monitor, key, bad_for))
        return found

    def _reasons(self, report: Report) -> tuple[Reason, ...]:
        """Return the reasons of a run; equal texts are one object, as many series may keep them."""
        if len(self._texts) > _MOST_TEXTS:
            self._texts.clear()
        return tuple(each._replace(text=self._texts.setdefault(each.text, each.text)) for each in reasons(report))

    def advance(self, minute: int) -> list[MonitorAlarm]:
        """End the minutes before this one, and return their alarms."""
        is_set_back = minute < self._minute - _SET_BACK
        if minute <= self._minute and not is_set_back:
            return []
        self._minute = minute
        alarms = [alarm for monitor in self.each for alarm in monitor.end()]
        if is_set_back:
            for monitor in self.each:
                monitor.set_back(minute)
        return alarms

    def saved(self, *, is_end: bool) -> bytes:
        """Return the state to be stored.

        Args:
            is_end: whether no further run is counted.
        """
        monitors = [_SavedMonitor(each.name, _identity(each.settings), [*each.saved()]) for each in self.each]
        return _ENCODER.encode(_Saved(self._minute, is_end, monitors))

    def restore(self, state: bytes) -> list[MonitorAlarm]:
        """Take over the state of an earlier process, of each monitor whose settings are as they were.

        Returns the ends of the alarms that other monitors had.

        Runs that it counted after it had stored the state are unknown. In their place each minute that may have had any
        counts as one in which no run failed, so that the evidence is at most as large as if they were known.

        Raises:
            ValueError: the state cannot be read; nothing or a part of it was taken over.
        """
        try:
            found = _DECODER.decode(state)
            known = {monitor.name: monitor for monitor in self.each}
            self._minute = max(self._minute, found.minute)
            dropped: list[MonitorAlarm] = []
            for stored in found.monitors:
                monitor = known.get(stored.name)
                if monitor is None or stored.settings != _identity(monitor.settings):
                    dropped += _dropped(stored, _CHANGED if monitor else _REMOVED, found.minute)
                    continue
                for one in stored.series:
                    monitor.restore(one, lost_minutes=0 if found.is_end else _LOST_MINUTES)
        except (MsgspecError, struct.error) as error:
            raise ValueError("the state of monitors cannot be read") from error
        return dropped


def new_monitor(name: str, settings: MonitorSettings) -> Monitor:
    """Return a monitor without a run."""
    return VersionMonitor(name, settings) if settings.compares else ObjectiveMonitor(name, settings)


def _dropped(stored: _SavedMonitor, why: str, minute: int) -> Iterator[MonitorAlarm]:
    """Yield the ends of the alarms of a monitor whose state is not taken over."""
    for one in stored.series:
        try:
            evidence = Evidence.unpacked(one.packed)
            is_alarm, since, bad, counted = evidence.is_alarm, evidence.since, evidence.bad, evidence.counted
        except struct.error:
            found = VersionComparison.unpacked(one.packed)
            is_alarm, since, bad, counted = found.is_alarm, found.since, found.new_bad, found.new
        if is_alarm:
            name = series_name(one.key)
            yield MonitorAlarm(stored.name, name, minute, since, bad, counted, is_over=True, dropped=why)


def _identity(settings: MonitorSettings) -> str:
    """Return the settings of a monitor that are not at their default, as JSON: later versions may add settings."""
    of = {name: value for name, value in _given(settings.of) if name != "fails"}  # which only reads well
    return json.encode(dict(_given(settings)) | {"of": of}, order="sorted").decode()


def _given(settings: MonitorSettings | MonitoredRuns) -> Iterator[tuple[str, object]]:
    """Yield the settings that have another value than their default."""
    for each in fields(settings):
        default = each.default if each.default_factory is MISSING else each.default_factory()
        if (value := getattr(settings, each.name)) != default:
            yield each.name, value
