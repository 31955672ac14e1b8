"""What a metric is, and those about agents: the scores and the calls they are about.

Every metric is declared once, here or in `own_instruments`: code, documentation and dashboards follow these tables.
"""

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
COUNTS: Final = (0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 34.0, 55.0, 100.0, 1000.0, 10000.0)
SECONDS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

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
RUNS: Final = Instrument(
    name="spanscore.runs",
    kind=InstrumentKind.COUNTER,
    unit="{run}",
    description="Runs by verdict: pass (an evaluation passed and none failed), fail, or none.",
    attributes=(OUTCOME, AGENT, SERVICE),
)
AGENT_TOOL_CALLS: Final = Instrument(
    name="gen_ai.invoke_agent.tool_calls",
    kind=InstrumentKind.HISTOGRAM,
    unit="{call}",
    description="Tool calls of one trajectory.",
    attributes=(AGENT, SERVICE),
    boundaries=COUNTS,
)
TOOL_DURATION: Final = Instrument(
    name="gen_ai.execute_tool.duration",
    kind=InstrumentKind.HISTOGRAM,
    unit="s",
    description="Duration of tool calls; failed ones have error.type.",
    attributes=(TOOL, ERROR_TYPE, AGENT, SERVICE),
    boundaries=SECONDS,
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
    boundaries=COUNTS,
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
    boundaries=SECONDS,
)
LATENCY_P95: Final = Instrument(
    name="spanscore.trajectory.tool_call_latency_p95",
    kind=InstrumentKind.HISTOGRAM,
    unit="s",
    description="95th percentile of the duration of a trajectory's tool calls, as tool_call_trajectory measured it.",
    attributes=(EVALUATION, AGENT, SERVICE),
    boundaries=SECONDS,
)

SCORE_INSTRUMENTS: Final = (
    SCORE,
    EVALUATIONS,
    RUNS,
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
