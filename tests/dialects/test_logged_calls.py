"""The calls that coding agents log: each record of the recordings, as the value that it is to be read from."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dialects.spans import built_in_reader
from spanscore.contracts import CallReading
from spanscore.model import NOT_RECORDED, Span

CORPUS = Path(__file__).parent.parent / "corpus"
NAMES = sorted(
    path.name.removesuffix(".observed.json")
    for path in CORPUS.glob("*.observed.json")
    if '"log": true' in path.read_text("utf-8") and path.name.startswith(("claude-code", "codex", "gemini"))
)


@cache
def logged(name: str) -> list[CallReading]:
    """Return the calls that are read from the log records of a recording."""
    reader = built_in_reader()
    readings = (reader.read(record) for record in records(name))
    return [reading.call for reading in readings if reading is not None and reading.call is not None]


def records(name: str) -> Iterator[Span]:
    """Return log records as spans of their event's name."""
    with gzip.open(CORPUS / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            for resource in json.loads(line).get("resourceLogs", ()):
                for scope in resource["scopeLogs"]:
                    for record in scope["logRecords"]:
                        yield span(record, scope["scope"]["name"])


def span(record: dict[str, Any], scope: str) -> Span:
    """Return the value that a log record is read from."""
    attributes = {each["key"]: plain(each["value"]) for each in record["attributes"]}
    at_ns = int(record.get("timeUnixNano") or record["observedTimeUnixNano"])
    return Span(
        trace_id=bytes.fromhex(record.get("traceId", "")),
        span_id=b"",
        parent_span_id=bytes.fromhex(record.get("spanId", "")),
        name=attributes.get("event.name") or record.get("eventName", ""),
        start_ns=at_ns,
        end_ns=at_ns,
        attributes={**attributes, "body": plain(record.get("body", {}))},
        scope=scope,
    )


def plain(value: dict[str, Any]) -> Any:
    """Return what an AnyValue holds."""
    for kind, held in value.items():
        if kind == "arrayValue":
            return [plain(each) for each in held.get("values", ())]
        if kind == "kvlistValue":
            return {each["key"]: plain(each["value"]) for each in held.get("values", ())}
        return int(held) if kind == "intValue" else held
    return None


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
