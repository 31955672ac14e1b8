"""The steps and windows of a graph, as Grafana chooses them by the time range and the width of the panel."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dashboards import Board, Panel

# Below the first number of milliseconds, the second is taken: Grafana's own table, from a second on.
_ROUNDED_MS: Final = (
    *((1_500, 1_000), (3_500, 2_000), (7_500, 5_000), (12_500, 10_000), (17_500, 15_000), (25_000, 20_000)),
    *((45_000, 30_000), (90_000, 60_000), (210_000, 120_000), (450_000, 300_000), (750_000, 600_000)),
    *((1_050_000, 900_000), (1_500_000, 1_200_000), (2_700_000, 1_800_000), (5_400_000, 3_600_000)),
    *((9_000_000, 7_200_000), (16_200_000, 10_800_000), (32_400_000, 21_600_000), (86_400_000, 43_200_000)),
)
_DAY_MS: Final = 86_400_000
_UNITS_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_COLUMNS: Final = 24
_SCRAPES: Final = 4


@dataclass(frozen=True, slots=True)
class View:
    """What is looked at: a time range, on a screen of some width."""

    end_s: int
    range_s: int
    width: int
    """Points of a panel of full width."""
    scrape_s: int
    """The interval of the data source."""

    @property
    def start_s(self) -> int:
        """Return where the time range begins."""
        return self.end_s - self.range_s

    def step_s(self, panel: Panel) -> int:
        """Return the step of a panel's graphs, which is also `$__interval`."""
        points = panel.body.get("maxDataPoints") or self.width * panel.body["gridPos"]["w"] // _COLUMNS
        return _interval_s(self.range_s / points, panel.body.get("interval") or f"{self.scrape_s}s")

    def values(self, board: Board, panel: Panel) -> Mapping[str, str]:
        """Return the variables that nobody chooses: Grafana's own, and those that follow the time range."""
        step_s = self.step_s(panel)
        rate_s = max(step_s + self.scrape_s, _SCRAPES * self.scrape_s)
        own = {"__interval": f"{step_s}s", "__rate_interval": f"{rate_s}s", "__range": f"{self.range_s}s"}
        automatic = {
            each["name"]: f"{_interval_s(self.range_s / each['auto_count'], each['auto_min'])}s"
            for each in board["templating"]["list"]
            if each["type"] == "interval" and each["current"]["value"] == f"$__auto_interval_{each['name']}"
        }
        return own | automatic


def seconds(duration: str) -> int:
    """Return a duration as Prometheus and Grafana write it, such as `5m`, in seconds."""
    return sum(int(number) * _UNITS_S[unit] for number, unit in re.findall(r"(\d+)([smhd])", duration))


def _interval_s(wanted_s: float, least: str) -> int:
    wanted_ms = 1000 * wanted_s
    above = (rounded for limit, rounded in _ROUNDED_MS if wanted_ms < limit)
    return max(next(above, _DAY_MS * math.ceil(wanted_ms / _DAY_MS)) // 1000, seconds(least))
