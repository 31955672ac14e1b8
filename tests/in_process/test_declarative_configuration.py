"""The SDK configured by a file, OTEL_CONFIG_FILE, in real processes under `opentelemetry-instrument`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ended_programs import AGENT, instrumented

pytest.importorskip(
    "opentelemetry.configuration",
    reason="needs the package opentelemetry-configuration: pip install --group configuration",
)
pytestmark = pytest.mark.processes

RUN = f"{AGENT}\nrun(trace.get_tracer('agent'))"
SCORED = ("evaluate shop", "execute_tool search", "invoke_agent shop")


def declared(directory: Path, processor: str) -> str:
    """Return the path of a file in which the SDK has this span processor, and each signal goes to the console."""
    file = directory / "otel.yaml"
    file.write_text(
        f"""
file_format: "1.0"
tracer_provider: {{processors: [{processor}, simple: {{exporter: {{console: {{}}}}}}]}}
meter_provider: {{readers: [periodic: {{exporter: {{console: {{}}}}}}]}}
logger_provider: {{processors: [simple: {{exporter: {{console: {{}}}}}}]}}
""",
        encoding="utf-8",
    )
    return str(file)


@pytest.mark.parametrize("processor", ["batch", "simple"])
def test_the_exporter_in_the_file(processor: str, tmp_path: Path) -> None:
    """The exporter is found by its name, and scores go to all three providers of the file."""
    file = declared(tmp_path, f"{processor}: {{exporter: {{spanscore: {{}}}}}}")
    found = instrumented(RUN, OTEL_CONFIG_FILE=file)

    assert (0, SCORED) == (found.status, found.spans)
    assert (1, 1, 1) == (found.scored, found.events, found.events_of_spans)


def test_the_file_names_the_configuration(tmp_path: Path) -> None:
    """In place of SPANSCORE_CONFIG."""
    (tmp_path / "two.yaml").write_text(
        "evaluators: {a: {type: tool_call_trajectory}, b: {type: tool_call_trajectory}}", encoding="utf-8"
    )
    named = f"{{spanscore: {{config: '{tmp_path / 'two.yaml'}'}}}}"
    found = instrumented(RUN, OTEL_CONFIG_FILE=declared(tmp_path, f"batch: {{exporter: {named}}}"))

    assert (0, 2, 2) == (found.status, found.scored, found.events)


def test_a_mistake_is_told_in_one_line(tmp_path: Path) -> None:
    """The application and its other exporters go on."""
    file = declared(tmp_path, "batch: {exporter: {spanscore: {config: missing.yaml}}}")
    found = instrumented(RUN, OTEL_CONFIG_FILE=file)

    assert (0, SCORED[1:], 0) == (found.status, found.spans, found.scored)
    assert 1 == found.errors.count("spanscore is off: missing.yaml: cannot be read: No such file or directory\n")
