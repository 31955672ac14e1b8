"""The measurements of a report: one list for every exporter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from spanscore.contracts.instruments.instrument import (
    AGENT_TOOL_CALLS,
    ALL_SUCCEEDED,
    CONSECUTIVE_SAME,
    EVALUATIONS,
    FAIL_REASONS,
    LATENCY_P50,
    LATENCY_P95,
    RUNS,
    RUNS_PAUSED,
    RUNS_RESUMED,
    SCORE,
    SEQUENCE_GAPS,
    TOOL_CALLS,
    TOOL_CALLS_FAILED,
    TOOL_DURATION,
    TOOL_FAILURE_RATE,
    Instrument,
)
from spanscore.metrics.series import Values
from spanscore.model import Evaluation, Invocation, Report, Score, Skipped, Trajectory
from spanscore.reports.once import once_a_report
from spanscore.reports.reasons import reasons

Measurement: TypeAlias = tuple[Instrument, float, Values]
"""An instrument, what was measured, and a value for each attribute of the instrument, or for the first ones."""

OTHER_ERROR: Final = "_OTHER"
"""The semantic conventions' `error.type` where the type is not known."""

_MEASURING_TYPE: Final = "tool_call_trajectory"
_MEASURED: Final = (
    (TOOL_CALLS, "tool_calls_total"),
    (TOOL_CALLS_FAILED, "tool_calls_failed"),
    (ALL_SUCCEEDED, "all_tool_calls_succeeded"),
    (SEQUENCE_GAPS, "tool_call_sequence_gaps"),
    (CONSECUTIVE_SAME, "consecutive_same_tool_calls"),
)
_LATENCIES: Final = ((LATENCY_P50, "tool_call_latency_p50_ms"), (LATENCY_P95, "tool_call_latency_p95_ms"))

# A name, with modules in front and as languages write it: an instrumentation may put a whole message there.
_NAME: Final = re.compile(r"[\w.:$<>-]{1,100}", re.ASCII)


@once_a_report
def measurements(report: Report) -> list[Measurement]:
    """Return the measurements of a report.

    Nothing for a revision of a run that was counted before, nor for a trace without a recognised agent; and nothing
    of the instruments that the report leaves out. A run that pauses is counted as such once, and as a run only if it
    fails already: else when it continues, in this trace or in another one, which is also counted once. A conversation
    is counted when it is finished.
    """
    trajectory = report.trajectory
    if report.conversation is not None:
        return [] if report.conversation.finished is None else _of_conversation(report)
    if not trajectory.recognised:
        return []
    if report.revision and not report.paused_before:
        return [(RUNS_RESUMED, 1, (trajectory.agent, trajectory.service))] if report.resumed else []
    if trajectory.completeness.paused and not report.failing:
        return [] if report.revision else [(RUNS_PAUSED, 1, (trajectory.agent, trajectory.service))]
    found, left_out = _all(report), report.unmeasured
    return [each for each in found if each[0].name not in left_out] if left_out else found


def _all(report: Report) -> list[Measurement]:
    trajectory = report.trajectory
    agent, service = trajectory.agent, trajectory.service
    timed = [call for call in trajectory.calls if call.was_timed]
    found: list[Measurement] = []
    for evaluation in report.evaluations:
        name, outcome = evaluation.name, evaluation.outcome
        found.append((EVALUATIONS, 1, (name, outcome_word(evaluation), agent, service)))
        if isinstance(outcome, Score):
            found.append((SCORE, outcome.value, (name, agent, service)))
            if evaluation.type == _MEASURING_TYPE:
                found += _measured(outcome.details["measurements"], name, trajectory, timed=bool(timed))
    verdict = report.verdict
    found.append((RUNS, 1, (verdict, agent, service)))
    if verdict == "fail":
        texts = dict.fromkeys(each.text for each in reasons(report))
        found += [(FAIL_REASONS, 1, (text, agent, service)) for text in texts]
    if trajectory.completeness.paused and not report.revision:
        found.append((RUNS_PAUSED, 1, (agent, service)))
    if trajectory.completeness.resumed or report.resumed:
        found.append((RUNS_RESUMED, 1, (agent, service)))
    invocations = trajectory.invocations
    if invocations is None:
        invocations = (Invocation(agent, len(trajectory.calls)),)
    found += [(AGENT_TOOL_CALLS, count, (invoked, service)) for invoked, count in invocations]
    found += [
        (
            TOOL_DURATION,
            call.duration_ms / 1e3,
            (
                call.name,
                call.tool_type,
                None if call.error is None else _error_type(call.error_type),
                call.agent or agent,
                service,
            ),
        )
        for call in timed
    ]
    return found


def _of_conversation(report: Report) -> list[Measurement]:
    agent, service, unit = report.trajectory.agent, report.trajectory.service, report.trajectory.unit.value
    found: list[Measurement] = []
    for each in report.evaluations:
        found.append((EVALUATIONS, 1, (each.name, outcome_word(each), agent, service, unit)))
        if isinstance(each.outcome, Score):
            found.append((SCORE, each.outcome.value, (each.name, agent, service, unit)))
    return found


def outcome_word(evaluation: Evaluation) -> str:
    """Return `pass`, `fail`, `informational`, `skipped`, or `failed` if the evaluator had an error."""
    outcome = evaluation.outcome
    if isinstance(outcome, Score):
        return evaluation.label or "informational"
    return "skipped" if isinstance(outcome, Skipped) else "failed"


def _error_type(named: str | None) -> str:
    """Return the type of a failed call's error as the spans name it; a word of its message would be made up."""
    return named if named is not None and _NAME.fullmatch(named) else OTHER_ERROR


def _measured(measured: Mapping[str, Any], name: str, trajectory: Trajectory, *, timed: bool) -> list[Measurement]:
    agent, service = trajectory.agent, trajectory.service
    of_run = (name, agent, service)
    # OTLP refuses an exemplar that is a boolean.
    found: list[Measurement] = [(instrument, int(measured[key]), of_run) for instrument, key in _MEASURED]
    rates = measured["per_tool_failure_rate"].items()
    found += [(TOOL_FAILURE_RATE, rate, (name, tool, agent, service)) for tool, rate in rates]
    if timed:
        found += [(instrument, measured[key] / 1e3, of_run) for instrument, key in _LATENCIES]
    return found
