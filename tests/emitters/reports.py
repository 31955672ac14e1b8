"""Reports to emit."""

from __future__ import annotations

from typing import Any

from spanscore.evaluators.tool_call_trajectory import ToolCallTrajectory
from spanscore.model import CloseReason, Evaluation, Failed, Outcome, Report, Score, Skipped, ToolCall, Trajectory

TRACE_ID = bytes(range(1, 17))
ROOT_SPAN_ID = bytes(range(1, 9))

PASSED = Score(1.0, passed=True, explanation="All of it.")
NOT_PASSED = Score(0.25, passed=False, explanation="1 of 4 calls.")
SKIPPED = Skipped("no arguments were recorded")
BROKEN = Failed("KeyError", "'city'")


def call(name: str, milliseconds: float = 5, error: str | None = None, **fields: Any) -> ToolCall:
    """Return a tool call whose execution was seen."""
    end_ns = 10**18 + round(milliseconds * 1e6)
    return ToolCall(name=name, error=error, span_id=b"\0" * 7 + b"\1", start_ns=10**18, end_ns=end_ns, **fields)


def trajectory(*calls: ToolCall, **fields: Any) -> Trajectory:
    """Return a trajectory of the shop's refund agent."""
    known = {"trace_id": TRACE_ID, "root_span_id": ROOT_SPAN_ID, "service": "shop", "agent": "refund"}
    return Trajectory(calls=calls, **(known | fields))


def report(*outcomes: Outcome, about: Trajectory | None = None, revision: int = 0, **named: Outcome) -> Report:
    """Return a report with these outcomes; those without a name are called `e1`, `e2` and so on."""
    outcomes_by_name = {f"e{number}": outcome for number, outcome in enumerate(outcomes, 1)} | named
    return Report(
        trajectory=about or trajectory(),
        evaluations=tuple(
            Evaluation(name=name, type="tool_call_count", outcome=outcome) for name, outcome in outcomes_by_name.items()
        ),
        close_reason=CloseReason.ROOT_ENDED,
        revision=revision,
    )


def health_report(*calls: ToolCall, **fields: Any) -> Report:
    """Return the report of the evaluator `tool_call_trajectory`, named `health`."""
    about = trajectory(*calls, **fields)
    outcome = ToolCallTrajectory().evaluate(about)
    evaluation = Evaluation(name="health", type="tool_call_trajectory", outcome=outcome)
    return Report(trajectory=about, evaluations=(evaluation,), close_reason=CloseReason.ROOT_ENDED)
