"""The JSON form of a report, as `spanscore score --format json` and the jsonl exporter write it.

The attributes of a run select the row of a dataset, and may contain everything that a user wrote. A person who scores
a recording has them already. A live exporter writes into a file that is kept and read elsewhere: there they are null
unless `tool_content` is on. Attributes in `match` would be safe, but those in `expected_from` are whole expectations.
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final, assert_never

from msgspec.json import Encoder

from spanscore.model import (
    JSON,
    NOT_RECORDED,
    Attributes,
    AttributeValue,
    CloseReason,
    Completeness,
    ConversationOutline,
    Evaluation,
    Failed,
    Outcome,
    Report,
    Score,
    Skipped,
    ToolCall,
    Trajectory,
)
from spanscore.reports.cases import named_case, test_names
from spanscore.reports.reasons import reasons

_CONTENT: Final = frozenset({"path", "expected", "actual", "more"})
"""The keys of a deviation that have content of arguments or results."""

_ENCODER: Final = Encoder(enc_hook=str)

MAX_ATTRIBUTES: Final = 128
MAX_ATTRIBUTE_CHARS: Final = 4_096
LEFT_OUT: Final = "spanscore.attributes_left_out"
"""The key that says how many attributes are missing beyond `MAX_ATTRIBUTES`."""


def report_line(report: Report, *, content: bool = True, attributes: bool = True) -> str:
    """Return a report as one line of JSON, without the line's end.

    `content` says whether arguments, results, texts of errors and the attributes of the run may be in it; without
    `attributes`, these last are left out all the same.
    """
    return _compact(report_object(report, content=content, attributes=attributes))


def report_object(report: Report, *, content: bool = True, attributes: bool = True) -> dict[str, Any]:
    """Return a report as a JSON object. Unrecorded values are null, and so are values that may not be in it."""
    trajectory = report.trajectory
    verdict = report.verdict
    return {
        "trace_id": trajectory.trace_id.hex(),
        "root_span_id": trajectory.root_span_id.hex(),
        "unit": trajectory.unit.value,
        "service": trajectory.service,
        "agent": trajectory.agent,
        "conversation_id": trajectory.conversation_id,
        "end_unix_nano": trajectory.end_ns,
        "test_case": named_case(trajectory),
        "test_suite": test_names(trajectory).get("test.suite.name"),
        "close_reason": report.close_reason.value,
        "complete": report.complete,
        "verdict": verdict,
        "reasons": [each.text for each in reasons(report)] if verdict == "fail" else [],
        "revision": report.revision,
        "tool_calls": [_tool_call(call, content=content) for call in trajectory.calls],
        "withheld_calls": [call._asdict() for call in trajectory.withheld],
        **({"kept": False} if report.dropped else {}),
        **({"paused": list(trajectory.completeness.paused)} if trajectory.completeness.paused else {}),
        **({} if report.conversation is None else _conversation(report.conversation)),
        "outcomes": {
            evaluation.name: {"type": evaluation.type, **_evaluation(evaluation, content=content)}
            for evaluation in report.evaluations
        },
        "attributes": _attributes(trajectory.attributes) if content and attributes else None,
    }


def _conversation(conversation: ConversationOutline) -> dict[str, Any]:
    turns = [{"trace_id": turn.trace_id.hex(), "tool_calls": turn.tool_calls} for turn in conversation.turns]
    finished = None if conversation.finished is None else conversation.finished.value
    return {"turns": turns, "finished": finished, "continued": conversation.continued}


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
    try:
        return _ENCODER.encode(value).decode()
    except UnicodeEncodeError:  # half of a surrogate pair, for which JSON has an escape
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _tool_call(call: ToolCall, *, content: bool = True) -> dict[str, Any]:
    return {
        "name": call.name,
        "arguments": call.arguments if content and call.arguments is not NOT_RECORDED else None,
        "result": call.result if content and call.result is not NOT_RECORDED else None,
        "error": call.error if content else call.error_without_content,
        "call_id": call.call_id,
        "span_id": None if call.span_id is None else call.span_id.hex(),
        "start_unix_nano": call.start_ns,
        "end_unix_nano": call.end_ns,
        "agent": call.agent,
        **({"restored": True} if call.restored else {}),
        **({"may_be_refused": True} if call.may_be_refused else {}),
    }


def _attributes(attributes: Attributes) -> dict[str, JSON]:
    """Return the attributes as JSON. If there are too many, the first ones, which are the resource's, are left out."""
    left_out = max(0, len(attributes) - MAX_ATTRIBUTES)
    told = {key: _bounded(value) for key, value in islice(attributes.items(), left_out, None)}
    return told | {LEFT_OUT: left_out} if left_out else told


def _bounded(value: AttributeValue) -> JSON:
    told = _json(value)
    if told is None or isinstance(told, (bool, int, float)):
        return told
    text = told if isinstance(told, str) else _compact(told)
    more = len(text) - MAX_ATTRIBUTE_CHARS
    return f"{text[:MAX_ATTRIBUTE_CHARS]}… ({more:,} more characters)" if more > 0 else told


def _json(value: AttributeValue) -> JSON:
    match value:
        case bytes():
            return b64encode(value).decode()
        case float() if not math.isfinite(value):
            return str(value)
        case list() | tuple():  # an SDK's sequences are tuples
            return [_json(item) for item in value]
        case dict():
            return {key: _json(item) for key, item in value.items()}
        case _:
            return value


def _evaluation(evaluation: Evaluation, *, content: bool) -> dict[str, Any]:
    told = _outcome(evaluation.outcome, content=content)
    if evaluation.informational:
        told["informational"] = True
        if "passed" in told:
            told["passed"] = None
    return told


def _outcome(outcome: Outcome, *, content: bool) -> dict[str, Any]:
    match outcome:
        case Score(value, passed, explanation, details, without_content):
            told = dict(details)
            if not content:
                explanation = explanation if without_content is None else without_content
                if isinstance(rows := told.get("deviations"), (list, tuple)):
                    told["deviations"] = [bare_deviation(row) if isinstance(row, Mapping) else row for row in rows]
            return {"outcome": "score", "value": value, "passed": passed, "explanation": explanation, "details": told}
        case Skipped(reason):
            return {"outcome": "skipped", "reason": reason}
        case Failed(error_type, message):
            message = message if content else f"the evaluator had an error: {error_type}"
            return {"outcome": "failed", "error_type": error_type, "message": message}
        case _:
            assert_never(outcome)


def bare_deviation(deviation: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of a score's `deviations` without content of arguments and results."""
    return {key: value for key, value in deviation.items() if key not in _CONTENT or "path" not in deviation}


CALL_KEYS: Final = tuple(_tool_call(ToolCall(name="")))
"""The keys of a call in a report."""
REPORT_KEYS: Final = frozenset(
    report_object(
        Report(
            trajectory=Trajectory(calls=(), completeness=Completeness(paused=("",))),
            evaluations=(),
            close_reason=CloseReason.ROOT_ENDED,
            conversation=ConversationOutline(turns=()),
        )
    )
)
"""The keys of a report."""
