"""What a panel gets to draw: its queries answered by Prometheus, each series with its legend and its colour."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dashboards import Board, Panel, resolved
from intervals import View
from scores import Prometheus

_LABEL: Final = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True, slots=True)
class Series:
    """A series, as a panel shows it."""

    letter: str
    """Which query of the panel it answers."""
    name: str
    labels: Mapping[str, str]
    points: Sequence[tuple[float, float]]
    """Seconds and values."""


def answered(prometheus: Prometheus, board: Board, panel: Panel, view: View, chosen: Mapping[str, str]) -> list[Series]:
    """Return the series of a panel over a time range; a number or a row has one point, at its end."""
    values = {**view.values(board, panel), **chosen}
    return [each for target in panel.targets for each in _answers(prometheus, target, view, view.step_s(panel), values)]


def colour(panel: Panel, series: Series) -> tuple[str, str] | None:
    """Return how a series is coloured, `fixed` or in `shades`, and the colour; None where it is by its value."""
    rules = {"byName": series.name, "byFrameRefID": series.letter}
    found = panel.defaults.get("color")
    for override in panel.overrides:
        if rules.get(override["matcher"]["id"]) == override["matcher"]["options"]:
            found = next((each["value"] for each in override["properties"] if each["id"] == "color"), found)
    return (found["mode"], found["fixedColor"]) if found and "fixedColor" in found else None


def shown_as(panel: Panel, series: Series) -> str:
    """Return what a series is called where it is drawn."""
    for override in panel.overrides:
        if override["matcher"] == {"id": "byName", "options": series.name}:
            return next((each["value"] for each in override["properties"] if each["id"] == "displayName"), series.name)
    return series.name


def _answers(
    prometheus: Prometheus, target: Mapping[str, Any], view: View, step_s: int, values: Mapping[str, str]
) -> Iterator[Series]:
    query = resolved(target["expr"], values)
    if target.get("instant"):
        found = prometheus.moment(query, view.end_s)
    else:
        # Grafana moves both ends to a step, so that graphs do not tremble when they are drawn again.
        start_s, end_s = (at // step_s * step_s for at in (view.start_s, view.end_s))
        found = prometheus.graph(query, start_s, end_s, step_s)
    for each in found:
        labels = each["metric"]
        points = [(float(at), float(value)) for at, value in each.get("values") or [each["value"]]]
        name = _LABEL.sub(lambda match, labels=labels: labels.get(match[1], ""), target["legendFormat"])  # type: ignore[misc]
        yield Series(target["refId"], name, labels, [point for point in points if not math.isnan(point[1])])
