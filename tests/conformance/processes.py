"""Runs `spanscore serve` in a process of its own: its memory can be measured, and it can be sent signals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from commands import SPANSCORE, started
from serving import DEADLINE_S, eventually
from warm import Fork

CONFIGURATION = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:0", max_recv_msg_size_mib: 16}
      http: {endpoint: "127.0.0.1:0", max_request_body_size: 16MiB}
exporters: {prometheus: {endpoint: "127.0.0.1:0"}}
storage: {durability: none}
"""
_TRIM = "import ctypes\nctypes.CDLL(None).malloc_trim(0)\n"
"""Gives memory back that the interpreter has freed: a fork that takes it again would not grow."""


@dataclass
class Peak:
    """How much memory a process came to hold beyond what it had before."""

    grown: int = 0
    """In bytes."""
    highest: int = 0
    """All of it."""


class Process:
    """A receiver that runs in a process of its own."""

    max_request_size = 16 * 2**20

    def __init__(self, process: subprocess.Popen[str] | Fork, addresses: dict[str, tuple[str, int]]) -> None:
        self.process = process
        self._addresses = addresses

    @property
    def grpc_port(self) -> int:
        """Where it takes OTLP over gRPC."""
        return self._addresses["grpc"][1]

    @property
    def http_address(self) -> tuple[str, int]:
        """Where it takes OTLP over HTTP."""
        return self._addresses["http"]

    @property
    def grpc(self) -> str:
        """Where it takes OTLP over gRPC, host:port."""
        return f"127.0.0.1:{self.grpc_port}"

    @property
    def http(self) -> str:
        """The base URL where it takes OTLP over HTTP."""
        return f"http://127.0.0.1:{self.http_address[1]}"

    @property
    def pages(self) -> tuple[str, int]:
        """Where the pages are."""
        return self._addresses["prometheus"]

    @contextmanager
    def peak(self) -> Iterator[Peak]:
        """Measure the memory that something costs at most."""
        proc = Path(f"/proc/{self.process.pid}")
        (proc / "clear_refs").write_text("5")  # from here on a new peak
        before, peak = _status(proc, "VmRSS"), Peak()
        yield peak
        peak.highest = _status(proc, "VmHWM")
        peak.grown = peak.highest - before

    def cpu_s(self) -> float:
        """Return how long it has used a processor."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def end(self) -> int:
        """Ask it to end, and return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(DEADLINE_S)


@contextmanager
def process(directory: Path, configuration: str = CONFIGURATION) -> Iterator[Process]:
    """Run a receiver with a configuration."""
    path = directory / "spanscore.yaml"
    path.write_text(configuration)
    log = directory / "log"
    command = [*SPANSCORE, "serve", "--config", str(path)]
    with (
        log.open("w") as errors,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, text=True) as running,
    ):
        try:
            yield Process(running, _addresses(running, log))
        finally:
            running.kill()


@contextmanager
def forked_process(directory: Path) -> Iterator[Process]:
    """Run a receiver in a fork, which starts in less time, and in which memory is measured as in a new process."""
    path, log = directory / "spanscore.yaml", directory / "log"
    path.write_text(CONFIGURATION)
    command = ("serve", "--config", path)
    with started(*command, preparation=_TRIM, output=Path(os.devnull), errors=log) as running:
        yield Process(running, _addresses(running, log))


def _addresses(running: subprocess.Popen[str] | Fork, log: Path) -> dict[str, tuple[str, int]]:
    eventually(lambda: "TRACES_PROTOCOL" in log.read_text() or running.poll() is not None)  # said last
    text = log.read_text()
    assert running.poll() is None, text
    return {
        name: (host, int(port))
        for host, port, name in re.findall(r"listening on (\S+):(\d+) \(\S*?(grpc|http|prometheus)\.endpoint\)", text)
    }


def _status(proc: Path, field: str) -> int:
    (line,) = re.findall(rf"^{field}:\s+(\d+) kB$", (proc / "status").read_text(), re.MULTILINE)
    return int(line) * 1024
