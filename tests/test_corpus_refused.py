"""The corpus with one span or log record of each trace refused: nothing passes, and no run is shown as whole."""

from __future__ import annotations

import gzip
import json
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from corpora import recorded
from receivers.otlp_requests import CORPUS, CORPUS_NAMES
from spanscore import config
from spanscore.config import parts as wiring
from spanscore.model import PARENT_IS_REMOTE, CloseReason, Report, Score, Span, ToolCall, Trace
from spanscore.recordings.files import Recording
from spanscore.runs import offline
from spanscore.scoring.pipeline import Pipeline
from spanscore.trajectories.lost_calls import refuses
from spanscore.trajectories.trajectory import trajectories

EVALUATORS: Final = """
evaluators:
  failures: {type: tool_call_trajectory, threshold: 0}
  policy: {type: tool_policy, forbidden: [no_such_tool], max_calls: 100}
  loops: {type: tool_loops, threshold: 0}
  recovery: {type: tool_recovery, threshold: 0}
  count: {type: tool_call_count, tool_calls_count: {no_such_tool: 0}}
  budget: {type: run_budget, tool_calls: 2}
  measured: {type: run_budget, tool_calls: 100, informational: true}
"""

PROVING: Final = frozenset(
    {"langchain-genai", "langchain-oi", "openai-agents-oi", "openai-agents-v2", "pydantic-ai-1x-v2", "strands"}
)
"""Some of the recordings in which messages hold the results of calls that others stand beside."""


def items(documents: list[Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the spans and log records of a recording by their trace id."""
    found = defaultdict(list)
    for document in documents:
        for kinds in (("resourceSpans", "scopeSpans", "spans"), ("resourceLogs", "scopeLogs", "logRecords")):
            for item in inside(document, *kinds):
                if item.get("traceId"):
                    found[item["traceId"].lower()].append(item)
    return found


def inside(document: Any, *keys: str) -> Iterator[dict[str, Any]]:
    """Yield what is in lists of lists."""
    if not keys:
        yield document
        return
    for each in document.get(keys[0]) or ():
        yield from inside(each, *keys[1:])


def left_out(documents: list[Any], chosen: random.Random) -> set[str]:
    """Leave a span below the root out of each trace that a child of its process names, and return the trace ids."""
    found = set()
    for trace_id, spans in items(documents).items():
        local = [span for span in spans if span.get("flags", 0) & PARENT_IS_REMOTE != PARENT_IS_REMOTE]
        named = {span["parentSpanId"] for span in local if span.get("parentSpanId") and "endTimeUnixNano" in span}
        roots = [span for span in spans if "endTimeUnixNano" in span and not span.get("parentSpanId")]
        below = [span for span in spans if span.get("parentSpanId") and span.get("spanId") in named]
        below = [span for span in below if "endTimeUnixNano" in span]
        if roots and below:
            chosen.choice(below)["traceId"] = "f" * 32
            found.add(trace_id)
    return found


@pytest.mark.parametrize("name", CORPUS_NAMES)
def test_one_of_each_trace_is_left_out(name: str, tmp_path: Path) -> None:
    """Where the root was received, a child that names a parent proves that its run lacks a span."""
    documents = [json.loads(line) for line in gzip.decompress((CORPUS / f"{name}.jsonl.gz").read_bytes()).splitlines()]
    traces = left_out(documents, random.Random(name))
    for report in scored(documents, tmp_path)[1]:
        if report.trajectory.trace_id.hex() in traces:
            assert not report.complete
            assert not any(isinstance(each.outcome, Score) and each.outcome.passed for each in report.evaluations)


@pytest.mark.parametrize("name", CORPUS_NAMES)
def test_one_call_of_each_trace_is_left_out(name: str, tmp_path: Path) -> None:
    """A later message that holds the result of a call proves that its run lacks a span, if others were executed."""
    pipeline = wiring.pipeline(config.loads(EVALUATORS, "config", tmp_path).for_files())
    chosen = random.Random(name)
    proven = 0
    for spans in recorded(name).values():
        if len(calls := executed(spans, pipeline)) < 2:
            continue
        left = chosen.choice(calls)
        (report,) = pipeline.run(closed(span for span in spans if span.span_id != left.span_id))
        told = [each for each in report.trajectory.calls if (each.call_id, each.span_id) == (left.call_id, None)]
        # A framework may have answered without an execution, or the first that was sent the result is another run.
        if not told or refuses(told[0].result) or name in {"haystack-native", "vercel-ai-7"}:
            continue
        proven += 1
        assert not report.complete
        assert not any(isinstance(each.outcome, Score) and each.outcome.passed for each in report.evaluations)
    assert proven or name not in PROVING


def executed(spans: list[Span], pipeline: Pipeline) -> list[ToolCall]:
    """Return the calls of a trace that have a span and an id."""
    (run,) = trajectories(closed(spans), pipeline.reader)
    return [call for call in run.calls if call.span_id and call.call_id]


def closed(spans: Iterable[Span]) -> Trace:
    """Return a trace that its root has closed."""
    found = tuple(spans)
    return Trace(trace_id=found[0].trace_id, spans=found, close_reason=CloseReason.ROOT_ENDED)


def scored(documents: list[Any], directory: Path) -> tuple[Recording, list[Report]]:
    """Score a recording of these documents."""
    path = directory / "recorded.jsonl"
    path.write_text("\n".join(map(json.dumps, documents)))
    loaded = config.loads(EVALUATORS, "config", directory).for_files()
    recording = Recording([path], log_names=wiring.wanted(loaded).log_names)
    return recording, list(offline.score(recording, loaded, wiring.pipeline(loaded)))


@pytest.mark.parametrize("name", CORPUS_NAMES)
def test_one_of_each_trace_is_refused(name: str, tmp_path: Path) -> None:
    """What was refused may have changed anything but the failures that no further call mends."""
    lines = gzip.decompress((CORPUS / f"{name}.jsonl.gz").read_bytes()).splitlines()
    documents = [json.loads(line) for line in lines]
    chosen = random.Random(name)
    traces = items(documents)
    for found in traces.values():
        item = chosen.choice(found)
        item["flags" if "endTimeUnixNano" not in item else "droppedAttributesCount"] = -1
    recording, reports = scored(documents, tmp_path)
    requests = [request for document in recording.documents() for request in document.requests]
    assert sum(request.refused_spans for request in requests) == len(traces)
    for report in reports:
        if report.trajectory.trace_id.hex() not in traces:  # of log records without a trace id
            continue
        assert not report.complete
        assert "pass" != report.verdict
        assert not any(isinstance(each.outcome, Score) and each.outcome.passed for each in report.evaluations)
