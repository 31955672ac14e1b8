"""Measurements added up by us, for exporters that ask for the sums now and then."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Final, NamedTuple, TypeAlias

from spanscore.contracts.instruments.instrument import SCORE_INSTRUMENTS, Instrument
from spanscore.contracts.instruments.own import OWN_INSTRUMENTS
from spanscore.metrics.measurements import Measurement, measurements
from spanscore.metrics.series import Labels, Read, SeriesTable, Values, looked_up, name_limits
from spanscore.model import Report

_INSTRUMENTS: Final = (*SCORE_INSTRUMENTS, *OWN_INSTRUMENTS)


class Origin(NamedTuple):
    """The source of a measurement, trace id and span id, to which its exemplar links."""

    trace_id: bytes
    span_id: bytes
    time_s: float


Exemplary: TypeAlias = tuple[Origin, float]
"""The parts of an exemplar. It is made late: making one for each measurement would cost more than all the rest."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The numbers of one series at one moment."""

    total: float
    counts: tuple[int, ...]
    """Of a histogram: measurements in each bucket, the last one without an upper bound."""
    origins: tuple[Exemplary | None, ...]
    """The latest measurement; of a histogram, that of each bucket."""


class Collected(NamedTuple):
    """One metric at one moment."""

    instrument: Instrument
    series: Mapping[Labels, Snapshot]
    numbers: Mapping[Labels, float]
    """Numbers that a counter or a gauge looked up."""


class Accumulation:
    """Adds measurements up.

    Counters and histograms of libraries cost ten times as much for each measurement. Measurements may come from any
    thread, and be collected on any other.
    """

    def __init__(self) -> None:
        limits = name_limits(time.monotonic)
        self._tables: Final[dict[str, SeriesTable[_Series]]] = {
            each.name: SeriesTable(each, _Series, limits) for each in _INSTRUMENTS
        }
        self._reads: Final[dict[str, Read]] = {}
        self._lock: Final = Lock()  # guards the tables: no reader must see half of a measurement

    def record(self, instrument: Instrument, value: float, values: Values = (), origin: Origin | None = None) -> None:
        """Add a measurement to a counter or a histogram."""
        self.record_all([(instrument, value, values)], origin)

    def record_all(self, measured: Iterable[Measurement], origin: Origin | None) -> None:
        """Add the measurements of one trajectory atomically: a collection sees all of them, or none."""
        tables = self._tables
        with self._lock:
            for instrument, value, values in measured:
                series = tables[instrument.name][values]
                series.total += value
                bucket = 0
                if boundaries := instrument.boundaries:
                    bucket = bisect_left(boundaries, value)
                    series.counts[bucket] += 1
                if origin is not None and (value or boundaries):
                    series.origins[bucket] = (origin, value)

    def add(self, report: Report) -> None:
        """Add the measurements of a report. They have no exemplars if no backend has its trace."""
        run = report.trajectory
        origin = None if report.dropped else Origin(run.trace_id, run.root_span_id, time.time())
        self.record_all(measurements(report), origin)

    def observe(self, instrument: Instrument, read: Read) -> None:
        """Set the callback that returns a counter's or a gauge's numbers at collection; it replaces an earlier one."""
        self._reads[instrument.name] = read

    def collected(self) -> Iterator[Collected]:
        """Yield every metric, also those without any numbers yet."""
        for instrument in _INSTRUMENTS:
            with self._lock:
                series = {
                    labels: Snapshot(each.total, tuple(each.counts), tuple(each.origins))
                    for labels, each in self._tables[instrument.name].series.items()
                }
            yield Collected(instrument, series, looked_up(self._reads.get(instrument.name, dict)))


class _Series:
    """A sum, or a histogram: a sum has one bucket, in which nothing is counted."""

    __slots__ = ("counts", "origins", "total")

    def __init__(self, instrument: Instrument, _: Labels) -> None:
        buckets = len(instrument.boundaries) + 1
        self.total = 0.0
        self.counts = [0] * buckets
        self.origins: list[Exemplary | None] = [None] * buckets
