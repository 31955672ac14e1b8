"""Draws what the boards' queries answer. Plain, and not as Grafana draws it: it shows that the data is there."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final, TypeAlias

Series: TypeAlias = tuple[str, Sequence[tuple[float, float]]]
"""What it is called, and its points: seconds and values."""

_WIDTH: Final = 560
_HEIGHT: Final = 170
_COLOURS: Final = ("#2f7ed8", "#d8662f", "#3a9d5d", "#8b5cf6", "#c2255c", "#0c8599", "#e8a317", "#5c677d", "#74b816")
_STYLE: Final = """
body {font: 13px sans-serif; margin: 16px; width: 1180px; background: #f4f5f7; color: #1f2328}
h1 {font-size: 18px; margin: 0 0 2px} h2 {font-size: 14px; margin: 0 0 6px} p {margin: 0 0 12px; color: #57606a}
main {display: flex; flex-wrap: wrap; gap: 10px}
section {background: white; border: 1px solid #d0d7de; padding: 10px; width: 562px; overflow: hidden}
section.small {width: 265px} b {font-size: 30px; font-weight: 500}
table {border-collapse: collapse; width: 100%} td, th {text-align: left; padding: 2px 8px 2px 0; font-size: 12px}
small {color: #57606a; margin-right: 10px; white-space: nowrap}
i {display: inline-block; width: 9px; height: 9px; margin-right: 4px}
"""


def page(title: str, note: str, sections: Iterable[str]) -> str:
    """Return a page."""
    head = f"<!doctype html><meta charset=utf-8><title>{escape(title)}</title><style>{_STYLE}</style>"
    return f"{head}<h1>{escape(title)}</h1><p>{escape(note)}</p><main>{''.join(sections)}</main>"


def number(title: str, text: str) -> str:
    """Return a panel that shows a number."""
    return f"<section class=small><h2>{escape(title)}</h2><b>{escape(text)}</b></section>"


def rows(title: str, lines: Sequence[Mapping[str, str]]) -> str:
    """Return a panel that shows a table."""
    columns = list(dict.fromkeys(name for line in lines for name in line))
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(line.get(name, str()))}</td>' for name in columns)}</tr>" for line in lines
    )
    return f"<section><h2>{escape(title)}</h2><table><tr>{head}</tr>{body}</table></section>"


def graph(title: str, series: Sequence[Series], unit: str) -> str:
    """Return a panel that shows lines over time."""
    points = [point for _, line in series for point in line if not math.isnan(point[1])]
    start, end = min(at for at, _ in points), max(at for at, _ in points)
    top = max(value for _, value in points) or 1.0
    across, up = _WIDTH / ((end - start) or 1.0), _HEIGHT / (top * 1.15)
    drawn, legend = [], []
    for index, (name, line) in enumerate(series):
        colour = _COLOURS[index % len(_COLOURS)]
        path = " ".join(
            f"{(at - start) * across:.1f},{_HEIGHT - value * up:.1f}" for at, value in line if not math.isnan(value)
        )
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        legend.append(f'<small><i style="background:{colour}"></i>{escape(name)}</small>')
    axis = f'<text x="2" y="11" font-size="11" fill="#57606a">{escape(written(top, unit))}</text>'
    return _svg(title, axis + "".join(drawn), "".join(legend))


def heat_map(title: str, series: Sequence[Series]) -> str:
    """Return a panel that shows how many were in which bucket; the series are cumulative, their names the bounds."""
    ordered = sorted(series, key=lambda each: float(each[0]))
    times = sorted({at for _, line in ordered for at, _ in line})
    columns = [times[index] for index in range(0, len(times), max(1, len(times) // 60))]
    width, height = _WIDTH / max(1, len(columns)), _HEIGHT / len(ordered)
    below, cells, most = dict.fromkeys(columns, 0.0), [], 0.0
    for row, (_, line) in enumerate(ordered):
        values = dict(line)
        for column, at in enumerate(columns):
            here = values.get(at, math.nan)
            count = here - below[at] if not math.isnan(here) else 0.0
            below[at] = max(below[at], here) if not math.isnan(here) else below[at]
            most = max(most, count)
            cells.append((column * width, _HEIGHT - (row + 1) * height, count))
    boxes = "".join(
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="#1d4ed8" '
        f'fill-opacity="{count / (most or 1):.2f}"/>'
        for x, y, count in cells
        if count > 0
    )
    bounds = f"<small>buckets from {escape(ordered[0][0])} to {escape(ordered[-1][0])}, bottom to top</small>"
    return _svg(title, boxes, bounds)


def written(value: float, unit: str) -> str:
    """Return a number as a person writes it."""
    if unit == "percentunit":
        return f"{100 * value:.1f} %"
    if unit == "s":
        return f"{1000 * value:.0f} ms" if value < 1 else f"{value:.1f} s"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"  # noqa: PLR2004 - two digits are enough


def points(found: Mapping[str, Any]) -> Sequence[tuple[float, float]]:
    """Return the points of a series as Prometheus answers it."""
    return [(float(at), float(value)) for at, value in found["values"]]


def _svg(title: str, drawn: str, legend: str) -> str:
    size = f'width="{_WIDTH}" height="{_HEIGHT}"'
    return f"<section><h2>{escape(title)}</h2><svg {size}>{drawn}</svg><div>{legend}</div></section>"
