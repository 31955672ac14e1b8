"""The part of the board `spanscore` about spanscore itself."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.builders import dashboard

from looks import BLUE, BYTES, SECONDS, SHARE, SPANS_PER_SECOND, Says
from panels import Query, bars, lines
from promql import EVERYTHING, RANKED, increase, of, quantile, rate, step

_SPANS: Final = "spanscore_spans"
_LATENCY: Final = "spanscore_score_latency_seconds"
_NO_METRICS: Final = "Prometheus has nothing of spanscore. Does it scrape /metrics, and does spanscore run?"
_NO_TRACES: Final = "No trace was closed in this time range. Send spans, or widen the range."


def add(made: dashboard.Dashboard) -> None:
    """Add the part."""
    made.with_row(dashboard.Row("spanscore itself"))
    _flow(made)
    _losses(made)
    _resources(made)
    _kept(made)


def _flow(made: dashboard.Dashboard) -> None:
    closed: Query = ("in closed traces", rate(f"{_SPANS}_closed_total", EVERYTHING))
    made.with_panel(
        lines(
            Says("Spans", "Received = in closed traces + live + late + refused + dropped.", _NO_METRICS),
            ("received", rate(f"{_SPANS}_received_total", EVERYTHING)),
            closed,
            unit=SPANS_PER_SECOND,
        )
    )
    made.with_panel(
        lines(
            Says("Open traces", "They wait for their root span, or for late children.", _NO_METRICS),
            ("traces", "sum(spanscore_traces_open)"),
            ("spans in them", "sum(spanscore_spans_live)"),
        )
    )
    made.with_panel(
        bars(
            Says("Why traces were closed", "All should be root_ended.", _NO_TRACES),
            *_most("{{spanscore_close_reason}}", "spanscore_traces_closed_total", "spanscore_close_reason", 10),
            ("scored again", step("spanscore_traces_revised_total", EVERYTHING)),
        )
    )
    said = (
        "From a root span's arrival until its scores go out, the decision delay included; and how long it took to read "
        "and evaluate a trace."
    )
    made.with_panel(
        lines(
            Says("Latency", said, _NO_TRACES),
            ("score p50", quantile(0.5, _LATENCY, EVERYTHING)),
            ("score p95", quantile(0.95, _LATENCY, EVERYTHING)),
            ("evaluation p95", quantile(0.95, "spanscore_evaluation_duration_seconds", EVERYTHING)),
            unit=SECONDS,
        )
    )


def _losses(made: dashboard.Dashboard) -> None:
    reason = "spanscore_reason"
    made.with_panel(
        bars(
            Says(
                "Late, refused and dropped spans",
                "Scores of their traces may be wrong.",
                "None: no span was late, refused or dropped.",
            ),
            *_most("late: {{spanscore_reason}}", f"{_SPANS}_late_total", reason, 4),
            *_most("refused: {{spanscore_reason}}", f"{_SPANS}_refused_total", reason, 4),
            *_most("dropped: {{spanscore_reason}}", f"{_SPANS}_dropped_total", reason, 4),
        )
    )
    failures, export = "spanscore_export_failures_total", "export: {{spanscore_emitter}} {{spanscore_reason}}"
    errors = "spanscore_evaluation_errors_total"
    evaluator = "evaluator: {{gen_ai_evaluation_name}} {{error_type}}"
    made.with_panel(
        bars(
            Says(
                "Failures of exporters, evaluator errors",
                "What an exporter failed to send, and evaluations in which the evaluator had an error.",
                "None: no exporter failed, and no evaluator had an error.",
            ),
            *_most(export, failures, f"spanscore_emitter, {reason}", 6),
            *_most(evaluator, errors, "gen_ai_evaluation_name, error_type", 6),
        )
    )
    made.with_panel(
        bars(
            Says(
                "Refused requests",
                "Whole requests. Those too_large, malformed or unsupported are lost; clients send others again.",
                "None: no request was refused.",
            ),
            *_most("{{spanscore_reason}}", "spanscore_requests_refused_total", reason, 10),
        )
    )
    before, after = "spanscore_outcome_from", "spanscore_outcome_to"
    made.with_panel(
        bars(
            Says(
                "Verdicts that late spans changed",
                "Runs that were scored again with their late spans: the verdict before, and the one after.",
                "None: late spans changed no verdict.",
            ),
            *_most(f"{{{{{before}}}}} → {{{{{after}}}}}", "spanscore_runs_revised_total", f"{before}, {after}", 6),
        )
    )


def _resources(made: dashboard.Dashboard) -> None:
    full = "max by (spanscore_queue) (spanscore_queue_size / spanscore_queue_capacity)"
    at_end = "spanscore_queue_size @ end() / spanscore_queue_capacity @ end()"
    fullest = f"topk(10, max by (spanscore_queue) ({at_end}))"
    made.with_panel(
        lines(
            Says("Queues and storage", "How full they are.", _NO_METRICS),
            ("{{spanscore_queue}}", of(full, "spanscore_queue", fullest)),
            ("storage", "max(spanscore_storage_size_bytes / spanscore_storage_capacity_bytes) or on () vector(0)"),
            unit=SHARE,
            shade=BLUE,
        )
    )
    largest = "topk(10, spanscore_memory_held_bytes @ end())"
    made.with_panel(
        lines(
            Says("Memory of spans", "Of the ten processes that hold the most.", _NO_METRICS),
            ("{{instance}}", of("spanscore_memory_held_bytes", "instance", largest)),
            unit=BYTES,
            shade=BLUE,
        )
    )
    made.with_panel(
        lines(
            Says(
                "Delay of exporters",
                "For how long the receiver behind an exporter has taken nothing, although items wait. The longest of "
                "all processes.",
                "None: no exporter sends over the network.",
            ),
            ("{{spanscore_emitter}}", "max by (spanscore_emitter) (spanscore_export_delay_seconds)"),
            unit=SECONDS,
            shade=BLUE,
        ).span(24)
    )


def _kept(made: dashboard.Dashboard) -> None:
    decision = "spanscore_keep_decision"
    made.with_panel(
        lines(
            Says(
                "Kept and dropped spans",
                "By the section keep; in mode observe what would be.",
                "None: the section keep is not used.",
            ),
            (f"{{{{{decision}}}}}", rate("spanscore_keep_spans_total", EVERYTHING, decision)),
            unit=SPANS_PER_SECOND,
        )
    )
    made.with_panel(
        bars(
            Says(
                "Rules of keep",
                "Traces by rule and decision, and those that were kept without a decision.",
                "None: the section keep is not used.",
            ),
            *_most(
                f"{{{{spanscore_keep_rule}}}}: {{{{{decision}}}}}",
                "spanscore_keep_traces_total",
                f"spanscore_keep_rule, {decision}",
                10,
            ),
            *_most("undecided: {{spanscore_reason}}", "spanscore_keep_undecided_total", "spanscore_reason", 4),
        )
    )


def _most(legend: str, metric: str, by: str, many: int) -> tuple[Query]:
    """Return what a counter grows by in each step, for the labels that it grew by most in the time range."""
    most = f"topk({many}, {increase(metric, EVERYTHING, by, RANKED)} > 0)"
    return ((legend, of(step(metric, EVERYTHING, by), by, most)),)
