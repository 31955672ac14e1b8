"""Counts of the engine and its neighbours beside the trace table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class Tallies:
    """Counts beside the trace table. Plain numbers, read when metrics are collected."""

    dropped: Mapping[str, int]
    """Spans that never reached the table, by reason."""
    refused: Counter[str] = field(default_factory=Counter)
    """Spans that a receiver refused, by reason."""
    refused_points: Counter[str] = field(default_factory=Counter)
    """Data points of metrics that a receiver refused, by reason."""
    unread: Counter[str] = field(default_factory=Counter)
    """Log records that a receiver took and passed over, by reason."""
    evaluation_errors: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By the evaluator's name and the type of the error. Without a name: traces that could not be read at all."""
    dialect_errors: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By the dialect's name and the type of the error."""
    revised: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Runs whose verdict a revision changed, by the verdict before and the one after."""
    unrecognised: int = 0
    """Traces without a span of a known instrumentation."""
    export_failures: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By the emitter's name and the reason."""
