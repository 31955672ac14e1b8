from __future__ import annotations

import random
import tracemalloc

import pytest

from spanscore.collect.deadlines import Deadlines
from spanscore.collect.held_trace import HeldTrace


def held(number: int) -> HeldTrace:
    """A trace that was opened as the n-th."""
    return HeldTrace(number.to_bytes(16), number, 0, 0, {})


def test_the_earliest_comes_first() -> None:
    """However often deadlines are set anew and traces closed, the next one is the earliest of those that stand."""
    chance = random.Random(0)
    traces = [held(number) for number in range(20)]
    deadlines, stands = Deadlines(), dict[int, int]()
    for at in chance.choices(range(1_000), k=2_000):
        trace = chance.choice(traces)
        if trace.number in stands and not at % 3:
            deadlines.remove(trace)
            del stands[trace.number]
        else:
            deadlines.set(trace, at)
            stands[trace.number] = at

        assert min(stands.values(), default=None) == deadlines.next()
    passed = []
    for trace in deadlines.passed(500):
        passed.append(stands.pop(trace.number))
        deadlines.remove(trace)
    assert passed
    assert sorted(passed) == passed
    assert not any(at <= 500 for at in stands.values())


def test_one_that_has_come_has_passed() -> None:
    """A deadline has passed at its moment, and not before."""
    deadlines, trace = Deadlines(), held(1)
    deadlines.set(trace, 10)

    assert [] == [*deadlines.passed(9)]
    assert [trace] == [*deadlines.passed(10)]


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
            deadlines.remove(short)
            if at % 1_000 == 0:
                sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()

    assert max(sizes) < 2.5 * alone + 20_000
