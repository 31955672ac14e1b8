"""A report that was written as JSON, as far as monitors look at it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from spanscore.model import (
    Attributes,
    CloseReason,
    Completeness,
    Evaluation,
    Failed,
    Outcome,
    Report,
    Score,
    Skipped,
    ToolCall,
    Trajectory,
)

_ATTRIBUTES: Final = {"service.name": "service", "gen_ai.agent.name": "agent"}
"""The keys of a report for attributes, where it was written without the attributes of the run."""


def report_of_json(report: Mapping[str, Any]) -> Report:
    """Return a report of a run with its verdicts, names and errors of calls, and attributes.

    Without an end of its own, it ends with its last call; None if no call has a time.

    Args:
        report: as `is_report` accepts it.
    """
    calls = [each for each in report["tool_calls"] or () if isinstance(each.get("name"), str)]
    ends = [each["end_unix_nano"] for each in calls if isinstance(each.get("end_unix_nano"), int)]
    end = report.get("end_unix_nano")
    run = Trajectory(
        calls=tuple(
            ToolCall(name=each["name"], error=None if each.get("error") is None else "error") for each in calls
        ),
        trace_id=_bytes(report["trace_id"]),
        root_span_id=_bytes(report["root_span_id"]),
        attributes=_attributes(report),
        end_ns=end if isinstance(end, int) and end > 0 else max(filter(None, ends), default=None),
        completeness=Completeness(paused=tuple(map(str, report.get("paused") or ()))),
    )
    evaluations = tuple(_evaluations(report["outcomes"]))
    return Report(trajectory=run, evaluations=evaluations, close_reason=CloseReason.ROOT_ENDED)


def _attributes(report: Mapping[str, Any]) -> Attributes:
    given = report.get("attributes")
    named = {key: report[name] for key, name in _ATTRIBUTES.items() if isinstance(report.get(name), str)}
    return named | given if isinstance(given, dict) else named


def _evaluations(outcomes: Mapping[str, Mapping[str, Any]]) -> Iterator[Evaluation]:
    for name, told in outcomes.items():
        is_informational = told.get("informational") is True
        yield Evaluation(name=name, type=str(told.get("type")), outcome=_outcome(told), informational=is_informational)


def _outcome(told: Mapping[str, Any]) -> Outcome:
    value, details = told.get("value"), told.get("details")
    if told.get("outcome") == "score" and isinstance(value, (int, float)):
        return Score(value, told.get("passed") is True, details=details if isinstance(details, dict) else {})
    if told.get("outcome") == "failed":
        return Failed(str(told.get("error_type")), "")
    return Skipped(str(told.get("reason")))


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""
