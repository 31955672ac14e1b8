"""The settings and the counts of the emitter that passes received spans on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Self

from spanscore.collect.held_trace import MOST_DELAYS
from spanscore.contracts import PassingOn, Roots
from spanscore.emitters.otlp._held_roots import HoldLimits
from spanscore.emitters.sending.backlog import QueueLimits
from spanscore.emitters.sending.client import Retries

_LEAST_SPAN: Final = 100  # bytes that a waiting span takes at least
_SLACK_S: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardCounts:
    """Counts of spans. Invariant: `received == sent + queued + held + sum(dropped.values())`."""

    received: int = 0
    sent: int = 0
    """Accepted by the receiver."""
    queued: int = 0
    """Waiting to be sent, or being sent."""
    held: int = 0
    """Root spans that wait for their scores."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """By why."""
    annotated: int = 0
    """Root spans passed on with events; part of the above."""
    unannotated: Mapping[str, int] = field(default_factory=dict)
    """Root spans passed on without, by why: `not_evaluated`, `expired`, `displaced` or `shut_down`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardSettings:
    """Limits for root spans that are held and for requests that wait."""

    roots: Roots = "parentless"
    """The spans to hold back until their trace is scored: its roots, or `none`."""
    annotates: bool = True
    """Whether scores are put on the spans that are held back."""
    child_spans: bool = False
    """Whether scores are sent as a child span of the evaluated span."""
    hold: HoldLimits = field(default_factory=HoldLimits)
    queue: QueueLimits = field(default_factory=QueueLimits)
    retries: Retries = field(default_factory=Retries)

    @classmethod
    def for_host(cls, passing: PassingOn) -> Self:
        """Return the settings of a program that passes on."""
        hold = HoldLimits(hold_s=MOST_DELAYS * passing.delay_s + _SLACK_S)
        queue = QueueLimits()
        if passing.waiting_bytes:  # all of it may have to be sent at the same time, with tags, each span by itself
            items = queue.capacity + passing.waiting_bytes // _LEAST_SPAN
            size = queue.capacity_bytes + passing.waiting_bytes * 5 // 4
            queue = replace(queue, capacity=items, capacity_bytes=size)
        return cls(
            roots=passing.held_roots,
            annotates=passing.annotates,
            child_spans=passing.child_spans,
            hold=hold,
            queue=queue,
        )
