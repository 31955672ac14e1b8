"""PromQL as the boards write it. A scope is the inside of a selector's braces."""

from __future__ import annotations

from typing import Final

RUN: Final = 'service_name=~"$service",gen_ai_agent_name=~"$agent"'
"""The runs that the variables of the board choose."""
EVALUATION: Final = f'{RUN},gen_ai_evaluation_name=~"$evaluator"'
"""The evaluations that the variables of the board choose."""
EVERYTHING: Final = ""

PASSED: Final = 'spanscore_outcome="pass"'
FAILED: Final = 'spanscore_outcome="fail"'
DECIDED: Final = 'spanscore_outcome=~"pass|fail"'

WHOLE: Final = "$__range"
"""The whole time range of the board."""
RANKED: Final = f"{WHOLE} @ end()"
"""The whole range at every moment of a graph: who is worst in it must not change on the way."""
MOVING: Final = "$window"
"""Five minutes, and more in long time ranges: fewer runs than that make a rate jump between 0 and 1."""
STEP: Final = "$__interval"
"""From one bar to the next, a minute at least."""

_SCRAPED: Final = "on (job, instance)"


def increase(metric: str, scope: str, by: str = "", window: str = WHOLE) -> str:
    """Return the growth of a counter in a window, its first event included.

    Prometheus' `increase` misses the event with which a series appears. A series that was there in fewer scrapes of
    its process than there were is new, and all that it counts has grown in the window. Two processes may have had one
    address in turn, hence `max by`.
    """
    now = f"{metric}{{{scope}}}"
    seen = _over("count_over_time", now, window)
    scraped = f"max by (job, instance) ({_over('sum_over_time', 'up', window)})"
    at = " @ end()" if window == RANKED else ""
    new = f"{now}{at} and {_over('resets', now, window)} == 0 and {seen} < {_SCRAPED} group_left () {scraped}"
    return f"{_sum(by)}({new} or {_over('increase', now, window)})"


def step(metric: str, scope: str, by: str = "") -> str:
    """Return what a counter has grown by since the step before, in whole numbers: each event is in one step.

    The windows of `increase` lose what happens between two of them, and guess it from the rest. A counter that is
    lower than before, or was not there although its process was, has started from 0.
    """
    now = f"{metric}{{{scope}}}"
    new = f"{now} and {_SCRAPED} up offset {STEP} == 1"
    return f"{_sum(by)}({now} - {now} offset {STEP} >= 0 or {new})"


def rate(metric: str, scope: str, by: str = "", window: str = MOVING) -> str:
    """Return the growth of a counter in each second; good enough to rank by, and short."""
    return f"{_sum(by)}({_over('rate', f'{metric}{{{scope}}}', window)})"


def share(part: str, whole: str) -> str:
    """Return how much of the whole the part is: 0 where there is no part, and nothing where there is no whole."""
    return f"({or_none(part, whole)}) / ({whole} > 0)"


def or_none(part: str, whole: str) -> str:
    """Return the part, and 0 where there is none of it but something of the whole."""
    return f"{part} or {whole} * 0"


def quantile(which: float, histogram: str, scope: str, by: str = "", window: str = MOVING) -> str:
    """Return a quantile of a histogram."""
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({which}, {rate(f'{histogram}_bucket', scope, labels, window)})"


def mean(histogram: str, scope: str, by: str = "", window: str = MOVING) -> str:
    """Return the mean of a histogram."""
    total, count = (increase(f"{histogram}_{end}", scope, by, window) for end in ("sum", "count"))
    return f"{total} / ({count} > 0)"


def of(query: str, labels: str, chosen: str) -> str:
    """Return the series of a query whose labels are among those chosen."""
    return f"{query} and on ({labels}) {chosen}"


def nth(which: int, worst: str, ranking: str) -> str:
    """Return the series of a ranking that is the first, second, ... by `topk` or `bottomk`.

    Each is a query of its own, and so has a colour of its own: Grafana's palette would give it that of failing runs.
    """
    if which == 1:
        return f"{worst}(1, {ranking})"
    return f"({worst}({which}, {ranking}) unless {worst}({which - 1}, {ranking}))"


def _over(function: str, series: str, window: str) -> str:
    length, at, moment = window.partition(" @ ")
    return f"{function}({series}[{length}]{at}{moment})"


def _sum(by: str) -> str:
    return f"sum by ({by}) " if by else "sum"
