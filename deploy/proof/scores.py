"""What Prometheus answers about scores: queries, exemplars and rules, as Grafana asks for them."""

from __future__ import annotations

import math
import time
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

from processes import get_json


class Prometheus:
    """Asks a Prometheus that runs.

    Args:
        address: its host:port.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._url = f"http://{address}/api/v1"

    def series(self, query: str, *, instant: bool = True, minutes: float = 10) -> list[Mapping[str, Any]]:
        """Return the series of a query that have a number, now or at any moment of the last minutes."""
        now = time.time()
        return self.moment(query, now) if instant else self.graph(query, now - 60 * minutes, now, 2)

    def moment(self, query: str, at_s: float) -> list[Mapping[str, Any]]:
        """Return the series of a query that have a number at a moment."""
        found = self._ask("query", query=query, time=at_s)["result"]
        return [each for each in found if not math.isnan(float(each["value"][1]))]

    def graph(self, query: str, start_s: float, end_s: float, step_s: float) -> list[Mapping[str, Any]]:
        """Return the series of a query that have a number at any step of a time range."""
        found = self._ask("query_range", query=query, start=start_s, end=end_s, step=step_s)["result"]
        return [each for each in found if any(not math.isnan(float(value)) for _, value in each["values"])]

    def number(self, query: str) -> float:
        """Return the sum of what a query answers."""
        return sum(float(each["value"][1]) for each in self.series(query))

    def exemplars(self, query: str) -> list[tuple[Mapping[str, str], Mapping[str, Any]]]:
        """Return the labels of the series, and the exemplar, of every exemplar of a query."""
        now = time.time()
        found = self._ask("query_exemplars", query=query, start=now - 3600, end=now)
        return [(each["seriesLabels"], exemplar) for each in found for exemplar in each["exemplars"]]

    def label_values(self, label: str, selector: str) -> list[str]:
        """Return the values of a label."""
        return list(self._ask(f"label/{label}/values", **{"match[]": selector}))

    def rules(self) -> Sequence[Mapping[str, Any]]:
        """Return every rule that is loaded."""
        return [rule for group in self._ask("rules")["groups"] for rule in group["rules"]]

    def _ask(self, path: str, **parameters: object) -> Any:
        return get_json(f"{self._url}/{path}?{urllib.parse.urlencode(parameters)}")["data"]
