"""Traces as other programs write them: Jaeger 2, Tempo 3, Zipkin 3, the Python SDK and its exporters, and protobuf."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import spanscore
from commands import spanscore as command

FOREIGN = Path(__file__).parent / "foreign"
REFUND = [
    ("lookup_order", {"order_id": "A-1042"}, None),
    ("check_policy", {"order_id": "A-1042", "reason": "damaged"}, None),
    ("issue_refund", {"order_id": "?", "amount": 59.9}, "TimeoutError: payment gateway timed out"),
    ("issue_refund", {"order_id": "A-1042", "amount": 59.9}, None),
]
ZIPKIN = [
    ("lookup_order", {"order_id": "A-1"}, None),
    ("issue_refund", {"amount": 59.9}, "TimeoutError: payment gateway timed out"),
]
FILES = {
    "jaeger-ui.json": REFUND,
    "jaeger-v3.json": [REFUND[0], REFUND[1], REFUND[3]],
    "sdk-console.json": REFUND,
    "sdk-to-json.jsonl": REFUND,
    "protobuf.json": REFUND,
    "tempo-v1.json": REFUND,
    "tempo-v2.json": REFUND,
    "protobuf-snake-case.json": REFUND,
    "zipkin.json": ZIPKIN,
    "zipkin-server-trace.json": ZIPKIN,
    "zipkin-server-traces.json": ZIPKIN,
}


def calls(path: Path) -> list[tuple[str, Any, str | None]]:
    """The calls of the one run in a file."""
    (run,) = spanscore.read(path)
    assert "refund-agent" == run.agent
    return [(call.name, call.arguments, call.error) for call in run.calls]


@pytest.mark.parametrize("name", FILES)
def test_what_other_programs_write(name: str) -> None:
    """Calls, arguments, failures and agents are those of the run, and every result that there was."""
    assert FILES[name] == calls(FOREIGN / name)
    (run,) = spanscore.read(FOREIGN / name)
    assert [call.error is None for call in run.calls] == [
        call.result is not spanscore.NOT_RECORDED for call in run.calls
    ]
    assert run.start_ns
    assert run.end_ns > run.start_ns


def test_every_file_is_read() -> None:
    """A format that is added has its line here."""
    assert set(FILES) == {path.name for path in FOREIGN.iterdir()}


@pytest.mark.parametrize("wrapped", ["batches", "trace", "instrumentation libraries"])
def test_the_forms_of_tempo(wrapped: str, tmp_path: Path) -> None:
    """Its older API has batches, and once had other names for scopes; ids are in base64."""
    request = json.loads((FOREIGN / "protobuf.json").read_text())
    if wrapped == "trace":
        document: Any = {"trace": request}
    else:
        document = {"batches": request["resourceSpans"]}
    if wrapped == "instrumentation libraries":
        for batch in document["batches"]:
            batch["instrumentationLibrarySpans"] = [
                {"instrumentationLibrary": scope["scope"], "spans": scope["spans"]} for scope in batch.pop("scopeSpans")
            ]
    (tmp_path / "tempo.json").write_text(json.dumps(document))

    assert REFUND == calls(tmp_path / "tempo.json")


def test_every_command_reads_them(tmp_path: Path) -> None:
    """Scored, explained and made golden as OTLP is."""
    for name in ("score", "explain"):
        ended = command(name, FOREIGN / "zipkin.json")
        assert "issue_refund" in ended.stdout
        assert "" == ended.stderr
    ended = command("golden", FOREIGN / "jaeger-ui.json", "-o", tmp_path / "golden.jsonl")
    assert (0, "") == (ended.returncode, ended.stderr)


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"run_type": "llm", "dotted_order": "x", "id": "y"}, "not OTLP, but a LangSmith export"),
        ({"id": "t", "observations": [], "projectId": "p"}, "not OTLP, but a Langfuse export"),
        ({"context.trace_id": "t", "span_kind": "LLM"}, "not OTLP, but a Phoenix export"),
        ({"data": [{"spans": [{"traceID": "zz"}]}]}, "jaeger JSON that cannot be read"),
        ({"traceId": "12", "id": "no id"}, "an id must have at most 16 hexadecimal digits, not 'no id'"),
        ({"context": {"trace_id": "0x1"}}, "sdk JSON that cannot be read: KeyError: 'span_id'"),
        ({"hello": 1}, "not OTLP with spans or logs"),
    ],
)
def test_what_cannot_be_read_is_named(document: Any, told: str, tmp_path: Path) -> None:
    """With what it is, what is wrong with it, and the way out where there is one."""
    (tmp_path / "file.json").write_text(json.dumps(document))

    with pytest.raises(spanscore.InputError, match=told):
        spanscore.read(tmp_path / "file.json")
