"""Evaluators that answer what no evaluator may."""

from __future__ import annotations

import math
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from catalogue.scoring import a_run
from dialects.spans import TRACE_ID, built_in_reader
from spanscore.emitters.prometheus import Prometheus
from spanscore.metrics.exposition import Exposition
from spanscore.model import CloseReason, Failed, Outcome, Report, Score, Trace, Trajectory
from spanscore.reports.evaluation_event import event_attributes
from spanscore.scoring.evaluator_entry import EvaluatorEntry
from spanscore.scoring.pipeline import Pipeline


class Answers:
    """An evaluator that answers what it was given."""

    expectation = None

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def evaluate(self, trajectory: Trajectory) -> Outcome:
        """Answer."""
        outcome: Outcome = self.answer
        return outcome


def report_of(answer: Any) -> Report:
    """Return the report of a run that two evaluators were asked about, of which the first answers so."""
    bad, good = Answers(answer), Answers(Score(0.5, passed=True))
    entries = [
        EvaluatorEntry(name="bad", type="answers", resolve=lambda _: bad),
        EvaluatorEntry(name="good", type="answers", resolve=lambda _: good),
    ]
    trace = Trace(trace_id=TRACE_ID, spans=tuple(a_run()), close_reason=CloseReason.ROOT_ENDED)
    (report,) = Pipeline(entries, built_in_reader()).run(trace)
    return report


@pytest.mark.parametrize(
    "answer",
    [
        *(Score(value, passed=True) for value in (math.nan, math.inf, -math.inf, 1e308, -0.1, 1.1, True, None, "1")),
        *(None, 0.5, "0.5", math.nan, object(), [Score(1.0, passed=True)]),
    ],
)
def test_no_score_that_is_none(answer: Any) -> None:
    """It is reported as failed, never as a number, and the next evaluator is not affected."""
    report = report_of(answer)
    bad, good = report.evaluations
    assert isinstance(bad.outcome, Failed)
    assert "InvalidResult" == bad.outcome.error_type
    assert Score(0.5, passed=True) == good.outcome

    assert "gen_ai.evaluation.score.value" not in event_attributes(report, bad)
    exposition = Exposition()
    Prometheus(exposition).emit(report)
    counted = {
        (sample.name, sample.labels["gen_ai_evaluation_name"]): sample.value
        for family in text_string_to_metric_families(exposition.page(None)[1].decode())
        for sample in family.samples
        if sample.name in {"gen_ai_evaluation_score_count", "spanscore_evaluations_total"}
    }
    assert {
        ("gen_ai_evaluation_score_count", "good"): 1,
        ("spanscore_evaluations_total", "good"): 1,
        ("spanscore_evaluations_total", "bad"): 1,
    } == counted
