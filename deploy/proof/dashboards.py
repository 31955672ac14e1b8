"""The queries, variables and links of the Grafana boards, resolved as Grafana resolves them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import yaml

from shipped import DEPLOY

Board: TypeAlias = Mapping[str, Any]

_LABEL_VALUES: Final = re.compile(r"label_values\((.+), (\w+)\)")
_EVERY: Final = "$__all"


@dataclass(frozen=True, slots=True)
class Panel:
    """One query of a panel."""

    title: str
    target: Mapping[str, Any]

    @property
    def in_jaeger(self) -> bool:
        """Whether Jaeger is asked, and not Prometheus."""
        return bool(self.target["datasource"]["type"] == "jaeger")


def boards() -> list[Board]:
    """Return the boards."""
    return [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted((DEPLOY / "grafana/dashboards").glob("*.json"))
    ]


def panels(board: Board) -> Iterator[Panel]:
    """Yield every query of a board."""
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield Panel(panel["title"], target)


def variables(board: Board) -> Iterator[tuple[str, str, str, bool]]:
    """Yield each variable that is asked for: its name, the selector, the label, and whether it may be everything."""
    for variable in board["templating"]["list"]:
        match = _LABEL_VALUES.fullmatch(str(variable.get("query", "")))
        if match is not None:
            yield variable["name"], match[1], match[2], bool(variable.get("includeAll"))


def links(board: Board) -> Iterator[str]:
    """Yield the address of every data link."""
    for panel in board["panels"]:
        for link in panel.get("fieldConfig", {}).get("defaults", {}).get("links", ()):
            yield link["url"]


def resolved(query: str, values: Mapping[str, str]) -> str:
    """Return a query with values in place of the variables, Grafana's own included."""
    own = {"__range": "10m", "__rate_interval": "10s", "__interval": "2s"}
    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda match: (own | dict(values))[match[1] or match[2]], query)


def jaeger_tags(text: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return the tags of a search in Jaeger, as Grafana reads them from the panel."""
    words = resolved(text, values).split()
    return {word.partition("=")[0]: word.partition("=")[2] for word in words}


def exemplar_destinations() -> list[Mapping[str, str]]:
    """Return where the provisioned data source leads from an exemplar."""
    (prometheus,) = (each for each in _data_sources() if each["type"] == "prometheus")
    return list(prometheus["jsonData"]["exemplarTraceIdDestinations"])


def data_source_types() -> dict[str, str]:
    """Return the type of each provisioned data source, by its uid."""
    return {each["uid"]: each["type"] for each in _data_sources()}


def _data_sources() -> list[Mapping[str, Any]]:
    path = DEPLOY / "grafana/provisioning/datasources/spanscore.yaml"
    return list(yaml.safe_load(path.read_text(encoding="utf-8"))["datasources"])
