"""The open traces: by id, in the order in which they were opened, and by the time at which they are due."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from itertools import count
from typing import Final

from spanscore.collect.deadlines import Deadlines
from spanscore.collect.held_trace import HeldTrace
from spanscore.collect.settings import TraceSettings

_PROBATION_SHARE: Final = 0.25


class OpenTraces:
    """Open traces in two segments. A trace is on probation until its second span.

    The order of their opening decides which one makes room for another. Traces on probation are the first to go where
    they take more than a quarter of `num_traces`: a flood of invented trace ids displaces itself, not the traces that
    grow.
    """

    def __init__(self, settings: TraceSettings) -> None:
        # Ordered, because deleting the oldest entry of a plain dict again and again is slow.
        self.probation: Final[OrderedDict[bytes, HeldTrace]] = OrderedDict()
        self.established: Final[OrderedDict[bytes, HeldTrace]] = OrderedDict()
        self.deadlines: Final = Deadlines()
        self.size = 0
        """The size of their spans, in bytes."""
        self._settings: Final = settings
        self._numbers: Final = count(1)

    def __contains__(self, trace_id: bytes) -> bool:
        return trace_id in self.established or trace_id in self.probation

    def __iter__(self) -> Iterator[HeldTrace]:
        """Yield the traces, the oldest first."""
        return iter(self.deadlines.traces.values())

    def __len__(self) -> int:
        return len(self.deadlines.traces)

    def get(self, trace_id: bytes) -> HeldTrace | None:
        """Return an open trace; None if it is not open."""
        return self.established.get(trace_id) or self.probation.get(trace_id)

    def add(self, trace: HeldTrace) -> None:
        """Add a trace that is opened, or opened again."""
        trace.number = next(self._numbers)
        (self.established if trace.revision else self.probation)[trace.trace_id] = trace
        self.size += trace.size
        self.deadlines.set(trace, trace.due_at(self._settings))

    def remove(self, trace: HeldTrace) -> None:
        """Remove a trace that is closed."""
        del self.deadlines.traces[trace.number]
        if self.established.pop(trace.trace_id, None) is None:
            del self.probation[trace.trace_id]
        self.size -= trace.size

    def hasten(self, trace: HeldTrace) -> None:
        """Set the deadline of a trace anew if it is due earlier than before."""
        due_at = trace.due_at(self._settings)
        if due_at < trace.check_at:
            self.deadlines.set(trace, due_at)

    def resumed(self, away: float, now: float) -> None:
        """Make the traces younger by the time in which no span could come, and have them wait anew."""
        for trace in list(self):
            trace.first_at += away
            trace.last_at = now
            if trace.root_ended_at is not None:
                trace.root_ended_at += away
            self.deadlines.set(trace, trace.due_at(self._settings))

    def to_evict(self) -> HeldTrace:
        """Return the trace that makes room for others: the oldest, of those on probation if they are too many."""
        crowded = len(self.probation) > self._settings.num_traces * _PROBATION_SHARE
        segments = [self.probation] if crowded else [self.probation, self.established]
        oldest = [next(iter(segment.values())) for segment in segments if segment]
        return min(oldest, key=lambda trace: trace.number)

    def ids(self) -> list[bytes]:
        """Return the ids of the traces, the oldest first."""
        return [trace.trace_id for trace in self]

    def ended(self) -> list[bytes]:
        """Return the ids of the traces whose root has ended, the oldest first."""
        return [trace.trace_id for trace in self if trace.has_ended]

    def reopened(self) -> list[bytes]:
        """Return the ids of the traces that late spans opened again, the oldest first."""
        return [trace.trace_id for trace in self if trace.revision]
