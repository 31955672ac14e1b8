"""The calls of a run that any evaluator found wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spanscore.compare.alignment import whole
from spanscore.contracts.plugins import is_built_in
from spanscore.model import Evaluation, Report, Score


def details_of(evaluation: Evaluation) -> Mapping[str, Any]:
    """Return the details of a built-in evaluator that a run failed. A plug-in's may be anything: return none."""
    if isinstance(outcome := evaluation.outcome, Score) and evaluation.label == "fail":
        return outcome.details if is_built_in("evaluators", evaluation.type) else {}
    return {}


def marked_calls(report: Report, besides: str | None = None) -> dict[int, str]:
    """Return for each such call, by its index, `failed` and the names of the evaluators that it deviates for.

    The findings of the evaluator `besides` are left out.
    """
    found = {index: ["failed"] for index, call in enumerate(report.trajectory.calls) if call.error is not None}
    for evaluation in report.evaluations:
        for row in whole(details_of(evaluation).get("deviations", ())) if evaluation.name != besides else ():
            if row.get("call") is not None and row["kind"] != "error":
                found.setdefault(row["call"], []).append(evaluation.name)
    return {index: ", ".join(dict.fromkeys(words)) for index, words in found.items()}
