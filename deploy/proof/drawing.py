"""Draws what the boards' queries answer. Plain, and not as Grafana draws it: it shows what there is to read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final, TypeAlias

Points: TypeAlias = Sequence[tuple[float, float]]

_PAGE: Final = 1440
_GAP: Final = 8
_COLUMNS: Final = 24
_HEIGHT: Final = 150
_LEFT: Final = 46
_STYLE: Final = f"""
body {{font: 13px sans-serif; margin: 14px; width: {_PAGE}px; background: #f4f5f7; color: #1f2328}}
h1 {{font-size: 18px; margin: 0 0 2px}} h2 {{font-size: 13px; margin: 0 0 6px}} p {{margin: 0 0 12px; color: #57606a}}
h3 {{font-size: 14px; margin: 6px 0 0; width: 100%}} main {{display: flex; flex-wrap: wrap; gap: {_GAP}px}}
section {{background: white; border: 1px solid #d0d7de; padding: 8px; overflow: hidden; box-sizing: border-box}}
b {{font-size: 30px; font-weight: 500}} table {{border-collapse: collapse; width: 100%}}
td, th {{text-align: left; padding: 2px 8px 2px 0; font-size: 12px}}
small {{color: #57606a; margin-right: 12px; white-space: nowrap}}
i {{display: inline-block; width: 9px; height: 9px; margin-right: 4px}} em {{color: #57606a}}
"""


@dataclass(frozen=True, slots=True)
class Frame:
    """A panel's title, and its width in columns of the board."""

    title: str
    columns: int

    @property
    def width(self) -> int:
        """Return how wide the panel is, in pixels."""
        return (_PAGE + _GAP) * self.columns // _COLUMNS - _GAP

    def around(self, inside: str) -> str:
        """Return the panel with something in it."""
        return f'<section style="width:{self.width}px"><h2>{escape(self.title)}</h2>{inside}</section>'


@dataclass(frozen=True, slots=True)
class Line:
    """What is drawn of a series: its name, its points, its colour, and numbers for the legend."""

    name: str
    points: Points
    colour: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Scale:
    """What a graph spans: seconds, values from 0 on, and the unit of these."""

    start_s: float
    end_s: float
    top: float
    unit: str


def page(title: str, note: str, sections: Iterable[str]) -> str:
    """Return a page."""
    head = f"<!doctype html><meta charset=utf-8><title>{escape(title)}</title><style>{_STYLE}</style>"
    return f"{head}<h1>{escape(title)}</h1><p>{escape(note)}</p><main>{''.join(sections)}</main>"


def heading(title: str) -> str:
    """Return the title of a row of panels."""
    return f"<h3>{escape(title)}</h3>"


def number(frame: Frame, text: str, colour: str) -> str:
    """Return a panel that shows a number."""
    return frame.around(f'<b style="color:{colour}">{escape(text)}</b>')


def words(frame: Frame, text: str) -> str:
    """Return a panel that has nothing to show, and says so."""
    return frame.around(f"<em>{escape(text)}</em>")


def rows(frame: Frame, lines: Sequence[Mapping[str, str]]) -> str:
    """Return a panel that shows a table."""
    columns = list(dict.fromkeys(name for line in lines for name in line))
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(line.get(name, str()))}</td>' for name in columns)}</tr>" for line in lines
    )
    return frame.around(f"<table><tr>{head}</tr>{body}</table>")


def graph(frame: Frame, lines: Sequence[Line], scale: Scale) -> str:
    """Return a panel that shows lines over time."""
    across, up = _along(frame, scale), _HEIGHT / scale.top
    drawn = [
        f'<polyline fill="none" stroke="{line.colour}" stroke-width="1.6" points="'
        + " ".join(
            f"{_LEFT + (at - scale.start_s) * across:.1f},{_HEIGHT - value * up:.1f}" for at, value in line.points
        )
        + '"/>'
        for line in lines
    ]
    return _svg(frame, _axis(scale) + "".join(drawn), lines)


def bars(frame: Frame, lines: Sequence[Line], scale: Scale, step_s: float) -> str:
    """Return a panel that shows bars over time, one above the other, each for the step that ends at its moment."""
    across, up, reached, drawn = _along(frame, scale), _HEIGHT / scale.top, dict[float, float](), []
    for line in lines:
        for at, value in line.points:
            if value and at > scale.start_s:
                x, base = _LEFT + (at - step_s - scale.start_s) * across, reached.get(at, 0.0)
                reached[at] = base + value
                size = f'width="{max(1, step_s * across - 2):.1f}" height="{value * up:.1f}"'
                y = _HEIGHT - (base + value) * up
                drawn.append(f'<rect x="{x:.1f}" y="{y:.1f}" {size} fill="{line.colour}"/>')
    return _svg(frame, _axis(scale) + "".join(drawn), lines)


def cells(frame: Frame, lines: Sequence[Line], colours: Mapping[float, str]) -> str:
    """Return a panel that shows a row for each series; a moment has the colour of the highest bound it reaches."""
    left, height = 190, _HEIGHT / max(1, len(lines))
    moments = sorted({at for line in lines for at, _ in line.points})
    width = (frame.width - left - 20) / max(1, len(moments))
    drawn = []
    for row, line in enumerate(lines):
        y = row * height
        drawn.append(f'<text x="0" y="{y + height * 0.7:.1f}" font-size="11">{escape(line.name)}</text>')
        for at, value in line.points:
            colour = colours[max(bound for bound in colours if value >= bound)]
            x = left + moments.index(at) * width
            size = f'width="{width - 1:.1f}" height="{height - 2:.1f}"'
            drawn.append(f'<rect x="{x:.1f}" y="{y:.1f}" {size} fill="{colour}"/>')
    return _svg(frame, "".join(drawn), ())


def heat_map(frame: Frame, buckets: Sequence[Line], scale: Scale) -> str:
    """Return a panel that shows how many were in which bucket; buckets are cumulative, their names the bounds."""
    ordered = sorted(buckets, key=lambda each: float(each.name))
    moments = sorted({at for line in ordered for at, _ in line.points})
    width, height = (frame.width - _LEFT - 20) / max(1, len(moments)), _HEIGHT / len(ordered)
    below, counted = dict.fromkeys(moments, 0.0), []
    for row, line in enumerate(ordered):
        for at, value in line.points:
            counted.append((moments.index(at), row, value - below[at]))
            below[at] = value
    most = max((count for _, _, count in counted), default=1) or 1
    boxes = [
        f'<rect x="{_LEFT + column * width:.1f}" y="{_HEIGHT - (row + 1) * height:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" fill="#1d4ed8" fill-opacity="{count / most:.2f}"/>'
        for column, row, count in counted
        if count > 0
    ]
    axis = "".join(
        f'<text x="0" y="{_HEIGHT - row * height - 2:.1f}" font-size="10" fill="#57606a">'
        f"{escape(bound.name if bound.name == '+Inf' else written(float(bound.name), scale.unit))}</text>"
        for row, bound in enumerate(ordered)
    )
    return _svg(frame, axis + "".join(boxes), ())


def written(value: float, unit: str) -> str:
    """Return a number as a person writes it."""
    match unit:
        case "percentunit":
            return f"{100 * value:.1f} %"
        case "s":
            return f"{1000 * value:.0f} ms" if value < 1 else f"{value:.1f} s"
        case "bytes":
            return f"{value / 2**20:.1f} MiB"
        case "none":
            return f"{value:,.0f}"
    return f"{value:.2f} {unit.removeprefix('suffix:').strip()}"


def _along(frame: Frame, scale: Scale) -> float:
    return (frame.width - _LEFT - 20) / ((scale.end_s - scale.start_s) or 1.0)


def _axis(scale: Scale) -> str:
    return "".join(
        f'<line x1="{_LEFT}" x2="{_PAGE}" y1="{_HEIGHT * (1 - part):.1f}" y2="{_HEIGHT * (1 - part):.1f}" '
        f'stroke="#e3e6ea"/><text x="0" y="{_HEIGHT * (1 - part) + 4 + 6 * part:.1f}" font-size="10" fill="#57606a">'
        f"{escape(written(part * scale.top, scale.unit))}</text>"
        for part in (0, 0.5, 1)
    )


def _svg(frame: Frame, drawn: str, legend: Sequence[Line]) -> str:
    names = "".join(
        f'<small><i style="background:{line.colour}"></i>{escape(line.name)} {escape(line.note)}</small>'
        for line in legend
    )
    size = f'width="{frame.width - 18}" height="{_HEIGHT + 4}"'
    return frame.around(f"<svg {size}>{drawn}</svg><div>{names}</div>")
