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
QUEUE: Final = "spanscore.queue"
EMITTER: Final = "spanscore.emitter"
DIALECT: Final = "spanscore.dialect"
ERROR_TYPE: Final = "error.type"

_TENTHS: Final = tuple(step / 10 for step in range(1, 11))
_RATES: Final = (0.0, *_TENTHS)
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
TOOL_CALLS: Final = Instrument(
    name="spanscore.trajectory.tool_calls",
    kind=InstrumentKind.COUNTER,
    unit="{call}",
    description="Tool calls, as tool_call_trajectory measured them.",
    attributes=(EVALUATION, AGENT, SERVICE),
)
TOOL_CALLS_FAILED: Final = Instrument(
    name="spanscore.trajectory.tool_calls_failed",
    kind=InstrumentKind.COUNTER,
    unit="{call}",
    description="Tool calls that failed, as tool_call_trajectory measured them.",
    attributes=(EVALUATION, AGENT, SERVICE),
)
ALL_SUCCEEDED: Final = Instrument(
    name="spanscore.trajectory.all_tool_calls_succeeded",
    kind=InstrumentKind.COUNTER,
    unit="{trajectory}",
    description="Trajectories in which no tool call failed, as tool_call_trajectory measured them.",
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
TOOL_FAILURE_RATE: Final = Instrument(
    name="spanscore.trajectory.tool_failure_rate",
    kind=InstrumentKind.HISTOGRAM,
    unit="1",
    description="Share of a tool's calls that failed in a trajectory, as tool_call_trajectory measured it.",
    attributes=(EVALUATION, TOOL, AGENT, SERVICE),
    boundaries=_RATES,
)
LATENCY_P50: Final = Instrument(
    name="spanscore.trajectory.tool_call_latency_p50",
    kind=InstrumentKind.HISTOGRAM,
    unit="s",
    description="Median duration of a trajectory's tool calls, as tool_call_trajectory measured it.",
    attributes=(EVALUATION, AGENT, SERVICE),
    boundaries=_SECONDS,
)
LATENCY_P95: Final = Instrument(
    name="spanscore.trajectory.tool_call_latency_p95",
    kind=InstrumentKind.HISTOGRAM,
    unit="s",
    description="95th percentile of the duration of a trajectory's tool calls, as tool_call_trajectory measured it.",
    attributes=(EVALUATION, AGENT, SERVICE),
    boundaries=_SECONDS,
)

SCORE_INSTRUMENTS: Final = (
    SCORE,
    EVALUATIONS,
    AGENT_TOOL_CALLS,
    TOOL_DURATION,
    TOOL_CALLS,
    TOOL_CALLS_FAILED,
    ALL_SUCCEEDED,
    SEQUENCE_GAPS,
    CONSECUTIVE_SAME,
    TOOL_FAILURE_RATE,
    LATENCY_P50,
    LATENCY_P95,
)

REQUESTS_ACCEPTED: Final = Instrument(
    name="spanscore.requests.accepted",
    kind=InstrumentKind.COUNTER,
    unit="{request}",
    description="Requests that a receiver took, whole or without some of their spans.",
)
REQUESTS_EMPTY: Final = Instrument(
    name="spanscore.requests.empty",
    kind=InstrumentKind.COUNTER,
    unit="{request}",
    description="Requests among the accepted ones that held no span at all: many are a sign of a wrong sender.",
)
REQUESTS_REFUSED: Final = Instrument(
    name="spanscore.requests.refused",
    kind=InstrumentKind.COUNTER,
    unit="{request}",
    description="Requests answered with an error, by why; what gRPC refuses by itself is not among them.",
    attributes=(REASON,),
)
SPANS_RECEIVED: Final = Instrument(
    name="spanscore.spans.received",
    kind=InstrumentKind.COUNTER,
    unit="{span}",
    description="Spans that arrived: always those in closed traces + live + late + refused + dropped.",
)
SPANS_CLOSED: Final = Instrument(
    name="spanscore.spans.closed",
    kind=InstrumentKind.COUNTER,
    unit="{span}",
    description="Spans in closed traces, except late ones.",
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
    description="Spans accepted and not kept, by why.",
    attributes=(REASON,),
)
SPANS_LIVE: Final = Instrument(
    name="spanscore.spans.live",
    kind=InstrumentKind.GAUGE,
    unit="{span}",
    description="Spans in open traces, not counted elsewhere yet.",
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
    description="Traces closed for the first time, by why.",
    attributes=(CLOSE_REASON,),
)
TRACES_REVISED: Final = Instrument(
    name="spanscore.traces.revised",
    kind=InstrumentKind.COUNTER,
    unit="{trace}",
    description="Traces closed and scored again because of late spans.",
)
TRACES_UNRECOGNISED: Final = Instrument(
    name="spanscore.traces.unrecognised",
    kind=InstrumentKind.COUNTER,
    unit="{trace}",
    description="Traces without a span of a known instrumentation: other services' traces, which are left alone.",
)
DIALECT_ERRORS: Final = Instrument(
    name="spanscore.dialect.errors",
    kind=InstrumentKind.COUNTER,
    unit="{error}",
    description="Spans on which a dialect went wrong; the evaluations of their traces are skipped.",
    attributes=(DIALECT, ERROR_TYPE),
)
MEMORY_HELD: Final = Instrument(
    name="spanscore.memory.held",
    kind=InstrumentKind.GAUGE,
    unit="By",
    description="Size of all spans in memory, of open traces and of closed ones that late spans may reopen.",
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
    description="Items waiting in a queue or being sent.",
    attributes=(QUEUE,),
)
QUEUE_CAPACITY: Final = Instrument(
    name="spanscore.queue.capacity",
    kind=InstrumentKind.GAUGE,
    unit="{item}",
    description="Items a queue can hold.",
    attributes=(QUEUE,),
)
EXPORT_FAILURES: Final = Instrument(
    name="spanscore.export.failures",
    kind=InstrumentKind.COUNTER,
    unit="{failure}",
    description="Reports and requests that an emitter could not send, by why.",
    attributes=(EMITTER, REASON),
)

STORAGE_SIZE: Final = Instrument(
    name="spanscore.storage.size",
    kind=InstrumentKind.GAUGE,
    unit="By",
    description="Size of the spans kept on disk until they are scored.",
)
STORAGE_CAPACITY: Final = Instrument(
    name="spanscore.storage.capacity",
    kind=InstrumentKind.GAUGE,
    unit="By",
    description="Size at which spans are refused, with a request to retry.",
)
STORAGE_LOST: Final = Instrument(
    name="spanscore.storage.lost",
    kind=InstrumentKind.COUNTER,
    unit="{record}",
    description="Stored requests that were damaged when they were read after a restart, or whose file was removed.",
)
STORAGE_REFUSED: Final = Instrument(
    name="spanscore.storage.refused",
    kind=InstrumentKind.COUNTER,
    unit="{request}",
    description="Requests that could not be stored, and were answered with a request to retry, by why.",
    attributes=(REASON,),
)
STORAGE_SYNC_FAILURES: Final = Instrument(
    name="spanscore.storage.sync_failures",
    kind=InstrumentKind.COUNTER,
    unit="{failure}",
    description="Times that the disk could not be made to keep what was written; it then goes to a new file.",
)
KAFKA_RECORDS: Final = Instrument(
    name="spanscore.kafka.records",
    kind=InstrumentKind.COUNTER,
    unit="{record}",
    description="Records read from Kafka, those included that were read before by another member of the group.",
)
KAFKA_POISON: Final = Instrument(
    name="spanscore.kafka.poison_records",
    kind=InstrumentKind.COUNTER,
    unit="{record}",
    description="Records that could not be used, by why; they are in the dead-letter topic where there is one.",
    attributes=(REASON,),
)
KAFKA_MISROUTED: Final = Instrument(
    name="spanscore.kafka.misrouted_records",
    kind=InstrumentKind.COUNTER,
    unit="{record}",
    description="Records that were used, but whose key is not their trace id: their traces may be split over members.",
    attributes=(REASON,),
)
KAFKA_PARTITIONS: Final = Instrument(
    name="spanscore.kafka.partitions",
    kind=InstrumentKind.GAUGE,
    unit="{partition}",
    description="Partitions of the topic that this member of the group reads.",
)
KAFKA_LAG: Final = Instrument(
    name="spanscore.kafka.lag",
    kind=InstrumentKind.GAUGE,
    unit="{record}",
    description="Records in these partitions that were not read yet.",
)
KAFKA_UNCOMMITTED: Final = Instrument(
    name="spanscore.kafka.uncommitted_records",
    kind=InstrumentKind.GAUGE,
    unit="{record}",
    description="Records in these partitions that were read, and are held for traces that are still open.",
)
KAFKA_COMMIT_FAILURES: Final = Instrument(
    name="spanscore.kafka.commit_failures",
    kind=InstrumentKind.COUNTER,
    unit="{failure}",
    description="Offsets that could not be committed, by the broker's error; the next commit repeats them.",
    attributes=(REASON,),
)

OWN_INSTRUMENTS: Final = (
    REQUESTS_ACCEPTED,
    REQUESTS_EMPTY,
    REQUESTS_REFUSED,
    SPANS_RECEIVED,
    SPANS_CLOSED,
    SPANS_LIVE,
    SPANS_LATE,
    SPANS_REFUSED,
    SPANS_DROPPED,
    TRACES_OPEN,
    TRACES_CLOSED,
    TRACES_REVISED,
    TRACES_UNRECOGNISED,
    DIALECT_ERRORS,
    MEMORY_HELD,
    TRACE_SPAN_COUNT,
    EVALUATION_DURATION,
    EVALUATION_ERRORS,
    SCORE_LATENCY,
    QUEUE_SIZE,
    QUEUE_CAPACITY,
    EXPORT_FAILURES,
    STORAGE_SIZE,
    STORAGE_CAPACITY,
    STORAGE_LOST,
    STORAGE_REFUSED,
    STORAGE_SYNC_FAILURES,
    KAFKA_RECORDS,
    KAFKA_POISON,
    KAFKA_MISROUTED,
    KAFKA_PARTITIONS,
    KAFKA_LAG,
    KAFKA_UNCOMMITTED,
    KAFKA_COMMIT_FAILURES,
)
