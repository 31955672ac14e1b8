"""The kinds of panels that the boards draw, each with one look."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, TypeAlias

from grafana_foundation_sdk.builders import common, dashboard, heatmap, prometheus, stat, statushistory, timeseries
from grafana_foundation_sdk.models import common as looks
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode, HeatmapColorScale
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from looks import BLUE, COUNT, NEUTRAL, PALETTE, RATIO, RED, SHARE, Says, coloured, coloured_series, dressed, legend

PROMETHEUS: Final = model.DataSourceRef(type_val="prometheus", uid="${prometheus}")

Query: TypeAlias = tuple[str, str]
"""What its series are called, and PromQL."""

LETTERS: Final = "ABCDEFGH"

_STEP: Final = "1m"
"""No step of a graph is shorter: most agents have few runs in a minute."""
_LEAST_EVIDENCE: Final = -6
"""Below a millionth of the evidence of an alarm there is nothing to see."""
_WHOLE_STEPS: Final = "Bars are whole steps: the first begins before the time range, so totals can exceed the numbers."
"""Grafana asks for both ends of the range, moved to a step; what is drawn at the start has happened before it."""
_LEADS: Final = (
    "A point on top is a failing run: click it, then Trace in Jaeger. Not every one has a point, as Prometheus keeps "
    "one of a series in each scrape; the table of traces below is fuller. Click an agent's name to see it alone."
)


def number(says: Says, query: str, *, unit: str = COUNT, judged: bool = False) -> stat.Panel:
    """Make a panel that shows one number, of the whole time range; judged, it is red or green."""
    panel = dressed(stat.Panel(), says, unit, judged=judged).datasource(PROMETHEUS).span(4).height(4)
    panel.with_target(asked(query).instant()).graph_mode(looks.BigValueGraphMode.NONE)
    # The words for an empty panel would stand here five pixels high, and in red where numbers are judged.
    empty = model.ValueMappingResult(text="no data", color=NEUTRAL)
    null = model.DashboardSpecialValueMapOptions(match=model.SpecialValueMatch.NULL_AND_NAN, result=empty)
    panel.mappings([model.SpecialValueMap(options=null)])
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(values=False))
    return coloured(panel, judged=judged)


def lines(says: Says, *queries: Query, unit: str = COUNT, shade: str = "") -> timeseries.Panel:
    """Make a panel of lines over time, each query in a colour; with a shade, its series in shades of that."""
    panel = _graph(says, queries, unit, shade).fill_opacity(0).legend(legend("mean", "lastNotNull"))
    if unit == SHARE:
        panel.max(1)
    return panel.show_points(looks.VisibilityMode.AUTO)


def evidence(says: Says, query: Query) -> timeseries.Panel:
    """Make a panel of logarithms of evidence: 0 is the alarm, with a red line."""
    panel = lines(says, query, unit=RATIO, shade=PALETTE).min(_LEAST_EVIDENCE).max(1)
    steps = [model.Threshold(value=None, color=NEUTRAL), model.Threshold(value=0, color=RED)]
    panel.thresholds(dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps))
    return panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(looks.GraphThresholdsStyleMode.LINE))


def bars(says: Says, *queries: Query, shade: str = BLUE) -> timeseries.Panel:
    """Make a panel of bars over time that add up; each stands for the time since the one before."""
    return _bars(_graph(_of_steps(says), tuple(map(_visible, queries)), COUNT, shade))


def failures(says: Says, query: Query) -> timeseries.Panel:
    """Make a panel of red bars over time, with points that lead to the traces of failing runs."""
    said = replace(says, description=f"{says.description} {_LEADS}")
    name, text = _visible(query)
    panel = _bars(_graph(_of_steps(said), ((name, text),), COUNT, RED)).span(24)
    return panel.targets([asked(text, name).range().exemplar(exemplar=True)])


def distribution(says: Says, buckets: str, *, unit: str = COUNT) -> heatmap.Panel:
    """Make a heat map of a histogram's buckets. The unit is that of what is measured."""
    panel = dressed(heatmap.Panel(), says, COUNT).datasource(PROMETHEUS).span(12).height(9).interval(_STEP)
    panel.with_target(asked(buckets, "{{le}}").range().exemplar(exemplar=False).format(PromQueryFormat.HEATMAP))
    panel.calculate(calculate=False).y_axis(heatmap.YAxisConfig().unit(unit))
    # From 0 and by a power below 1: one run with a low score is to be seen beside a hundred good ones.
    shades = heatmap.HeatmapColorOptions().mode(HeatmapColorMode.OPACITY).fill("dark-blue").min(0).steps(64)
    return panel.color(shades.scale(HeatmapColorScale.EXPONENTIAL).exponent(0.4))


def history(says: Says, *queries: Query) -> statushistory.Panel:
    """Make a grid of shares: a row for each series, a column for each moment, from red to green."""
    panel = dressed(statushistory.Panel(), says, SHARE, judged=True).datasource(PROMETHEUS).interval(_STEP)
    for letter, (name, query) in zip(LETTERS, queries, strict=False):
        panel.with_target(asked(query, name).range().exemplar(exemplar=False).ref_id(letter))
    coloured(panel.min(0).max(1).span(12).height(9).max_data_points(60), judged=True)
    return panel.legend(legend()).show_value(looks.VisibilityMode.NEVER)


def asked(text: str, name: str = "") -> prometheus.Dataquery:
    """Return a query of Prometheus."""
    return prometheus.Dataquery().expr(text).legend_format(name).ref_id("A").datasource(PROMETHEUS)


def _graph(says: Says, queries: tuple[Query, ...], unit: str, shade: str) -> timeseries.Panel:
    panel = dressed(timeseries.Panel(), says, unit).datasource(PROMETHEUS).interval(_STEP)
    for letter, (name, query) in zip(LETTERS, queries, strict=False):
        panel.with_target(asked(query, name).range().exemplar(exemplar=False).ref_id(letter))
    coloured_series(panel, {letter: name for letter, (name, _) in zip(LETTERS, queries, strict=False)}, shade)
    if unit == COUNT:
        # The words for an empty panel must not be those of its series: they would stand on the axis, at each mark that
        # is left without a number because it lies between two whole ones.
        panel.override_by_regexp("/.*/", [model.DynamicConfigValue(id_val="noValue", value="")])
    panel.tooltip(common.VizTooltipOptions().mode(looks.TooltipDisplayMode.MULTI).sort(looks.SortOrder.DESCENDING))
    return panel.min(0).span(12).height(9)


def _of_steps(says: Says) -> Says:
    return replace(says, description=f"{says.description} {_WHOLE_STEPS}")


def _visible(query: Query) -> Query:
    """Leave out bars of nothing: Grafana draws each as a dash, and a graph of dashes is not empty."""
    name, text = query
    return name, f"({text}) > 0"


def _bars(panel: timeseries.Panel) -> timeseries.Panel:
    panel.draw_style(looks.GraphDrawStyle.BARS).bar_alignment(looks.BarAlignment.BEFORE).legend(legend("sum"))
    # Without an outline, which Grafana draws of bars of nothing, too.
    return (
        panel.fill_opacity(80)
        .line_width(0)
        .stacking(common.StackingConfig().mode(looks.StackingMode.NORMAL).group("A"))
    )
