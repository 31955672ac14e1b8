"""What the boards have in common: their variables, links and marks for alerts."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as model

from panels import PROMETHEUS
from promql import RUN

OVERVIEW: Final = "spanscore-overview"
EVALUATOR: Final = "spanscore-evaluator"
FIRING: Final = 'ALERTS{alertstate="firing",alertname=~"Agent.*|FailReason.*|Monitor.*|Tool.*|Spanscore.*"}'

JAEGER_PAGE: Final = "http://localhost:16686"
"""Where a viewer's browser finds Jaeger, unless the board is told otherwise."""

NONE_FAILED: Final = "None: of the runs that were scored, none failed."

_TAG: Final = "spanscore"
_WINDOWS: Final = "5m,15m,1h,6h"
_AUTO: Final = "$__auto_interval_window"
_PARTS: Final = 24


def board(uid: str, title: str, description: str, *, one_evaluator: bool = False) -> dashboard.Dashboard:
    """Return an empty board with its variables."""
    made = dashboard.Dashboard(title).uid(uid).description(description).tags([_TAG]).timezone("browser")
    made.time("now-1h", "now").refresh("30s").tooltip(model.DashboardCursorSync.CROSSHAIR).editable()
    default = model.VariableOption(selected=True, text="default", value="default")  # else the first by its name
    made.with_variable(
        dashboard.DatasourceVariable("prometheus").label("Prometheus").type("prometheus").current(default)
    )
    made.with_variable(dashboard.DatasourceVariable("jaeger").label("Jaeger").type("jaeger"))
    made.with_variable(_choice("service", "Service", "label_values(spanscore_evaluations_total, service_name)"))
    agents = 'label_values(spanscore_evaluations_total{service_name=~"$service"}, gen_ai_agent_name)'
    made.with_variable(_choice("agent", "Agent", agents))
    evaluators = f"label_values(spanscore_evaluations_total{{{RUN}}}, gen_ai_evaluation_name)"
    made.with_variable(_choice("evaluator", "Evaluator", evaluators, several=not one_evaluator))
    made.with_variable(_window()).with_variable(_jaeger_page())
    # Off until it is switched on above the board: an alert that fires for hours would tint every graph.
    alerts = dashboard.AnnotationQuery().name("Alerts").datasource(PROMETHEUS).enable(enable=False)
    made.annotation(alerts.icon_color("red").expr(FIRING))
    others = dashboard.DashboardLink("Boards").type(model.DashboardLinkType.DASHBOARDS).tags([_TAG])
    return made.link(others.include_vars(include_vars=True).keep_time(keep_time=True))


def link(title: str, uid: str, **variables: str) -> dashboard.DashboardLink:
    """Return a link to a board that sets variables and keeps the time range."""
    chosen = "".join(f"&var-{name}={value}" for name, value in variables.items())
    return dashboard.DashboardLink(title).url(f"/d/{uid}?${{__url_time_range}}{chosen}")


def _window() -> dashboard.IntervalVariable:
    """Return how long shares and latencies are averaged: a part of the time range, and five minutes at least."""
    variable = dashboard.IntervalVariable("window").label("Averaged over").values(_WINDOWS)
    variable.auto(auto=True).min_interval("5m").step_count(_PARTS)
    variable.current(model.VariableOption(selected=True, text="auto", value=_AUTO))
    variable.build().refresh = model.VariableRefresh.ON_TIME_RANGE_CHANGED
    return variable


def _jaeger_page() -> dashboard.TextBoxVariable:
    """Return where Jaeger is; without `current`, Grafana leaves the box empty, and links lead nowhere."""
    variable = dashboard.TextBoxVariable("jaeger_url").label("Jaeger's page").default_value(JAEGER_PAGE)
    return variable.current(model.VariableOption(selected=True, text=JAEGER_PAGE, value=JAEGER_PAGE))


def _choice(name: str, label: str, query: str, *, several: bool = True) -> dashboard.QueryVariable:
    variable = dashboard.QueryVariable(name).label(label).query(query).datasource(PROMETHEUS)
    variable.refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(model.VariableSort.ALPHABETICAL_ASC)
    if not several:
        return variable
    # .* and no list of all: an agent without a name has no such label, and is to be seen too.
    everything = model.VariableOption(selected=True, text="All", value="$__all")
    return variable.multi(multi=True).include_all(include_all=True).all_value(".*").current(everything)
