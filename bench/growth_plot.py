"""Draws how cost, memory and latency grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import StrMethodFormatter

from bench.workload import OTHER_SPANS

_BLUE: Final = "#2a6f97"
_ORANGE: Final = "#d1495b"


def plot(by_open: Mapping[int, Mapping[str, Any]], by_calls: Sequence[tuple[int, float]], path: Path) -> None:
    """Write the plot.

    Args:
        by_open: what `bench.open_traces` measured, by the number of open traces.
        by_calls: CPU seconds of a trace, by its number of calls.
        path: where to.
    """
    figure, axes = plt.subplots(2, 2, figsize=(10, 6.5), layout="constrained")
    counts = list(by_open)
    rates = [1e6 / found["µs a span"] for found in by_open.values()]
    _line(axes[0][0], counts, rates, "spans/s of one core, decoded and grouped", "open traces")
    sizes = [found["bytes a span"] for found in by_open.values()]
    _line(axes[0][1], counts, sizes, "bytes an open span", "open traces")
    for label, colour in (("p99", _ORANGE), ("p50", _BLUE)):
        latencies = [found[f"{label} ms"] for found in by_open.values()]
        _line(axes[1][0], counts, latencies, "ms from a request's bytes to its scores", "open traces", label, colour)
    axes[1][0].legend()
    calls = [count for count, _ in by_calls]
    rates = [(count + OTHER_SPANS) / seconds for count, seconds in by_calls]
    _line(axes[1][1], calls, rates, "spans/s of one core, with four evaluators", "tool calls a trace")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _line(  # noqa: PLR0913, PLR0917 - what a line in a plot has
    axes: Axes, x: Sequence[float], y: Sequence[float], title: str, about: str, label: str = "", colour: str = _BLUE
) -> None:
    axes.plot(x, y, marker="o", color=colour, label=label)
    axes.set_xscale("log")
    axes.set_xticks(x, [f"{value:,}" for value in x])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axes.set_ylim(bottom=0, top=max(axes.get_ylim()[1], 1.15 * max(y)))
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(about)
    axes.grid(alpha=0.3)
