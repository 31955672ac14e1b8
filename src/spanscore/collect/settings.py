"""When a trace is complete, and how much may be held: the settings of the trace table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSettings:
    """When a trace is complete, and how much may be held. Times in seconds, sizes in bytes as received."""

    decision_delay_s: Annotated[float, Ge(0)] = 2.0
    """After the root has ended, wait this long for late children; each restarts the wait, up to five times as long."""
    trace_timeout_s: Annotated[float, Ge(0)] = 30.0
    """Close a trace whose root has not come this long after its last span."""
    max_trace_age_s: Annotated[float, Ge(0)] = 900.0
    """Close a trace this long after its first span, and do not open it again later than that."""
    num_traces: Annotated[int, Ge(1)] = 50_000
    """Open traces; one more closes the oldest."""
    span_limit: Annotated[int, Ge(1)] = 10_000
    """Spans of one trace; one more closes it."""
    max_trace_bytes: Annotated[int, Ge(1)] = 16 * 2**20
    """Size of one trace; the span that would go beyond closes it. A trace's first span may have any size."""
    max_bytes: Annotated[int, Ge(1)] = 256 * 2**20
    """Size of all spans held; beyond it closed traces are let go first, then the oldest open ones are closed."""
    late_spans: Literal["rescore", "ignore"] = "rescore"
    """What a span does whose trace is closed: cause a new revision of the trace, or nothing."""
    remember_traces: Annotated[int, Ge(1)] = 1_000_000
    """Ids of closed traces remembered, so that a late span is not taken for a new trace."""
    keep_closed_s: Annotated[float, Ge(0)] = 60.0
    """Hold the spans of a closed trace this long; later it cannot be scored again."""
    keep_closed_spans: Annotated[int, Ge(0)] = 20_000
    """Spans of closed traces held; beyond, the trace closed first is let go."""
    max_revisions: Annotated[int, Ge(0)] = 5
    """How often a trace may be scored again."""
    revision_delay_s: Annotated[float, Ge(0)] = 2.0
    """Where `decision_delay_s` is 0, a new revision waits this long instead, so that late spans are gathered."""

    def __post_init__(self) -> None:
        for name in ("num_traces", "span_limit", "max_trace_bytes", "max_bytes", "remember_traces"):
            if getattr(self, name) < 1:
                message = f"{name} must be at least 1, not {getattr(self, name)!r}"
                raise ValueError(message)
