"""The event `gen_ai.evaluation.result` of the GenAI semantic conventions, as log event and as span event."""

from __future__ import annotations

import hashlib
from typing import Any, Final, assert_never

from spanscore.model import Evaluation, Failed, Report, Score, Skipped

NAME: Final = "gen_ai.evaluation.result"
SCHEMA_VERSION: Final = "1"
MAX_EXPLANATION_CHARS: Final = 1024

_EVALUATOR_TYPE: Final = "deterministic"


def evaluation_id(report: Report, evaluation: Evaluation) -> str:
    """Return an id that is the same whenever the same trajectory is scored again by the same evaluator.

    Delivery is at least once: whoever stores events tells repeated ones by it.
    """
    trajectory = report.trajectory
    parts = (trajectory.trace_id, trajectory.root_span_id, evaluation.name.encode(), str(report.revision).encode())
    return hashlib.blake2b(b"\0".join(parts), digest_size=16).hexdigest()


def event_attributes(report: Report, evaluation: Evaluation) -> dict[str, Any]:
    """Return the attributes of the event. They hold names, ids and numbers, never a tool's arguments or results."""
    attributes: dict[str, Any] = {
        "gen_ai.evaluation.name": evaluation.name,
        "gen_ai.evaluation.evaluator.id": evaluation.type,
        "gen_ai.evaluation.evaluator.type": _EVALUATOR_TYPE,
        **_outcome(evaluation),
        "spanscore.evaluator.type": evaluation.type,
        "spanscore.evaluation.id": evaluation_id(report, evaluation),
        "spanscore.close_reason": report.close_reason.value,
        "spanscore.complete": report.complete,
        "spanscore.revision": report.revision,
        "spanscore.schema_version": SCHEMA_VERSION,
    }
    optional = {
        "gen_ai.response.id": report.trajectory.response_id,
        "gen_ai.agent.name": report.trajectory.agent,
        "gen_ai.conversation.id": report.trajectory.conversation_id,
    }
    attributes.update((key, value) for key, value in optional.items() if value is not None)
    return attributes


def label(evaluation: Evaluation) -> str:
    """Return `pass`, `fail`, or `not_evaluated` where there is no score."""
    outcome = evaluation.outcome
    if not isinstance(outcome, Score):
        return "not_evaluated"
    return "pass" if outcome.passed else "fail"


def _outcome(evaluation: Evaluation) -> dict[str, Any]:
    outcome = evaluation.outcome
    told: dict[str, Any] = {"gen_ai.evaluation.score.label": label(evaluation)}
    match outcome:
        case Score(value, _, explanation):
            told["gen_ai.evaluation.score.value"] = float(value)
            told["gen_ai.evaluation.explanation"] = explanation[:MAX_EXPLANATION_CHARS]
        case Skipped(reason):
            told["gen_ai.evaluation.explanation"] = reason[:MAX_EXPLANATION_CHARS]
        case Failed(error_type, message):
            told["error.type"] = error_type
            told["gen_ai.evaluation.explanation"] = message[:MAX_EXPLANATION_CHARS]
        case _:
            assert_never(outcome)
    return told
