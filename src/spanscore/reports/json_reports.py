"""Reports that were written as JSON, read again: without content, counted, or as far as monitors look at them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeGuard

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
from spanscore.reports.reason_table import CountedRun
from spanscore.reports.reasons import Reason
from spanscore.reports.serialization import bare_deviation

_PARTS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "trace_id": str,
    "root_span_id": str,
    "tool_calls": (list, type(None)),
    "outcomes": dict,
}
"""`tool_calls` is null where a report was too large."""
_EXPLAINING: Final = frozenset({"explanation", "message"})
_LATEST_NS: Final = 2**63 - 1
_ATTRIBUTES: Final = {"service.name": "service", "gen_ai.agent.name": "agent"}
"""The keys of a report for attributes, where it was written without the attributes of the run."""


def is_report(value: Any) -> bool:
    """Return whether a value of JSON is a report, as `report_object` returns it."""
    return (
        isinstance(value, dict)
        and all(isinstance(value.get(key), kind) for key, kind in _PARTS.items())
        and all(isinstance(each, dict) for each in (*_calls(value), *value["outcomes"].values()))
    )


def identity_of(report: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the identity of a run or a conversation; a later report with the same identity replaces earlier ones."""
    turns = report.get("turns")
    if isinstance(turns, list) and turns and isinstance(turns[0], dict):
        return (str(report.get("conversation_id")), str(turns[0].get("trace_id")))
    return (report["trace_id"], report["root_span_id"], str(report.get("unit")))


def counted_run(report: Mapping[str, Any]) -> CountedRun:
    """Return the counted run of a report in JSON; its time is the start of its first call."""
    outcomes: Mapping[str, Mapping[str, Any]] = report["outcomes"]
    agent = report.get("agent")
    found = tuple(Reason(_evaluator(text, outcomes), text) for text in reasons_in(report))
    return CountedRun(
        trace_id=report["trace_id"],
        start_ns=first_call_ns(report),
        agent=agent if isinstance(agent, str) else None,
        evaluators=frozenset(name for name, each in outcomes.items() if each.get("outcome") != "skipped"),
        is_conversation=report.get("unit") == "conversation",
        is_failing=report.get("verdict") == "fail",
        reasons=found,
        errors=(None,) * len(found),
        traces=(report["trace_id"],) * len(found),
    )


def first_call_ns(report: Mapping[str, Any]) -> int | None:
    """Return when the first call of a report started, in ns since the Unix epoch; None if no call has a time."""
    starts = (each.get("start_unix_nano") for each in _calls(report))
    return min(filter(_is_time, starts), default=None)


def has_wrong_end(report: Mapping[str, Any]) -> bool:
    """Return whether the end of a report is given, and is no time of a span."""
    end = report.get("end_unix_nano")
    return end is not None and end != 0 and not _is_time(end)


def reasons_in(report: Mapping[str, Any]) -> list[str]:
    """Return the reasons of a report; none if it was written without them."""
    texts = report.get("reasons")
    return [each for each in texts if isinstance(each, str)] if isinstance(texts, list) else []


def bare_report(report: Mapping[str, Any], *, explained: bool = False) -> dict[str, Any]:
    """Return a report without arguments, results, texts of errors and the attributes of the run.

    If `explained`, explanations and messages, which may quote content, stay.
    """
    return {
        **report,
        "tool_calls": None if report["tool_calls"] is None else [_bare_call(each) for each in report["tool_calls"]],
        "outcomes": {name: _bare_outcome(each, explained=explained) for name, each in report["outcomes"].items()},
        "attributes": None,
    }


def report_of_json(report: Mapping[str, Any]) -> Report:
    """Return a report of a run with its verdicts, names and errors of calls, and attributes.

    Without an end of its own, it ends with its last call; None if no call has a time. It takes what `is_report`
    accepts.
    """
    calls = [each for each in _calls(report) if isinstance(each.get("name"), str)]
    ends = (each.get("end_unix_nano") for each in calls)
    end = report.get("end_unix_nano")
    run = Trajectory(
        calls=tuple(
            ToolCall(name=each["name"], error=None if each.get("error") is None else "error") for each in calls
        ),
        trace_id=_bytes(report["trace_id"]),
        root_span_id=_bytes(report["root_span_id"]),
        attributes=_attributes(report),
        end_ns=end if _is_time(end) else max(filter(_is_time, ends), default=None),
        completeness=Completeness(paused=tuple(map(str, report.get("paused") or ()))),
    )
    evaluations = tuple(_evaluations(report["outcomes"]))
    return Report(trajectory=run, evaluations=evaluations, close_reason=CloseReason.ROOT_ENDED)


def _is_time(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and 0 < value <= _LATEST_NS


def _calls(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    return report["tool_calls"] or []


def _bare_call(call: Mapping[str, Any]) -> dict[str, Any]:
    error = None if call.get("error") is None else "error"
    return {**call, "arguments": None, "result": None, "error": error}


def _bare_outcome(outcome: Mapping[str, Any], *, explained: bool) -> dict[str, Any]:
    told = {key: value if explained or key not in _EXPLAINING else None for key, value in outcome.items()}
    details = told.get("details")
    if isinstance(details, dict) and isinstance(rows := details.get("deviations"), list):
        bare = [bare_deviation(row) if isinstance(row, dict) else row for row in rows]
        told["details"] = {**details, "deviations": bare}
    return told


def _evaluator(reason: str, outcomes: Mapping[str, Any]) -> str:
    """Return the evaluator of a reason, whose name may have a colon."""
    named = [name for name in outcomes if reason.startswith(f"{name}: ")]
    return max(named, key=len, default=reason.partition(": ")[0])


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
