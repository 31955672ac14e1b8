"""The board `spanscore: one evaluator`: who passes it, the runs that fail it, and how its scores are spread."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.builders import dashboard

from boards import EVALUATOR, NONE_FAILED, OVERVIEW, board, link
from looks import ALL, OUTCOME, SHARE, Says
from panels import Query, bars, distribution, failures, history, lines, number
from promql import (
    DECIDED,
    EVALUATION,
    FAILED,
    MOVING,
    PASSED,
    RANKED,
    WHOLE,
    increase,
    mean,
    nth,
    of,
    or_none,
    quantile,
    rate,
    share,
    step,
)
from tables import found_traces, ranking

_SCORE: Final = "gen_ai_evaluation_score"
_COUNT: Final = "spanscore_evaluations_total"
_PASSED: Final = f"{EVALUATION},{PASSED}"
_FAILED: Final = f"{EVALUATION},{FAILED}"
_DECIDED: Final = f"{EVALUATION},{DECIDED}"
_AGENT: Final = "gen_ai_agent_name"
_IN_SERVICE: Final = f"service_name, {_AGENT}"
_RANKINGS: Final = ((_AGENT, RANKED), (_IN_SERVICE, WHOLE))
_LEGEND: Final = "{{gen_ai_agent_name}}"
_NOTHING: Final = "This evaluator scored nothing in this time range. Choose another one, or widen the range."


def evaluator() -> dashboard.Dashboard:
    """Return the board."""
    made = board(EVALUATOR, "spanscore: one evaluator", "One evaluator in detail.", one_evaluator=True)
    made.with_row(dashboard.Row("Evaluations"))
    _numbers(made)
    _outcomes(made)
    _traces(made)
    _agents(made)
    _scores(made)
    return made


def _passing(by: str, window: str) -> str:
    return share(increase(_COUNT, _PASSED, by, window), increase(_COUNT, _DECIDED, by, window))


def _numbers(made: dashboard.Dashboard) -> None:
    everything = increase(_COUNT, EVALUATION)
    skipped, broken = (increase(_COUNT, f'{EVALUATION},spanscore_outcome="{word}"') for word in ("skipped", "failed"))
    said = Says("Pass rate", "Evaluations that passed, of those that passed or failed.", _NOTHING)
    made.with_panel(number(said, _passing("", WHOLE), unit=SHARE, judged=True))
    failing = f"round({or_none(increase(_COUNT, _FAILED), everything)})"
    made.with_panel(number(Says("Failing runs", "", _NOTHING), failing))
    made.with_panel(number(Says("Evaluations", "", _NOTHING), f"round({everything})"))
    average = mean(_SCORE, EVALUATION, window=WHOLE)
    made.with_panel(number(Says("Mean score", "", _NOTHING), average, unit=SHARE, judged=True))
    said = Says("Skipped", "Too little was recorded to evaluate.", _NOTHING)
    made.with_panel(number(said, share(skipped, everything), unit=SHARE))
    said = Says("Evaluator errors", "Evaluations that failed because of an error in the evaluator.", _NOTHING)
    made.with_panel(number(said, f"round({or_none(broken, everything)})"))


def _outcomes(made: dashboard.Dashboard) -> None:
    by_agent = _passing(_AGENT, MOVING)
    ranked = share(rate(_COUNT, _PASSED, _AGENT, RANKED), rate(_COUNT, _DECIDED, _AGENT, RANKED))
    worst = [(_LEGEND, of(by_agent, _AGENT, nth(which, "bottomk", ranked))) for which in (1, 2, 3, 4)]
    said = Says("Pass rate", "Of all agents, and of the four worst of the time range.", _NOTHING)
    made.with_panel(lines(said, (ALL, _passing("", MOVING)), *worst, unit=SHARE))
    outcomes: Query = (OUTCOME, step(_COUNT, EVALUATION, "spanscore_outcome"))
    said = Says("Outcomes", "skipped: too little was recorded. evaluator error: it failed to evaluate.", _NOTHING)
    made.with_panel(bars(said, outcomes))
    most = f"topk(10, {increase(_COUNT, _FAILED, _AGENT, RANKED)} > 0)"
    said = Says("Failing runs", "Of the ten agents with the most of them.", NONE_FAILED)
    made.with_panel(failures(said, (_LEGEND, of(step(_COUNT, _FAILED, _AGENT), _AGENT, most))))


def _traces(made: dashboard.Dashboard) -> None:
    made.with_row(dashboard.Row("Traces of failing runs"))
    made.with_panel(
        found_traces(
            Says(
                "Traces of failing runs: $service",
                "The newest 20 traces in Jaeger with a score of this evaluator and a failing one, which may be "
                "another's. A trace id opens the trace. Needs spanscore in line (annotate: root_event).",
                "Jaeger has no such trace. Runs fail all the same? Put spanscore in line.",
            ),
            "gen_ai.evaluation.score.label=fail gen_ai.evaluation.name=$evaluator",
        )
    )


def _agents(made: dashboard.Dashboard) -> None:
    agent = {"service": "${__data.fields.service}", "agent": "${__data.fields.agent}"}
    by_agent, by_service = (f"bottomk(10, {mean(_SCORE, EVALUATION, *how)})" for how in _RANKINGS)
    made.with_row(dashboard.Row("Agents"))
    said = Says("Mean score, worst ten agents", "Red below 80 %, green from 95 %.", _NOTHING)
    made.with_panel(history(said, (_LEGEND, of(mean(_SCORE, EVALUATION, _AGENT), _AGENT, by_agent))))
    made.with_panel(
        ranking(
            Says("Worst agents", "The ten lowest mean scores. A click leads on.", _NOTHING),
            ("mean score", f"sort({by_service})"),
            ("pass rate", of(_passing(_IN_SERVICE, WHOLE), _IN_SERVICE, by_service)),
            ("evaluations", of(f"round({increase(_COUNT, EVALUATION, _IN_SERVICE)})", _IN_SERVICE, by_service)),
            links=[link("Only this agent", OVERVIEW, **agent)],
        )
    )


def _scores(made: dashboard.Dashboard) -> None:
    made.with_row(dashboard.Row("Scores"))
    said = Says("Scores", "How many runs had which score.", _NOTHING)
    made.with_panel(distribution(said, step(f"{_SCORE}_bucket", EVALUATION, "le"), unit=SHARE))
    said = Says("How low the scores go", "A tenth of the runs scored below p10, and half of them below p50.", _NOTHING)
    low, middle = (quantile(which, _SCORE, EVALUATION) for which in (0.1, 0.5))
    made.with_panel(lines(said, ("p10", low), ("p50", middle), unit=SHARE))
    errors = increase("spanscore_evaluation_errors_total", 'gen_ai_evaluation_name=~"$evaluator"', "error_type")
    said = Says("Evaluator errors by type", "It failed to evaluate.", "None: this evaluator had no error.")
    made.with_panel(ranking(said, ("errors", f"topk(10, round({errors}) > 0)")).span(24).height(6))
