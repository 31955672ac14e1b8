"""Measurements added up by us, for exporters that ask for the sums now and then."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Final, NamedTuple, TypeAlias

from spanscore.instruments.instrument import SCORE_INSTRUMENTS, Instrument, InstrumentKind
from spanscore.instruments.own import OWN_INSTRUMENTS
from spanscore.metrics.measurements import Measurement
from spanscore.metrics.series import Labels, Read, SeriesTable, Values, looked_up, name_limits
from spanscore.model import Trajectory


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a measurement comes from: the exemplar that leads from a metric to a trace."""

    labels: dict[str, str]
    time_s: float

    @classmethod
    def of(cls, trajectory: Trajectory) -> Origin:
        """Return the scored trace and the span in it."""
        ids = {"trace_id": trajectory.trace_id.hex(), "span_id": trajectory.root_span_id.hex()}
        return cls(ids, time.time())


Exemplary: TypeAlias = tuple[Origin, float]
"""What an exemplar is made of; making one for every measurement would cost more than all the rest."""


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
    """What was looked up, of a counter or a gauge."""


class Accumulation:
    """Adds measurements up.

    Counters and histograms of libraries cost ten times as much for each measurement. Measurements may come from any
    thread, and be collected on any other.
    """

    def __init__(self) -> None:
        limits = name_limits()
        self._families: Final = {
            instrument.name: _Family(instrument, limits) for instrument in (*SCORE_INSTRUMENTS, *OWN_INSTRUMENTS)
        }
        self._lock: Final = Lock()  # guards the families: nobody must see half of a measurement

    def record(self, instrument: Instrument, value: float, values: Values = (), origin: Origin | None = None) -> None:
        """Add a measurement to a counter or a histogram."""
        with self._lock:
            self._families[instrument.name].table.at(values).add(value, origin)

    def record_all(self, measurements: Iterable[Measurement], origin: Origin) -> None:
        """Add the measurements of one trajectory: whoever collects sees all of them, or none."""
        families = self._families
        with self._lock:
            for instrument, value, values in measurements:
                families[instrument.name].table.at(values).add(value, origin)

    def observe(self, instrument: Instrument, read: Read) -> None:
        """Have a counter's or a gauge's numbers looked up when they are asked for, in place of those before."""
        self._families[instrument.name].read = read

    def collected(self) -> Iterator[Collected]:
        """Yield every metric, also those without any numbers yet."""
        for family in self._families.values():
            with self._lock:
                series = {labels: series.snapshot() for labels, series in family.table.series.items()}
            yield Collected(family.instrument, series, looked_up(family.read))


class _Sum:
    __slots__ = ("origin", "value")

    def __init__(self) -> None:
        self.value = 0.0
        self.origin: Exemplary | None = None

    def add(self, value: float, origin: Origin | None) -> None:
        self.value += value
        if origin is not None and value:
            self.origin = (origin, value)

    def snapshot(self) -> Snapshot:
        return Snapshot(self.value, (), (self.origin,))


class _Histogram:
    __slots__ = ("boundaries", "counts", "origins", "total")

    def __init__(self, boundaries: tuple[float, ...]) -> None:
        self.boundaries = boundaries
        self.counts = [0] * (len(boundaries) + 1)
        self.origins: list[Exemplary | None] = [None] * (len(boundaries) + 1)
        self.total = 0.0

    def add(self, value: float, origin: Origin | None) -> None:
        bucket = bisect_left(self.boundaries, value)
        self.counts[bucket] += 1
        self.total += value
        if origin is not None:
            self.origins[bucket] = (origin, value)

    def snapshot(self) -> Snapshot:
        return Snapshot(self.total, tuple(self.counts), tuple(self.origins))


class _Family:
    """The series of one metric, and where its other numbers are looked up."""

    def __init__(self, instrument: Instrument, limits: Mapping[str, Callable[[str], str]]) -> None:
        self.instrument: Final = instrument
        self.table: Final[SeriesTable[_Sum | _Histogram]] = SeriesTable(instrument, self._new, limits)
        self.read: Read = dict

    def _new(self, labels: Labels) -> _Sum | _Histogram:
        del labels
        is_histogram = self.instrument.kind is InstrumentKind.HISTOGRAM
        return _Histogram(self.instrument.boundaries) if is_histogram else _Sum()
