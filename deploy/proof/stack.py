"""The real programs, put together as the shipped files say: Collector, spanscore, Jaeger, Prometheus, sample agent."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from processes import HOST, Running, free_ports, get, get_json
from programs import COLLECTOR, JAEGER, PROMETHEUS, Programs
from shipped import placed

SERVICE: Final = "refunds"
RUNS: Final = 8
"""How many test cases the sample agent runs."""

_LISTENERS: Final = (
    *("grpc", "http", "scored"),  # the Collector
    *("spanscore", "metrics"),
    *("jaeger", "jaeger_http", "query", "query_grpc", "health"),
    "prometheus",
)


@dataclass(frozen=True, slots=True)
class Files:
    """Which of the shipped configurations stand together."""

    collector: str
    spanscore: str


COMPOSE: Final = Files("compose/collector.yaml", "compose/spanscore.yaml")
SIDE: Final = Files("collector/side.yaml", "collector/spanscore-side.yaml")
IN_LINE: Final = Files("collector/in-line.yaml", "collector/spanscore-in-line.yaml")


class Stack:
    """The programs while they run, and how to ask them."""

    def __init__(self, running: Running, programs: Programs, directory: Path, files: Files) -> None:
        self.running: Final = running
        self.directory: Final = directory
        self._programs = programs
        ports = dict(zip(_LISTENERS, free_ports(len(_LISTENERS)), strict=True))
        self.at: Final = {name: f"{HOST}:{port}" for name, port in ports.items()}
        """host:port of everything that listens."""
        self._files = files

    def start_jaeger(self) -> None:
        """Start Jaeger."""
        at = self.at
        ports = {"4317": "jaeger", "4318": "jaeger_http", "16686": "query", "16685": "query_grpc", "13133": "health"}
        path = placed(
            "jaeger/jaeger.yaml", self.directory, {f"0.0.0.0:{port}": at[name] for port, name in ports.items()}
        )
        self.running.start("jaeger", [self._programs.path(JAEGER), "--config", path])
        self.running.wait_for("Jaeger is ready", lambda: get(f"http://{at['query']}/api/services"))
        self.running.wait_for("Jaeger's health check", lambda: get(f"http://{at['health']}/status"))

    def start_scoring(self, more: Mapping[str, str] | None = None) -> None:
        """Start spanscore, with more texts of its configuration replaced, then the Collector in front of it."""
        moved = {**(more or {}), "0.0.0.0:4317": self.at["spanscore"], "0.0.0.0:9464": self.at["metrics"]}
        if self._files == COMPOSE:
            moved["http://jaeger:4317"] = f"http://{self.at['jaeger']}"
        elif self._files == IN_LINE:
            moved["http://collector:14317"] = f"http://{self.at['scored']}"
        self.start_spanscore(self._files.spanscore, moved)
        self.start_collector(self._files.collector, self._moved_collector())

    def start_spanscore(self, shipped: str, moved: Mapping[str, str]) -> None:
        """Start spanscore with a shipped configuration."""
        path = placed(shipped, self.directory, moved)
        command = [sys.executable, "-m", "spanscore", "serve", "--config", path, "--insecure"]
        self.running.start("spanscore", command, {"XDG_STATE_HOME": str(self.directory)})
        self.running.wait_for("spanscore is ready", lambda: get(f"http://{self.at['metrics']}/readyz"))

    def start_collector(
        self, shipped: str, moved: Mapping[str, str], environment: Mapping[str, str] | None = None
    ) -> None:
        """Start a Collector with a shipped configuration."""
        path = placed(shipped, self.directory, moved)
        self.running.start("collector", [self._programs.path(COLLECTOR), "--config", path], environment)
        self.running.wait_for("the Collector is ready", lambda: "Everything is ready" in self.running.said("collector"))

    def start_prometheus(self) -> None:
        """Start Prometheus."""
        at = self.at
        placed("prometheus/rules.yaml", self.directory, {})
        # Once a second and not every five: what takes minutes in use is to be seen in one here.
        moved = {"spanscore:9464": at["metrics"], "interval: 5s": "interval: 1s", "rules.yaml": "prometheus-rules.yaml"}
        path = placed("prometheus/prometheus.yaml", self.directory, moved)
        command = [
            self._programs.path(PROMETHEUS),
            f"--config.file={path}",
            f"--storage.tsdb.path={self.directory / 'prometheus'}",
            f"--web.listen-address={at['prometheus']}",
            "--enable-feature=exemplar-storage",
        ]
        self.running.start("prometheus", command)
        self.running.wait_for("Prometheus is ready", lambda: get(f"http://{at['prometheus']}/-/ready"))

    def run_agent(self) -> None:
        """Let the sample agent run its test cases; it sends to the Collector."""
        environment = {"OTEL_SERVICE_NAME": SERVICE, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{self.at['http']}"}
        self.running.start("agent", [sys.executable, "-m", "spanscore.cli.demo_agent.agent"], environment)

    def traces(self, tags: Mapping[str, str] | None = None, service: str = SERVICE) -> list[dict[str, Any]]:
        """Return the traces that Jaeger finds, asked as Grafana asks."""
        query = urlencode({"service": service, "limit": "1000", "tags": json.dumps(dict(tags or {}))})
        return list(get_json(f"http://{self.at['query']}/api/traces?{query}")["data"])

    def evaluations(self) -> float:
        """Return how many evaluations spanscore has counted."""
        page = get(f"http://{self.at['metrics']}/metrics", "text/plain")
        return sum(
            float(line.rpartition(" ")[2])
            for line in page.splitlines()
            if line.startswith("spanscore_evaluations_total")
        )

    def _moved_collector(self) -> dict[str, str]:
        at = self.at
        moved = {"0.0.0.0:4317": at["grpc"], "0.0.0.0:4318": at["http"], "spanscore:4317": at["spanscore"]}
        if self._files != COMPOSE:
            moved["jaeger:4317"] = at["jaeger"]
        if self._files == IN_LINE:
            moved["0.0.0.0:14317"] = at["scored"]
        return moved
