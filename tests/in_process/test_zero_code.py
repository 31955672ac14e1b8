"""The door without code, in real processes under `opentelemetry-instrument`: a mistake in its configuration."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from opentelemetry.sdk.trace.export import SpanExporter

from ended_programs import AGENT, ended, instrumented
from spanscore.in_process.zero_code import ZeroCodeExporter

pytestmark = pytest.mark.processes

RUN = f"{AGENT}\nrun(trace.get_tracer('agent'))"
MISTAKES = """
evaluators:
  health: {type: tool_call_trajectry}
  order: {type: tool_call_order, tool_calls_ordr: [search]}
"""


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    """Return the path of a configuration file that is not there yet."""
    return tmp_path / "spanscore.yaml"


def test_every_mistake_is_told_in_one_line(configuration: Path) -> None:
    """The application ends well, the exporter beside it has its spans, and one line names each mistake."""
    configuration.write_text(MISTAKES, encoding="utf-8")
    found = instrumented(RUN, SPANSCORE_CONFIG=str(configuration))
    (line,) = found.errors.splitlines()

    assert (0, ("execute_tool search", "invoke_agent shop")) == (found.status, found.spans)
    assert line.startswith(f"spanscore is off: {configuration}:3:")
    assert 3 == line.count(f"{configuration}:")  # the type, the unknown parameter, and the one that is missing
    assert "tool_call_trajectory" in line
    assert "tool_calls_order" in line


def test_a_missing_file_is_told(configuration: Path) -> None:
    """The same where there is no such file."""
    found = instrumented(RUN, SPANSCORE_CONFIG=str(configuration))

    assert f"spanscore is off: {configuration}: cannot be read: No such file or directory\n" == found.errors
    assert (0, 2, 0) == (found.status, len(found.spans), found.scored)


def test_an_exporter_that_cannot_start_is_told(configuration: Path) -> None:
    """Where another program has the port of the metrics page, scores go to all other places."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        configuration.write_text(f"exporters: {{prometheus: {{endpoint: '127.0.0.1:{port}'}}}}", encoding="utf-8")
        found = instrumented(RUN, SPANSCORE_CONFIG=str(configuration))

    reason = f"cannot listen on 127.0.0.1:{port}: address already in use; it gets no scores"
    assert f"spanscore: exporters.prometheus.endpoint: {reason}\n" == found.errors
    assert (0, 3, 1) == (found.status, len(found.spans), found.scored)  # the scores have a span


def test_it_takes_whatever_a_distribution_gives_to_exporters(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The SDK asks for a class of exporters, and a distribution may hand arguments to it."""
    monkeypatch.setenv("SPANSCORE_CONFIG", str(tmp_path / "missing.yaml"))
    exporter = ZeroCodeExporter(endpoint="http://localhost:4317", meter_provider=None)

    assert issubclass(ZeroCodeExporter, SpanExporter)
    assert exporter.force_flush()
    exporter.shutdown()


LATER = f"""
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from spanscore.in_process.zero_code import ZeroCodeExporter
{AGENT}
from opentelemetry.sdk.trace.export import ConsoleSpanExporter
other = TracerProvider()
other.add_span_processor(BatchSpanProcessor(ZeroCodeExporter()))
other.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter()))
run(other.get_tracer("agent"))
other.shutdown()
"""


@pytest.mark.parametrize("traces", ["spanscore", "none"])
def test_another_provider_is_scored_once(traces: str) -> None:
    """An exporter that is made for another provider than the global one scores what that exports."""
    found = instrumented(LATER, OTEL_TRACES_EXPORTER=traces)

    assert (0, 1, 1) == (found.status, found.scored, found.events)


def test_receivers_in_an_application_are_told(configuration: Path) -> None:
    """Nothing is listened to there, and one line says so; all else goes on."""
    configuration.write_text("receivers: {otlp: {}}\n", encoding="utf-8")
    found = instrumented(RUN, SPANSCORE_CONFIG=str(configuration))

    told = "spanscore: `receivers` has no effect inside an application; it is for `spanscore serve`\n"
    assert (told, 0, 1) == (found.errors, found.status, found.scored)


SIMPLE = f"""
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from spanscore import ScoringSpanExporter
{AGENT}
provider = TracerProvider()
trace.set_tracer_provider(provider)
provider.add_span_processor(SimpleSpanProcessor(ScoringSpanExporter()))
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
run(provider.get_tracer("agent"))
"""


def test_behind_a_simple_processor() -> None:
    """The span that carries the scores is exported to what makes it, at once: that must not wait for itself."""
    assert (0, ("evaluate shop", "execute_tool search", "invoke_agent shop")) == (
        (found := ended(SIMPLE)).status,
        found.spans,
    )
