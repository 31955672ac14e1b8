"""Where scores go in an application's process, and that it is said where they go nowhere, in real processes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ended_programs import AGENT, Ended, forking, instrumented

pytestmark = pytest.mark.processes

SDK = """
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
from spanscore import ScoringSpanExporter, ScoringSpanProcessor

provider = TracerProvider()
"""
OURS = "provider.add_span_processor(ScoringSpanProcessor())\n"
THEIRS = "provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter()))\n"
AROUND = "provider.add_span_processor(BatchSpanProcessor(ScoringSpanExporter(ConsoleSpanExporter())))\n"
ALONE = "provider.add_span_processor(BatchSpanProcessor(ScoringSpanExporter()))\n"
GLOBAL = "trace.set_tracer_provider(provider)\n"
METERS = "metrics.set_meter_provider(MeterProvider([PeriodicExportingMetricReader(ConsoleMetricExporter())]))\n"
RUNS = "run(provider.get_tracer('agent'))\n" * 2
WARNING = (
    "spanscore: scores go nowhere: the application has no meter provider or logger provider that exports; set one, or "
    "add `exporters: {console: {}}`, otlp or prometheus to the configuration\n"
)


@pytest.fixture(scope="module")
def run() -> Iterator[Callable[[str], Ended]]:
    """Run programs without a launcher."""
    with forking() as running:
        yield running


@pytest.mark.parametrize(
    "program",
    [
        OURS + RUNS,
        OURS + THEIRS + RUNS,  # the span with the scores is made by the global provider, and there is none
        GLOBAL + OURS + RUNS,
        GLOBAL + ALONE + RUNS,
        OURS + "metrics.set_meter_provider(MeterProvider())\n" + RUNS,
    ],
)
def test_scores_that_go_nowhere_are_told_once(run: Callable[[str], Ended], program: str) -> None:
    """Where nothing exports them, one line says so, and what to do."""
    assert WARNING == run(AGENT + SDK + program).errors


@pytest.mark.parametrize(
    "program",
    [
        GLOBAL + OURS + THEIRS + RUNS,
        OURS.replace("()", "(tracer_provider=provider)") + THEIRS + RUNS,
        AROUND + RUNS,
        OURS + METERS + RUNS,
    ],
)
def test_scores_that_arrive_are_not_warned_of(run: Callable[[str], Ended], program: str) -> None:
    """A span that is exported is somewhere, and providers may be set after the processor was made."""
    found = run(AGENT + SDK + program)

    assert ("", 2) == (found.errors, found.scored or found.events_of_spans)


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ("exporters: {console: {}}", ""),
        ("exporters: {jsonl: {path: scores.jsonl}}", ""),
        ("annotate: none", WARNING),
    ],
)
def test_the_configuration_can_name_a_place(
    run: Callable[[str], Ended], tmp_path: Path, configuration: str, expected: str
) -> None:
    """An exporter of our own is a place, and so is a trace, where it is annotated."""
    path = tmp_path / "spanscore.yaml"
    path.write_text(configuration, encoding="utf-8")
    ours = OURS.replace("()", f".from_config({json.dumps(str(path))})")
    found = run(AGENT + SDK + GLOBAL + ours + THEIRS + RUNS)

    assert expected == found.errors


@pytest.mark.parametrize(("traces", "expected"), [("spanscore", WARNING), ("spanscore,console", "")])
def test_without_code_and_without_metrics_and_logs(traces: str, expected: str) -> None:
    """`none` makes providers that export nothing: they are no place for scores."""
    found = instrumented(
        f"{AGENT}\nrun(trace.get_tracer('agent'))",
        OTEL_TRACES_EXPORTER=traces,
        OTEL_METRICS_EXPORTER="none",
        OTEL_LOGS_EXPORTER="none",
    )

    assert (0, expected) == (found.status, found.errors)


@pytest.mark.parametrize(("more", "is_told"), [("", True), (RUNS, False)])
def test_spans_of_no_agent_are_told_at_the_end(run: Callable[[str], Ended], more: str, *, is_told: bool) -> None:
    """Where no trace at all was scored, one line says so, with the instrumentations whose spans were seen."""
    plain = "provider.get_tracer('billing').start_span('work').end()\n" * 2
    found = run(AGENT + SDK + GLOBAL + OURS + METERS + THEIRS + plain + more)

    told = "spanscore: no trace was scored, of 2: no span of a known instrumentation; scopes seen: 'billing'\n"
    assert (told if is_told else "") == found.errors
