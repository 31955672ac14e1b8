"""Peers that receive OTLP and group it by trace."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench import peers
from bench.process import Process

_COLLECTOR_CONFIG: Final = """
receivers:
  otlp:
    protocols:
      grpc: {{endpoint: "127.0.0.1:{grpc}", max_recv_msg_size_mib: 64}}
      http: {{endpoint: "127.0.0.1:{http}", max_request_body_size: 67108864}}
processors:
  groupbytrace: {{wait_duration: {wait}, num_traces: 60000}}
  tail_sampling:
    decision_wait: {wait}
    num_traces: 60000
    policies:
      - {{name: errors, type: status_code, status_code: {{status_codes: [ERROR]}}}}
      - {{name: slow, type: latency, latency: {{threshold_ms: 30000}}}}
      - {{name: agents, type: string_attribute, string_attribute: {{key: gen_ai.agent.name, values: [refund-agent]}}}}
      - {{name: some, type: probabilistic, probabilistic: {{sampling_percentage: 10}}}}
exporters:
  nop: {{}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces: {{receivers: [otlp], processors: [{processor}], exporters: [nop]}}
"""


@dataclass(frozen=True, slots=True)
class Receiver:
    """A running receiver of traces."""

    name: str
    """With its version."""
    process: Process
    http_port: int
    grpc_port: int


@contextmanager
def collector(processor: str, wait: str = "2s") -> Iterator[Receiver]:
    """Run the OpenTelemetry Collector: traces are put together, held for a while, and thrown away.

    Args:
        processor: `groupbytrace`, or `tail_sampling` with four policies.
        wait: how long a trace is held.
    """
    http, grpc, _ = _free_ports()
    with tempfile.TemporaryDirectory() as directory:
        config = Path(directory) / "collector.yaml"
        text = _COLLECTOR_CONFIG.format(http=http, grpc=grpc, processor=processor, wait=wait)
        config.write_text(text, encoding="utf-8")
        command = [str(peers.collector()), "--config", str(config)]
        with Process(command, ready="Everything is ready") as process:
            yield Receiver(f"Collector {peers.collector_version()}, {processor}", process, http, grpc)


@contextmanager
def agentevals() -> Iterator[Receiver]:
    """Run the receiver of agentevals-cli: spans are kept in sessions, to be evaluated when somebody asks."""
    http, grpc, api = _free_ports()
    command = [
        str(peers.directory() / "agentevals-cli" / "bin" / "agentevals"),
        *("serve", "--dev", "--headless", "--host", "127.0.0.1", "--port", str(api), "--api-grpc-port", "0"),
        *("--otlp-http-port", str(http), "--otlp-grpc-port", str(grpc)),
    ]
    with Process(command, ready=r"(?s)(Application startup complete.*){2}") as process:
        yield Receiver(f"agentevals-cli {peers.version('agentevals-cli')}", process, http, grpc)


@contextmanager
def phoenix() -> Iterator[Receiver]:
    """Run Phoenix with SQLite: spans are kept and shown, and scored when somebody asks."""
    http, grpc, _ = _free_ports()
    with tempfile.TemporaryDirectory() as directory:
        environment = {
            "PHOENIX_WORKING_DIR": directory,
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(http),
            "PHOENIX_GRPC_PORT": str(grpc),
            "PHOENIX_TELEMETRY_ENABLED": "false",
        }
        command = [str(peers.directory() / "arize-phoenix" / "bin" / "phoenix"), "serve"]
        with Process(command, "Application startup complete", environment) as process:
            yield Receiver(f"Phoenix {peers.version('arize-phoenix')}", process, http, grpc)


def _free_ports() -> tuple[int, int, int]:
    """Return ports that nobody listens on; these receivers cannot choose one and say which."""
    sockets = [socket.socket() for _ in range(3)]
    for bound in sockets:
        bound.bind(("127.0.0.1", 0))
    first, second, third = (bound.getsockname()[1] for bound in sockets)
    for bound in sockets:
        bound.close()
    return first, second, third
