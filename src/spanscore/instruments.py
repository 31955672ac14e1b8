"""Every metric that spanscore emits, declared once: code, documentation and dashboards follow this table."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final


class InstrumentKind(enum.StrEnum):
    """How a metric aggregates."""

    COUNTER = "counter"
    HISTOGRAM = "histogram"
    GAUGE = "gauge"
    """Looked up when somebody reads it, and so is a counter of `OWN` that counts spans or traces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instrument:
    """One metric: its name, what it counts, and the attributes its series are told apart by. Ids never are."""

    name: str
    kind: InstrumentKind
    unit: str
    """UCUM, as the semantic conventions write it."""
    description: str
    attributes: tuple[str, ...] = ()
    boundaries: tuple[float, ...] = ()
    """Upper bounds of a histogram's buckets."""


SERVICE: Final = "service.name"
AGENT: Final = "gen_ai.agent.name"
EVALUATION: Final = "gen_ai.evaluation.name"
TOOL: Final = "gen_ai.tool.name"
OUTCOME: Final = "spanscore.outcome"
REASON: Final = "spanscore.reason"
CLOSE_REASON: Final = "spanscore.close_reason"
EMITTER: Final = "spanscore.emitter"
ERROR_TYPE: Final = "error.type"

_TENTHS: Final = tuple(step / 10 for step in range(1, 11))
_COUNTS: Final = (0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 34.0, 55.0, 100.0, 1000.0, 10000.0)
_SECONDS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_MICROSECONDS: Final = (0.00001, 0.00005, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 1.0, 10.0)

SCORE: Final = Instrument(
    name="gen_ai.evaluation.score",
    kind=InstrumentKind.HISTOGRAM,
    unit="1",
    description="Scores of trajectories, from 0 to 1.",
    attributes=(EVALUATION, AGENT, SERVICE),
    boundaries=_TENTHS,
)
EVALUATIONS: Final = Instrument(
    name="spanscore.evaluations",
    kind=InstrumentKind.COUNTER,
    unit="{evaluation}",
    description="Evaluations by outcome: pass, fail, skipped (too little was recorded) or failed (the evaluator did).",
    attributes=(EVALUATION, OUTCOME, AGENT, SERVICE),
)
AGENT_TOOL_CALLS: Final = Instrument(
    name="gen_ai.invoke_agent.tool_calls",
    kind=InstrumentKind.HISTOGRAM,
    unit="{call}",
    description="Tool calls of one trajectory.",
    attributes=(AGENT, SERVICE),
    boundaries=_COUNTS,
)
TOOL_DURATION: Final = Instrument(
    name="gen_ai.execute_tool.duration",
    kind=InstrumentKind.HISTOGRAM,
    unit="s",
    description="Duration of tool calls; failed ones have error.type.",
    attributes=(TOOL, ERROR_TYPE, AGENT, SERVICE),
    boundaries=_SECONDS,
)
TOOL_CALLS_FAILED: Final = Instrument(
    name="spanscore.trajectory.tool_calls_failed",
    kind=InstrumentKind.COUNTER,
    unit="{call}",
    description="Tool calls that failed, as tool_call_trajectory measured them.",
    attributes=(EVALUATION, AGENT, SERVICE),
)
TOOL_CALLS: Final = Instrument(
    name="spanscore.trajectory.tool_calls",
    kind=InstrumentKind.COUNTER,
    unit="{call}",
    description="Tool calls, as tool_call_trajectory measured them.",
    attributes=(EVALUATION, AGENT, SERVICE),
)
SEQUENCE_GAPS: Final = Instrument(
    name="spanscore.trajectory.sequence_gaps",
    kind=InstrumentKind.COUNTER,
    unit="{gap}",
    description="Missing sequence numbers, as tool_call_trajectory measured them.",
    attributes=(EVALUATION, AGENT, SERVICE),
)
CONSECUTIVE_SAME: Final = Instrument(
    name="spanscore.trajectory.consecutive_same_tool_calls",
    kind=InstrumentKind.HISTOGRAM,
    unit="{call}",
    description="Adjacent calls of one tool in a trajectory, as tool_call_trajectory measured them: many are a loop.",
    attributes=(EVALUATION, AGENT, SERVICE),
    boundaries=_COUNTS,
)

