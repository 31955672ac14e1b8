"""spanscore inside a process: the processor and the exporter, with the real SDK."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from deadline import DEADLINE_S
from one_trace import paused_runs
from receivers.otlp_requests import OF_AN_AGENT
from scoring.isolation.hostile import Hostile
from sdk_spans import CORPUS, recorded_spans, sdk_span, sdk_spans
from spanscore import config
from spanscore.config import parts as wiring
from spanscore.in_process.exporter import ScoringSpanExporter
from spanscore.in_process.processor import ScoringSpanProcessor
from spanscore.in_process.timeouts import last_scoring_s
from spanscore.model import Span
from spanscore.recordings.files import Recording
from spanscore.recordings.span_batches import SpanBatch
from spanscore.reports.serialization import report_line
from spanscore.runs import offline
from spanscore.scoring.evaluator_entry import EvaluatorEntry

EVENT = "gen_ai.evaluation.result"
LABEL = "gen_ai.evaluation.score.label"
RECORDINGS = sorted(path.name.removesuffix(".jsonl.gz") for path in CORPUS.glob("*.jsonl.gz"))
SHARES = 8
"""How many processors share the recordings: each takes 16 MB for the ids of closed traces."""
EVALUATORS = """
evaluators:
  health: {type: tool_call_trajectory}
  order: {type: tool_call_order, tool_calls_order: [get_weather, search_flights, book_hotel]}
