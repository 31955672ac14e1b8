from __future__ import annotations

import random
import tracemalloc

import pytest

from spanscore.collect.deadlines import Deadlines
from spanscore.collect.held_trace import HeldTrace


def held(number: int) -> HeldTrace:
    """A trace that was opened as the n-th."""
    return HeldTrace(number.to_bytes(16), 0, 0, {}, number)


def test_the_earliest_comes_first() -> None:
    """However often deadlines are set anew and traces closed, the next one is the earliest of those that stand."""
    chance = random.Random(0)
    traces = [held(number) for number in range(20)]
    deadlines, stands = Deadlines(), dict[int, int]()
    for at in chance.choices(range(1_000), k=2_000):
        trace = chance.choice(traces)
        if trace.number in stands and not at % 3:
            del deadlines.traces[trace.number]
            del stands[trace.number]
        else:
            deadlines.set(trace, at)
            stands[trace.number] = at

        first = deadlines.first()
        assert min(stands.values(), default=None) == (None if first is None else first.check_at)
    passed = []
    while (first := deadlines.first()) is not None:
        passed.append(stands.pop(first.number))
        del deadlines.traces[first.number]
    assert passed
    assert sorted(passed) == passed
    assert not stands


@pytest.mark.parametrize("open_traces", [0, 10_000])
def test_short_traces_do_not_pile_up(open_traces: int) -> None:
    """What is kept of closed traces takes hardly more room than the open ones, however many there were."""
    traces, short = [held(number) for number in range(open_traces)], held(open_traces)
    tracemalloc.start()
    try:
        deadlines = Deadlines()
        for trace in traces:
            deadlines.set(trace, 1e6 + trace.number)
        alone, _ = tracemalloc.get_traced_memory()
        sizes = []
        for at in range(30_000):
            deadlines.set(short, 2e6 + at)
            del deadlines.traces[short.number]
            if at % 1_000 == 0:
                sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()

    assert max(sizes) < 2.5 * alone + 20_000
