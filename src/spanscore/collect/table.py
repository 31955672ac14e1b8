"""Joins spans to traces: spans in, closed traces out.

Pure: the caller passes the time, in seconds of a monotonic clock. The times inside the spans are ignored, so that a
sender's wrong clock closes nothing.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from itertools import repeat
from typing import Final

from spanscore.collect.closings import Closings
from spanscore.collect.counts import Counts
from spanscore.collect.held_trace import DropReason, HeldTrace, SpanKey
from spanscore.collect.open_traces import OpenTraces
from spanscore.collect.remembered import ClosedTraces, LateReason
from spanscore.collect.settings import TraceSettings
from spanscore.model import DROPPED, EMPTY, REFUSED, CloseReason, SharedAttributes, Span, Trace

_PUT_OFF_S: Final = 60.0
"""The longest time for which a trace that is due stays open."""


class TraceTable:
    """Closes each trace once: `decision_delay` after its root has ended, so that children can arrive, or at a limit.

    Every method that takes the time returns the traces that it closed, in the order in which they were due. A time
    before the last one counts as the last one. The table is not thread-safe: it belongs to one owner.

    One call of `add` is one instant. A trace that is due closes after all spans of the call are in, so that the order
    of spans that arrive together makes no difference. Where many may be due, they can be closed a few at a time: until
    then they are open, and a span that arrives joins its trace, which may put off when that is due.

    A span whose trace is closed opens the trace again while its spans are held (`keep_closed_s`); the trace then closes
    once more, with all its spans and the next revision. Otherwise the late span is only counted. The id of a closed
    trace is not taken for a new trace as long as it is remembered. Whether the run of a closed trace pauses is known
    only to its reader, who then calls `past.hold`: the trace may open again for `pause_wait_s`, as an open trace like
    any other, of its age at that moment.

    A refused span is replaced by a stand-in of kind `REFUSED`. It is no span of its trace, which closes with the number
    of them; one that comes late opens it again as a span does. Without any span it waits for one up to
    `max_trace_age_s`, and closes as a trace without spans.

    When `num_traces` are open, the next one closes the oldest, as `OpenTraces` has it.

    Args:
        settings: the delays and bounds.
        is_root: returns whether the end of a span completes its trace. Does not raise. May be replaced later.
    """

    def __init__(self, settings: TraceSettings, is_root: Callable[[Span], bool]) -> None:
        self._settings = settings
        self.is_root = is_root
        self._now = -math.inf
        self.open: Final = OpenTraces(settings)
        self.past: Final = ClosedTraces(settings)
        self._counts = Counts()
        self._closings: Final = Closings(settings, self.open, self.past, self._counts)
        self.evicted: Final = self._closings.evicted
        self.too_late: Final[list[Span]] = []
        """Spans whose trace is closed and no longer kept, since the last read."""
        self.put_off: Callable[[bytes, float], float] | None = None
        """Returns how long to keep a trace open that is due, by its id and the seconds that it waited for another span.
        For a caller that knows of spans that it has not read."""
        self.ended: deque[tuple[float, bytes]] = deque(maxlen=0)
        """When traces are due whose root has ended, and their ids, for a caller that gives another deque."""

    def add(
        self, spans: Collection[Span], now: float, sizes: Iterable[int] | None = None, *, close_due: bool = True
    ) -> list[Trace]:
        """Add spans that arrived together, of any traces and in any order.

        Args:
            spans: the spans.
            now: the time of their arrival.
            sizes: the size of each in bytes, for `max_trace_bytes` and `max_bytes`; None if unknown.
            close_due: close the traces that are due too; if not, `expire` or `expire_next` is to be called.
        """
        self._now = now = max(self._now, now)
        established, is_root = self.open.established, self.is_root
        span_limit, max_trace_bytes = self._settings.span_limit, self._settings.max_trace_bytes
        added = added_bytes = 0
        for span, size in zip(spans, repeat(0) if sizes is None else sizes, strict=sizes is not None):
            trace = (span.kind != REFUSED and established.get(span.trace_id)) or self._admit(span, size)
            if trace is None:
                continue
            held, resource = trace.spans, span.resource
            if resource is not trace.resource and isinstance(resource, SharedAttributes):
                size += resource.size  # noqa: PLW2901 - once for each trace: it may be the last to keep it
            if (len(held) >= span_limit or trace.size + size > max_trace_bytes) and held:
                self._close_full(trace, span)
                continue
            key: SpanKey = span.span_id
            if key in held:
                if (place := self._place(trace, span)) is None:
                    continue
                key = place
                self._counts.conflicts += 1
            held[key] = span
            trace.resource = resource
            trace.size += size
            added += 1
            added_bytes += size
            trace.last_at = now
            if trace.awaited:
                trace.awaited.discard(span.span_id)
                self.open.hasten(trace)
            if span.end_ns and is_root(span):
                trace.root_ended_at = now
                self.open.hasten(trace)
                self.ended.append((trace.check_at, trace.trace_id))
        self._counts.received += len(spans)
        self._counts.live += added
        self.open.size += added_bytes
        self._closings.shed(now)
        return self._close_due() if close_due else self._closings.taken()

    def started(self, trace_id: bytes, span_id: bytes, now: float) -> list[Trace]:
        """Announce a span that will be added when it has ended; only a front door inside the process can.

        A trace then waits for its announced spans: up to `trace_timeout_s` after its last span where the root has
        ended, up to `max_trace_age_s` where it has not. Nothing needs to be announced.
        """
        self._now = now = max(self._now, now)
        trace = self.open.get(trace_id)
        if trace is None and trace_id not in self.past:
            trace = self._open(HeldTrace(trace_id, now, now, EMPTY))
        if trace is not None:
            trace.awaited = trace.awaited or set()
            if len(trace.awaited) < self._settings.span_limit:
                trace.awaited.add(span_id)
            trace.last_at = now
        return self._close_due()

    def expire(self, now: float) -> list[Trace]:
        """Close the traces that are due."""
        self._now = now = max(self._now, now)
        while self.past.forget_due(now):
            pass
        return self._close_due()

    def expire_next(self, now: float) -> list[Trace] | None:
        """Do one step of `expire`: look at one trace, which may not be due yet, or at all. None if nothing is to do."""
        self._now = now = max(self._now, now)
        return self._closings.taken() if self.past.forget_due(now) or self._close_first() else None

    def next_due(self) -> float | None:
        """Return when to call `expire` next: never later than a trace is due; None when no trace is open."""
        trace = self.open.deadlines.first()
        return None if trace is None else trace.check_at

    def close(self, trace_id: bytes, reason: CloseReason = CloseReason.SHUTDOWN) -> Trace | None:
        """Close a trace that the caller knows to be complete, or has no room for; None when it is not open."""
        trace = self.open.get(trace_id)
        if trace is not None:
            self._closings.close(trace, reason, self._now)
        return next(iter(self._closings.taken()), None)

    def give_up(self, trace_ids: Iterable[bytes]) -> None:
        """Release open traces without closing them; another process closes them.

        Afterwards they are unknown, except for traces that were closed before: further spans of these are late.
        """
        for trace in filter(None, map(self.open.get, trace_ids)):
            self.open.remove(trace)
            self._counts.live -= trace.unscored
            self._counts.dropped[DropReason.HANDED_OVER] += trace.unscored

    def drain(self) -> list[Trace]:
        """Close every trace, the oldest first, because nothing more comes.

        The reason is `root_ended` where the root has ended, else `shutdown`.
        """
        for trace in list(self.open):
            self._closings.close(trace, CloseReason.SHUTDOWN, self._now)
        return self._closings.taken()

    def cut_short(self, trace_ids: Iterable[bytes] | None = None) -> list[Trace]:
        """Close open traces before they are due, all of them or only these, though further spans may be on their way.

        The reason is `shutdown`, also where the root has ended.
        """
        chosen = list(self.open) if trace_ids is None else map(self.open.get, trace_ids)
        for trace in filter(None, chosen):
            self._closings.close(trace, CloseReason.SHUTDOWN, self._now, cut_short=True)
        return self._closings.taken()

    def resumed(self, now: float, since: float = -math.inf) -> None:
        """Learn that no span could come since then, or since the last call if that was later.

        Open traces are not older for it, and wait anew.
        """
        away, self._now = max(0.0, now - max(since, self._now)), max(now, self._now)
        self.open.resumed(away, self._now)

    def remember(self, trace_id: bytes) -> None:
        """Take a trace for closed, because it was before a restart."""
        if trace_id not in self.past.ids:
            self.past.ids.add(trace_id)

    def counts(self) -> Counts:
        """Return the counts of all spans and traces so far, by outcome."""
        counts = self._counts
        return replace(
            counts,
            late=counts.late.copy(),
            dropped=counts.dropped.copy(),
            closed=counts.closed.copy(),
            given_up=self.past.gave_up.copy(),
            open_traces=len(self.open),
            held_spans=self.past.spans,
            held_bytes=self._closings.held_bytes,
        )

    def _admit(self, span: Span, size: int) -> HeldTrace | None:
        """Return the trace for a span of a trace that is not established; None where the span is counted and gone."""
        if span.kind == REFUSED:
            self._note_refused(span, size)
            return None
        trace = self.open.probation.get(span.trace_id)
        if trace is None:
            opened = self._opened(span, size)
            if isinstance(opened, HeldTrace):
                return opened
            if isinstance(opened, LateReason):
                self._counts.late[opened] += 1
                if opened is LateReason.NOT_KEPT:
                    self.too_late.append(span)
            else:
                self._counts.dropped[opened] += 1
            return None
        if span.span_id in trace.spans and self._place(trace, span) is None:
            return None
        if not trace.spans and trace.refused:
            self.open.deadlines.set(trace, self._now)
        if trace.spans:
            self.open.established[span.trace_id] = self.open.probation.pop(span.trace_id)
        return trace

    def _opened(self, span: Span, size: int) -> HeldTrace | LateReason | DropReason:
        """Return the trace that a span opens, or opens again, or what becomes of a span that does not."""
        if span.trace_id not in self.past:
            return self._open(HeldTrace(span.trace_id, self._now, self._now, EMPTY))
        late = self.past.recall(span, size, self._now)
        return self._open(late) if isinstance(late, HeldTrace) else late

    def _note_refused(self, span: Span, size: int) -> None:
        """Note that a span of a trace was refused; more than fit into a trace make no difference."""
        self._counts.received -= 1  # the receiver that refused it has counted it
        trace = self.open.get(span.trace_id) or self._opened(span, size)
        if not isinstance(trace, HeldTrace) or isinstance(trace.place(span), DropReason):
            return
        trace.refused = trace.refused or set()
        if len(trace.refused) < self._settings.span_limit:
            trace.refused.add(span.span_id)
            trace.dropped += span.name == DROPPED
            trace.size += size
            self.open.size += size
        trace.last_at = self._now

    def _place(self, trace: HeldTrace, span: Span) -> SpanKey | None:
        place = trace.place(span)
        if isinstance(place, DropReason):
            self._counts.dropped[place] += 1
            return None
        return place

    def _open(self, trace: HeldTrace) -> HeldTrace:
        if len(self.open) >= self._settings.num_traces:
            self._closings.evict("num_traces", self._now)
        self.open.add(trace)
        return trace

    def _close_due(self) -> list[Trace]:
        """Close the traces that are due, and return all that were closed."""
        while self._close_first():
            pass
        return self._closings.taken()

    def _close_first(self) -> bool:
        """Look at the trace that may be due first, close it if it is due, and return whether there is such a trace."""
        trace = self.open.deadlines.first()
        if trace is None or trace.check_at > self._now:
            return False
        due_at = trace.due_at(self._settings)
        if due_at > trace.check_at:
            self.open.deadlines.set(trace, due_at)
        elif self.put_off is not None and (put_off_to := self._put_off(trace, due_at, self.put_off)) > self._now:
            self.open.deadlines.set(trace, put_off_to)
        else:
            self._closings.close(trace, CloseReason.TIMED_OUT, self._now)
        return True

    def _put_off(self, trace: HeldTrace, due_at: float, put_off: Callable[[bytes, float], float]) -> float:
        """Return when to look again at a trace that is due, or a time that has come."""
        latest = min(due_at + _PUT_OFF_S, trace.first_at + self._settings.max_trace_age_s)
        return min(latest, self._now + put_off(trace.trace_id, due_at - trace.last_at))

    def _close_full(self, trace: HeldTrace, span: Span) -> None:
        if self._place(trace, span) is None:
            return
        self._counts.late[LateReason.OVER_LIMIT] += 1
        trace.over_limit = True
        full = len(trace.spans) >= self._settings.span_limit
        reason = CloseReason.SPAN_LIMIT if full else CloseReason.SIZE_LIMIT
        self._closings.close(trace, reason, self._now, beyond=span)
