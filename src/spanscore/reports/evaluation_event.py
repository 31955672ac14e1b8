"""The event `gen_ai.evaluation.result` of the GenAI semantic conventions, as log event and as span event."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, Literal, assert_never

from spanscore.messages.printable import encodable, printable
from spanscore.model import Evaluation, Failed, Report, Score, Skipped
from spanscore.reports.cases import test_names
from spanscore.reports.reasons import first_reason
from spanscore.reports.serialization import tool_calls_text

NAME: Final = "gen_ai.evaluation.result"
SCHEMA_VERSION: Final = "1"
MAX_EXPLANATION_CHARS: Final = 1024
MAX_TOOL_CALLS_CHARS: Final = 32 * 1024

_MICROSECOND: Final = 1_000
_EVALUATOR_TYPE: Final = "deterministic"


def evaluation_id(report: Report, evaluation: Evaluation) -> str:
    """Return an id that is the same whenever the same trajectory is scored again by the same evaluator.

    Delivery is at least once: stores of events recognise repeated ones by it.
    """
    trajectory, conversation = report.trajectory, report.conversation
    what = (trajectory.trace_id, trajectory.root_span_id)
    if conversation is not None:
        what = (conversation.key, conversation.turns[0].trace_id)
    parts = (*what, evaluation.name.encode(), str(report.revision).encode())
    return hashlib.blake2b(b"\0".join(parts), digest_size=16).hexdigest()


def event_attributes(report: Report, evaluation: Evaluation) -> dict[str, Any]:
    """Return the attributes of the event, as UTF-8 can encode them: those of the evaluation, then those of its run.

    The most useful come first: viewers show them in order. They are names, ids and numbers. A tool's arguments and
    results are included only if the report allows it, and so is the message of a failed evaluator: exceptions quote
    data.
    """
    return attributes_of_evaluation(report, evaluation) | attributes_of_run(report)


def attributes_of_evaluation(report: Report, evaluation: Evaluation) -> dict[str, Any]:
    """Return the attributes that tell one event of a run from another."""
    return {
        **attributes_of_outcome(report, evaluation),
        **attributes_of_evaluator(evaluation.type, evaluation.version),
        "spanscore.evaluation.id": evaluation_id(report, evaluation),
    }


def attributes_of_outcome(report: Report, evaluation: Evaluation) -> dict[str, Any]:
    """Return the attributes of an event that are not the same in all events of its evaluator; except its id."""
    return _encodable({"gen_ai.evaluation.name": evaluation.name, **_outcome(report, evaluation)})


def attributes_of_evaluator(evaluator: str, version: str | None) -> dict[str, Any]:
    """Return the attributes of an event that are the same in all events of an evaluator of this type and version."""
    return _encodable(
        {
            "gen_ai.evaluation.evaluator.id": evaluator,
            "gen_ai.evaluation.evaluator.type": _EVALUATOR_TYPE,
            "gen_ai.evaluation.evaluator.version": version,
            "spanscore.evaluator.type": evaluator,
        }
    )


def attributes_of_run(report: Report) -> dict[str, Any]:
    """Return the attributes that all events of a run share."""
    attributes = {
        "spanscore.close_reason": report.close_reason.value,
        "spanscore.complete": report.complete,
        "spanscore.revision": report.revision,
        "spanscore.schema_version": SCHEMA_VERSION,
        "gen_ai.response.id": report.trajectory.response_id,
        "gen_ai.agent.name": report.trajectory.agent,
        "gen_ai.conversation.id": report.trajectory.conversation_id,
        "spanscore.keep.kept": False if report.dropped else None,
        **_of_conversation(report),
        **test_names(report.trajectory),
    }
    if report.tool_content:
        attributes["spanscore.tool_calls"] = tool_calls_text(report.trajectory, MAX_TOOL_CALLS_CHARS)
    return _encodable(attributes)


def _encodable(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: encodable(value) if isinstance(value, str) and not value.isascii() else value
        for key, value in attributes.items()
        if value is not None
    }


def span_attributes(report: Report) -> dict[str, str]:
    """Return the attributes of the evaluated span if the run failed, for searches; else empty.

    `spanscore.verdict` is `fail`, and `spanscore.failing` has the names of what failed, with commas between them:
    viewers search for a text, and not in lists.
    """
    failing = encodable(",".join(report.failing))
    return {"spanscore.verdict": "fail", "spanscore.failing": failing} if failing else {}


def event_time_ns(start_ns: int, end_ns: int) -> int:
    """Return the end of a span as backends compute it that store start and duration in whole microseconds.

    They hide an event that is later, even by a nanosecond.
    """
    if end_ns < start_ns:
        return start_ns
    return max(start_ns, (start_ns // _MICROSECOND + (end_ns - start_ns) // _MICROSECOND) * _MICROSECOND)


def child_span_name(report: Report) -> str:
    """Return the name of the child span with the events."""
    subject = report.trajectory.agent or report.trajectory.service
    return f"evaluate {printable(subject)}" if subject else "evaluate"


def severity(evaluation: Evaluation) -> Literal["INFO", "WARN", "ERROR"]:
    """Return the severity of an evaluation."""
    if isinstance(evaluation.outcome, Failed):
        return "ERROR"
    return "WARN" if evaluation.label == "fail" else "INFO"


def sentence(told: Mapping[str, Any]) -> str:
    """Return the body of the event, as most log viewers show only that."""
    said = told.get("gen_ai.evaluation.score.label", "informational")
    verdict = f"{told['gen_ai.evaluation.name']}: {said}"
    explanation = told["gen_ai.evaluation.explanation"]
    return f"{verdict}. {explanation}" if explanation else verdict


def failure_text(report: Report, failed: Failed) -> str:
    """Return the error of a failed evaluator, with its message only if content may be shown."""
    return f"{failed.error_type}: {failed.message}" if report.tool_content else failed.error_type


def _deviating_call(score: Score) -> str | None:
    """Return the id of the span of the first deviating call, if an evaluator records it."""
    deviations = score.details.get("deviations")
    if not isinstance(deviations, list):  # a plug-in's details may be anything
        return None
    found = (each.get("span_id") for each in deviations if isinstance(each, Mapping))
    return next((span_id for span_id in found if isinstance(span_id, str)), None)


def _of_conversation(report: Report) -> dict[str, Any]:
    conversation = report.conversation
    if conversation is None:
        return {}
    return {
        "spanscore.unit": report.trajectory.unit.value,
        "spanscore.conversation.turns": len(conversation.turns),
        "spanscore.conversation.finished": None if conversation.finished is None else conversation.finished.value,
        "spanscore.conversation.continued": conversation.continued or None,
    }


def _outcome(report: Report, evaluation: Evaluation) -> dict[str, Any]:
    outcome = evaluation.outcome
    more: dict[str, Any] = {}
    match outcome:
        case Score(value, passed):
            explanation = report.told(outcome)
            if not passed:
                more["spanscore.fail_reason"] = first_reason(evaluation, report)
            more["gen_ai.evaluation.score.value"] = float(value)
            if call := _deviating_call(outcome):
                more["spanscore.call.span_id"] = call
        case Skipped(reason):
            explanation = reason
        case Failed(error_type, message):
            explanation = message if report.tool_content else f"the evaluator had an error: {error_type}"
            more["spanscore.fail_reason"] = first_reason(evaluation, report)
            more["error.type"] = error_type
        case _:
            assert_never(outcome)
    return {
        "gen_ai.evaluation.score.label": evaluation.label,
        "gen_ai.evaluation.explanation": explanation[:MAX_EXPLANATION_CHARS],
        **more,
    }
