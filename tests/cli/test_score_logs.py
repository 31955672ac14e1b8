"""`spanscore score` with recordings that hold logs: what it says of those that are in no report."""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from otlp.log_requests import logs, record
from receivers.otlp_requests import request_of, simple_span, span_id, to_json, trace_id
from spanscore.cli import main

CALL = {"tool_name": "shell", "call_id": "c1", "success": "true", "conversation.id": "s"}


def result(**attributes: object) -> object:
    """Return the record of a call that ran, outside of every trace."""
    return record("codex.tool_result", attributes, trace_id=b"", span_id=b"")


@pytest.mark.parametrize("form", ["table", "json"])
def test_records_that_are_in_no_report(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Their numbers are told on standard error, by why, and what to do; the exit status is that of the runs."""
    path = tmp_path / "logs.jsonl"
    lost = {key: value for key, value in CALL.items() if key != "conversation.id"}
    records = [result(**CALL), result(**lost), record("http.request"), record("http.request", body="x")]
    path.write_bytes(to_json(logs(records)))  # type: ignore[arg-type] # they are records

    assert 0 == main(["score", str(path), "--format", form])
    other, no_run = capsys.readouterr().err.splitlines()
    assert "2 log records not read: no dialect knows events of their names" == other
    assert no_run.startswith(
        "1 log record left out, because their run is not known; they may hold tool calls. They have"
    )


def test_other_signals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A recording of metrics alone says why there is nothing to score."""
    path = tmp_path / "metrics.json"
    path.write_text('{"resourceMetrics": [{}]}')

    assert 1 == main(["score", str(path)])
    assert [
        "nothing to score: no trace was found",
        "1 request with other signals than spans and logs left out",
    ] == capsys.readouterr().err.splitlines()


def test_a_record_that_names_no_tool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its call is counted, and it is told why it has no name."""
    path = tmp_path / "logs.jsonl"
    nameless = {key: value for key, value in CALL.items() if key != "tool_name"}
    path.write_bytes(to_json(logs([result(**CALL, n=1), result(**{**nameless, "call_id": "c2"})])))  # type: ignore[list-item]

    assert 0 == main(["score", str(path), "--format", "json"])
    assert "1 call is named 'unknown': its span or log record names no tool\n" == capsys.readouterr().err


def test_a_custom_dialect_with_a_mistyped_attribute(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The attribute that it was told to look at is named."""
    path, config = tmp_path / "run.jsonl", tmp_path / "c.yaml"
    attributes = [KeyValue(key="mine.tool", value=AnyValue(string_value="shell"))]
    path.write_bytes(to_json(request_of(*(simple_span(1, n, name="run", attributes=attributes) for n in (1, 2)))))
    config.write_text(
        "dialects: {custom: [{name: mine, match: {span.name: run}, tool_name: mine.tol}]}\n"
        "evaluators: {count: {type: tool_call_count, tool_calls_count: {shell: 1}}}\n"
    )
    main(["score", str(path), "--config", str(config), "--format", "json"])
    told = capsys.readouterr().err
    assert "2 calls are named 'unknown': their spans or log records name no tool; " in told
    assert "tool_name of dialect 'mine' is 'mine.tol'\n" in told


def test_where_no_agent_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is said how spans are described that nobody knows."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(to_json(request_of(Span(trace_id=trace_id(1), span_id=span_id(1), name="GET /"))))

    main(["score", str(path), "--format", "json"])
    told = capsys.readouterr().err
    assert "no span of an agent was found: if agents called tools, no dialect knows how their spans or logs" in told
    assert "'spanscore describe custom' says how to describe others" in told


def test_where_all_is_read_nothing_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is left out, and nothing told."""
    path = tmp_path / "logs.jsonl"
    path.write_bytes(to_json(logs([result(**CALL)])))  # type: ignore[list-item] # it is a record

    assert 0 == main(["score", str(path)])
    assert "" == capsys.readouterr().err