"""


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    """Return the file that scores are written to."""
    return tmp_path / "scores.jsonl"


def settings(scores: Path, more: str = "") -> config.Config:
    """Return a configuration that writes its scores to a file."""
    text = f"{EVALUATORS}\nexporters: {{jsonl: {{path: {json.dumps(str(scores))}}}}}\n{more}"
    return config.loads(text, "test", scores.parent)


def written(scores: Path) -> dict[str, dict[str, Any]]:
    """Return the reports in the file by trace id."""
    reports = [json.loads(line) for line in scores.read_text(encoding="utf-8").splitlines()]

    assert len(reports) == len({report["trace_id"] for report in reports})
    return {report["trace_id"]: report for report in reports}


class ReadOnce:
    """A recording whose file is read once, for both doors."""

    def __init__(self, name: str) -> None:
        self._batches = list(Recording([CORPUS / f"{name}.jsonl.gz"]).read())

    def read(self) -> Iterator[SpanBatch]:
        """Yield what was read."""
        yield from self._batches

    def spans(self) -> list[Span]:
        """Return the spans, in the order they were received."""
        return [span for batch in self._batches for span in batch.spans]


def expected_reports(recording: ReadOnce, offline_settings: config.Config) -> dict[str, dict[str, Any]]:
    """Return the reports of the offline front door by trace id."""
    reports = offline.score(recording, offline_settings, wiring.pipeline(offline_settings))
    lines = (report_line(report, attributes=False) for report in reports if report.trajectory.recognised)
    return {each["trace_id"]: each for each in map(json.loads, lines)}


@pytest.mark.parametrize(("reason", "verdict"), [("tool_calls", "none"), ("stop", "pass")])
def test_a_run_that_does_not_say_what_tools_did_is_no_pass(reason: str, verdict: str, scores: Path) -> None:
    """Its model asked for some, and no span tells of a call; one whose model asked for none passes."""
    health = "evaluators: {health: {type: tool_call_trajectory}}"
    exporters = f"exporters: {{jsonl: {{path: {json.dumps(str(scores))}}}}}"
    processor = ScoringSpanProcessor(config.loads(f"{health}\n{exporters}", "test", scores.parent))
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    tracer = provider.get_tracer("an agent")
    with tracer.start_as_current_span("invoke_agent", attributes={"gen_ai.operation.name": "invoke_agent"}):
        asked = {"gen_ai.operation.name": "chat", "gen_ai.response.finish_reasons": [reason]}
        tracer.start_span("chat", attributes=asked).end()
    processor.shutdown()
    (report,) = written(scores).values()

    assert verdict == report["verdict"]


@pytest.mark.parametrize("share", range(SHARES))
def test_a_recording_gives_the_same_reports_in_process(share: int, scores: Path) -> None:
    """Rebuilt as SDK spans, handed over with its roots last, a recording is scored as offline."""
    recordings = {name: ReadOnce(name) for name in RECORDINGS[share::SHARES]}
    processor = ScoringSpanProcessor(settings(scores, "annotate: none\ntraces: {root: parentless}"))
    for recording in recordings.values():
        for span in sdk_spans(sorted(recording.spans(), key=lambda span: not span.parent_span_id)):
            processor.on_end(span)
        assert processor.force_flush()
    processor.shutdown()

    for_files = settings(scores).for_files()
    found, expected = written(scores), {name: expected_reports(each, for_files) for name, each in recordings.items()}
    assert [] == [
        name for name in recordings if expected[name] != {trace: found.get(trace) for trace in expected[name]}
    ]
    assert len(found) == sum(map(len, expected.values()))


def agent_run(provider: TracerProvider, tools: Sequence[str] = ("search", "book")) -> None:
    """Run an agent that calls tools."""
    tracer = provider.get_tracer("agent")
    with tracer.start_as_current_span("invoke_agent a", attributes={"gen_ai.operation.name": "invoke_agent"}):
        for tool in tools:
            attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
            with tracer.start_as_current_span(f"execute_tool {tool}", attributes=attributes):
                pass


def test_a_trace_is_scored_when_its_root_ends(scores: Path) -> None:
    """After a flush the score of a finished run is out; the run that goes on is not scored."""
    provider = TracerProvider()
    processor = ScoringSpanProcessor(settings(scores), tracer_provider=provider)
    provider.add_span_processor(processor)
    agent_run(provider)
    running = provider.get_tracer("agent").start_span("invoke_agent b", attributes=OF_AN_AGENT)

    assert processor.force_flush()
    assert [["search", "book"]] == [
        [call["name"] for call in report["tool_calls"]] for report in written(scores).values()
    ]
    running.end()
    provider.shutdown()
    assert 2 == len(written(scores))


def test_the_scores_are_events_of_a_child_span(scores: Path) -> None:
    """By default a short span below the root carries one event for each evaluation."""
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    processor = ScoringSpanProcessor(settings(scores), tracer_provider=provider)
    provider.add_span_processor(processor)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    agent_run(provider)
    processor.force_flush()
    spans = {span.name.partition(" ")[0]: span for span in memory.get_finished_spans()}
    scored = spans["evaluate"]

    assert spans["invoke_agent"].context.span_id == scored.parent.span_id
    assert [(EVENT, "health"), (EVENT, "order")] == [
        (event.name, event.attributes["gen_ai.evaluation.name"]) for event in scored.events
    ]
    provider.shutdown()
    assert 1 == len(written(scores))


@pytest.mark.parametrize("wraps", [False, True])
def test_integers_that_python_does_not_write_cost_nobody_a_score(scores: Path, *, wraps: bool) -> None:
    """An integer of more than 4,300 digits is text, wherever it is in a span."""
    behind = InMemorySpanExporter()
    processor = ScoringSpanProcessor(
        settings(scores, "tool_content: true"), wraps=SimpleSpanProcessor(behind) if wraps else None
    )
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    tracer = provider.get_tracer("agent")
    for keys in (["session.id"], ["gen_ai.tool.call.arguments"], ["gen_ai.tool.call.result"], []):
        more: dict[str, Any] = dict.fromkeys(keys, 10**5_000)
        agent = {"gen_ai.operation.name": "invoke_agent"}
        tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
        with (
            tracer.start_as_current_span("invoke_agent", attributes=agent | more),
            tracer.start_as_current_span("execute_tool", attributes=tool | more),
        ):
            pass
    processor.shutdown()

    assert 4 == len(written(scores))
    assert (8 if wraps else 0) == len(behind.get_finished_spans())


def test_an_exporter_behind_gets_the_root_with_its_events(scores: Path) -> None:
    """ScoringSpanExporter passes every span on once; the root carries its scores, and nothing else is changed."""
    memory = InMemorySpanExporter()
    exporter = ScoringSpanExporter(memory, settings(scores))
    spans = sdk_spans(recorded_spans("strands"))
    assert SpanExportResult.SUCCESS == exporter.export(spans)
    passed_on = memory.get_finished_spans()

    assert [span.context for span in spans] == [span.context for span in passed_on]
    for sent, got in zip(spans, passed_on, strict=True):
        added = [event for event in got.events if event.name == EVENT]
        assert (2 if sent.parent is None else 0) == len(added)
        assert [event.name for event in sent.events] == [event.name for event in got.events if event.name != EVENT]
        scored = [(event.attributes["gen_ai.evaluation.name"], event.attributes[LABEL]) for event in added]
        failing = ",".join(name for name, label in scored if label == "fail")
        told = {"spanscore.verdict": "fail", "spanscore.failing": failing} if failing else {}
        assert ({**sent.attributes, **told}, sent.links, sent.status.status_code) == (
            got.attributes,
            got.links,
            got.status.status_code,
        )
    exporter.shutdown()


def test_a_wrapped_processor_gets_every_span_once(scores: Path) -> None:
    """Children pass at once, the root when it is scored, with its events."""
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    wrapped = SimpleSpanProcessor(memory)
    processor = ScoringSpanProcessor(settings(scores), wraps=wrapped)
    provider.add_span_processor(processor)
    agent_run(provider)
    processor.force_flush()
    names = [span.name for span in memory.get_finished_spans()]

    assert ["execute_tool search", "execute_tool book", "invoke_agent a"] == names
    assert [EVENT, EVENT] == [event.name for event in memory.get_finished_spans()[-1].events]
    provider.shutdown()


@pytest.mark.parametrize("more", ["traces: {unit: agent}", "traces: {late_spans: ignore}"])
def test_a_root_without_scores_is_passed_on_all_the_same(scores: Path, more: str) -> None:
    """A trace in which there is nothing to score, and a root that comes when its trace is closed, are not held back."""
    memory = InMemorySpanExporter()
    processor = ScoringSpanProcessor(settings(scores, more), wraps=SimpleSpanProcessor(memory))
    provider = TracerProvider()
    provider.add_span_processor(processor)
    for trace_id, name in ((7, "one"), (7 if "late" in more else 8, "two")):
        parent = SpanContext(trace_id, 9, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
        provider.get_tracer("agent").start_span(name, set_span_in_context(NonRecordingSpan(parent))).end()
        assert processor.force_flush()

    assert ["one", "two"] == [span.name for span in memory.get_finished_spans()]
    provider.shutdown()


def test_a_root_that_ends_early_waits_for_its_running_children(scores: Path) -> None:
    """As with streaming frameworks: a tool that is still running when the root ends is part of the trajectory."""
    provider = TracerProvider()
    processor = ScoringSpanProcessor(settings(scores), tracer_provider=provider)
    provider.add_span_processor(processor)
    tracer = provider.get_tracer("agent")
    root = tracer.start_span("invoke_agent a")
    context = set_span_in_context(root)
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
    child = tracer.start_span("execute_tool search", context, attributes=attributes)
    root.end()
    processor.force_flush()
    assert {} == written(scores)
    child.end()
    processor.force_flush()

    assert [["search"]] == [[call["name"] for call in report["tool_calls"]] for report in written(scores).values()]
    provider.shutdown()


def test_spans_that_are_not_sampled_are_ignored(scores: Path) -> None:
    """What the application chose not to record is not scored."""
    processor = ScoringSpanProcessor(settings(scores))
    for span in recorded_spans("strands"):
        processor.on_end(sdk_span(span, TraceFlags.DEFAULT))
    processor.shutdown()

    assert {} == written(scores)


class Hung(SpanProcessor):
    """A processor that never comes back from `on_end`, until it is released."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.released = threading.Event()

    def on_end(self, span: ReadableSpan) -> None:
        """Hang."""
        self.entered.set()
        self.released.wait(DEADLINE_S)


