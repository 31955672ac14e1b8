"""`spanscore score` with recordings that hold logs: what it says of those that are in no report."""

from __future__ import annotations

from pathlib import Path

import pytest

from otlp.log_requests import logs, record
from receivers.otlp_requests import to_json
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
    assert no_run.startswith("1 log record that may tell of calls left out, as nothing says which run they belong to:")


def test_other_signals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A recording of metrics alone says why there is nothing to score."""
    path = tmp_path / "metrics.json"
    path.write_text('{"resourceMetrics": [{}]}')

    assert 1 == main(["score", str(path)])
    assert [
        "nothing to score: no trace was found",
        "1 request with other signals than spans and logs left out",
    ] == capsys.readouterr().err.splitlines()


def test_where_all_is_read_nothing_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is left out, and nothing told."""
    path = tmp_path / "logs.jsonl"
    path.write_bytes(to_json(logs([result(**CALL)])))  # type: ignore[list-item] # it is a record

    assert 0 == main(["score", str(path)])
    assert "" == capsys.readouterr().err
