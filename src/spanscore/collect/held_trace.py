"""A trace whose spans are in memory: which spans it keeps, and when it is due to be closed."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from spanscore.collect.settings import TraceSettings
from spanscore.model import REFUSED, Attributes, CloseReason, Span, Trace

SpanKey: TypeAlias = bytes | tuple[bytes, int]

BEFORE_PAUSE: Final = -math.inf
"""The end of a root from before a pause: another root is waited for."""

MOST_DELAYS: Final = 5
"""The most decision delays by which late children can postpone the closing."""

_MAX_VERSIONS: Final = 8  # a span with a known id is compared with all of them, so that there must be few


class DropReason(enum.StrEnum):
    """Why a trace did not keep a span."""

    DUPLICATE = "duplicate"
    """The trace has an equal span: the client sent it again."""
    CONFLICT = "conflict"
    """The trace has eight different spans with this id."""
    HANDED_OVER = "handed_over"
    """Its trace was released while it was open: another process gets its spans."""


@dataclass(slots=True, eq=False)
class HeldTrace:
    """A trace whose spans are in memory: open, or closed so recently that a late span may open it again."""

    trace_id: bytes
    first_at: float
    last_at: float
    resource: Attributes
    """Of the span added last: its size is in that of the trace."""
    number: int = 0
    """Counts the openings of all traces; an older trace has the lower number."""
    check_at: float = math.inf
    """When to check whether the trace is due; never later than its due time."""
    spans: dict[SpanKey, Span] = field(default_factory=dict)
    """In the order of arrival, by span id; further versions of a span by (span id, version)."""
    size: int = 0
    root_ended_at: float | None = None
    awaited: set[bytes] | None = None
    """Ids of the spans that were announced and have not ended."""
    refused: set[bytes] | None = None
    """Stand-ins for the spans of the trace that were refused, by their ids."""
    dropped: int = 0
    """As in `Trace`."""
    revision: int = 0
    continued: int = 0
    """The revision in which it last continued after a pause; 0 if it never did."""
    scored: int = 0
    """The number of its spans at the last closing; at least 1 after one."""
    verdicts: dict[bytes, str] = field(default_factory=dict)
    """As in `Trace`."""
    closed_at: float = -math.inf
    over_limit: bool = False
    """A limit closed it: the spans are gone, and it does not open again."""

    @property
    def unscored(self) -> int:
        """The number of its spans that were in no closing yet."""
        return len(self.spans) - self.scored

    @property
    def has_ended(self) -> bool:
        """Whether its root has ended, and its run has not continued since."""
        return self.root_ended_at is not None and self.root_ended_at > BEFORE_PAUSE

    def open_again(self, now: float, *, after_pause: bool) -> None:
        """Begin another revision, for a span that came late.

        A late span is waited for like a late child of the root. After a pause the run goes on for as long as any other:
        until a root ends, or no span comes for `trace_timeout_s`.
        """
        self.revision += 1
        self.last_at = now
        if self.has_ended:
            self.root_ended_at = BEFORE_PAUSE if after_pause else now
        if after_pause:
            self.first_at, self.continued = now, self.revision

    def closed(self, reason: CloseReason, *, cut_short: bool = False, beyond: Span | None = None) -> Trace:
        """Return the trace as it is closed, for that reason, or because its root has ended.

        Args:
            reason: the reason if its root has not ended. A limit is the reason even if it has.
            cut_short: whether further spans may be on their way; the reason is then the one given.
            beyond: a span that did not fit in.
        """
        has_ended = self.has_ended or (reason is CloseReason.TIMED_OUT and self.root_ended_at is not None)
        if has_ended and reason in {CloseReason.TIMED_OUT, CloseReason.SHUTDOWN} and not cut_short:
            reason = CloseReason.ROOT_ENDED
        if not self.spans:  # nothing to score
            return Trace(trace_id=self.trace_id, spans=(), close_reason=reason)
        return Trace(
            trace_id=self.trace_id,
            spans=tuple(self.spans.values()),
            close_reason=reason,
            revision=self.revision,
            refused=len(self.refused or ()),
            dropped=self.dropped,
            beyond=beyond,
            cut_short=cut_short,
            root_received_at=self.root_ended_at,
            verdicts=self.verdicts,
        )

    def place(self, span: Span) -> SpanKey | DropReason:
        """Return the key for a span, or why the trace does not keep it."""
        if span.kind == REFUSED:
            return DropReason.DUPLICATE if self.refused and span.span_id in self.refused else span.span_id
        key: SpanKey = span.span_id
        for version in range(1, _MAX_VERSIONS + 1):
            if key not in self.spans:
                return key
            if self.spans[key] == span:
                return DropReason.DUPLICATE
            key = (span.span_id, version)
        return DropReason.CONFLICT

    def due_at(self, settings: TraceSettings) -> float:
        """Return when the trace is to be closed if no further span comes."""
        latest = self.first_at + settings.max_trace_age_s
        if self.refused and not self.spans:  # should any come, they are not all
            return latest
        if self.root_ended_at is None or self.root_ended_at == BEFORE_PAUSE:
            # A span that was announced will end: a slow model is no reason to give the trace up.
            return latest if self.awaited else min(latest, self.last_at + settings.trace_timeout_s)
        if self.awaited:
            return min(latest, self.last_at + settings.trace_timeout_s)
        delay = settings.decision_delay_s or (settings.revision_delay_s if self.revision else 0.0)
        return min(latest, self.last_at + delay, self.root_ended_at + MOST_DELAYS * delay)