def test_shutdown_and_flush_keep_their_timeout_when_something_hangs(scores: Path) -> None:
    """A hung processor behind us costs the caller the timeout and no more, and flush says it was not done."""
    hung = Hung()
    processor = ScoringSpanProcessor(settings(scores), wraps=hung)
    processor.on_end(sdk_span(next(span for span in recorded_spans("strands") if not span.parent_span_id)))
    assert hung.entered.wait(DEADLINE_S)

    assert not processor.force_flush(50)
    processor.shutdown(50)
    hung.released.set()


class Flushing(Hung):
    """A hung processor that needs a moment to send its spans at its shutdown."""

    def __init__(self) -> None:
        super().__init__()
        self.has_sent = False

    def shutdown(self) -> None:
        """Send them."""
        self.released.wait(0.02)
        self.has_sent = True


def test_what_is_wrapped_has_time_at_a_shutdown_when_scoring_hangs(scores: Path) -> None:
    """Scoring takes at most half of the timeout. The other half is enough for a machine that stands still meanwhile."""
    behind = Flushing()
    processor = ScoringSpanProcessor(settings(scores), wraps=behind)
    processor.on_end(sdk_span(next(span for span in recorded_spans("strands") if not span.parent_span_id)))
    assert behind.entered.wait(DEADLINE_S)
    processor.shutdown(6_000)
    assert behind.has_sent
    behind.released.set()


