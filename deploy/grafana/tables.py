"""Tables: of labels and numbers from Prometheus, and of traces that Jaeger finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from grafana_foundation_sdk.builders import dashboard, table
from grafana_foundation_sdk.cog import builder, variants
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from looks import COUNT, MIXED, SHARE, Says, dressed
from panels import LETTERS, PROMETHEUS, Query, asked

JAEGER: Final = model.DataSourceRef(type_val="jaeger", uid="${jaeger}")
TRACE_PAGE: Final = "${jaeger_url:raw}/trace/${__value.raw}"
"""Jaeger's own page: Grafana's would need a viewer who may explore. Raw, as Grafana escapes the address otherwise."""

_TRACE_ID: Final = "/^(traceID|Trace ID)$/"
_RENAMED: Final = {
    "service_name": "service",
    "gen_ai_agent_name": "agent",
    "gen_ai_evaluation_name": "evaluator",
    "gen_ai_tool_name": "tool",
    "error_type": "error",
    "alertname": "alert",
}
_NARROW: Final = 80
"""Pixels: with Grafana's own 150 the last columns of a table in half a row are out of sight."""
_LONG_NAME: Final = 220
_HIDDEN: Final = ("Time", "__name__", "alertstate", "job", "instance")


def ranking(says: Says, *columns: Query, links: Sequence[dashboard.DashboardLink] = ()) -> table.Panel:
    """Make a table: a row for each set of labels, a column for each label and each query."""
    panel = dressed(table.Panel(), says, COUNT).datasource(PROMETHEUS).span(12).height(9).min_width(_NARROW)
    renamed = dict(_RENAMED)
    for letter, (name, query) in zip(LETTERS, columns, strict=False):
        panel.with_target(asked(query).instant().format(PromQueryFormat.TABLE).ref_id(letter))
        renamed["Value" if len(columns) == 1 else f"Value #{letter}"] = name
        if name.endswith(("rate", "score")):
            unit = model.DynamicConfigValue(id_val="unit", value=SHARE)
            panel.override_by_name(name, [unit, model.DynamicConfigValue(id_val="decimals", value=1)])
    panel.override_by_name("alert", [model.DynamicConfigValue(id_val="custom.width", value=_LONG_NAME)])
    panel.with_transformation(model.DataTransformerConfig(id_val="merge", options={}))
    organized = {"excludeByName": dict.fromkeys(_HIDDEN, True), "renameByName": renamed}
    panel.with_transformation(model.DataTransformerConfig(id_val="organize", options=organized))
    return panel.data_links(list(links))


def found_traces(says: Says, tags: str) -> table.Panel:
    """Make a table of the newest traces with these tags, once for each service. Their ids lead to Jaeger's page."""
    panel = dressed(table.Panel(), says, MIXED).datasource(JAEGER).span(24).height(6)
    link = {"title": "Open in Jaeger", "url": TRACE_PAGE, "targetBlank": True}
    panel.override_by_regexp(_TRACE_ID, [model.DynamicConfigValue(id_val="links", value=[link])])
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
