"""The kinds of panels that the boards are made of, each with one look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from grafana_foundation_sdk.builders import (
    common,
    dashboard,
    heatmap,
    prometheus,
    stat,
    statushistory,
    table,
    timeseries,
)
from grafana_foundation_sdk.cog import builder, variants
from grafana_foundation_sdk.models import common as looks
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

PROMETHEUS: Final = model.DataSourceRef(type_val="prometheus", uid="${prometheus}")
JAEGER: Final = model.DataSourceRef(type_val="jaeger", uid="${jaeger}")

SHARE: Final = "percentunit"
"""Grafana's word for a share between 0 and 1."""
QUALITY: Final = ((None, "red"), (0.8, "yellow"), (0.95, "green"))

Query: TypeAlias = tuple[str, str]
"""What its series are called, and PromQL."""

_LETTERS: Final = "ABCDEFGH"
_RENAMED: Final = {
    "service_name": "service",
    "gen_ai_agent_name": "agent",
    "gen_ai_evaluation_name": "evaluator",
    "gen_ai_tool_name": "tool",
    "error_type": "error",
    "alertname": "alert",
}
_HIDDEN: Final = ("Time", "__name__", "alertstate", "job", "instance")


def number(title: str, description: str, query: str, *, unit: str = "short", judged: bool = False) -> stat.Panel:
    """Make a panel that shows one number, of the whole time range; judged, it is red or green."""
    panel = stat.Panel().title(title).description(description).datasource(PROMETHEUS).unit(unit).span(6).height(4)
    panel.with_target(_query(query).instant()).graph_mode(looks.BigValueGraphMode.NONE)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(values=False))
    if judged:
        panel.thresholds(_thresholds()).color_scheme(dashboard.FieldColor().mode(model.FieldColorModeId.THRESHOLDS))
    return panel


def lines(
    title: str, description: str, *queries: Query, unit: str = "short", exemplars: bool = False
) -> timeseries.Panel:
    """Make a panel of lines over time; with exemplars, points that lead to traces."""
    panel = timeseries.Panel().title(title).description(description).datasource(PROMETHEUS).unit(unit)
    for letter, (legend, query) in zip(_LETTERS, queries, strict=False):
        panel.with_target(_query(query, legend).range().exemplar(exemplars).ref_id(letter))
    if unit == SHARE:
        panel.max(1)
    panel.tooltip(common.VizTooltipOptions().mode(looks.TooltipDisplayMode.MULTI).sort(looks.SortOrder.DESCENDING))
    return panel.min(0).span(12).height(8).fill_opacity(8).show_points(looks.VisibilityMode.AUTO)


def bars(title: str, description: str, *queries: Query, exemplars: bool = False) -> timeseries.Panel:
    """Make a panel of bars over time that add up."""
    panel = lines(title, description, *queries, exemplars=exemplars).draw_style(looks.GraphDrawStyle.BARS)
    return panel.fill_opacity(70).stacking(common.StackingConfig().mode(looks.StackingMode.NORMAL))


def distribution(title: str, description: str, buckets: str, *, unit: str = "short") -> heatmap.Panel:
    """Make a heat map of a histogram's buckets, with points that lead to traces."""
    panel = heatmap.Panel().title(title).description(description).datasource(PROMETHEUS).span(12).height(8)
    panel.with_target(_query(buckets, "{{le}}").range().exemplar(exemplar=True).format(PromQueryFormat.HEATMAP))
    panel.calculate(calculate=False).y_axis(heatmap.YAxisConfig().unit(unit))
    return panel.color(heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Blues").steps(32))


def history(title: str, description: str, *queries: Query) -> statushistory.Panel:
    """Make a grid of shares: a row for each series, a column for each moment, from red to green."""
    panel = statushistory.Panel().title(title).description(description).datasource(PROMETHEUS).unit(SHARE)
    for letter, (legend, query) in zip(_LETTERS, queries, strict=False):
        panel.with_target(_query(query, legend).range().ref_id(letter))
    panel.min(0).max(1).span(12).height(8).max_data_points(60)
    return panel.thresholds(_thresholds()).show_value(looks.VisibilityMode.NEVER)


def ranking(
    title: str, description: str, *columns: Query, links: Sequence[dashboard.DashboardLink] = ()
) -> table.Panel:
    """Make a table: a row for each set of labels, a column for each label and each query."""
    panel = table.Panel().title(title).description(description).datasource(PROMETHEUS).span(12).height(8)
    renamed = dict(_RENAMED)
    for letter, (name, query) in zip(_LETTERS, columns, strict=False):
        panel.with_target(_query(query).instant().format(PromQueryFormat.TABLE).ref_id(letter))
        renamed["Value" if len(columns) == 1 else f"Value #{letter}"] = name
        if name.endswith(("rate", "score")):
            panel.override_by_name(name, [model.DynamicConfigValue(id_val="unit", value=SHARE)])
    panel.with_transformation(model.DataTransformerConfig(id_val="merge", options={}))
    organized = {"excludeByName": dict.fromkeys(_HIDDEN, True), "renameByName": renamed}
    panel.with_transformation(model.DataTransformerConfig(id_val="organize", options=organized))
    return panel.data_links(list(links))


def found_traces(title: str, description: str, tags: str) -> table.Panel:
    """Make a table of the newest traces with these tags, once for each service. Their ids lead to the trace."""
    panel = table.Panel().title(title).description(description).datasource(JAEGER).span(24).height(9)
    return panel.with_target(_JaegerSearch(tags)).repeat("service").repeat_direction("v")


class _JaegerSearch(builder.Builder[variants.Dataquery], variants.Dataquery):
    """A query of Grafana's Jaeger data source, which the SDK does not have."""

    def __init__(self, tags: str) -> None:
        self._tags = tags

    def build(self) -> variants.Dataquery:
        """Return the query."""
        return self

    def to_json(self) -> dict[str, Any]:
        """Return the query as Grafana keeps it."""
        kind = {"datasource": JAEGER, "refId": "A", "queryType": "search"}
        return kind | {"service": "$service", "operation": "", "tags": self._tags, "limit": 20}


def _query(text: str, legend: str = "") -> prometheus.Dataquery:
    return prometheus.Dataquery().expr(text).legend_format(legend).ref_id("A").datasource(PROMETHEUS)


def _thresholds() -> dashboard.ThresholdsConfig:
    steps = [model.Threshold(value=value, color=colour) for value, colour in QUALITY]
    return dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps)