@pytest.mark.parametrize(
    ("timeout_millis", "passes_on", "expected_s"),
    [(None, False, 10.0), (None, True, 10.0), (60_000, False, 60.0), (60_000, True, 30.0), (0, True, 0.0)],
)
def test_an_application_that_ends_does_not_wait_long_for_scores(
    timeout_millis: float | None, expected_s: float, *, passes_on: bool
) -> None:
    """Without a timeout, as SDKs shut processors down, scoring ends after ten seconds."""
    assert expected_s == last_scoring_s(timeout_millis, passes_on=passes_on)


def test_shutdown_twice_is_one_shutdown(scores: Path) -> None:
    """The second call does nothing; spans that end afterwards are dropped, not scored and not an error."""
    processor = ScoringSpanProcessor(settings(scores))
    spans = sdk_spans(recorded_spans("strands"))
    for span in spans:
        processor.on_end(span)
    processor.shutdown()
    processor.shutdown()
    processor.on_end(spans[0])

    assert 6 == len(written(scores))


def test_our_own_spans_are_not_scored(scores: Path) -> None:
    """The span that carries the scores passes our processor too, and does not become a trace of its own."""
    provider = TracerProvider()
    processor = ScoringSpanProcessor(settings(scores), tracer_provider=provider)
    provider.add_span_processor(processor)
    for _ in range(3):
        agent_run(provider)
        processor.force_flush()
    provider.shutdown()

    assert 3 == len(written(scores))


