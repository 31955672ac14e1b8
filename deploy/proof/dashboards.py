"""The Grafana boards as they ship: panels, variables and links, with texts resolved as Grafana resolves them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import yaml

from shipped import DEPLOY

Board: TypeAlias = Mapping[str, Any]

YOUNG: Final = {"__range": "10m", "__interval": "2s", "window": "10s"}
"""Grafana's own variables for a stack that has run for seconds: nothing in it is a minute old."""
FINE: Final = "None: "
"""How a panel begins that says that there is nothing, and that this is well."""

_LABEL_VALUES: Final = re.compile(r"label_values\((.+), (\w+)\)")
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)(?::\w+)?\}|(\w+))")


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel, as the board's JSON has it."""

    body: Mapping[str, Any]

    @property
    def title(self) -> str:
        """Return its title, in which variables may be."""
        return str(self.body["title"])

    @property
    def kind(self) -> str:
        """Return Grafana's word for the kind of panel."""
        return str(self.body["type"])

    @property
    def targets(self) -> Sequence[Mapping[str, Any]]:
        """Return its queries."""
        return list(self.body["targets"])

    @property
    def defaults(self) -> Mapping[str, Any]:
        """Return what holds for all of its series."""
        return dict(self.body["fieldConfig"]["defaults"])

    @property
    def overrides(self) -> Sequence[Mapping[str, Any]]:
        """Return what holds for some of its series."""
        return list(self.body["fieldConfig"]["overrides"])

    @property
    def in_jaeger(self) -> bool:
        """Whether Jaeger is asked, and not Prometheus."""
        return bool(self.body["datasource"]["type"] == "jaeger")

    @property
    def may_be_empty(self) -> bool:
        """Whether it is well when there is nothing to show."""
        return str(self.defaults["noValue"]).startswith(FINE)


def boards() -> list[Board]:
    """Return the boards."""
    return [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted((DEPLOY / "grafana/dashboards").glob("*.json"))
    ]


def panels(board: Board) -> Iterator[Panel]:
    """Yield every panel of a board; its rows are none."""
    yield from (Panel(body) for body in board["panels"] if body["type"] != "row")


def variables(board: Board) -> Iterator[tuple[str, str, str, bool]]:
    """Yield each variable that is asked for: its name, the selector, the label, and whether it may be everything."""
    for variable in board["templating"]["list"]:
        match = _LABEL_VALUES.fullmatch(str(variable.get("query", "")))
        if match is not None:
            yield variable["name"], match[1], match[2], bool(variable.get("includeAll"))


def text_boxes(board: Board) -> dict[str, str]:
    """Return the variables that a viewer types, as they are at first."""
    return {each["name"]: each["query"] for each in board["templating"]["list"] if each["type"] == "textbox"}


def links(board: Board) -> Iterator[str]:
    """Yield the address of every data link, to boards and to pages elsewhere."""
    for panel in panels(board):
        yield from (link["url"] for link in panel.defaults.get("links", ()))
        for override in panel.overrides:
            yield from (
                link["url"] for each in override["properties"] if each["id"] == "links" for link in each["value"]
            )


def resolved(text: str, values: Mapping[str, str]) -> str:
    """Return a text with values in place of the variables."""
    return _VARIABLE.sub(lambda match: values[match[1] or match[2]], text)


def jaeger_tags(text: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return the tags of a search in Jaeger, as Grafana reads them from the panel."""
    words = resolved(text, values).split()
    return {word.partition("=")[0]: word.partition("=")[2] for word in words}


def exemplar_destinations() -> list[Mapping[str, str]]:
    """Return where the provisioned data source leads from an exemplar."""
    return list(prometheus_source()["jsonData"]["exemplarTraceIdDestinations"])


def prometheus_source() -> Mapping[str, Any]:
    """Return the provisioned data source of Prometheus."""
    path = DEPLOY / "grafana/provisioning/datasources/spanscore.yaml"
    sources = yaml.safe_load(path.read_text(encoding="utf-8"))["datasources"]
    (prometheus,) = (each for each in sources if each["type"] == "prometheus")
    return dict(prometheus)
