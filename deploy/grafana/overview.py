"""The board `spanscore`: how agents do, which runs failed, what goes wrong with their tools, and spanscore itself."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.builders import dashboard, table

import itself
import tools
from boards import EVALUATOR, FIRING, NONE_FAILED, OVERVIEW, board, link
from looks import ALL, OUTCOME, PALETTE, RED, SHARE, Says, dashed, totals
from panels import Query, bars, distribution, evidence, failures, history, lines, number
from promql import (
    DECIDED,
    EVALUATION,
    EVERYTHING,
    FAILED,
    PASSED,
    RANKED,
    RUN,
    WHOLE,
    increase,
    mean,
    nth,
    of,
    or_none,
    rate,
    share,
    step,
)
from tables import found_traces, ranking

_SCORE: Final = "gen_ai_evaluation_score"
_RUNS: Final = "spanscore_runs_total"
_COUNT: Final = "spanscore_evaluations_total"
_REASONS: Final = "spanscore_fail_reasons_total"

_AGENT: Final = "gen_ai_agent_name"
_REASON: Final = "spanscore_fail_reason"
_IN_SERVICE: Final = f"service_name, {_AGENT}"
_PAIR: Final = f"{_AGENT}, gen_ai_evaluation_name"

_SERIES: Final = "spanscore_monitor, spanscore_monitor_series"
_IN_SERIES: Final = "{{spanscore_monitor}} · {{spanscore_monitor_series}}"

_NO_RUNS: Final = "No run was scored in this time range. Send spans, or widen the range."
_NO_EVALUATIONS: Final = "No evaluation of the chosen ones in this time range. Send spans, or widen the range."


def overview() -> dashboard.Dashboard:
    """Return the board."""
    made = board(OVERVIEW, "spanscore", "Scores of agents' tool calls, from the spans they emit.")
    made.with_row(dashboard.Row("Runs"))
    _numbers(made)
    _runs(made)
    _monitors(made)
    _traces(made)
    _worst(made)
    _scores(made)
    tools.add(made)
    itself.add(made)
    return made


def _numbers(made: dashboard.Dashboard) -> None:
    runs, failing = increase(_RUNS, RUN), increase(_RUNS, f"{RUN},{FAILED}")
    passing = share(increase(_RUNS, f"{RUN},{PASSED}"), increase(_RUNS, f"{RUN},{DECIDED}"))
    everything = increase(_COUNT, EVALUATION)
    skipped, broken = (increase(_COUNT, f'{EVALUATION},spanscore_outcome="{word}"') for word in ("skipped", "failed"))
    verdict = "A run passes when an evaluation of it passed and none failed. Runs without either do not count."
    made.with_panel(number(Says("Run pass rate", verdict, _NO_RUNS), passing, unit=SHARE, judged=True))
    made.with_panel(number(Says("Failing runs", "An evaluation failed.", _NO_RUNS), f"round({or_none(failing, runs)})"))
    made.with_panel(number(Says("Runs", "", _NO_RUNS), f"round({runs})"))
    said = Says("Mean score", "Of all chosen evaluations.", _NO_EVALUATIONS)
    made.with_panel(number(said, mean(_SCORE, EVALUATION, window=WHOLE), unit=SHARE, judged=True))
    said = Says("Skipped evaluations", "Too little was recorded to evaluate.", _NO_EVALUATIONS)
    made.with_panel(number(said, share(skipped, everything), unit=SHARE))
    said = Says("Evaluator errors", "Evaluations that failed because of an error in the evaluator.", _NO_EVALUATIONS)
    made.with_panel(number(said, f"round({or_none(broken, everything)})"))


def _runs(made: dashboard.Dashboard) -> None:
    decided, passed = f"{RUN},{DECIDED}", f"{RUN},{PASSED}"
    by_agent = share(increase(_RUNS, passed, _AGENT, "$window"), increase(_RUNS, decided, _AGENT, "$window"))
    ranked = share(rate(_RUNS, passed, _AGENT, RANKED), rate(_RUNS, decided, _AGENT, RANKED))
    worst = [("{{gen_ai_agent_name}}", of(by_agent, _AGENT, nth(which, "bottomk", ranked))) for which in (1, 2, 3, 4)]
    together = share(increase(_RUNS, passed, window="$window"), increase(_RUNS, decided, window="$window"))
    said = Says("Run pass rate", "Of all agents, and of the four worst of the time range.", _NO_RUNS)
    made.with_panel(lines(said, (ALL, together), *worst, unit=SHARE))
    said = Says("Runs by verdict", "none: no evaluation passed or failed.", _NO_RUNS)
    verdicts: Query = (OUTCOME, step(_RUNS, RUN, "spanscore_outcome"))
    made.with_panel(bars(said, verdicts))
    failed = f"{RUN},{FAILED}"
    most = f"topk(10, {increase(_RUNS, failed, _AGENT, RANKED)} > 0)"
    said = Says("Failing runs", "Of the ten agents with the most of them.", NONE_FAILED)
    made.with_panel(failures(said, ("{{gen_ai_agent_name}}", of(step(_RUNS, failed, _AGENT), _AGENT, most))))
    most = f"topk(10, {increase(_REASONS, RUN, _REASON, RANKED)} > 0)"
    said = Says(
        "Failing runs by reason",
        "Of the ten reasons with the most of them. A run with several reasons counts for each; _other are the first "
        "four runs of each reason, and reasons beyond 80.",
        NONE_FAILED,
    )
    by_reason: Query = ("{{spanscore_fail_reason}}", of(step(_REASONS, RUN, _REASON), _REASON, most))
    made.with_panel(failures(said, by_reason).height(14).legend(totals()))
    said = Says(
        "Runs that wait for approval",
        "Traces that end with a pause, and traces that continue after one. The difference waits, or was given up.",
        "None: no run waited for approval.",
    )
    paused, continued = step("spanscore_runs_paused_total", RUN), step("spanscore_runs_resumed_total", RUN)
    made.with_panel(bars(said, ("paused", paused), ("continued", continued)).span(24))


def _monitors(made: dashboard.Dashboard) -> None:
    made.with_row(dashboard.Row("Monitors"))
    nothing = "None: no monitor has counted a run. Monitors are in the configuration of spanscore, under monitors."
    most = f"topk(10, max by ({_SERIES}) (spanscore_monitor_evidence @ end()))"
    query: Query = (_IN_SERIES, of(f"max by ({_SERIES}) (spanscore_monitor_evidence)", _SERIES, most))
    scale = (
        "A logarithm to base 10: 0, the red line, is the alarm; -1 a tenth of the evidence for it, -2 a hundredth. "
        "Below -6 nothing is drawn. The ten highest."
    )
    made.with_panel(evidence(Says("Evidence", scale, nothing), query))
    bad, counted = "spanscore_monitor_runs_bad_total", "spanscore_monitor_runs_total"
    share_of_bad = share(
        increase(bad, EVERYTHING, _SERIES, "$window"), increase(counted, EVERYTHING, _SERIES, "$window")
    )
    objective = of("max by (spanscore_monitor) (spanscore_monitor_objective)", "spanscore_monitor", most)
    queries = (_IN_SERIES, of(share_of_bad, _SERIES, most)), ("{{spanscore_monitor}} · at_most", objective)
    told = "Their share of the runs that the monitor counted. Dashed: the share that may fail."
    shares = lines(Says("Failing runs of monitors", told, nothing), *queries, unit=SHARE, shade=PALETTE)
    made.with_panel(dashed(shares, "B"))


def _traces(made: dashboard.Dashboard) -> None:
    made.with_row(dashboard.Row("Traces of failing runs"))
    made.with_panel(
        found_traces(
            Says(
                "Traces of failing runs: $service",
                "The newest 20 traces in Jaeger whose root span says that the run failed. A trace id opens it. Needs "
                "spanscore in line (annotate: root_event).",
                "Jaeger has no trace of a failing run. Runs fail all the same? Put spanscore in line.",
            ),
            "spanscore.verdict=fail",
        )
    )


def _worst(made: dashboard.Dashboard) -> None:
    passed, decided = f"{EVALUATION},{PASSED}", f"{EVALUATION},{DECIDED}"
    by_pair = share(increase(_COUNT, passed, _PAIR, "$window"), increase(_COUNT, decided, _PAIR, "$window"))
    worst = f"bottomk(10, {share(increase(_COUNT, passed, _PAIR, RANKED), increase(_COUNT, decided, _PAIR, RANKED))})"
    made.with_row(dashboard.Row("Worst agents and evaluators"))
    said = Says("Pass rate, worst ten", "Of evaluations. Red below 80 %, green from 95 %.", _NO_EVALUATIONS)
    legend = "{{gen_ai_agent_name}} · {{gen_ai_evaluation_name}}"
    made.with_panel(history(said, (legend, of(by_pair, _PAIR, worst))))
    made.with_panel(_agents())
    evaluator, failed = "gen_ai_evaluation_name", f"{EVALUATION},{FAILED}"
    most = f"topk(10, {increase(_COUNT, failed, evaluator, RANKED)} > 0)"
    said = Says(
        "Failing evaluations",
        "By evaluator. A run that fails two evaluators counts twice.",
        "None: of the evaluations that were made, none failed.",
    )
    made.with_panel(
        bars(said, ("{{gen_ai_evaluation_name}}", of(step(_COUNT, failed, evaluator), evaluator, most)), shade=RED)
    )
    said = Says("Firing alerts", "Their history is drawn on the graphs by the switch Alerts.", "None: no alert fires.")
    made.with_panel(ranking(said, ("firing", FIRING)))


def _agents() -> table.Panel:
    agent = {"service": "${__data.fields.service}", "agent": "${__data.fields.agent}"}
    passing = share(increase(_RUNS, f"{RUN},{PASSED}", _IN_SERVICE), increase(_RUNS, f"{RUN},{DECIDED}", _IN_SERVICE))
    worst = f"bottomk(10, {passing})"
    runs, failing = increase(_RUNS, RUN, _IN_SERVICE), increase(_RUNS, f"{RUN},{FAILED}", _IN_SERVICE)
    return ranking(
        Says("Worst agents", "The ten lowest pass rates of runs. A click leads on.", _NO_RUNS),
        ("run pass rate", f"sort({worst})"),
        ("failing runs", of(f"round({or_none(failing, runs)})", _IN_SERVICE, worst)),
        ("runs", of(f"round({runs})", _IN_SERVICE, worst)),
        ("mean score", of(mean(_SCORE, EVALUATION, _IN_SERVICE, WHOLE), _IN_SERVICE, worst)),
        links=[link("Only this agent", OVERVIEW, **agent), link("By evaluator", EVALUATOR, **agent)],
    )


def _scores(made: dashboard.Dashboard) -> None:
    made.with_row(dashboard.Row("How scores are spread"))
    said = Says("Scores: $evaluator", "How many runs had which score.", _NO_EVALUATIONS)
    scores = distribution(said, step(f"{_SCORE}_bucket", EVALUATION, "le"), unit=SHARE)
    made.with_panel(scores.span(24).repeat("evaluator").repeat_direction("h").max_per_row(3))