def test_a_remote_parent_makes_a_local_root(scores: Path) -> None:
    """A service called by another one scores its own part of the trace when that has ended."""
    provider = TracerProvider()
    processor = ScoringSpanProcessor(settings(scores), tracer_provider=provider)
    provider.add_span_processor(processor)
    caller = SpanContext(7, 9, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    tracer = provider.get_tracer("agent")
    context = set_span_in_context(NonRecordingSpan(caller))
    with tracer.start_as_current_span("invoke_agent a", context, attributes=OF_AN_AGENT):
        pass
    processor.force_flush()

    assert [("root_ended", True)] == [
        (report["close_reason"], report["complete"]) for report in written(scores).values()
    ]
    provider.shutdown()


@pytest.mark.parametrize(("delay", "said"), [("0s", ("root_ended", True)), ("1h", ("shutdown", False))])
def test_an_end_before_the_delay_makes_no_run_complete(scores: Path, delay: str, said: tuple[str, bool]) -> None:
    """A trace whose root has ended is scored at the end, and is complete only if `decision_delay` had passed."""
    provider = TracerProvider()
    provider.add_span_processor(ScoringSpanProcessor(settings(scores, f"traces: {{decision_delay: {delay}}}")))
    agent_run(provider)
    provider.shutdown()

    assert [said] == [(report["close_reason"], report["complete"]) for report in written(scores).values()]


def test_an_end_before_a_child_ended_makes_no_run_complete(scores: Path) -> None:
    """A span that is still running when the provider ends is missing."""
    provider = TracerProvider()
    provider.add_span_processor(ScoringSpanProcessor(settings(scores)))
    tracer = provider.get_tracer("agent")
    with tracer.start_as_current_span("invoke_agent a", attributes=OF_AN_AGENT):
        tracer.start_span("execute_tool slow")
    provider.shutdown()

    assert [("shutdown", False)] == [
        (report["close_reason"], report["complete"]) for report in written(scores).values()
    ]


def test_the_configuration_comes_from_the_environment(
    scores: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exporter that `OTEL_TRACES_EXPORTER=spanscore` makes has no arguments: SPANSCORE_CONFIG names the file."""
    path = tmp_path / "spanscore.yaml"
    path.write_text(f"{EVALUATORS}exporters: {{jsonl: {{path: scores.jsonl}}}}\n", encoding="utf-8")
    monkeypatch.setenv("SPANSCORE_CONFIG", str(path))
    exporter = ScoringSpanExporter()
    exporter.export(sdk_spans(recorded_spans("strands")))
    exporter.shutdown()

    assert 6 == len(written(scores))


class Failing(SpanProcessor):
    """A processor that raises whatever it is called for."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """Raise."""
        raise self.error

    def on_end(self, span: ReadableSpan) -> None:
        """Raise."""
        raise self.error

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Raise."""
        raise self.error

    def shutdown(self) -> None:
        """Raise."""
        raise self.error


def test_what_is_no_span_is_ignored(scores: Path) -> None:
    """A caller that has nothing to hand over does not learn of it by an error."""
    for processor in (
        ScoringSpanProcessor(settings(scores)),
        ScoringSpanProcessor(settings(scores), wraps=SimpleSpanProcessor(InMemorySpanExporter())),
    ):
        processor.on_start(None)
        processor.on_end(None)
        processor.shutdown()

    assert {} == written(scores)


@pytest.mark.parametrize("error", [ValueError("broken"), SystemExit(3), RecursionError(), MemoryError()])
def test_what_a_wrapped_processor_raises_does_not_reach_the_agent(scores: Path, error: BaseException) -> None:
    """The agent runs on, its traces are scored, and a flush says that it was not done."""
    provider = TracerProvider()
    processor = ScoringSpanProcessor(settings(scores), wraps=Failing(error))
    provider.add_span_processor(processor)
    agent_run(provider)

    assert not processor.force_flush()
    processor.shutdown()
    assert 1 == len(written(scores))


class NeverDone(Hung):
    """A processor whose flush and shutdown do not come back, until it is released."""

    def on_end(self, span: ReadableSpan) -> None:
        """Do nothing."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Hang."""
        return self.released.wait(DEADLINE_S)

    def shutdown(self) -> None:
        """Hang."""
        self.released.wait(DEADLINE_S)


def test_a_wrapped_processor_that_hangs_costs_the_timeout(scores: Path) -> None:
    """SDK processors ignore the timeout of a flush, and have none for a shutdown; ours hold."""
    hung = NeverDone()
    processor = ScoringSpanProcessor(settings(scores), wraps=hung)

    assert not processor.force_flush(50)
    processor.shutdown(50)
    hung.released.set()


class HungExporter(InMemorySpanExporter):
    """An exporter whose flush and shutdown do not come back, until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Hang."""
        return self.released.wait(DEADLINE_S)

    def shutdown(self) -> None:
        """Hang."""
        self.released.wait(DEADLINE_S)


def test_an_exporter_that_hangs_costs_the_timeout(scores: Path) -> None:
    """Flush and shutdown of the exporter around it come back in time."""
    hung = HungExporter()
    exporter = ScoringSpanExporter(hung, settings(scores))
    exporter.export(sdk_spans(recorded_spans("strands")))

    assert not exporter.force_flush(50)
    exporter.shutdown(50)
    hung.released.set()
    assert 6 == len(written(scores))


def limited(scores: Path, deed: str, limit_s: float = 30.0) -> config.Config:
    """Return a configuration with an evaluator that runs elsewhere, before one that runs here."""
    plain = settings(scores, "annotate: root_event")
    hostile = EvaluatorEntry(name="other", type="hostile", resolve=lambda _: Hostile(deed), time_limit_s=limit_s)
    return replace(plain, evaluators=(hostile, *plain.evaluators))


def test_an_exporter_waits_for_evaluators_elsewhere(scores: Path) -> None:
    """The root is passed on with the answers of all evaluators, in the order of the configuration."""
    memory = InMemorySpanExporter()
    exporter = ScoringSpanExporter(memory, limited(scores, "pass"))
    exporter.export(sdk_spans(recorded_spans("strands")))
    exporter.shutdown()
    roots = [span for span in memory.get_finished_spans() if span.parent is None]

    assert [["other", "health", "order"]] * 6 == [
        [event.attributes["gen_ai.evaluation.name"] for event in span.events if event.name == EVENT] for span in roots
    ]


def test_a_hung_evaluator_fails_alone(scores: Path) -> None:
    """In process, too: its evaluation has failed, all others and the next traces have their scores."""
    processor = ScoringSpanProcessor(limited(scores, "hang", 0.05))
    for span in sdk_spans(sorted(recorded_spans("strands"), key=lambda span: not span.parent_span_id)):
        processor.on_end(span)
    assert processor.force_flush()
    outcomes = [report["outcomes"] for report in written(scores).values()]
    processor.shutdown()

    assert [("failed", "score")] * 6 == [(each["other"]["outcome"], each["health"]["outcome"]) for each in outcomes]
    assert {"TimeLimit", "SetAside"} == {each["other"]["error_type"] for each in outcomes}


def test_a_run_that_continues_in_the_trace_that_paused(scores: Path) -> None:
    """Its spans are held in the process; the whole run is scored when it has ended."""
    (run,) = (run for run in paused_runs("strands-interrupt") if run.scenario == "approved")
    processor = ScoringSpanProcessor(settings(scores))
    for part in (run.first, run.second):
        for span in sdk_spans(part):
            processor.on_end(span)
        assert processor.force_flush()
    processor.shutdown()

    paused, whole = map(json.loads, scores.read_text(encoding="utf-8").splitlines())
    assert (run.trace_id, 0, run.trace_id, 1) == (
        paused["trace_id"],
        paused["revision"],
        whole["trace_id"],
        whole["revision"],
    )
    assert ["lookup_order"] == [call["name"] for call in paused["tool_calls"]]
    assert ["lookup_order", "issue_refund"] == [call["name"] for call in whole["tool_calls"]]
    assert {"skipped"} == {outcome["outcome"] for outcome in paused["outcomes"].values()}
    assert {"score"} == {outcome["outcome"] for outcome in whole["outcomes"].values()}
