"""Counts of spans and traces by their outcome."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from spanscore.collect.held_trace import DropReason
from spanscore.collect.remembered import GivenUp, LateReason
from spanscore.model import CloseReason


@dataclass(slots=True, kw_only=True)
class Counts:
    """Counts of every span and trace so far, by outcome.

    Always `received == in_closed + live + sum(late.values()) + sum(dropped.values())`. Spans that a receiver refuses
    do not reach the table; the receiver counts them.
    """

    received: int = 0
    in_closed: int = 0
    """Spans in closed traces, without the spans of revisions, which are counted as late."""
    live: int = 0
    """Spans that wait in open traces for their first closing, or for the next revision."""
    late: Counter[LateReason] = field(default_factory=Counter)
    dropped: Counter[DropReason] = field(default_factory=Counter)
    conflicts: int = 0
    """Spans kept beside a different span with the same id; they are counted above like any other."""
    open_traces: int = 0
    closed: Counter[CloseReason] = field(default_factory=Counter)
    """Traces, by the reason of their first closing."""
    revisions: int = 0
    """Closings after the first, of all traces."""
    given_up: Counter[GivenUp] = field(default_factory=Counter)
    """Traces with a run that pauses, whose spans are no longer held for the case that it continues."""
    held_spans: int = 0
    """Spans of closed traces that are held for a revision, except of runs that pause; a trace closed by a limit counts
    as one."""
    held_bytes: int = 0
    """Size of all spans in memory, of open and of closed traces."""
