"""An exporter that cannot be started in an application's process ends neither the application nor other exporters."""

from __future__ import annotations

import json
import os
import socket
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from deadline import DEADLINE_S
from spanscore import ScoringSpanExporter, ScoringSpanProcessor
from spanscore.config import Config, load

DOORS: list[Callable[[Config], SpanProcessor]] = [
    ScoringSpanProcessor,
    lambda config: SimpleSpanProcessor(ScoringSpanExporter(config=config)),
]


@pytest.fixture
def address() -> tuple[str, int]:
    """Return a loopback address of this process alone, and a port that is free there."""
    host = f"127.1.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
    with socket.create_server((host, 0)) as server:
        return host, server.getsockname()[1]


@pytest.fixture
def configuration(tmp_path: Path, address: tuple[str, int]) -> Config:
    """Return the configuration of a file with both exporters."""
    path = tmp_path / "spanscore.yaml"
    scores = json.dumps(str(tmp_path / "folder" / "scores.jsonl"))
    path.write_text(
        f"exporters: {{prometheus: {{endpoint: '{address[0]}:{address[1]}'}}, jsonl: {{path: {scores}}}}}\n"
    )
    return load(path)


def run(door: Callable[[Config], SpanProcessor], configuration: Config) -> TracerProvider:
    """Run an agent that calls no tool."""
    provider = TracerProvider()
    provider.add_span_processor(door(configuration))
    provider.get_tracer("agent").start_span("run", attributes={"gen_ai.operation.name": "invoke_agent"}).end()
    assert provider.force_flush()
    return provider


@pytest.mark.parametrize("door", DOORS, ids=["processor", "exporter"])
def test_a_file_that_cannot_be_written_is_told_and_counted(
    door: Callable[[Config], SpanProcessor],
    configuration: Config,
    address: tuple[str, int],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The metrics page goes on, and says how many reports are not in the file."""
    provider = run(door, configuration)
    page = urllib.request.urlopen(f"http://{address[0]}:{address[1]}/metrics", timeout=DEADLINE_S).read().decode()
    provider.shutdown()

    path = configuration.exporters["jsonl"].path
    assert [
        f"spanscore: exporters.jsonl.path: cannot write to {path}: no such file or directory; it gets no scores"
    ] == [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert '{spanscore_emitter="jsonl",spanscore_reason="not_started"} 1.0' in page


@pytest.mark.parametrize("door", DOORS, ids=["processor", "exporter"])
def test_a_port_of_another_process_is_told(
    door: Callable[[Config], SpanProcessor],
    configuration: Config,
    address: tuple[str, int],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As that of another worker of the same application; the file goes on."""
    (tmp_path / "folder").mkdir()
    with socket.create_server(address):
        run(door, configuration).shutdown()

    reason = f"cannot listen on {address[0]}:{address[1]}: address already in use; it gets no scores"
    assert [f"spanscore: exporters.prometheus.endpoint: {reason}"] == [
        record.getMessage() for record in caplog.records if record.levelname == "ERROR"
    ]
    assert 1 == len((tmp_path / "folder" / "scores.jsonl").read_text(encoding="utf-8").splitlines())
