"""A dialect that goes wrong is told of in every door, and no trace that it was asked about passes."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from receivers.otlp_requests import request_of, simple_span
from serving import ON_ANY_PORT, serving
from spanscore import ScoringSpanExporter, ScoringSpanProcessor, config
from spanscore.cli import main
from spanscore.config import parts as wiring
from spanscore.contracts import CallReading, Markers, ModelReading, Reading
from spanscore.model import CloseReason, Score, Skipped, Span, Trace
from spanscore.scoring.pipeline import Pipeline
from spanscore.trajectories.reader import DialectReader

BROKEN = """
from spanscore.contracts import Markers, Precedence

class Broken:
    precedence = Precedence.FRAMEWORK
    markers = Markers(span_names=("",))
    reads = frozenset()

    def read(self, span):
        return 1 / 0

    def read_model(self, span):
        return None
"""
FAILED = "dialect 'Broken' failed"
REQUEST = request_of(simple_span(1)).SerializeToString()


@pytest.fixture(autouse=True)
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package with a dialect that raises, and is the only one to know the spans of these tests."""
    package = tmp_path / "package"
    info = package / "broken-1.dist-info"
    info.mkdir(parents=True)
    (package / "broken_dialect.py").write_text(BROKEN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[spanscore.dialects]\nbroken = broken_dialect:Broken\n")
    monkeypatch.syspath_prepend(package)


def outcomes(line: str) -> list[dict[str, Any]]:
    """Return what evaluators say, as a line of JSON has it."""
    return list(json.loads(line)["outcomes"].values())


def test_offline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Standard error says it, the output has the reason, and not even leave to score nothing makes it a success."""
    recording = tmp_path / "recorded.pb"
    recording.write_bytes(REQUEST)

    assert 1 == main(["score", str(recording), "--format", "json", "--allow-unscored"])
    out, err = capsys.readouterr()
    assert f"{FAILED} on 1 spans (ZeroDivisionError)" in err
    (outcome,) = outcomes(out)
    assert ("skipped", True) == (outcome["outcome"], outcome["reason"].startswith(FAILED))
    assert 1 == main(["score", str(recording), "--allow-unscored"])
    assert f"{FAILED} (ZeroDivisionError, 1x)" in " ".join(capsys.readouterr().out.split())


def test_serve(caplog: pytest.LogCaptureFixture) -> None:
    """The log says it, it is counted, and what is emitted has the reason."""
    with serving(f"{ON_ANY_PORT}\ntraces: {{decision_delay: 0s}}") as running:
        headers = {"Content-Type": "application/x-protobuf"}
        urllib.request.urlopen(urllib.request.Request(f"{running.http}/v1/traces", REQUEST, headers)).close()
        (report,) = running.reports.wait_for(1)
        (evaluation,) = report.evaluations
        counted = 'spanscore_dialect_errors_total{error_type="ZeroDivisionError",spanscore_dialect="Broken"} 1.0'

        assert isinstance(evaluation.outcome, Skipped)
        assert evaluation.outcome.reason.startswith(FAILED)
        assert [FAILED] == [each[: len(FAILED)] for each in caplog.messages if "dialect" in each]
        assert counted in running.page("/metrics")[1]


@pytest.mark.parametrize("door", ["processor", "exporter"])
def test_in_process(door: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The application's log says it, and the scores have the reason."""
    scores = tmp_path / "scores.jsonl"
    settings = config.loads(
        f"annotate: none\nexporters: {{jsonl: {{path: {json.dumps(str(scores))}}}}}", "test", tmp_path
    )
    ours: SpanProcessor = ScoringSpanProcessor(settings)
    if door == "exporter":
        ours = SimpleSpanProcessor(ScoringSpanExporter(config=settings))
    provider = TracerProvider()
    provider.add_span_processor(ours)
    with provider.get_tracer("test").start_as_current_span("work"):
        pass
    provider.shutdown()

    ((outcome,),) = map(outcomes, scores.read_text().splitlines())
    assert ("skipped", True) == (outcome["outcome"], outcome["reason"].startswith(FAILED))
    assert [FAILED] == [each[: len(FAILED)] for each in caplog.messages if "dialect" in each]


class KnowsSchemas:
    """A dialect whose reading of tool definitions raises on every second span."""

    precedence = 0
    markers = Markers(span_names=("",))
    reads = frozenset[str]()

    def read(self, span: Span) -> Reading | None:
        """Tell a call of the tool that the span is named after."""
        return Reading(call=CallReading(name=span.name, arguments={}, call_id=span.name))

    def read_model(self, span: Span) -> ModelReading | None:
        """Tell the tool's schema, or raise."""
        if span.name == "second":
            raise ZeroDivisionError
        return ModelReading(tool_definitions={span.name: {"type": "object"}})


@pytest.mark.parametrize("limit", ["none", "20s"])
def test_definitions_that_cannot_be_read_pass_nothing(limit: str) -> None:
    """Their score must not leave out calls whose schema is missing. What runs in another process is sent them all."""
    spans = tuple(
        Span(bytes(15) + b"1", bytes(7) + bytes([place]), b"", name, place, place + 1, 1)
        for place, name in enumerate(("first", "second"), 1)
    )
    settings = config.loads(
        f"evaluators: {{s: {{type: tool_arguments_schema, time_limit: {limit}}}, h: {{type: tool_call_trajectory}}}}",
        "test",
        Path(),
    )
    pipeline = Pipeline(wiring.pipeline(settings).entries, DialectReader([KnowsSchemas()]))
    (report,) = pipeline.run(Trace(trace_id=spans[0].trace_id, spans=spans, close_reason=CloseReason.ROOT_ENDED))
    schema, health = (evaluation.outcome for evaluation in report.evaluations)

    assert Skipped("dialect 'KnowsSchemas' failed (ZeroDivisionError, 1x): calls may be missing or misread") == schema
    assert isinstance(health, Score)
