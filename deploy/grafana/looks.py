"""How panels look: what colours mean, legends, and what is said where there is nothing to show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar

from grafana_foundation_sdk.builders import common, dashboard, heatmap, stat, statushistory, table, timeseries
from grafana_foundation_sdk.models import common as model_of_looks
from grafana_foundation_sdk.models import dashboard as model

SHARE: Final = "percentunit"
"""Grafana's word for a share between 0 and 1."""
COUNT: Final = "none"
"""Whole numbers, written out: `short` would make 1 K of 1,499."""
RATIO: Final = "locale"
"""Numbers with decimals, below 0 too."""
SECONDS: Final = "s"
BYTES: Final = "bytes"
SPANS_PER_SECOND: Final = "suffix: spans/s"
MIXED: Final = ""
"""The data has units of its own."""

NEUTRAL: Final = "text"
"""Of what is neither good nor bad: black or white, by the theme."""
RED: Final = "red"
BLUE: Final = "blue"
MEANING: Final = {"pass": "green", "fail": RED, "skipped": "#8e8e8e", "none": "#8e8e8e", "failed": "orange"}
"""Colours mean the same on every panel; nothing else is red, green, grey or orange."""
OUTCOME: Final = "{{spanscore_outcome}}"
SHOWN_AS: Final = {"failed": "evaluator error"}
"""What the metrics call failed is not what failed an evaluation, and beside `fail` it reads like that."""
PALETTE: Final = "palette-classic-by-name"
"""Instead of a shade: a colour for each series of a query, the same on every panel."""
ALL: Final = "all"
"""What the series of everybody together is called."""

_QUALITY: Final = ((None, RED), (0.8, "yellow"), (0.95, "green"))
_OTHERS: Final = (BLUE, "purple", "#00a3a3", "#d16ba5", "#7a6a58")

AnyPanel = TypeVar("AnyPanel", stat.Panel, timeseries.Panel, heatmap.Panel, statushistory.Panel, table.Panel)


@dataclass(frozen=True, slots=True)
class Says:
    """What a panel says: its title, what the title leaves open, and what to do where there is nothing to show.

    Where nothing is what one wishes for, the last begins with `None`.
    """

    title: str
    description: str
    nothing: str


def dressed(panel: AnyPanel, says: Says, unit: str, *, judged: bool = False) -> AnyPanel:
    """Give a panel its words, its unit and its thresholds: Grafana's own make everything from 80 on red."""
    panel.title(says.title).description(says.description).no_value(says.nothing)
    if unit != MIXED:
        panel.unit(unit)
    if unit == COUNT:
        panel.decimals(0)
    steps = _QUALITY if judged else ((None, NEUTRAL),)
    made = [model.Threshold(value=value, color=colour) for value, colour in steps]
    panel.thresholds(dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(made))
    return panel


def coloured(panel: AnyPanel, *, judged: bool) -> AnyPanel:
    """Colour a panel by its thresholds, or not at all."""
    if judged:
        return panel.color_scheme(dashboard.FieldColor().mode(model.FieldColorModeId.THRESHOLDS))
    return panel.color_scheme(dashboard.FieldColor().mode(model.FieldColorModeId.FIXED).fixed_color(NEUTRAL))


def coloured_series(panel: timeseries.Panel, legends: dict[str, str], shade: str) -> None:
    """Give the series of each query, by its letter, their colour: shades of one where the only query has several."""
    others = iter(_OTHERS * len(legends))
    for letter, name in legends.items():
        if name == OUTCOME:
            for word, colour in MEANING.items():
                shown = model.DynamicConfigValue(id_val="displayName", value=SHOWN_AS.get(word, word))
                panel.override_by_name(word, [_colour("fixed", colour), shown])
        elif name == ALL:
            wide = model.DynamicConfigValue(id_val="custom.lineWidth", value=3)
            panel.override_by_query(letter, [_colour("fixed", NEUTRAL), wide])
        elif shade == PALETTE:
            panel.override_by_query(letter, [_colour(PALETTE, "")])
        elif shade:
            panel.override_by_query(letter, [_colour("shades", shade)])
        else:
            panel.override_by_query(letter, [_colour("fixed", next(others))])


def dashed(panel: timeseries.Panel, letter: str) -> timeseries.Panel:
    """Draw the series of a query as dashed lines."""
    style = {"fill": "dash", "dash": [10, 10]}
    return panel.override_by_query(letter, [model.DynamicConfigValue(id_val="custom.lineStyle", value=style)])


def legend(*calculations: str) -> common.VizLegendOptions:
    """Return a legend below the graph, with numbers of each series."""
    made = common.VizLegendOptions().show_legend(show_legend=True).calcs(list(calculations))
    made.placement(model_of_looks.LegendPlacement.BOTTOM)
    return made.display_mode(model_of_looks.LegendDisplayMode.LIST)


def totals() -> common.VizLegendOptions:
    """Return a legend for long names: a line for each series, the largest total first."""
    made = legend("sum").display_mode(model_of_looks.LegendDisplayMode.TABLE)
    return made.sort_by("Total").sort_desc(sort_desc=True)


def _colour(mode: str, colour: str) -> model.DynamicConfigValue:
    return model.DynamicConfigValue(id_val="color", value={"mode": mode, "fixedColor": colour})
