"""The calls by which an engine notifies its owner, and the parts that decide for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from spanscore.contracts.instruments.instrument import Instrument
from spanscore.model import KeepDecision, Report, Trace

Clock: TypeAlias = Callable[[], float]
"""Seconds that never run backwards."""

Measure: TypeAlias = Callable[[Instrument, float], None]
"""Records a measurement of our own work."""

Note: TypeAlias = Callable[[bytes], None]
"""Takes the id of a trace."""


class Keeps(Protocol):
    """Decides which traces are kept."""

    def closed(self, trace_id: bytes) -> None:
        """Called when a trace is closed: its decision follows."""

    def decide(self, trace: Trace, reports: Sequence[Report] | None) -> KeepDecision:
        """Called before the reports of a trace are emitted, with all of them; without any if it could not be scored."""

    def earlier(self, trace_id: bytes) -> KeepDecision:
        """Return the decision for a trace that is decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The callbacks of the owner of an engine."""

    answered: Callable[[], None] = lambda: None
    """Called on any thread after an evaluation elsewhere has ended: `settle` or `work` has something to do."""
    paused: Note = lambda _trace_id: None
    """Called before the reports of a trace are emitted in which a run pauses: its spans are held."""
    scored: Note = lambda _trace_id: None
    """Called after all reports of a trace were emitted, or if it could not be scored."""
    gave_up: Note = lambda _trace_id: None
    """Called when a run that paused in this trace is waited for no more: further spans will be late."""