SCORE_INSTRUMENTS: Final = (
    SCORE,
    EVALUATIONS,
    AGENT_TOOL_CALLS,
    TOOL_DURATION,
    TOOL_CALLS,
    TOOL_CALLS_FAILED,
    SEQUENCE_GAPS,
    CONSECUTIVE_SAME,
)

SPANS_RECEIVED: Final = Instrument(
    name="spanscore.spans.received",
    kind=InstrumentKind.COUNTER,
    unit="{span}",
    description="Spans accepted. Equals those in closed traces + live + late + dropped.",
)
SPANS_REFUSED: Final = Instrument(
    name="spanscore.spans.refused",
    kind=InstrumentKind.COUNTER,
    unit="{span}",
    description="Spans answered with an error, by what was wrong with them.",
    attributes=(REASON,),
)
SPANS_LATE: Final = Instrument(
    name="spanscore.spans.late",
    kind=InstrumentKind.COUNTER,
    unit="{span}",
    description="Spans that came after their trace was closed, by what became of them.",
    attributes=(REASON,),
)
SPANS_DROPPED: Final = Instrument(
    name="spanscore.spans.dropped",
    kind=InstrumentKind.COUNTER,
    unit="{span}",
    description="Spans accepted and not kept, by why: duplicates of a client's retry, a full queue.",
    attributes=(REASON,),
)
SPANS_LIVE: Final = Instrument(
    name="spanscore.spans.live",
    kind=InstrumentKind.GAUGE,
    unit="{span}",
    description="Spans in open traces.",
)
TRACES_OPEN: Final = Instrument(
    name="spanscore.traces.open",
    kind=InstrumentKind.GAUGE,
    unit="{trace}",
    description="Traces that wait for their root or for late spans.",
)
TRACES_CLOSED: Final = Instrument(
    name="spanscore.traces.closed",
    kind=InstrumentKind.COUNTER,
    unit="{trace}",
    description="Traces closed, by why.",
    attributes=(CLOSE_REASON,),
)
TRACE_SPAN_COUNT: Final = Instrument(
    name="spanscore.trace.span_count",
    kind=InstrumentKind.HISTOGRAM,
    unit="{span}",
    description="Spans of a closed trace.",
    boundaries=_COUNTS,
)
EVALUATION_DURATION: Final = Instrument(
    name="spanscore.evaluation.duration",
    kind=InstrumentKind.HISTOGRAM,
    unit="s",
    description="Time to read and evaluate one closed trace.",
    boundaries=_MICROSECONDS,
)
EVALUATION_ERRORS: Final = Instrument(
    name="spanscore.evaluation.errors",
    kind=InstrumentKind.COUNTER,
    unit="{error}",
    description="Evaluations that failed because the evaluator went wrong.",
    attributes=(EVALUATION, ERROR_TYPE),
)
SCORE_LATENCY: Final = Instrument(
    name="spanscore.score.latency",
    kind=InstrumentKind.HISTOGRAM,
    unit="s",
    description="From the root span's arrival to its scores going out, the configured delay included.",
    boundaries=_SECONDS,
)
QUEUE_SIZE: Final = Instrument(
    name="spanscore.queue.size",
    kind=InstrumentKind.GAUGE,
    unit="{item}",
    description="Items waiting in a queue.",
    attributes=(EMITTER,),
)
QUEUE_CAPACITY: Final = Instrument(
    name="spanscore.queue.capacity",
    kind=InstrumentKind.GAUGE,
    unit="{item}",
    description="Items a queue can hold.",
    attributes=(EMITTER,),
)
EXPORT_FAILURES: Final = Instrument(
    name="spanscore.export.failures",
    kind=InstrumentKind.COUNTER,
    unit="{failure}",
    description="Reports and requests that an emitter could not send, by why.",
    attributes=(EMITTER, REASON),
)

OWN_INSTRUMENTS: Final = (
    SPANS_RECEIVED,
    SPANS_REFUSED,
    SPANS_LATE,
    SPANS_DROPPED,
    SPANS_LIVE,
    TRACES_OPEN,
    TRACES_CLOSED,
    TRACE_SPAN_COUNT,
    EVALUATION_DURATION,
    EVALUATION_ERRORS,
    SCORE_LATENCY,
    QUEUE_SIZE,
    QUEUE_CAPACITY,
    EXPORT_FAILURES,
)
