"""How many replicas a load needs, by the figures of one process: what `bench.scaling` works out and writes down."""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from statistics import fmean
from typing import Final
from zlib import crc32

from spanscore.collect.settings import TraceSettings

SPANS_PER_TRACE: Final = 20
BYTES_PER_SPAN: Final = 2_300
"""As sent, by `bench.workload`."""

GIB: Final = 2**30
STORAGE_BYTES: Final = GIB
"""The default of `storage.max_size`."""
MEMORY_BYTES: Final = GIB
"""What deploy/kubernetes lets a replica have."""

_BUSY: Final = 0.7
"""Of a core, at the busiest replica: the rest is for bursts, and for the share of a replica that is away."""
_MINUTE_S: Final = 60
_SAMPLE: Final = 100_000
_RING_SIZE: Final = 36_000
_RING_POINTS: Final = 100
_PARTITIONS_PER_REPLICA: Final = 4
_SEGMENT_BYTES: Final = STORAGE_BYTES // 16
"""What is written to a file of the storage before it can go; it goes when all of its traces are scored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What was measured of one process."""

    us_per_span: float
    """CPU time of `spanscore serve`, from the request to the score, with `durability: crash`."""
    us_per_span_of_collector: float | None
    """CPU time of the Collector that receives spans and spreads them; None where there was none."""
    base_bytes: float
    """Memory of a process that holds nothing."""
    bytes_per_open_span: float
    counted_per_open_span: float
    """What `max_bytes` is compared with, which is more than what a span takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a load needs."""

    spans_per_s: int
    trace_s: float
    replicas: int
    busiest: float
    """The busiest replica's share of a core."""
    skew: float
    """The busiest replica's load, with 1 for the mean."""
    open_traces: float
    """At the busiest replica."""
    memory: float
    """At the busiest replica, in bytes."""
    storage: float
    """At the busiest replica, in bytes."""
    cores: float
    """Of all replicas and Collectors together, as far as they are used."""
    partitions: int


def need(figures: Figures, spans_per_s: int, trace_s: float) -> Need:
    """Return how many replicas keep the busiest one below its share of a core, and what they then hold."""
    cost = spans_per_s * figures.us_per_span / 1e6
    candidates = ((replicas, _skew(replicas)) for replicas in count(max(1, math.ceil(cost / _BUSY))))
    replicas, skew = next((replicas, skew) for replicas, skew in candidates if cost / replicas * skew <= _BUSY)
    rate = spans_per_s / replicas * skew
    collector = spans_per_s * (figures.us_per_span_of_collector or 0) / 1e6
    return Need(
        spans_per_s=spans_per_s,
        trace_s=trace_s,
        replicas=replicas,
        busiest=cost / replicas * skew,
        skew=skew,
        open_traces=rate / SPANS_PER_TRACE * _open_s(trace_s),
        memory=figures.base_bytes + _closed_bytes(figures) + rate * _held_s(trace_s) * figures.bytes_per_open_span,
        storage=rate * _open_s(trace_s) * BYTES_PER_SPAN + _SEGMENT_BYTES,
        cores=cost + collector,
        partitions=_PARTITIONS_PER_REPLICA * replicas,
    )


def limits(figures: Figures, trace_s: float) -> dict[str, float]:
    """Return at how many spans a second one replica comes to each of its limits, with the settings as shipped."""
    memory = MEMORY_BYTES - figures.base_bytes - _closed_bytes(figures)
    return {
        "one core": 1e6 / figures.us_per_span,
        "`num_traces`": TraceSettings().num_traces * SPANS_PER_TRACE / _open_s(trace_s),
        "`max_bytes`": TraceSettings().max_bytes / (_held_s(trace_s) * figures.counted_per_open_span),
        "memory": memory / (_held_s(trace_s) * figures.bytes_per_open_span),
        "`storage.max_size`": (STORAGE_BYTES - _SEGMENT_BYTES) / (_open_s(trace_s) * BYTES_PER_SPAN),
    }


def needs_table(found: Sequence[Need]) -> Iterator[str]:
    """Yield the lines of the table of what loads need."""
    yield (
        "| spans/s | a trace lasts | replicas | busiest: of a core, of the mean | open traces there | memory there "
        "| storage there | cores in all | memory in all | Kafka partitions, MB/s in each |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for each in found:
        in_partition = each.spans_per_s * BYTES_PER_SPAN / each.partitions / 1e6
        cells = (
            f"{each.spans_per_s:,}",
            _duration(each.trace_s),
            f"{each.replicas}",
            f"{each.busiest:.0%}, {each.skew:.2f}x",
            f"{each.open_traces:,.0f}",
            f"{each.memory / GIB:.1f} GiB",
            f"{each.storage / GIB:.1f} GiB",
            f"{each.cores:.1f}",
            f"{each.memory * each.replicas / GIB:.1f} GiB",
            f"{each.partitions}, {in_partition:.1f}",
        )
        yield f"| {' | '.join(cells)} |"


def limits_table(figures: Figures, durations_s: Sequence[float]) -> Iterator[str]:
    """Yield the lines of the table of what breaks first."""
    rows = [(trace_s, limits(figures, trace_s)) for trace_s in durations_s]
    names = list(rows[0][1])
    yield f"| a trace lasts | {' | '.join(names)} | first |"
    yield "| --- |" + " --- |" * (len(names) + 1)
    for trace_s, found in rows:
        first = min(found, key=found.__getitem__)
        cells = (_duration(trace_s), *(f"{value:,.0f}" for value in found.values()), first)
        yield f"| {' | '.join(cells)} |"


def _open_s(trace_s: float) -> float:
    """Return how long a trace is open: as long as it lasts, and the wait for late spans."""
    return trace_s + 2.0


def _held_s(trace_s: float) -> float:
    """Return how long a span is held on average: they come over all of the trace's time."""
    return trace_s / 2 + 2.0


def _closed_bytes(figures: Figures) -> float:
    """Return what the spans of closed traces take, which are held in case that late ones come."""
    return TraceSettings().keep_closed_spans * figures.bytes_per_open_span


def _skew(replicas: int) -> float:
    """Return the busiest replica's share of many traces of different sizes, with 1 for the mean.

    The replica of a trace is found as the Collector finds it: on a ring, with a hundred points for each address.
    """
    points: dict[int, int] = {}
    for replica in range(replicas):
        address = f"10.0.{replica // 250}.{replica % 250 + 1}:4317".encode()
        for point in range(_RING_POINTS):
            points.setdefault(crc32(address + point.to_bytes(4, "little")) % _RING_SIZE, replica)
    places = sorted(points)
    rng = random.Random(replicas)  # noqa: S311 - a load, not a secret
    spans = Counter[int](dict.fromkeys(range(replicas), 0))
    for _ in range(_SAMPLE):
        at = bisect_left(places, crc32(rng.randbytes(16)) % _RING_SIZE)
        spans[points[places[at % len(places)]]] += round(rng.lognormvariate(2.5, 1.0)) + 1
    return max(spans.values()) / fmean(spans.values())


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 2 * _MINUTE_S else f"{seconds / _MINUTE_S:.0f} min"
