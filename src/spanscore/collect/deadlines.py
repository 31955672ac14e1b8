"""The deadlines of open traces, at a cost per trace and not per span."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

from spanscore.collect.held_trace import HeldTrace

_FEW: Final = 64  # so many outdated entries are not worth the work


class Deadlines:
    """One deadline for each open trace.

    A span usually postpones a trace's deadline. Nothing is moved then: the old deadline stays until it has passed, and
    is then set again. A deadline that is set again, or whose trace was closed, leaves an outdated entry in the heap.
    Outdated entries have no spans, and are removed when they outnumber the others, so that many short traces do not
    fill the heap.
    """

    def __init__(self) -> None:
        self.traces: Final[dict[int, HeldTrace]] = {}
        """The open traces by their numbers, from old to new. `OpenTraces` removes a trace that is closed."""
        self._heap: list[tuple[float, int]] = []

    def set(self, trace: HeldTrace, at: float) -> None:
        """Set the deadline of a trace, for the first time or anew."""
        trace.check_at = at
        self.traces[trace.number] = trace
        heappush(self._heap, (at, trace.number))
        if len(self._heap) > 2 * len(self.traces) + _FEW:
            self._heap = [(trace.check_at, number) for number, trace in self.traces.items()]
            heapify(self._heap)

    def first(self) -> HeldTrace | None:
        """Return the trace with the earliest deadline."""
        while self._heap:
            at, number = self._heap[0]
            trace = self.traces.get(number)
            if trace is not None and trace.check_at == at:
                return trace
            heappop(self._heap)
        return None
