"""Every recording gives the same trajectories whether it is read as OTLP or as a table of a store."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from bench.stored_tables import recorded_tables
from pyarrow import parquet

from corpora import CORPUS, NAMES
from spanscore import config
from spanscore.config import parts as wiring
from spanscore.model import Trajectory
from spanscore.recordings.files import Recording
from spanscore.recordings.span_batches import SortedSpans
from spanscore.recordings.stored_rows import decoded_rows
from spanscore.runs import offline

TIES = {
    "google-adk-js",
    "google-adk-js-nocontent",
    "langsmith-js-otel",
    "mastra-approval-twice-nocontent",
    "openai-agents-js-oi-hidden",
    "openinference-core-js",
    "traceloop-js",
    "vercel-ai-6-oi",
    "vercel-ai-6-traceloop",
}
"""Recordings of JavaScript, whose clock has milliseconds: spans with equal start are in the order of their arrival,
which no store keeps."""

SESSIONS = {"claude-code-logs", "codex-cli-logs", "gemini-cli", "gemini-cli-nocontent", "gemini-cli-notraces"}
"""Recordings with log records that have no trace id, which sorted tables leave out."""

BY_STORE = [("TraceId", "ascending"), ("Timestamp", "ascending"), ("SpanId", "ascending")]
READING = replace(config.default(), evaluators=()).for_files()


@cache
def log_names() -> tuple[str, ...]:
    """Return the prefixes of the names of log records that are read."""
    return wiring.wanted(READING).log_names


def trajectories(recording: offline.Recorded) -> dict[tuple[bytes, bytes], tuple[Trajectory, str, bool]]:
    """Return all trajectories; attributes of runs are left out, whose types a store does not keep."""
    reports = offline.score(recording, READING, wiring.pipeline(READING, model_calls=True))
    return {
        (each.trajectory.trace_id, each.trajectory.root_span_id): (
            replace(each.trajectory, attributes={}),
            each.close_reason,
            each.complete,
        )
        for each in reports
    }


@pytest.mark.parametrize("name", NAMES)
def test_every_recording_is_read_alike_from_a_table(name: str, tmp_path: Path) -> None:
    """As Parquet with attributes as `Map(String, String)`, as they arrived; and sorted by a store, with JSON."""
    path = CORPUS / f"{name}.jsonl.gz"
    expected = trajectories(Recording([path], log_names=log_names()))
    for number, table in enumerate(recorded_tables(path, "map")):
        parquet.write_table(table, tmp_path / f"{number}.parquet")

    assert expected == trajectories(Recording([tmp_path], log_names=log_names()))

    tables = [table.sort_by(BY_STORE).to_batches() for table in recorded_tables(path, "json")]
    ordered = trajectories(
        SortedSpans({str(place): decoded_rows(batches, log_names()) for place, batches in enumerate(tables)})
    )
    sessions = {key for key in expected if key not in ordered}

    assert bool(sessions) is (name in SESSIONS)
    assert all(expected[key][0].completeness.from_logs for key in sessions)
    assert (ordered == {key: run for key, run in expected.items() if key in ordered}) is (name not in TIES)
