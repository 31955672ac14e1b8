"""The board `spanscore: one evaluator`: who passes it, how its scores are spread, and the runs that fail it."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.builders import dashboard

from boards import EVALUATOR, OVERVIEW, board, link
from panels import SHARE, bars, distribution, found_traces, lines, number, ranking
from promql import EVALUATION, WHOLE, increase, mean, or_zero, quantile, rate, share

_SCORE: Final = "gen_ai_evaluation_score"
_COUNT: Final = "spanscore_evaluations_total"
_PASSED: Final = f'{EVALUATION},spanscore_outcome="pass"'
_FAILED: Final = f'{EVALUATION},spanscore_outcome="fail"'
_DECIDED: Final = f'{EVALUATION},spanscore_outcome=~"pass|fail"'
_SKIPPED: Final = f'{EVALUATION},spanscore_outcome="skipped"'
_AGENT: Final = "service_name, gen_ai_agent_name"
_LEGEND: Final = "{{service_name}} · {{gen_ai_agent_name}}"


def evaluator() -> dashboard.Dashboard:
    """Return the board."""
    made = board(EVALUATOR, "spanscore: one evaluator", "One evaluator in detail.", one_evaluator=True)
    _numbers(made)
    _scores(made)
    _failing_runs(made)
    return made


def _numbers(made: dashboard.Dashboard) -> None:
    passing = share(increase(_COUNT, _PASSED, window=WHOLE), increase(_COUNT, _DECIDED, window=WHOLE))
    skipped = share(increase(_COUNT, _SKIPPED, window=WHOLE), increase(_COUNT, EVALUATION, window=WHOLE))
    made.with_panel(number("Pass rate", "", passing, unit=SHARE, judged=True))
    made.with_panel(number("Mean score", "", mean(_SCORE, EVALUATION, window=WHOLE), unit=SHARE, judged=True))
    made.with_panel(number("Evaluations", "", increase(_COUNT, EVALUATION, window=WHOLE)))
    made.with_panel(number("Skipped", "Too little was recorded to evaluate.", skipped, unit=SHARE))


def _scores(made: dashboard.Dashboard) -> None:
    buckets = increase(f"{_SCORE}_bucket", EVALUATION, "le")
    passing = share(increase(_COUNT, _PASSED, _AGENT, WHOLE), increase(_COUNT, _DECIDED, _AGENT, WHOLE))
    agent = {"service": "${__data.fields.service}", "agent": "${__data.fields.agent}"}
    made.with_panel(
        distribution("Scores", "How many runs had which score. A point is one run and leads to its trace.", buckets)
    )
    made.with_panel(
        lines(
            "How low the scores go",
            "A tenth of the runs scored below p10, and half of them below p50.",
            ("p10", quantile(0.1, _SCORE, EVALUATION)),
            ("p50", quantile(0.5, _SCORE, EVALUATION)),
            unit=SHARE,
            exemplars=True,
        )
    )
    made.with_panel(lines("Mean score by agent", "", (_LEGEND, mean(_SCORE, EVALUATION, _AGENT)), unit=SHARE))
    made.with_panel(
        lines(
            "Pass rate by agent",
            "",
            (_LEGEND, share(rate(_COUNT, _PASSED, _AGENT), rate(_COUNT, _DECIDED, _AGENT))),
            unit=SHARE,
        )
    )
    made.with_panel(
        ranking(
            "Agents",
            "",
            ("mean score", f"sort({mean(_SCORE, EVALUATION, _AGENT, WHOLE)})"),
            ("pass rate", passing),
            ("evaluations", increase(_COUNT, EVALUATION, _AGENT, WHOLE)),
            links=[link("Only this agent", OVERVIEW, **agent)],
        )
    )
    errors = increase("spanscore_evaluation_errors_total", 'gen_ai_evaluation_name=~"$evaluator"', "error_type", WHOLE)
    made.with_panel(ranking("Errors of the evaluator", "It went wrong itself.", ("errors", or_zero(errors))))


def _failing_runs(made: dashboard.Dashboard) -> None:
    outcomes = increase(_COUNT, EVALUATION, "spanscore_outcome")
    made.with_panel(bars("Outcomes", "", ("{{spanscore_outcome}}", outcomes)))
    failing = increase(_COUNT, _FAILED, _AGENT)
    made.with_panel(
        bars("Failing runs", "A point is one run and leads to its trace.", (_LEGEND, failing), exemplars=True)
    )
    made.with_panel(
        found_traces(
            "Traces of failing runs: $service",
            "The newest traces in Jaeger with a score of this evaluator and a failing one, which may be another's. A "
            "trace id opens the trace. Needs spanscore in line (annotate: root_event).",
            "gen_ai.evaluation.score.label=fail gen_ai.evaluation.name=$evaluator",
        )
    )
