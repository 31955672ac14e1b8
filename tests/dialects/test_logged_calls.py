"""The calls that coding agents log: each record of the recordings, as the value that it is to be read from."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dialects.spans import built_in_log_names, built_in_reader
from spanscore.contracts import CallReading
from spanscore.model import NOT_RECORDED, CloseReason, Span, Trace
from spanscore.recordings.files import Recording
from spanscore.trajectories.trajectory import trajectories

CORPUS = Path(__file__).parent.parent / "corpus"
IDS = re.compile(r',"(?:traceId|spanId)": ?"[^"]*"')
NAMES = sorted(
    path.name.removesuffix(".observed.json")
    for path in CORPUS.glob("*.observed.json")
    if '"log": true' in path.read_text("utf-8") and path.name.startswith(("claude-code", "codex", "gemini"))
)


@cache
def logged(name: str) -> list[CallReading]:
    """Return the calls that are read from the log records of a recording, and that were made."""
    reader = built_in_reader()
    readings = (reader.read(record) for record in records(name))
    found = (reading.call for reading in readings if reading is not None)
    return [call for call in found if call is not None and call.state == "made"]


def records(name: str) -> Iterator[Span]:
    """Return the log records of a recording that are read, as they are received."""
    for batch in Recording([CORPUS / f"{name}.jsonl.gz"], log_names=built_in_log_names()).read():
        yield from (span for span in batch.spans if span.is_log)


@cache
def truth(name: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the true calls that a log record tells of, each with what is seen of it there."""
    traces = json.loads((CORPUS / f"{name}.truth.json").read_text("utf-8"))["traces"]
    seen = json.loads((CORPUS / f"{name}.observed.json").read_text("utf-8"))["calls"]
    by_scenario = {trace["scenario"]: trace["tool_calls"] for trace in traces}
    return [
        (
            by_scenario[each["scenario"]][each["i"]],
            {"args": each.get("log_args", each["args"]), "error": each.get("log_error_signals", each["error_signals"])},
        )
        for each in seen
        if each.get("log")
    ]


@pytest.mark.parametrize("name", NAMES)
def test_every_record_of_a_call_is_read_as_one(name: str) -> None:
    """And no other record."""
    known = sorted(call.name for call in logged(name) if call.name)
    true = sorted(true["name"] for true, _ in truth(name))

    assert len(logged(name)) == len(true)
    assert known == true or "nocontent" in name


@pytest.mark.parametrize("name", NAMES)
def test_what_a_record_tells_of_a_call_is_true(name: str) -> None:
    """Arguments are exact, or not recorded; a failure is the one that happened."""
    waiting = list(logged(name))
    for true, seen in truth(name):
        found = next(call for call in waiting if is_of(call, true))
        waiting.remove(found)
        expected = true["arguments"] if seen["args"] == "exact" and true["arguments"] is not None else None
        assert (None if found.arguments is NOT_RECORDED or expected is None else found.arguments) == expected
        assert (found.error is not None) == bool(seen["error"])
        if found.result is not NOT_RECORDED and not true.get("not_journaled"):
            assert found.result == true["result"]


def is_of(call: CallReading, true: dict[str, Any]) -> bool:
    """Tell whether what was read is of a call: by its id, or else by its name and what is known of its arguments."""
    if call.call_id is not None:
        return bool(call.call_id == true["call_id"])
    return call.name == true["name"] and call.arguments in (NOT_RECORDED, true["arguments"])


def test_a_session_without_traces_is_one_run(tmp_path: Path) -> None:
    """What Gemini CLI logs where it makes no spans: the calls of sub-agents too, and each once."""
    whole = json.loads((CORPUS / "gemini-cli.truth.json").read_text("utf-8"))["traces"]
    path = tmp_path / "logs.jsonl"
    with gzip.open(CORPUS / "gemini-cli.jsonl.gz", "rt", encoding="utf-8") as lines:
        kept = [IDS.sub("", line) for line in lines if '"resourceLogs"' in line]
    path.write_text("".join(kept), encoding="utf-8")
    runs: dict[bytes, list[Span]] = {}
    for batch in Recording([path], log_names=built_in_log_names()).read():
        for span in batch.spans:
            runs.setdefault(span.trace_id, []).append(span)

    found = {}
    for trace_id, spans in runs.items():
        trace = Trace(trace_id=trace_id, spans=tuple(spans), close_reason=CloseReason.TIMED_OUT)
        (run,) = trajectories(trace, built_in_reader())
        found[run.conversation_id] = sorted(call.name for call in run.calls)
    assert found == {each["session"]: sorted(call["name"] for call in each["tool_calls"]) for each in whole}
