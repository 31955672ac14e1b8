"""The part of the board `spanscore` about tools and trajectories."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.builders import dashboard

from looks import ALL, COUNT, SECONDS, SHARE, Says
from panels import Query, distribution, lines
from promql import MOVING, RANKED, RUN, increase, nth, of, quantile, rate, share, step
from tables import ranking

_TOOL: Final = "gen_ai_execute_tool_duration_seconds"
_REPEATS: Final = "spanscore_trajectory_consecutive_same_tool_calls"
_CALLS: Final = "gen_ai_invoke_agent_tool_calls"
_NAME: Final = "gen_ai_tool_name"
_AGENT: Final = "gen_ai_agent_name"

_FAILED: Final = f'{RUN},error_type!=""'
_THREE: Final = f'{RUN},le=~"3|3.0"'  # a bound is written 3 or 3.0, depending on how it came to Prometheus
_OF_REPEATS: Final = (("count", RUN), ("bucket", _THREE))
_NO_CALLS: Final = "No tool was called in this time range. Widen it, or see docs for what your agents' spans must name."
_NO_REPEATS: Final = (
    "Not measured in this time range. Configure the evaluator tool_call_trajectory, or widen the range."
)


def add(made: dashboard.Dashboard) -> None:
    """Add the part."""
    made.with_row(dashboard.Row("Tools and trajectories"))
    _failures(made)
    _latency(made)
    _trajectories(made)


def _failures(made: dashboard.Dashboard) -> None:
    def failing(by: str, window: str) -> str:
        calls, growth = f"{_TOOL}_count", rate if window == RANKED else increase
        return share(growth(calls, _FAILED, by, window), growth(calls, RUN, by, window))

    said = Says("Tool failures", "Calls that failed: of all tools, and of the four worst of the range.", _NO_CALLS)
    worst = _worst(4, "{{gen_ai_tool_name}}", failing(_NAME, MOVING), _NAME, failing(_NAME, RANKED))
    made.with_panel(lines(said, (ALL, failing("", MOVING)), *worst, unit=SHARE))
    errors = increase(f"{_TOOL}_count", _FAILED, f"{_NAME}, error_type")
    said = Says("Errors of tools", "The ten that happened most often.", "None: no call of a tool failed.")
    made.with_panel(ranking(said, ("calls", f"sort_desc(topk(10, round({errors}) > 0))")))


def _latency(made: dashboard.Dashboard) -> None:
    ranked = quantile(0.95, _TOOL, RUN, _NAME, RANKED)
    said = Says(
        "Latency of tools",
        "Of all tools, and of the three slowest of the range. Half of the calls were faster than p50, 95 % than p95.",
        _NO_CALLS,
    )
    made.with_panel(
        lines(
            said,
            ("all p50", quantile(0.5, _TOOL, RUN)),
            ("all p95", quantile(0.95, _TOOL, RUN)),
            *_worst(3, "{{gen_ai_tool_name}} p95", quantile(0.95, _TOOL, RUN, _NAME), _NAME, ranked),
            unit=SECONDS,
        )
    )
    ranked = quantile(0.95, _CALLS, RUN, _AGENT, RANKED)
    said = Says("Tool calls of a run", "Of all agents, and of the three with the longest runs.", _NO_CALLS)
    made.with_panel(
        lines(
            said,
            ("all p50", quantile(0.5, _CALLS, RUN)),
            ("all p95", quantile(0.95, _CALLS, RUN)),
            *_worst(3, "{{gen_ai_agent_name}} p95", quantile(0.95, _CALLS, RUN, _AGENT), _AGENT, ranked),
            unit=COUNT,
        )
    )


def _trajectories(made: dashboard.Dashboard) -> None:
    def looping(by: str, window: str) -> str:
        growth = rate if window == RANKED else increase
        runs, calm = (growth(f"{_REPEATS}_{end}", scope, by, window) for end, scope in _OF_REPEATS)
        return f"({runs} - {calm}) / ({runs} > 0)"

    said = Says(
        "Loops",
        "Runs in which one tool was called more than four times in a row: of all agents, and of the four worst.",
        _NO_REPEATS,
    )
    worst = _worst(4, "{{gen_ai_agent_name}}", looping(_AGENT, MOVING), _AGENT, looping(_AGENT, RANKED))
    made.with_panel(lines(said, (ALL, looping("", MOVING)), *worst, unit=SHARE))
    said = Says("Repeated calls", "How often, in a run, a call followed one of the same tool.", _NO_REPEATS)
    made.with_panel(distribution(said, step(f"{_REPEATS}_bucket", RUN, "le")))


def _worst(many: int, legend: str, query: str, by: str, ranked: str) -> list[Query]:
    return [(legend, of(query, by, nth(which, "topk", ranked))) for which in range(1, many + 1)]
