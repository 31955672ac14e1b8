"""Replicas of `spanscore serve` behind the Collector of deploy/kubernetes/gateway, all on this machine's loopback."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from deadline import DEADLINE_S

LOOK_UP_S: Final = 7.0
"""The Collector knows of a change by then: it asks every second, and Go remembers the file of hosts for five."""

_SHIPPED: Final = Path(__file__).parents[2] / "deploy" / "kubernetes" / "gateway" / "collector-config.yaml"
_NAME: Final = "spanscore.test"
_OWN_HOSTS: Final = 'mount --bind "$1" /etc/hosts && shift && exec "$@"'
_CONFIGURATION: Final = """
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "{host}:{port}"}}}}}}}}
exporters: {{jsonl: {{path: scores.jsonl}}, prometheus: {{endpoint: "{host}:{pages}"}}}}
traces: {{decision_delay: 2s, trace_timeout: {timeout_s}s}}
storage: {{durability: crash, directory: state}}
telemetry: {{log_level: warning}}
"""


class NoCollectorError(Exception):
    """What is needed is not on this machine; the message says what."""


def collector_program(given: Path | None) -> Path:
    """Return where the Collector is.

    Raises:
        NoCollectorError: it is not there, or cannot be given a file of hosts of its own.
    """
    found = given or shutil.which("otelcol")
    if found is None:
        message = "needs the program otelcol: `deploy/prove --build`, then add `deploy/prove --where` to the PATH"
        raise NoCollectorError(message)
    trial = subprocess.run([*_apart(Path("/etc/hosts")), "true"], capture_output=True, text=True, check=False)
    if trial.returncode:
        message = f"needs the permission to give the Collector a file of hosts of its own: {trial.stderr.strip()}"
        raise NoCollectorError(message)
    return Path(found).resolve()


class Replica:
    """One `spanscore serve`, at an address that stays when it is started again."""

    def __init__(self, directory: Path, number: int, ports: tuple[int, int], timeout_s: int) -> None:
        self.host: Final = f"127.0.0.{number + 11}"
        self.directory: Final = directory / f"replica-{number}"
        self.directory.mkdir()
        self._pages: Final = ports[1]
        text = _CONFIGURATION.format(host=self.host, port=ports[0], pages=ports[1], timeout_s=timeout_s)
        (self.directory / "spanscore.yaml").write_text(text)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        with (self.directory / "log").open("ab") as log:
            command = [sys.executable, "-m", "spanscore", "serve", "--config", "spanscore.yaml"]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.directory)

    def kill(self) -> None:
        """End it as the kernel does when memory is short."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it as an operator does; what is open is kept."""
        self._end(signal.SIGTERM)

    def wait_until_ready(self) -> None:
        """Return when it takes requests."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            log = (self.directory / "log").read_text()
            assert time.monotonic() < deadline, log
            assert self._process is not None, log
            assert self._process.poll() is None, log
            try:
                with urllib.request.urlopen(f"http://{self.host}:{self._pages}/readyz", timeout=DEADLINE_S):
                    return
            except OSError:
                time.sleep(0.05)

    def count(self, metric: str) -> int:
        """Return a number of its page of metrics; the process begins it at zero."""
        with urllib.request.urlopen(f"http://{self.host}:{self._pages}/metrics", timeout=DEADLINE_S) as page:
            found = re.search(rf"^{re.escape(metric)} (\S+)$", page.read().decode(), re.MULTILINE)
        assert found is not None, metric
        return int(float(found[1]))

    def _end(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(DEADLINE_S)
            self._process = None


class Balancer:
    """The Collector, which looks up where the replicas are."""

    def __init__(self, directory: Path, port: int, replica_port: int) -> None:
        self.port: Final = port
        self._replica_port: Final = replica_port
        self._hosts: Final = directory / "hosts"
        self._configuration: Final = directory / "collector.yaml"
        self._log: Final = directory / "collector.log"

    def name(self, replicas: Collection[Replica]) -> None:
        """Say which replicas there are."""
        lines = [f"{each.host} {_NAME}\n" for each in replicas]
        self._hosts.write_text("".join(["127.0.0.1 localhost\n", *lines]))

    @contextmanager
    def running(self, program: Path, *, group_by_trace: bool, queue_per_replica: bool) -> Iterator[None]:
        """Run it with the shipped configuration, or with changes to that."""
        config = self._moved(yaml.safe_load(_SHIPPED.read_text(encoding="utf-8")))
        if queue_per_replica:
            _retry_at_the_replica(config["exporters"]["loadbalancing"])
        if group_by_trace:
            config["processors"]["groupbytrace"] = {"wait_duration": "10s"}
            config["service"]["pipelines"]["traces"]["processors"].insert(1, "groupbytrace")
        self._configuration.write_text(yaml.safe_dump(config))
        command = [*_apart(self._hosts), str(program), "--config", str(self._configuration)]
        environment = {**os.environ, "SPANSCORE_TOKEN": "none is asked for"}
        with self._log.open("ab") as log, subprocess.Popen(command, stdout=log, stderr=log, env=environment) as process:
            try:
                self._wait_until_ready(process)
                yield
            finally:
                process.terminate()

    def _moved(self, config: dict[str, Any]) -> dict[str, Any]:
        config["receivers"]["otlp"]["protocols"] = {"http": {"endpoint": f"127.0.0.1:{self.port}"}}
        config["service"]["telemetry"] = {"metrics": {"level": "none"}}
        dns = {"hostname": _NAME, "port": str(self._replica_port), "interval": "1s"}
        config["exporters"]["loadbalancing"]["resolver"] = {"dns": dns}
        return config

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while "Everything is ready" not in (text := self._log.read_text()):
            assert time.monotonic() < deadline, text
            assert process.poll() is None, text
            time.sleep(0.05)


def _apart(hosts: Path) -> list[str]:
    """Return the beginning of a command that sees another file as /etc/hosts; the process stays the same one."""
    return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _OWN_HOSTS, "sh", str(hosts)]


def _retry_at_the_replica(exporter: dict[str, Mapping[str, Any]]) -> None:
    """Have each replica's exporter retry by itself, as it does by default, and not the balancer."""
    kept = {name: exporter.pop(name) for name in ("sending_queue", "retry_on_failure") if name in exporter}
    exporter["protocol"] = {"otlp": {**exporter["protocol"]["otlp"], **kept}}
