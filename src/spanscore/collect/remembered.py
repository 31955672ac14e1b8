"""The memory of closed traces: spans of the latest ones, ids of many more."""

from __future__ import annotations

import enum
import math
from collections import Counter, OrderedDict
from typing import Final

from spanscore.collect.held_trace import DropReason, HeldTrace
from spanscore.collect.settings import TraceSettings
from spanscore.model import EMPTY, Span

_BUCKET_BYTES: Final = 64 * 8
_IDS_PER_BUCKET: Final = 32  # on average; twice as many fit


class LateReason(enum.StrEnum):
    """The outcome of a span that arrived after its trace was closed."""

    RESCORED = "rescored"
    """The span is in a later revision of the trace."""
    IGNORED = "ignored"
    """`late_spans` is "ignore"."""
    OVER_LIMIT = "over_limit"
    """The trace has reached its limit of spans or bytes."""
    NOT_KEPT = "not_kept"
    """The trace's other spans are no longer kept."""


class GivenUp(enum.StrEnum):
    """Why the spans of a run that pauses are no longer held."""

    EXPIRED = "expired"
    """None came for `pause_wait`."""
    NO_ROOM = "no_room"
    """`pause_bytes` or `max_bytes` was reached."""


class ClosedTraces:
    """Recognises late spans.

    The spans of recently closed traces are kept, so that a late span can be distinguished from a repeated one, and
    scored together with the others; those of runs that pause are kept longer, and apart from others. Of older traces
    only the id is known. All three memories are bounded by the settings.
    """

    def __init__(self, settings: TraceSettings) -> None:
        self.spans = 0
        """The number of kept spans."""
        self.size = 0
        """The size of the kept spans, in bytes, without those of runs that pause."""
        self.pause_size = 0
        """The size of the kept spans of runs that pause, in bytes."""
        self.given_up: Final[list[bytes]] = []
        """The traces with a run that pauses whose spans were evicted, since the last read."""
        self.gave_up: Final[Counter[GivenUp]] = Counter()
        """The number of these traces so far, by reason."""
        self._settings = settings
        self._holds = settings.late_spans == "rescore"
        # Ordered, because deleting the oldest entry of a plain dict again and again is slow.
        self._held: OrderedDict[bytes, HeldTrace] = OrderedDict()
        self._paused: OrderedDict[bytes, HeldTrace] = OrderedDict()
        self.ids: Final = RememberedIds(settings.remember_traces)

    def __contains__(self, trace_id: bytes) -> bool:
        return trace_id in self._held or trace_id in self._paused or trace_id in self.ids

    def add(self, trace: HeldTrace, now: float) -> None:
        """Remember a trace that was just closed, and keep its spans if it may open again."""
        if not trace.revision or trace.trace_id not in self.ids:
            self.ids.add(trace.trace_id)
        if not self._holds or trace.revision - trace.continued >= self._settings.max_revisions:
            return
        if trace.over_limit:
            trace.spans, trace.size = {}, 0
        trace.scored = len(trace.spans) or 1  # the mark that a limit was reached takes up room, too
        trace.awaited, trace.resource, trace.closed_at = None, EMPTY, now
        self._held[trace.trace_id] = trace
        self.spans += trace.scored
        self.size += trace.size
        while self.spans > self._settings.keep_closed_spans:
            self._forget(self._held, GivenUp.NO_ROOM)

    def hold(self, trace_id: bytes, revision: int) -> None:
        """Keep the spans of a trace for up to `pause_wait_s`, because its run pauses in that revision, its last one."""
        trace = self._held.get(trace_id)
        if trace is None or trace.revision != revision or trace.over_limit:
            return
        if self._settings.pause_wait_s <= self._settings.keep_closed_s:
            return
        self._let_go(trace)
        self._paused[trace_id] = trace
        self.pause_size += trace.size
        while self.pause_size > self._settings.pause_bytes:
            self._forget(self._paused, GivenUp.NO_ROOM)

    def is_paused(self, trace_id: bytes) -> bool:
        """Return whether the spans of a trace are kept because its run pauses."""
        return trace_id in self._paused

    def recall(self, span: Span, size: int, now: float) -> HeldTrace | LateReason | DropReason:
        """Return the trace that a late span opens again, and forget it here, or the outcome of the span."""
        settings = self._settings
        if not self._holds:
            return LateReason.IGNORED
        trace = self._held.get(span.trace_id) or self._paused.get(span.trace_id)
        if trace is None:
            return LateReason.NOT_KEPT
        place = trace.place(span)
        if isinstance(place, DropReason):
            return place
        full = len(trace.spans) >= settings.span_limit or trace.size + size > settings.max_trace_bytes
        if full or trace.over_limit:
            return LateReason.OVER_LIMIT
        after_pause = trace.trace_id in self._paused
        kept_until = min(trace.closed_at + settings.keep_closed_s, trace.first_at + settings.max_trace_age_s)
        if after_pause:
            kept_until = trace.last_at + settings.pause_wait_s
        if now >= kept_until:
            return LateReason.NOT_KEPT
        self._let_go(trace)
        trace.open_again(now, after_pause=after_pause)
        return trace

    def forget_due(self, now: float) -> bool:
        """Evict a trace that was kept for long enough, and return whether there was one."""
        oldest = next(iter(self._held.values()), None)
        if oldest is not None and oldest.closed_at + self._settings.keep_closed_s <= now:
            self._forget(self._held, GivenUp.EXPIRED)
            return True
        oldest = next(iter(self._paused.values()), None)
        if oldest is not None and oldest.last_at + self._settings.pause_wait_s <= now:
            self._forget(self._paused, GivenUp.EXPIRED)
            return True
        return False

    def forget_oldest(self) -> bool:
        """Evict the trace that closed first, of runs that pause last, and return whether there was one."""
        kept = self._held or self._paused
        if not kept:
            return False
        self._forget(kept, GivenUp.NO_ROOM)
        return True

    def _forget(self, kept: OrderedDict[bytes, HeldTrace], reason: GivenUp) -> None:
        trace = next(iter(kept.values()))
        self._let_go(trace)
        if kept is self._paused:
            self.given_up.append(trace.trace_id)
            self.gave_up[reason] += 1

    def _let_go(self, trace: HeldTrace) -> None:
        if self._paused.pop(trace.trace_id, None) is not None:
            self.pause_size -= trace.size
            return
        del self._held[trace.trace_id]
        self.spans -= trace.scored
        self.size -= trace.size


