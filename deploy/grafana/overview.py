"""The board `spanscore`: how agents do, what goes wrong with their tools, which runs failed, and spanscore itself."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.builders import dashboard

from boards import EVALUATOR, FIRING, OVERVIEW, board, link
from panels import SHARE, Query, bars, distribution, found_traces, history, lines, number, ranking
from promql import EVALUATION, EVERYTHING, RUN, WHOLE, increase, mean, or_zero, quantile, rate, share

_SCORE: Final = "gen_ai_evaluation_score"
_COUNT: Final = "spanscore_evaluations_total"
_TOOL: Final = "gen_ai_execute_tool_duration_seconds"
_REPEATS: Final = "spanscore_trajectory_consecutive_same_tool_calls"
_LATENCY: Final = "spanscore_score_latency_seconds"

_PASSED: Final = f'{EVALUATION},spanscore_outcome="pass"'
_FAILED: Final = f'{EVALUATION},spanscore_outcome="fail"'
_DECIDED: Final = f'{EVALUATION},spanscore_outcome=~"pass|fail"'
_UNDECIDED: Final = f'{EVALUATION},spanscore_outcome=~"skipped|failed"'
_TOOL_FAILED: Final = f'{RUN},error_type!=""'
_THREE: Final = f'{RUN},le=~"3|3.0"'  # a bound is written 3 or 3.0, depending on how it came to Prometheus

_AGENT: Final = "service_name, gen_ai_agent_name"
_EVALUATOR: Final = "gen_ai_agent_name, gen_ai_evaluation_name"


def overview() -> dashboard.Dashboard:
    """Return the board."""
    made = board(OVERVIEW, "spanscore", "Scores of agents' tool calls, from the spans they emit.")
    _agents(made)
    _tools(made)
    _failing_runs(made)
    _itself(made)
    return made


def _agents(made: dashboard.Dashboard) -> None:
    passing = share(increase(_COUNT, _PASSED, window=WHOLE), increase(_COUNT, _DECIDED, window=WHOLE))
    undecided = share(increase(_COUNT, _UNDECIDED, window=WHOLE), increase(_COUNT, EVALUATION, window=WHOLE))
    passing_now = share(rate(_COUNT, _PASSED, _EVALUATOR), rate(_COUNT, _DECIDED, _EVALUATOR))
    mean_by_agent = f"sort(bottomk(10, {mean(_SCORE, EVALUATION, _AGENT, WHOLE)}))"
    passing_by_agent = share(increase(_COUNT, _PASSED, _AGENT, WHOLE), increase(_COUNT, _DECIDED, _AGENT, WHOLE))
    agent = {"service": "${__data.fields.service}", "agent": "${__data.fields.agent}"}
    made.with_row(dashboard.Row("Agents"))
    made.with_panel(number("Pass rate", "Evaluations that passed.", passing, unit=SHARE, judged=True))
    made.with_panel(
        number("Mean score", "From 0 to 1.", mean(_SCORE, EVALUATION, window=WHOLE), unit=SHARE, judged=True)
    )
    made.with_panel(number("Evaluations", "How many there were.", increase(_COUNT, EVALUATION, window=WHOLE)))
    made.with_panel(number("Not evaluated", "Too little was recorded, or the evaluator failed.", undecided, unit=SHARE))
    made.with_panel(
        lines("Pass rate", "", ("{{gen_ai_agent_name}} · {{gen_ai_evaluation_name}}", passing_now), unit=SHARE)
    )
    made.with_panel(
        history(
            "Mean score by agent and evaluator",
            "Red below 80 %, green from 95 %.",
            ("{{gen_ai_agent_name}} · {{gen_ai_evaluation_name}}", mean(_SCORE, EVALUATION, _EVALUATOR)),
        )
    )
    scores = distribution(
        "Scores: $evaluator",
        "How many runs had which score. A point is one run and leads to its trace.",
        increase(f"{_SCORE}_bucket", EVALUATION, "le"),
    )
    made.with_panel(scores.span(24).repeat("evaluator").repeat_direction("h").max_per_row(3))
    made.with_panel(
        ranking(
            "Worst agents",
            "The ten lowest mean scores.",
            ("mean score", mean_by_agent),
            ("pass rate", passing_by_agent),
            ("evaluations", increase(_COUNT, _DECIDED, _AGENT, WHOLE)),
            links=[link("Only this agent", OVERVIEW, **agent), link("By evaluator", EVALUATOR, **agent)],
        )
    )
    made.with_panel(ranking("Firing alerts", "", ("firing", or_zero(FIRING))))


def _tools(made: dashboard.Dashboard) -> None:
    failing = share(
        rate(f"{_TOOL}_count", _TOOL_FAILED, "gen_ai_tool_name"), rate(f"{_TOOL}_count", RUN, "gen_ai_tool_name")
    )
    errors = increase(f"{_TOOL}_count", _TOOL_FAILED, "gen_ai_tool_name, error_type", WHOLE)
    runs = increase(f"{_REPEATS}_count", RUN, "gen_ai_agent_name")
    calm = increase(f"{_REPEATS}_bucket", _THREE, "gen_ai_agent_name")
    calls = "gen_ai_invoke_agent_tool_calls"
    made.with_row(dashboard.Row("Tools and trajectories"))
    made.with_panel(lines("Tool failures", "Calls that failed.", ("{{gen_ai_tool_name}}", failing), unit=SHARE))
    made.with_panel(ranking("Errors", "", ("calls", or_zero(f"sort_desc({errors})"))))
    made.with_panel(
        lines(
            "Latency of tools",
            "Half of the calls were faster than p50, and 95 % faster than p95. A point leads to a trace.",
            ("{{gen_ai_tool_name}} p50", quantile(0.5, _TOOL, RUN, "gen_ai_tool_name")),
            ("{{gen_ai_tool_name}} p95", quantile(0.95, _TOOL, RUN, "gen_ai_tool_name")),
            unit="s",
            exemplars=True,
        )
    )
    made.with_panel(
        lines(
            "Loops",
            "Runs in which one tool was called more than four times in a row.",
            ("{{gen_ai_agent_name}}", f"({runs} - {calm}) / {runs}"),
            unit=SHARE,
        )
    )
    made.with_panel(
        distribution(
            "Repeated calls",
            "How often, in a run, a call followed one of the same tool. A point leads to a trace.",
            increase(f"{_REPEATS}_bucket", RUN, "le"),
        )
    )
    made.with_panel(
        lines(
            "Tool calls of a run",
            "",
            ("{{gen_ai_agent_name}} p50", quantile(0.5, calls, RUN, "gen_ai_agent_name")),
            ("{{gen_ai_agent_name}} p95", quantile(0.95, calls, RUN, "gen_ai_agent_name")),
        )
    )


def _failing_runs(made: dashboard.Dashboard) -> None:
    made.with_row(dashboard.Row("Failing runs"))
    failing: Query = ("{{gen_ai_agent_name}} · {{gen_ai_evaluation_name}}", increase(_COUNT, _FAILED, _EVALUATOR))
    made.with_panel(
        bars("Failing evaluations", "A point is one run and leads to its trace.", failing, exemplars=True).span(24)
    )
    made.with_panel(
        found_traces(
            "Traces of failing runs: $service",
            "The newest traces in Jaeger that carry a failing score as an event. A trace id opens the trace. Needs "
            "spanscore in line (annotate: root_event).",
            "gen_ai.evaluation.score.label=fail",
        )
    )


def _itself(made: dashboard.Dashboard) -> None:
    spans = "spanscore_spans"
    reason = "spanscore_reason"
    made.with_row(dashboard.Row("spanscore itself"))
    made.with_panel(
        lines(
            "Spans",
            "Each second. Received = in closed traces + live + late + refused + dropped.",
            ("received", rate(f"{spans}_received_total", EVERYTHING)),
            ("in closed traces", rate(f"{spans}_closed_total", EVERYTHING)),
        )
    )
    made.with_panel(
        lines(
            "Open traces",
            "They wait for their root span, or for late children.",
            ("traces", "sum(spanscore_traces_open)"),
            ("spans in them", "sum(spanscore_spans_live)"),
        )
    )
    made.with_panel(
        bars(
            "Why traces were closed",
            "All should be root_ended.",
            (
                "{{spanscore_close_reason}}",
                increase("spanscore_traces_closed_total", EVERYTHING, "spanscore_close_reason"),
            ),
            ("scored again", increase("spanscore_traces_revised_total", EVERYTHING)),
        )
    )
    made.with_panel(
        bars(
            "Late, refused and dropped spans",
            "",
            ("late: {{spanscore_reason}}", increase(f"{spans}_late_total", EVERYTHING, reason)),
            ("refused: {{spanscore_reason}}", or_zero(increase(f"{spans}_refused_total", EVERYTHING, reason))),
            ("dropped: {{spanscore_reason}}", increase(f"{spans}_dropped_total", EVERYTHING, reason)),
        )
    )
    made.with_panel(
        lines(
            "Latency",
            "From a root span's arrival until its scores go out, the decision delay included; and how long it took "
            "to read and evaluate a trace.",
            ("score p50", quantile(0.5, _LATENCY, EVERYTHING)),
            ("score p95", quantile(0.95, _LATENCY, EVERYTHING)),
            ("evaluation p95", quantile(0.95, "spanscore_evaluation_duration_seconds", EVERYTHING)),
            unit="s",
        )
    )
    failures = increase("spanscore_export_failures_total", EVERYTHING, f"spanscore_emitter, {reason}")
    errors = increase("spanscore_evaluation_errors_total", EVERYTHING, "gen_ai_evaluation_name, error_type")
    made.with_panel(
        bars(
            "Failures of exporters and evaluators",
            "",
            ("export: {{spanscore_emitter}} {{spanscore_reason}}", or_zero(failures)),
            ("evaluator: {{gen_ai_evaluation_name}} {{error_type}}", or_zero(errors)),
        )
    )
    made.with_panel(
        lines(
            "Queues and storage",
            "How full they are.",
            ("{{spanscore_queue}}", "max by (spanscore_queue) (spanscore_queue_size / spanscore_queue_capacity)"),
            ("storage", or_zero("max(spanscore_storage_size_bytes / spanscore_storage_capacity_bytes)")),
            unit=SHARE,
        )
    )
    made.with_panel(lines("Memory of spans", "", ("{{instance}}", "spanscore_memory_held_bytes"), unit="bytes"))
