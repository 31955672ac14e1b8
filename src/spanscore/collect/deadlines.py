"""When to look at which open trace, at a cost per trace and not per span."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Final

from spanscore.collect.held_trace import HeldTrace

_FEW: Final = 64  # so many outdated entries are not worth the work


class Deadlines:
    """One deadline for each open trace.

    A span usually puts a trace's deadline off. Nothing is moved then: the deadline stands until it has passed, and is
    then set anew. A deadline that is set again, or whose trace was closed, leaves an outdated entry in the heap.
    Outdated entries hold no spans, and are removed when they come to outnumber the others: short traces, however many,
    do not fill the heap.
    """

    def __init__(self) -> None:
        self._traces: dict[int, HeldTrace] = {}
        self._heap: list[tuple[float, int]] = []

    def __iter__(self) -> Iterator[HeldTrace]:
        """Go through the traces, the one opened first first."""
        return iter(self._traces.values())

    def set(self, trace: HeldTrace, at: float) -> None:
        """Set the deadline of a trace, for the first time or anew."""
        trace.check_at = at
        self._traces[trace.number] = trace
        heappush(self._heap, (at, trace.number))
        if len(self._heap) > 2 * len(self._traces) + _FEW:
            self._heap = [(trace.check_at, number) for number, trace in self._traces.items()]
            heapify(self._heap)

    def remove(self, trace: HeldTrace) -> None:
        """Forget a trace that is no longer open."""
        del self._traces[trace.number]

    def next(self) -> float | None:
        """Return the earliest deadline."""
        heap = self._heap
        while heap and self._current(*heap[0]) is None:
            heappop(heap)
        return heap[0][0] if heap else None

    def passed(self, now: float) -> Iterator[HeldTrace]:
        """Go through the traces whose deadline has passed. The caller removes each, or sets its deadline anew."""
        while self._heap and self._heap[0][0] <= now:
            trace = self._current(*heappop(self._heap))
            if trace is not None:
                yield trace

    def _current(self, at: float, number: int) -> HeldTrace | None:
        trace = self._traces.get(number)
        return trace if trace is not None and trace.check_at == at else None
