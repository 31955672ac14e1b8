"""The definition of a metric, and the metrics about agents: scores and tool calls.

Every metric is declared once, here or in `own.py`: code, documentation and dashboards follow these tables.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import partial
from typing import Final


class InstrumentKind(enum.StrEnum):
    """The aggregation of a metric."""

    COUNTER = "counter"
    HISTOGRAM = "histogram"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True)
class Instrument:
    """One metric: its name, its meaning, and the attributes of its series. Ids are never attributes."""

    kind: InstrumentKind
    name: str
    unit: str
    """UCUM, as the semantic conventions write it."""
    description: str
    attributes: tuple[str, ...] = ()
    """A series may be without the last ones."""
    boundaries: tuple[float, ...] = ()
    """Upper bounds of a histogram's buckets."""


counter: Final = partial(Instrument, InstrumentKind.COUNTER)
gauge: Final = partial(Instrument, InstrumentKind.GAUGE)
histogram: Final = partial(Instrument, InstrumentKind.HISTOGRAM)

SERVICE: Final = "service.name"
AGENT: Final = "gen_ai.agent.name"
EVALUATION: Final = "gen_ai.evaluation.name"
UNIT: Final = "spanscore.unit"
"""`conversation`; runs have none, as their series are older."""
TOOL: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
OUTCOME: Final = "spanscore.outcome"
OUTCOME_FROM: Final = "spanscore.outcome.from"
OUTCOME_TO: Final = "spanscore.outcome.to"
REASON: Final = "spanscore.reason"
FAIL_REASON: Final = "spanscore.fail_reason"
CLOSE_REASON: Final = "spanscore.close_reason"
QUEUE: Final = "spanscore.queue"
EMITTER: Final = "spanscore.emitter"
KEEP_RULE: Final = "spanscore.keep.rule"
KEEP_DECISION: Final = "spanscore.keep.decision"
DECODER: Final = "spanscore.decoder"
DIALECT: Final = "spanscore.dialect"
MONITOR: Final = "spanscore.monitor"
SERIES: Final = (MONITOR, "spanscore.monitor.series")
"""Of a series of a monitor. The second has the values of the attributes in `by`, with ` / ` between them: labels stay
the same, whatever `by` is."""
ERROR_TYPE: Final = "error.type"

_TENTHS: Final = tuple(step / 10 for step in range(1, 11))
_RATES: Final = (0.0, *_TENTHS)
_CALLS: Final = tuple(float(2**power) for power in range(8))
_TOOL_SECONDS: Final = tuple(2**power / 100 for power in range(14))
"""The buckets of the semantic conventions, so that the series add up with those of instrumentations."""
COUNTS: Final = (0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 34.0, 55.0, 100.0, 1000.0, 10000.0)
SECONDS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
DELAYED_SECONDS: Final = tuple(sorted((*SECONDS, 2.0, 2.05, 2.1, 2.25, 3.0)))
"""Fine buckets after the two seconds that traces wait by default: they show the delay on top of that wait."""
MICROSECONDS: Final = (0.00001, 0.00005, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 1.0, 10.0)

SCORE: Final = histogram(
    "gen_ai.evaluation.score", "1", "Scores of trajectories, from 0 to 1.", (EVALUATION, AGENT, SERVICE, UNIT), _TENTHS
)
EVALUATIONS: Final = counter(
    "spanscore.evaluations",
    "{evaluation}",
    "Evaluations by outcome: pass, fail, skipped (too little recorded), failed (the evaluator did) or informational.",
    (EVALUATION, OUTCOME, AGENT, SERVICE, UNIT),
)
RUNS: Final = counter(
    "spanscore.runs",
    "{run}",
    "Runs by verdict: pass (an evaluation passed and none failed), fail, or none.",
    (OUTCOME, AGENT, SERVICE),
)
FAIL_REASONS: Final = counter(
    "spanscore.fail_reasons",
    "{run}",
    "Failing runs by reason. A run with several reasons counts once for each.",
    (FAIL_REASON, AGENT, SERVICE),
)
RUNS_PAUSED: Final = counter(
    "spanscore.runs.paused",
    "{run}",
    "Runs of which a trace ended while they waited for approval or an answer. Such a trace is in spanscore.runs only "
    "if it fails; a run that continues, in this trace or in another one, is counted there.",
    (AGENT, SERVICE),
)
RUNS_RESUMED: Final = counter(
    "spanscore.runs.resumed",
    "{run}",
    "Runs that continued after a pause, in the trace that paused or in another one; also counted in spanscore.runs.",
    (AGENT, SERVICE),
)
AGENT_TOOL_CALLS: Final = histogram(
    "gen_ai.invoke_agent.tool_calls",
    "{tool_call}",
    "Tool calls of one invocation of an agent, without those of its sub-agents. A run in which no invocation can be "
    "told apart counts as one.",
    (AGENT, SERVICE),
    _CALLS,
)
TOOL_DURATION: Final = histogram(
    "gen_ai.execute_tool.duration",
    "s",
    "Duration of tool calls; failed ones have error.type.",
    (TOOL, TOOL_TYPE, ERROR_TYPE, AGENT, SERVICE),
    _TOOL_SECONDS,
)
TOOL_CALLS: Final = counter(
    "spanscore.trajectory.tool_calls",
    "{call}",
    "Tool calls, as tool_call_trajectory measured them.",
    (EVALUATION, AGENT, SERVICE),
)
TOOL_CALLS_FAILED: Final = counter(
    "spanscore.trajectory.tool_calls_failed",
    "{call}",
    "Tool calls that failed, as tool_call_trajectory measured them.",
    (EVALUATION, AGENT, SERVICE),
)
ALL_SUCCEEDED: Final = counter(
    "spanscore.trajectory.all_tool_calls_succeeded",
    "{trajectory}",
    "Trajectories in which no tool call failed, as tool_call_trajectory measured them.",
    (EVALUATION, AGENT, SERVICE),
)
SEQUENCE_GAPS: Final = counter(
    "spanscore.trajectory.sequence_gaps",
    "{gap}",
    "Missing sequence numbers, as tool_call_trajectory measured them.",
    (EVALUATION, AGENT, SERVICE),
)
CONSECUTIVE_SAME: Final = histogram(
    "spanscore.trajectory.consecutive_same_tool_calls",
    "{call}",
    "Adjacent calls of one tool in a trajectory, as tool_call_trajectory measured them: many are a loop.",
    (EVALUATION, AGENT, SERVICE),
    COUNTS,
)
TOOL_FAILURE_RATE: Final = histogram(
    "spanscore.trajectory.tool_failure_rate",
    "1",
    "Share of a tool's calls that failed in a trajectory, as tool_call_trajectory measured it.",
    (EVALUATION, TOOL, AGENT, SERVICE),
    _RATES,
)
LATENCY_P50: Final = histogram(
    "spanscore.trajectory.tool_call_latency_p50",
    "s",
    "Median duration of a trajectory's tool calls, as tool_call_trajectory measured it.",
    (EVALUATION, AGENT, SERVICE),
    SECONDS,
)
LATENCY_P95: Final = histogram(
    "spanscore.trajectory.tool_call_latency_p95",
    "s",
    "95th percentile of the duration of a trajectory's tool calls, as tool_call_trajectory measured it.",
    (EVALUATION, AGENT, SERVICE),
    SECONDS,
)

SWITCHABLE: Final = (AGENT_TOOL_CALLS, TOOL_DURATION)
"""Metrics that instrumentations record by the same name: counted twice if both are sent to one backend."""

SCORE_INSTRUMENTS: Final = tuple(each for each in globals().values() if isinstance(each, Instrument))
