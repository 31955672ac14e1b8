"""CPU time of functions that are measured in turn, so that what disturbs one disturbs all."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Final, TypeAlias

Clock: TypeAlias = Callable[[], float]
Samples: TypeAlias = dict[str, list[float]]
"""Seconds by name, one for each round."""

_COLLECT_AFTER: Final = (200_000, 20, 100)


def collect_rarely() -> None:
    """Set the garbage collector as `spanscore serve` does."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)


def interleaved(
    functions: Mapping[str, Callable[[], object]], rounds: int, clock: Clock = time.process_time
) -> Samples:
    """Call each function once a round, after one round that does not count."""
    samples: Samples = {name: [] for name in functions}
    for number in range(rounds + 1):
        for name, function in functions.items():
            gc.collect()
            began = clock()
            function()
            seconds = clock() - began
            if number:
                samples[name].append(seconds)
    return samples


def ratio(samples: Samples, name: str, to: str) -> float:
    """Return the median, over the rounds, of what one took for each second of the other."""
    return median(own / other for own, other in zip(samples[name], samples[to], strict=True))


def typical(samples: Samples, name: str, count: int) -> float:
    """Return the median time for each of `count` things that the function did, in microseconds."""
    return median(samples[name]) / count * 1e6


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the nearest rank."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]
