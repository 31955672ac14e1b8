"""Scoring recordings: what is in the files decides, not how they are written."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from spanscore import config
from spanscore.config import parts as wiring
from spanscore.recordings.files import Recording
from spanscore.reports.serialization import report_object
from spanscore.runs import offline

CORPUS = Path(__file__).parents[1] / "corpus"
CONFIG = """
evaluators:
  health: {type: tool_call_trajectory}
  order: {type: tool_call_order, tool_calls_order: [get_weather, search_flights, book_hotel]}
  once: {type: tool_call_count, tool_calls_count: {book_hotel: 1}}
"""


def reports(*paths: Path, yaml: str = CONFIG) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the reports of recordings by trace id and root span id."""
    settings = config.loads(yaml, "test", Path()).for_files()
    found = [report_object(each) for each in offline.score(Recording(paths), settings, wiring.pipeline(settings))]
    by_unit = {(each["trace_id"], each["root_span_id"]): each for each in found}

    assert len(found) == len(by_unit)
    return by_unit


def spans_of(path: Path) -> list[dict[str, Any]]:
    """Return each span of a recording in a request of its own."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [
            {"resourceSpans": [{**resource, "scopeSpans": [{**scope, "spans": [span]}]}]}
            for line in lines
            for resource in json.loads(line)["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        ]


def write(path: Path, requests: list[dict[str, Any]]) -> Path:
    """Write a recording in JSON Lines."""
    path.write_text("".join(f"{json.dumps(request)}\n" for request in requests), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["strands", "langchain-oi", "openai-agents-tl", "google-adk-semconv", "uipath-traced"])
def test_order_batching_and_repetition_of_spans_change_nothing(name: str, tmp_path: Path) -> None:
    """Shuffled, one span a request, and a fifth of them sent twice: the reports are the same."""
    recording = CORPUS / f"{name}.jsonl.gz"
    spans = spans_of(recording)
    expected = reports(recording)
    for seed in range(3):
        chance = random.Random(seed)
        shuffled = spans + chance.sample(spans, len(spans) // 5)
        chance.shuffle(shuffled)

        assert expected == reports(write(tmp_path / f"{seed}.jsonl", shuffled))


def test_several_files_are_one_recording(tmp_path: Path) -> None:
    """A trace may be spread over files: it is scored once, with all its spans."""
    recording = CORPUS / "strands.jsonl.gz"
    spans = spans_of(recording)
    halves = [write(tmp_path / "a.jsonl", spans[::2]), write(tmp_path / "b.jsonl", spans[1::2])]

    assert reports(recording) == reports(*halves)


def test_a_trace_without_its_root_is_scored_as_incomplete(tmp_path: Path) -> None:
    """Where the root was never exported the calls are read all the same, and the report says what is missing."""
    recording = CORPUS / "strands.jsonl.gz"
    children = [
        request
        for request in spans_of(recording)
        if request["resourceSpans"][0]["scopeSpans"][0]["spans"][0].get("parentSpanId")
    ]
    whole = {trace: report for (trace, _), report in reports(recording).items()}
    for (trace, _), report in reports(write(tmp_path / "children.jsonl", children)).items():
        assert (False, "shutdown") == (report["complete"], report["close_reason"])
        assert [call["name"] for call in whole[trace]["tool_calls"]] == [call["name"] for call in report["tool_calls"]]


def test_traces_without_tool_calls_are_reported() -> None:
    """A trace in which no tool was called has a report with no calls."""
    found = reports(CORPUS / "strands.jsonl.gz")

    assert [0, 2, 2, 3, 4, 5] == sorted(len(report["tool_calls"]) for report in found.values())


def test_each_agent_run_is_a_unit_of_its_own() -> None:
    """With `unit: agent` the calls of a nested agent are its own, and the outer one keeps the rest."""
    by_trace: dict[str, dict[str | None, list[str]]] = {}
    for report in reports(CORPUS / "strands.jsonl.gz", yaml=f"{CONFIG}\ntraces: {{unit: agent}}").values():
        names = [call["name"] for call in report["tool_calls"]]
        by_trace.setdefault(report["trace_id"], {})[report["agent"]] = names

    assert {
        "orchestrator": ["ask_weather_agent", "lookup_policy"],
        "weather_agent": ["get_weather"],
    } in by_trace.values()


def test_a_span_limit_closes_a_trace_and_says_so() -> None:
    """Limits of the configuration hold offline too: the trace is scored as far as it goes, as incomplete."""
    found = reports(CORPUS / "strands.jsonl.gz", yaml=f"{CONFIG}\ntraces: {{span_limit: 10}}")

    assert {"span_limit", "root_ended"} == {report["close_reason"] for report in found.values()}