class RememberedIds:
    """Remembers the last `capacity` ids, in at most 18 bytes an id, however many are added; an empty one takes little.

    An id is stored as a fingerprint of 64 bits in one of many buckets, and each bucket forgets its oldest. As a bucket
    has 64 places for the 32 ids that it gets on average, fewer than one id in a million is forgotten before `capacity`
    newer ones were added. A set of ids would be exact, at seven times the memory.

    The fingerprint is Python's own hash of bytes: SipHash with a key drawn when the process starts, so that no sender
    can choose ids that share a bucket or pass for one another (unless PYTHONHASHSEED takes the key away).
    """

    def __init__(self, capacity: int) -> None:
        self._buckets = [b""] * math.ceil(capacity / _IDS_PER_BUCKET)  # each is the newest fingerprint, and then older

    def __contains__(self, trace_id: bytes) -> bool:
        value = hash(trace_id)
        # A match across the border of two fingerprints is as unlikely as two equal ones.
        return value.to_bytes(8, "little", signed=True) in self._buckets[value % len(self._buckets)]

    def add(self, trace_id: bytes) -> None:
        """Remember an id. One that is added twice takes up two places."""
        value = hash(trace_id)
        place = value % len(self._buckets)
        self._buckets[place] = value.to_bytes(8, "little", signed=True) + self._buckets[place][: _BUCKET_BYTES - 8]
