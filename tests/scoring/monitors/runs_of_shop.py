"""Reports of runs for monitors: as small as they can be."""

from __future__ import annotations

from itertools import count
from typing import Any

from spanscore.model import CloseReason, Completeness, Evaluation, Report, Score, ToolCall, Trajectory
from spanscore.scoring.monitors.settings import MonitoredRuns, MonitorSettings

DAY_S = 86_400.0
_NUMBERS = count(1)


def monitored(
    of: MonitoredRuns | None = None, *, at_most: float = 0.05, days: float = 30.0, **more: Any
) -> MonitorSettings:
    """Return the settings of a monitor of the evaluator `rules`, unless it is about something else."""
    return MonitorSettings(
        of=of or MonitoredRuns(evaluator="rules"), at_most=at_most, one_false_alarm_per_s=days * DAY_S, **more
    )


def run_of_shop(  # noqa: PLR0913 - a test names what it is about
    *,
    bad: bool = False,
    number: int | None = None,
    service: str = "shop",
    reason: str = "check_policy was not called",
    paused: bool = False,
    calls: tuple[ToolCall, ...] = (),
    evaluations: tuple[Evaluation, ...] | None = None,
    recognised: bool = True,
    **more: Any,
) -> Report:
    """Return the report of a run."""
    if evaluations is None:
        details = {"deviations": [{"kind": "missing", "reason": reason}]} if bad else {}
        outcome = Score(0.0 if bad else 1.0, not bad, details=details)
        evaluations = (Evaluation(name="rules", type="tool_policy", outcome=outcome),)
    run = Trajectory(
        calls=calls,
        trace_id=(next(_NUMBERS) if number is None else number).to_bytes(16, "big"),
        attributes={"service.name": service},
        completeness=Completeness(paused=("approval",)) if paused else Completeness(),
        recognised=recognised,
    )
    return Report(trajectory=run, evaluations=evaluations, close_reason=CloseReason.ROOT_ENDED, **more)
