"""Comparing two versions that run at the same time: an alarm if the new one fails more often than the stable one.

A block ends with the first minute after which both versions have a run, and each bets on the difference of their rates
in it. While the new version fails at most as often as the stable one, whatever their common rate does, the evidence is
at most 1 on average; so the chance that it ever reaches n is at most 1 / n.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from spanscore.compare.globs import attributes_matcher
from spanscore.model import Attributes
from spanscore.model.alarms import MonitorAlarm
from spanscore.scoring.monitors.e_detector import MOST
from spanscore.scoring.monitors.failures import Failures
from spanscore.scoring.monitors.judged import judge_of
from spanscore.scoring.monitors.monitor import SavedSeries, SeriesKey, SeriesState
from spanscore.scoring.monitors.settings import MonitorSettings

NEW: Final = ("new",)
STABLE: Final = ("stable",)
BETS: Final = (0.05, 0.1, 0.2, 0.4, 0.8)

_STATE: Final = struct.Struct("<5d?9I")


class VersionComparison(NamedTuple):
    """The evidence of a comparison, up to the end of a minute."""

    products: tuple[float, ...] = (1.0,) * len(BETS)
    is_alarm: bool = False
    since: int = 0
    """The minute of the first run."""
    new_bad: int = 0
    """The runs of both versions since then."""
    new: int = 0
    stable_bad: int = 0
    stable: int = 0
    block_new_bad: int = 0
    """The runs in the block that has not ended."""
    block_new: int = 0
    block_stable_bad: int = 0
    block_stable: int = 0

    @property
    def value(self) -> float:
        """The evidence: the mean of the bets."""
        return sum(self.products) / len(self.products)

    @classmethod
    def unpacked(cls, state: bytes) -> VersionComparison:
        """Return a comparison that was stored.

        Raises:
            struct.error: it is something else.
        """
        numbers = _STATE.unpack(state)
        return cls(numbers[: len(BETS)], *numbers[len(BETS) :])

    def counting(self, minute: int, *, is_new: bool, is_bad: bool) -> VersionComparison:
        """Return the comparison with one more run."""
        since = self.since or minute
        if is_new:
            return self._replace(
                since=since,
                new_bad=self.new_bad + is_bad,
                new=self.new + 1,
                block_new_bad=self.block_new_bad + is_bad,
                block_new=self.block_new + 1,
            )
        return self._replace(
            since=since,
            stable_bad=self.stable_bad + is_bad,
            stable=self.stable + 1,
            block_stable_bad=self.block_stable_bad + is_bad,
            block_stable=self.block_stable + 1,
        )

    def after_minute(self, threshold: float) -> VersionComparison:
        """Return the comparison after a minute, which ends the block if both versions have runs in it."""
        if self.is_alarm or not (self.block_new and self.block_stable):
            return self
        found = self._betting(self.block_new_bad / self.block_new - self.block_stable_bad / self.block_stable)
        return found._replace(is_alarm=found.value >= threshold)

    def least(self, minutes: int) -> VersionComparison:
        """Return the least evidence after so many unknown minutes: in each only the stable version has failed."""
        found = self
        for _ in range(0 if self.is_alarm else minutes):
            found = found._betting(-1.0)
        return found

    def _betting(self, difference: float) -> VersionComparison:
        products = tuple(
            min(product * (1 + bet * difference), MOST) for bet, product in zip(BETS, self.products, strict=True)
        )
        return self._replace(products=products, block_new_bad=0, block_new=0, block_stable_bad=0, block_stable=0)


class VersionMonitor:
    """A monitor that compares two versions.

    Args:
        name: its name.
        settings: its settings, with `new`, `stable` and `false_alarm`.
    """

    by: Final = None
    """Its series are the versions."""

    def __init__(self, name: str, settings: MonitorSettings) -> None:
        self.name: Final = name
        self.settings: Final = settings
        self.judge: Final = judge_of(settings.of)
        self.evaluator: Final = settings.of.evaluator or settings.of.score
        self.threshold: Final = 1 / (settings.false_alarm or 1)
        self._is_new: Final = attributes_matcher(settings.new)
        self._is_stable: Final = attributes_matcher(settings.stable)
        self._found = VersionComparison()
        self._minute = 0
        self._alarms = 0
        self._before = VersionComparison()
        """The counts of earlier processes, which counters do not show again."""
        self._failures: Final = Failures()

    def place(self, attributes: Attributes) -> SeriesKey | None:
        """Return the version of a run; None if it is of both, or of neither."""
        is_new, is_stable = self._is_new(attributes), self._is_stable(attributes)
        return None if is_new is is_stable else NEW if is_new else STABLE

    def count(self, key: SeriesKey, minute: int, trace_id: bytes, bad_for: Iterable[str] | None) -> SeriesKey:
        """Count a run, as `ObjectiveMonitor` does."""
        self._minute = minute
        self._found = self._found.counting(minute, is_new=key == NEW, is_bad=bad_for is not None)
        if bad_for is not None and key == NEW:
            self._failures.add(trace_id, bad_for)
        return key

    def end(self) -> Iterator[MonitorAlarm]:
        """End the minute, and yield the alarm if it begins with it."""
        before, self._found = self._found, self._found.after_minute(self.threshold)
        if self._found.is_alarm and not before.is_alarm:
            self._alarms += 1
            found = self._found
            yield MonitorAlarm(
                monitor=self.name,
                series=NEW[0],
                minute=self._minute,
                since=found.since,
                bad=found.new_bad,
                counted=found.new,
                stable=(found.stable_bad, found.stable),
                traces=self._failures.last_traces(),
                reasons=self._failures.most_frequent(),
            )

    def set_back(self, minute: int) -> None:
        """Note that the clock was set back to a minute: the first run is not later."""
        self._minute = min(self._minute, minute)
        self._found = self._found._replace(since=min(self._found.since, minute))

    def states(self) -> Iterator[tuple[SeriesKey, SeriesState]]:
        """Yield both versions; the evidence is that of the new one."""
        found, before = self._found, self._before
        share = max(found.value / self.threshold, float(found.is_alarm))
        counts = (found.new - before.new, found.new_bad - before.new_bad)
        yield NEW, SeriesState(share, found.is_alarm, found.since, *counts, self._alarms)
        counts = (found.stable - before.stable, found.stable_bad - before.stable_bad)
        yield STABLE, SeriesState(None, is_alarm=False, since=0, counted=counts[0], bad=counts[1], alarms=0)

    def saved(self) -> Iterator[SavedSeries]:
        """Yield the comparison to be stored."""
        products, *rest = self._found
        traces, reasons = self._failures.traces, self._failures.reasons or {}
        yield SavedSeries(NEW, self._minute, 0, 0, _STATE.pack(*products, *rest), traces, reasons)

    def restore(self, saved: SavedSeries, *, lost_minutes: int) -> None:
        """Take over the comparison of an earlier process, as `ObjectiveMonitor` does."""
        self._found = self._before = VersionComparison.unpacked(saved.packed).least(lost_minutes)
        self._minute = saved.minute
        self._failures.traces, self._failures.reasons = saved.traces, dict(saved.reasons) or None
