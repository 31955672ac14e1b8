"""The monitors of `spanscore serve`: they count the runs of reports, and their alarms go to the emitters."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final, Protocol

from spanscore.contracts import Emitter, TakesAlarms
from spanscore.contracts.immediate import Immediate
from spanscore.emitters.alarm_event import alarm_line, time_of
from spanscore.messages.faults import contained
from spanscore.messages.plural import plural
from spanscore.model import Report
from spanscore.model.alarms import MonitorAlarm
from spanscore.scoring.monitors.judged import absent_sentence
from spanscore.scoring.monitors.monitor import ObjectiveMonitor, SeriesState, series_name
from spanscore.scoring.monitors.monitors import Monitors
from spanscore.scoring.monitors.settings import MonitorSettings

MONITORS: Final = "monitors"
"""The name of the emitter that counts runs for monitors."""

_EVERY_S: Final = 1.0
_SAVE_EVERY_S: Final = 10.0
_LEAST_LOG: Final = -12.0
_SHOWN: Final = 3
_TELLING_RUNS: Final = 100
_MOST_KNOWN: Final = 1_000
_MINUTE_S: Final = 60

_log = logging.getLogger(__name__)


class MonitorStore(Protocol):
    """Keeps the state of monitors for the next process."""

    def monitors(self) -> bytes | None:
        """Return the stored state; None if there is none."""

    def keep_monitors(self, state: bytes) -> None:
        """Store the state, in place of the last one."""


class LiveMonitors(Immediate):
    """An emitter that counts the run of each report, with a clock.

    Belongs to the owner of the engine. Metrics and the page read it on other threads. The clock has the seconds since
    the Unix epoch, by which minutes are counted.
    """

    at_most_once: Final = True
    """A run that was counted before a restart is not counted again after it."""
    needs_results: Final = False
    """No monitor needs the results of tools."""

    def __init__(self, monitors: Monitors, emitters: Iterable[Emitter], clock: Callable[[], float] = time.time) -> None:
        self._monitors: Final = monitors
        self._targets: Final = [each for each in emitters if isinstance(each, TakesAlarms)]
        self._clock: Final = clock
        self._store: MonitorStore | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._save_at = 0.0
        self._known: Final[set[str]] = set()
        """Attributes that runs have, while a monitor is in `_split`."""
        self._split: Final = [each for each in monitors.each if isinstance(each, ObjectiveMonitor) and each.by]
        """The monitors of which it is not known yet whether runs have the attributes in `by`."""

    def emit(self, report: Report) -> None:
        """Count the run of a report."""
        if self._split and len(self._known) < _MOST_KNOWN:
            self._known.update(report.trajectory.attributes)
        self._tell(self._monitors.count(report, self._minute))

    def close(self, timeout_s: float) -> bool:  # noqa: ARG002 - nothing waits
        """Store the state a last time."""
        if self._store is not None:
            self._store.keep_monitors(self._monitors.saved(is_end=True))
            self._store = None
        return True

    def restore(self, store: MonitorStore) -> None:
        """Take over the state of an earlier process, and store it from now on."""
        state = store.monitors()
        if state is None and not self._monitors.each:
            return
        if state is not None:
            try:
                self._tell(self._monitors.restore(state))
            except ValueError as error:
                _log.error("storage: %s; their evidence begins anew", error)
        self._store = store
        store.keep_monitors(self._monitors.saved(is_end=False))

    def start(self) -> None:
        """End minutes, and store the state, by the clock of the running event loop from now on."""
        self._timer = asyncio.get_running_loop().call_later(_EVERY_S, self._look)

    def rest(self) -> None:
        """End no minute without a run, and store nothing, until `close`."""
        if self._timer is not None:
            self._timer.cancel()

    def states(self) -> Iterator[tuple[tuple[str, str], SeriesState]]:
        """Yield the name of each monitor and of its series, and the state of the series.

        Series whose values are written alike, such as `a / b`, `c` and `a`, `b / c`, are one.
        """
        for monitor in self._monitors.each:
            found: dict[str, SeriesState] = {}
            for key, state in monitor.states():
                name = series_name(key)
                found[name] = state if name not in found else found[name].joined(state)
            for name, state in found.items():
                yield (monitor.name, name), state

    def objectives(self) -> dict[tuple[str | None, ...], float]:
        """Return the share of runs that may fail, by the name of each monitor that has one."""
        settings = ((monitor.name, monitor.settings.at_most) for monitor in self._monitors.each)
        return {(name,): at_most for name, at_most in settings if at_most is not None}

    def headline(self) -> str:
        """Return the alarms in a sentence; empty if there are none."""
        alarms = [(names, state.since) for names, state in self.states() if state.is_alarm]
        if not alarms:
            return ""
        as_of = self._minute
        shown = [
            f"{monitor}{f' ({series})' if series else ''} since {time_of(since, as_of=as_of)}"
            for (monitor, series), since in alarms[:_SHOWN]
        ]
        more = f", and {plural(len(alarms) - _SHOWN, 'more alarm')}" if len(alarms) > _SHOWN else ""
        return f"Alarm: {', '.join(shown)}{more}."

    @property
    def _minute(self) -> int:
        return int(self._clock() // _MINUTE_S)

    def _look(self) -> None:
        try:
            self._tell(self._monitors.advance(self._minute))
            self._look_for_keys()
            now = time.monotonic()
            if self._store is not None and now >= self._save_at:
                self._save_at = now + _SAVE_EVERY_S
                self._store.keep_monitors(self._monitors.saved(is_end=False))
        except Exception:  # noqa: BLE001 - the next look may succeed
            _log.exception("monitors could not end a minute")
        self.start()

    def _look_for_keys(self) -> None:
        """Log once for each monitor, after its first hundred runs, the attributes in `by` that none of them has."""
        for monitor in tuple(self._split):
            runs, absent = monitor.absent()
            if runs >= _TELLING_RUNS:
                self._split.remove(monitor)
                for key in absent:
                    _log.warning("%s: %s", monitor.name, absent_sentence(key, runs, self._known))

    def _tell(self, alarms: Iterable[MonitorAlarm]) -> None:
        for alarm in alarms:
            _log.log(logging.INFO if alarm.is_over else logging.WARNING, "%s", alarm_line(alarm))
            for target in self._targets:
                contained(target, partial(target.alarm, alarm))


def add_monitors(
    settings: Mapping[str, MonitorSettings], emitters: dict[str, Emitter], clock: Callable[[], float]
) -> LiveMonitors | None:
    """Add configured monitors to the emitters, and return them; None if there are none."""
    if not settings:
        return None
    monitors = emitters[MONITORS] = LiveMonitors(Monitors(settings), emitters.values(), clock)
    return monitors


def log_share(share: float) -> float:
    """Return the logarithm to base 10 of a share of evidence, from -12 to 0."""
    return min(max(_LEAST_LOG, math.log10(share)), 0.0) if share > 0 else _LEAST_LOG
