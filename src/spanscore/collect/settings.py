"""The section `traces`: when a trace is complete, how much is kept, and the defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt

from spanscore.contracts.settings import ByPlace, Duration, Internal, Size


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSettings:
    """The rules for when a trace is complete, and the limits on open traces."""

    root: Annotated[Literal["parentless", "remote_parent", "agent"], ByPlace()] = "parentless"
    """The span whose end closes the trace: the one without a parent (default of the receivers), the local root, which
    has a remote parent or none (default inside a process), or the outermost span of an agent or a workflow."""
    unit: Literal["trace", "agent"] = "trace"
    """The unit of scoring: the whole trace, or each agent run by itself, nested agents excluded."""
    decision_delay_s: Annotated[Duration, Ge(0), ByPlace()] = 2.0
    """The wait after the root's end for late children: 2s for receivers, 0s inside a process. Each new span
    restarts it, up to five times."""
    trace_timeout_s: Annotated[Duration, Gt(0)] = 30.0
    """Close a trace without a root this long after its last span."""
    max_trace_age_s: Annotated[Duration, Gt(0)] = 900.0
    """Close a trace this long after its first span, whatever comes."""
    num_traces: Annotated[int, Ge(1)] = 50_000
    """The most open traces; above it, the oldest is closed and scored as incomplete."""
    span_limit: Annotated[int, Ge(1)] = 10_000
    """Close a trace with this many spans."""
    max_trace_bytes: Annotated[Size, Gt(0)] = 16 * 2**20
    """Close a trace of this size."""
    max_bytes: Annotated[Size, Gt(0)] = 256 * 2**20
    """The most memory of all kept spans, estimated from above; above it, closed traces are evicted first, then the
    oldest open ones are closed and scored as incomplete."""
    late_spans: Literal["rescore", "ignore"] = "rescore"
    """The effect of late spans of a closed trace: a further score with the next revision number, or none."""
    pause_wait_s: Annotated[Duration, Ge(0)] = 86_400.0
    """Keep the spans of a run that pauses this long after its last span: it may continue in its trace. 0: a minute, as
    those of any closed trace. Not with `late_spans: ignore`."""
    pause_bytes: Annotated[Size, Gt(0)] = 64 * 2**20
    """The most memory of these spans, also counted in `max_bytes`; above it, the run that paused first is given up."""
    remember_traces: Annotated[int, Ge(1)] = 1_000_000
    """Closed trace ids remembered, so that late and repeated spans are recognised."""
    keep_closed_s: Annotated[float, Internal()] = 60.0
    """Keep the spans of a closed trace this long; later it cannot be scored again."""
    keep_closed_spans: Annotated[int, Internal()] = 20_000
    """The most kept spans of closed traces; above it, the trace that closed first is evicted."""
    max_revisions: Annotated[int, Internal()] = 5
    """The most revisions of a trace, counted anew after each pause."""
    revision_delay_s: Annotated[float, Internal()] = 2.0
    """If `decision_delay_s` is 0, a new revision waits this long instead, to gather late spans."""

    def __post_init__(self) -> None:
        for name in ("num_traces", "span_limit", "max_trace_bytes", "max_bytes", "pause_bytes", "remember_traces"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)!r}")

    @property
    def longest_delay_s(self) -> float:
        """The longest wait for one more late child before a trace is scored, in seconds."""
        return max(self.decision_delay_s, self.revision_delay_s)
