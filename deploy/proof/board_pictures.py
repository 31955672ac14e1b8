"""Pictures of the boards over the hour of history. Drawn here, since there is no Grafana, from their own queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import drawing
import pictured
from answers import Series, answered, colour, shown_as
from browser import opened, shot
from dashboards import Board, Panel, boards, jaeger_tags, resolved, text_boxes
from drawing import Frame, Line, Scale
from history import EVALUATORS, History
from past import LAST_HOUR, serve
from processes import Running
from programs import CHROMIUM, PROMETHEUS, PROMTOOL, Programs
from results import Results
from scores import Prometheus

_NOTE: Final = (
    "Drawn by deploy/prove and not by Grafana: every query of the board, answered by a real Prometheus with an hour of "
    "made-up history in it. Grafana also draws points that lead to traces on top of failing runs."
)
_COLOURS: Final = {"red": "#c4162a", "green": "#37872d", "yellow": "#e0b400", "orange": "#fa6400", "text": "#24292f"}
_NAMED: Final = {"blue": "#1f60c4", "purple": "#8f3bb8"}
_SHADES: Final = {
    "blue": ("#0b3d91", "#8ab8ff", "#1f60c4", "#5794f2", "#163a6b", "#b3d1ff"),
    "red": ("#8b0f1d", "#ff7383", "#c4162a", "#f2495c", "#5e0913", "#ffa6b0"),
}
_OF_EVERYTHING: Final = {"service": ".*", "agent": ".*", "evaluator": ".*"}
_LEGENDS: Final = {"mean": "average", "lastNotNull": "now", "sum": "total"}


def take(results: Results, programs: Programs, running_in: Path, directory: Path) -> None:
    """Draw every board."""
    results.section("The boards over an hour of history")
    missing = programs.missing(PROMETHEUS, PROMTOOL, CHROMIUM)
    if missing is not None:
        results.not_run("pictures of the boards", missing)
        return
    directory.mkdir(parents=True, exist_ok=True)
    with Running(running_in) as running, opened(results, programs) as shown:
        if shown is None:
            return
        prometheus = serve(History(), programs, running, running_in)
        taken = []
        for board in boards():
            html = partial(_page, prometheus, board)
            path = directory / f"{board['uid']}.png"
            taken.append(results.check(f"picture of {board['uid']}", partial(shot, shown, html, path)))
        if all(taken):
            pictured.note(directory)


def _page(prometheus: Prometheus, board: Board) -> str:
    one = {"evaluator": EVALUATORS[2]} if board["uid"] == "spanscore-evaluator" else {}
    return drawing.page(
        board["title"], _NOTE, _sections(prometheus, board, {**_OF_EVERYTHING, **text_boxes(board), **one})
    )


def _sections(prometheus: Prometheus, board: Board, chosen: Mapping[str, str]) -> Iterator[str]:
    for body in board["panels"]:
        if body["type"] == "row":
            yield drawing.heading(body["title"])
            continue
        panel = Panel(body)
        repeated = panel.body.get("repeat") == "evaluator"
        for evaluator in EVALUATORS if repeated else (chosen["evaluator"],):
            columns = body["gridPos"]["w"] // body.get("maxPerRow", 1) if repeated else body["gridPos"]["w"]
            picture = _Picture(panel, {**chosen, "evaluator": evaluator}, columns)
            yield picture.of_jaeger() if panel.in_jaeger else picture.of(prometheus, board)


@dataclass(frozen=True, slots=True)
class _Picture:
    panel: Panel
    chosen: Mapping[str, str]
    columns: int

    @property
    def frame(self) -> Frame:
        title = resolved(self.panel.title, self.chosen).replace(".*", "all")
        return Frame(title, self.columns)

    def of_jaeger(self) -> str:
        tags = jaeger_tags(self.panel.targets[0]["tags"], self.chosen)
        asked = ", ".join(f"{name} = {value}" for name, value in tags.items())
        return drawing.words(self.frame, f"Here stand the newest traces that Jaeger finds by {asked}.")

    def of(self, prometheus: Prometheus, board: Board) -> str:
        found = answered(prometheus, board, self.panel, LAST_HOUR, self.chosen)
        if not found:
            return drawing.words(self.frame, self.panel.defaults["noValue"])
        return self._drawn(found)

    def _drawn(self, found: Sequence[Series]) -> str:
        unit, scale, lines = self.panel.defaults["unit"], self._scale(found), self._lines(found)
        match self.panel.kind:
            case "stat":
                value = found[0].points[0][1]
                judged = self._judged()
                reached = max(bound for bound in judged if value >= bound)
                return drawing.number(self.frame, drawing.written(value, unit), judged[reached])
            case "table":
                return drawing.rows(self.frame, list(self._rows(found)))
            case "heatmap":
                axis = self.panel.body["options"]["yAxis"]["unit"]
                return drawing.heat_map(self.frame, lines, Scale(scale.start_s, scale.end_s, scale.top, axis))
            case "status-history":
                return drawing.cells(self.frame, lines, self._judged())
            case _ if self._stacked():
                return drawing.bars(self.frame, lines, scale, LAST_HOUR.step_s(self.panel))
            case _:
                return drawing.graph(self.frame, lines, scale)

    def _stacked(self) -> bool:
        return bool(self.panel.defaults.get("custom", {}).get("drawStyle") == "bars")

    def _judged(self) -> dict[float, str]:
        steps = self.panel.defaults["thresholds"]["steps"]
        return {float("-inf") if step["value"] is None else step["value"]: _COLOURS[step["color"]] for step in steps}

    def _scale(self, found: Sequence[Series]) -> Scale:
        sums: dict[float, float] = {}
        for each in found:
            for at, value in each.points:
                sums[at] = sums.get(at, 0.0) + value if self._stacked() else max(sums.get(at, 0.0), value)
        top = self.panel.defaults.get("max") or max(sums.values(), default=0.0) * 1.05 or 1.0
        return Scale(LAST_HOUR.start_s, LAST_HOUR.end_s, top, self.panel.defaults["unit"])

    def _lines(self, found: Sequence[Series]) -> list[Line]:
        calculations = self.panel.body.get("options", {}).get("legend", {}).get("calcs", ())
        shades: dict[str, int] = {}
        drawn = []
        for each in found:
            mode, name = colour(self.panel, each) or ("fixed", "text")
            shade = _SHADES[name][shades.setdefault(name, 0) % 6] if mode == "shades" else ""
            shades[name] = shades.get(name, 0) + 1
            painted = shade or _COLOURS.get(name) or _NAMED.get(name, name)
            notes = (f"{_LEGENDS[which]} {self._calculated(which, each)}" for which in calculations)
            drawn.append(Line(shown_as(self.panel, each), each.points, painted, ", ".join(notes)))
        return drawn

    def _calculated(self, which: str, series: Series) -> str:
        values = [value for _, value in series.points] or [0.0]
        results = {"mean": sum(values) / len(values), "lastNotNull": values[-1], "sum": sum(values)}
        return drawing.written(results[which], self.panel.defaults["unit"])

    def _rows(self, found: Sequence[Series]) -> Iterator[Mapping[str, str]]:
        transformations: Sequence[Mapping[str, Any]] = self.panel.body["transformations"]
        names = next(each["options"]["renameByName"] for each in transformations if each["id"] == "organize")
        merged: dict[str, dict[str, str]] = {}
        for each in found:
            column = names.get(f"Value #{each.letter}", names.get("Value", ""))
            labels = {names[key]: value for key, value in each.labels.items() if key in names}
            row = merged.setdefault(str(sorted(labels.items())), labels)
            row[column] = drawing.written(
                each.points[0][1], "percentunit" if column[-4:] in {"rate", "core"} else "none"
            )
        yield from merged.values()
