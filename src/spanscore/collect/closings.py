"""Closings of open traces, also to make room for others."""

from __future__ import annotations

from collections import Counter
from typing import Final

from spanscore.collect.counts import Counts
from spanscore.collect.held_trace import HeldTrace
from spanscore.collect.open_traces import OpenTraces
from spanscore.collect.remembered import ClosedTraces, LateReason
from spanscore.collect.settings import TraceSettings
from spanscore.model import CloseReason, Span, Trace


class Closings:
    """Closes open traces, counts them, and passes their spans to the memory of closed ones.

    Args:
        settings: the bounds.
        open_traces: the open traces.
        past: the memory of closed traces.
        counts: the counts of spans and traces.
    """

    def __init__(self, settings: TraceSettings, open_traces: OpenTraces, past: ClosedTraces, counts: Counts) -> None:
        self.evicted: Final[Counter[str]] = Counter()
        """The number of open traces that were evicted, by the setting that is the limit, since the last read."""
        self._settings: Final = settings
        self._open: Final = open_traces
        self._past: Final = past
        self._counts: Final = counts
        self._closed: list[Trace] = []

    @property
    def held_bytes(self) -> int:
        """Size of all spans in memory, of open and of closed traces."""
        return self._open.size + self._past.size + self._past.pause_size

    def taken(self) -> list[Trace]:
        """Return the traces that were closed since the last call."""
        closed, self._closed = self._closed, []
        return closed

    def shed(self, now: float) -> None:
        """Evict traces until their spans take `max_bytes` at most: closed ones first, then the oldest open ones."""
        while self.held_bytes > self._settings.max_bytes:
            if not self._past.forget_oldest():
                self.evict("max_bytes", now)

    def evict(self, limit: str, now: float) -> None:
        """Close the open trace that makes room for others, because of a limit."""
        trace = self._open.to_evict()
        if trace.spans:
            self.evicted[limit] += 1
        self.close(trace, CloseReason.EVICTED, now)

    def close(
        self,
        trace: HeldTrace,
        reason: CloseReason,
        now: float,
        *,
        cut_short: bool = False,
        beyond: Span | None = None,
    ) -> None:
        """Close an open trace; see `HeldTrace.closed`."""
        closed = trace.closed(reason, cut_short=cut_short, beyond=beyond)
        added = trace.unscored
        self._open.remove(trace)
        self._counts.live -= added
        if trace.spans or trace.refused:  # else a span was only announced, and nothing of it is reported
            self._closed.append(closed)
        if not trace.spans:  # nothing that could be late
            return
        if trace.revision:
            self._counts.revisions += 1
            self._counts.late[LateReason.RESCORED] += added
        else:
            self._counts.closed[closed.close_reason] += 1
            self._counts.in_closed += added
        self._past.add(trace, now)
