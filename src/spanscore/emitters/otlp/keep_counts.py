"""The counts of traces and spans that are kept or dropped."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from spanscore.model import KeepDecision


def decision_word(decision: KeepDecision) -> str:
    """Return `kept` or `dropped`."""
    return "kept" if decision.kept else "dropped"


@dataclass(slots=True)
class KeepCounts:
    """Counts of decisions. Invariant: `received == sum(spans.values()) + held_spans`."""

    received: int = 0
    """Spans."""
    held_spans: int = 0
    held_bytes: int = 0
    traces: Counter[tuple[str | None, ...]] = field(default_factory=Counter)
    """By rule and decision."""
    spans: Counter[str] = field(default_factory=Counter)
    """By decision."""
    bytes: Counter[str] = field(default_factory=Counter)
    """By decision."""
    undecided: Counter[str] = field(default_factory=Counter)
    """Traces, by reason."""
    late: Counter[str] = field(default_factory=Counter)
    """Spans, by decision."""
    inconsistent: int = 0
    """Spans."""

    def settle(self, word: str, spans: int, size: int) -> None:
        """Count spans whose decision is known."""
        self.spans[word] += spans
        self.bytes[word] += size
