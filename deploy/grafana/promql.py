"""PromQL as the boards write it. A scope is the inside of a selector's braces."""

from __future__ import annotations

from typing import Final

RUN: Final = 'service_name=~"$service",gen_ai_agent_name=~"$agent"'
"""The runs that the variables of the board choose."""
EVALUATION: Final = f'{RUN},gen_ai_evaluation_name=~"$evaluator"'
"""The evaluations that the variables of the board choose."""
EVERYTHING: Final = ""

WHOLE: Final = "$__range"
"""The whole time range of the board."""
MOMENT: Final = "$__rate_interval"
"""One step of a graph, and four scrapes at least."""


def rate(metric: str, scope: str, by: str = "", window: str = MOMENT) -> str:
    """Return the growth of a counter in each second."""
    return f"{_sum(by)}(rate({metric}{{{scope}}}[{window}]))"


def increase(metric: str, scope: str, by: str = "", window: str = MOMENT) -> str:
    """Return the growth of a counter in a window."""
    return f"{_sum(by)}(increase({metric}{{{scope}}}[{window}]))"


def share(part: str, whole: str) -> str:
    """Return how much of the whole the part is: 0, and not nothing, where there is no part."""
    return f"({part} or {whole} * 0) / {whole}"


def quantile(which: float, histogram: str, scope: str, by: str = "", window: str = MOMENT) -> str:
    """Return a quantile of a histogram."""
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({which}, {rate(f'{histogram}_bucket', scope, labels, window)})"


def mean(histogram: str, scope: str, by: str = "", window: str = MOMENT) -> str:
    """Return the mean of a histogram."""
    return f"{rate(f'{histogram}_sum', scope, by, window)} / {rate(f'{histogram}_count', scope, by, window)}"


def or_zero(query: str) -> str:
    """Return 0 where there is no series: a counter is not there before its first event."""
    return f"{query} or on () vector(0)"


def _sum(by: str) -> str:
    return f"sum by ({by}) " if by else "sum"
