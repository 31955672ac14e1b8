"""The JSON form of a report, as `spanscore score --format json` and the jsonl exporter write it."""

from __future__ import annotations

import json
from typing import Any, Final, assert_never

from spanscore.model import (
    NOT_RECORDED,
    Evaluation,
    Failed,
    Outcome,
    Recorded,
    Report,
    Score,
    Skipped,
    ToolCall,
    Trajectory,
)

_CONTENT: Final = frozenset({"path", "expected", "actual", "more"})
"""What a deviation in arguments or results says of them."""


def report_line(report: Report, *, content: bool = True) -> str:
    """Return a report as one line of JSON, without the line's end.

    Args:
        report: what to write.
        content: whether arguments and results may be in it.
    """
    told = report_object(report)
    return _compact(told if content else without_content(report, told))


def report_object(report: Report) -> dict[str, Any]:
    """Return a report as a JSON object. What was not recorded is null."""
    trajectory = report.trajectory
    return {
        "trace_id": trajectory.trace_id.hex(),
        "root_span_id": trajectory.root_span_id.hex(),
        "unit": trajectory.unit.value,
        "service": trajectory.service,
        "agent": trajectory.agent,
        "conversation_id": trajectory.conversation_id,
        "close_reason": report.close_reason.value,
        "complete": report.complete,
        "revision": report.revision,
        "tool_calls": [_tool_call(call) for call in trajectory.calls],
        "outcomes": {evaluation.name: _evaluation(evaluation) for evaluation in report.evaluations},
    }


def without_content(report: Report, told: dict[str, Any]) -> dict[str, Any]:
    """Return a report's JSON object without arguments, results and what errors say."""
    calls = [
        {**call, "arguments": None, "result": None, "error": call["error"] and "not shown"}
        for call in told["tool_calls"]
    ]
    outcomes = {
        evaluation.name: _plain(evaluation.outcome, told["outcomes"][evaluation.name])
        for evaluation in report.evaluations
    }
    return {**told, "tool_calls": calls, "outcomes": outcomes}


def _plain(outcome: Outcome, told: dict[str, Any]) -> dict[str, Any]:
    match outcome:
        case Score() as score:
            deviations = score.details.get("deviations")
            rows = [
                {key: value for key, value in row.items() if key not in _CONTENT or "path" not in row}
                for row in deviations or ()
            ]
            details = {**told["details"], "deviations": rows} if deviations else told["details"]
            plain = score.explanation if score.without_content is None else score.without_content
            return {**told, "explanation": plain, "details": details}
        case Failed(error_type=kind):
            return {**told, "message": f"the evaluator went wrong: {kind}"}
        case _:
            return told


def tool_calls_text(trajectory: Trajectory, limit: int) -> str:
    """Return the first tool calls as a JSON array: as many as there are, or as fit into so many characters."""
    texts: list[str] = []
    left = limit - len("[]")
    for call in trajectory.calls:
        text = _compact(_tool_call(call))
        left -= len(text) + len(",")
        if left < 0:
            break
        texts.append(text)
    return f"[{','.join(texts)}]"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _tool_call(call: ToolCall) -> dict[str, Any]:
    return {
        "name": call.name,
        "arguments": _recorded(call.arguments),
        "result": _recorded(call.result),
        "error": call.error,
        "call_id": call.call_id,
        "span_id": None if call.span_id is None else call.span_id.hex(),
        "start_unix_nano": call.start_ns,
        "end_unix_nano": call.end_ns,
        "agent": call.agent,
    }


def _recorded(value: Recorded) -> Any:
    return None if value is NOT_RECORDED else value


def _evaluation(evaluation: Evaluation) -> dict[str, Any]:
    return {"type": evaluation.type, **_outcome(evaluation.outcome)}


def _outcome(outcome: Outcome) -> dict[str, Any]:
    match outcome:
        case Score(value, passed, explanation, details):
            return {
                "outcome": "score",
                "value": value,
                "passed": passed,
                "explanation": explanation,
                "details": dict(details),
            }
        case Skipped(reason):
            return {"outcome": "skipped", "reason": reason}
        case Failed(error_type, message):
            return {"outcome": "failed", "error_type": error_type, "message": message}
        case _:
            assert_never(outcome)
