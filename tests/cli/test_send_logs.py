"""`spanscore send` with recordings that hold logs, alone or beside spans, run as a user runs it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from google.protobuf.message import Message

from otlp.log_requests import SPAN_ID, TRACE_ID, logs, record
from otlp_capture import FORBIDDEN, INVALID, Capture, Reply, capturing, partial_success, records_of
from receivers.otlp_requests import request_of, simple_span, to_json
from service.test_logs import CALLS, FIRST, SECOND, SPANS
from serving import ON_ANY_PORT, serving
from spanscore.cli import main
from spanscore.emitters.sending.client import Protocol

LOGS = logs([record("codex.tool_result", {"n": 1}), record("http.request", body="GET /")])
OTHER_LOGS = logs([record("claude_code.api_request", trace_id=b"", span_id=b"")])
SPAN = request_of(simple_span(1))
NO_SERVICE = Reply(http=404, grpc=grpc.StatusCode.UNIMPLEMENTED)

PATHS = {
    "http/protobuf": ("/v1/traces", "/v1/logs"),
    "grpc": tuple(
        f"/opentelemetry.proto.collector.{name}Service/Export" for name in ("trace.v1.Trace", "logs.v1.Logs")
    ),
}


def json_lines(requests: list[Message]) -> bytes:
    """Record one request a line."""
    return b"\n".join(map(to_json, requests))


def array(requests: list[Message]) -> bytes:
    """Record all in one array."""
    return b"[" + b",".join(map(to_json, requests)) + b"]"


def indented(requests: list[Message]) -> bytes:
    """Record documents over several lines."""
    return b"\n".join(to_json(each, indent=2) for each in requests)


def framed(requests: list[Message]) -> bytes:
    """Record requests in protobuf, each behind its length."""
    bodies = [each.SerializeToString() for each in requests]
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


def zipped(requests: list[Message]) -> bytes:
    """Record one request a line, and compress it."""
    return gzip.compress(json_lines(requests))


@pytest.mark.parametrize("encode", [json_lines, array, indented, framed, zipped])
@pytest.mark.parametrize("order", [(LOGS, SPAN, OTHER_LOGS), (SPAN, OTHER_LOGS, LOGS)])
def test_logs_are_sent_beside_spans(
    receiver: Capture,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    order: tuple[Message, ...],
    encode: Callable[[list[Message]], bytes],
) -> None:
    """Each request goes to the service of its signal, whole, in the order of the recording; both are counted."""
    path = tmp_path / "recording"
    path.write_bytes(encode(list(order)))

    assert 0 == main(["send", str(path), "--endpoint", receiver.endpoint])

    paths = {True: "/v1/logs", False: "/v1/traces"}
    assert [(paths[each is not SPAN], each.SerializeToString()) for each in order] == [
        (received.path, received.body) for received in receiver.seen
    ]
    assert capsys.readouterr().out.startswith(f"sent 1 span, 3 log records in 3 requests to {receiver.endpoint} in ")


def test_to_both_services_of_each_protocol(
    protocol: Protocol, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One document may hold both; a bare request in protobuf may be logs."""
    both, bare = tmp_path / "both.json", tmp_path / "logs.pb"
    both.write_text(json.dumps({**json.loads(to_json(SPAN)), **json.loads(to_json(LOGS))}))
    bare.write_bytes(OTHER_LOGS.SerializeToString())
    with capturing(protocol) as receiver:
        assert 0 == main(["send", str(both), str(bare), "--endpoint", receiver.endpoint, "--protocol", protocol])

    traces, of_logs = PATHS[protocol]
    assert {(traces, SPAN.SerializeToString())} | {
        (of_logs, each.SerializeToString()) for each in (LOGS, OTHER_LOGS)
    } == {(received.path, received.body) for received in receiver.seen}
    assert "sent 1 span, 3 log records in 3 requests" in capsys.readouterr().out


def test_an_endpoint_that_was_written_for_one_signal(receiver: Capture, tmp_path: Path) -> None:
    """The path of one signal does not become that of the other."""
    path = tmp_path / "recording.jsonl"
    path.write_bytes(json_lines([SPAN, LOGS]))
    for signal in ("traces", "logs"):
        assert 0 == main(["send", str(path), "--endpoint", f"{receiver.endpoint}/v1/{signal}"])

    assert ["/v1/traces", "/v1/logs"] * 2 == [received.path for received in receiver.seen]


def test_spans_and_logs_joined_in_protobuf(
    receiver: Capture, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each part goes to the service of its signal."""
    path = tmp_path / "joined.pb"
    path.write_bytes(b"".join(each.SerializeToString() for each in (SPAN, LOGS, SPAN, OTHER_LOGS)))

    assert 0 == main(["send", str(path), "--endpoint", receiver.endpoint])
    assert {
        ("/v1/traces", SPAN.SerializeToString() * 2),
        ("/v1/logs", LOGS.SerializeToString() + OTHER_LOGS.SerializeToString()),
    } == {(received.path, received.body) for received in receiver.seen}
    assert capsys.readouterr().out.startswith("sent 2 spans, 3 log records in 2 requests to ")


def test_logs_alone(receiver: Capture, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A recording of nothing but logs is a recording."""
    path = tmp_path / "logs.jsonl"
    path.write_bytes(to_json(LOGS))

    assert 0 == main(["send", str(path), "--endpoint", receiver.endpoint])
    assert capsys.readouterr().out.startswith("sent 2 log records in 1 request to ")


def test_what_is_sent_is_scored(tmp_path: Path) -> None:
    """A receiver makes of it the run that was recorded."""
    path = tmp_path / "recording.pb"
    path.write_bytes(b"".join(len(body).to_bytes(4, "big") + body for body in (FIRST, SECOND, SPANS)))
    with serving(f"{ON_ANY_PORT}\ntraces: {{decision_delay: 0s}}") as running:
        assert 0 == main(["send", str(path), "--endpoint", running.http])
        (report,) = running.reports.wait_for(1)

    assert CALLS == report.trajectory.calls


def test_refused_log_records(receiver: Capture, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are told and fail as spans do, wholly refused or partly, and the rest is sent."""
    receiver.replies += [INVALID, partial_success(1, "too old")]
    path = tmp_path / "recording.jsonl"
    path.write_bytes(json_lines([LOGS, LOGS, SPAN]))

    assert 1 == main(["send", str(path), "--endpoint", receiver.endpoint])
    told = capsys.readouterr()
    assert [
        "request 1: 2 log records refused (http_400): bad span",
        "request 2: 1 log record refused (partial success): too old",
    ] == told.err.splitlines()
    assert told.out.endswith(" s; 3 log records not taken\n")


def test_a_receiver_without_a_service_for_logs(
    protocol: Protocol, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told once and is sent no more logs, but the spans."""
    path = tmp_path / "recording.jsonl"
    path.write_bytes(json_lines([LOGS, SPAN, OTHER_LOGS]))
    with capturing(protocol) as receiver:
        receiver.replies += [NO_SERVICE]
        assert 1 == main(["send", str(path), "--endpoint", receiver.endpoint, "--protocol", protocol])

    assert [PATHS[protocol][1], PATHS[protocol][0]] == [received.path for received in receiver.seen]
    told = capsys.readouterr()
    assert [True] == ["2 log records refused (" in line for line in told.err.splitlines()]
    assert told.out.endswith(" s; 3 log records not taken\n")


def test_who_is_not_let_in_stops(receiver: Capture, tmp_path: Path) -> None:
    """A refusal that all requests would meet ends it, whichever signal met it."""
    receiver.replies += [FORBIDDEN]
    path = tmp_path / "recording.jsonl"
    path.write_bytes(json_lines([LOGS, SPAN]))

    assert 1 == main(["send", str(path), "--endpoint", receiver.endpoint])
    assert 1 == len(receiver.seen)


@pytest.mark.parametrize("content", [b'{"resourceLogs": []}', b'{"resourceLogs": [{"scopeLogs": []}]}', b""])
def test_neither_spans_nor_logs(
    receiver: Capture, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    """Nothing is sent, which is said and fails."""
    path = tmp_path / "empty.json"
    path.write_bytes(content)

    assert 1 == main(["send", str(path), "--endpoint", receiver.endpoint])
    assert "nothing to send: no span and no log record was found\n" == capsys.readouterr().err
    assert [] == receiver.seen


def test_broken_logs_in_protobuf(receiver: Capture, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are told with their place, and what is beside and behind them is sent."""
    broken = LOGS.SerializeToString().replace(b"http.request", b"http.reques\xff")
    good = OTHER_LOGS.SerializeToString()
    path = tmp_path / "recording.pb"
    path.write_bytes(b"".join(len(body).to_bytes(4, "big") + body for body in (broken, good)))

    assert 1 == main(["send", str(path), "--endpoint", receiver.endpoint])
    at = "resource_logs[0].scope_logs[0].log_records[1]"
    told = f"{path}:1: 1 log record refused (invalid_utf8): {at}: a string is not valid UTF-8\n"
    assert told == capsys.readouterr().err
    rest = logs([record("codex.tool_result", {"n": 1})])
    assert [rest.SerializeToString(), good] == receiver.bodies()


def test_wrong_log_records_in_json(receiver: Capture, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are told with file, line and place, and the others are sent."""
    path = tmp_path / "recording.jsonl"
    good = {"body": {"stringValue": "x"}}
    request = {"resourceLogs": [{"scopeLogs": [{"logRecords": [good, {"flags": []}]}]}]}
    path.write_text(json.dumps(request) + '\n{"resourceLogs": {}}')

    assert 1 == main(["send", str(path), "--endpoint", receiver.endpoint])
    at = "resourceLogs[0].scopeLogs[0].logRecords[1]"
    assert [
        f"{path}:1: 1 log record refused (invalid_value): {at}: flags must be an integer from 0 to 4294967295",
        f"{path}:2: resourceLogs must be an array, not an object",
    ] == capsys.readouterr().err.splitlines()
    assert ["x"] == [each.body.string_value for each in records_of(receiver.bodies())]


def test_fresh_ids(receiver: Capture, tmp_path: Path) -> None:
    """Records stay with their trace and their span under the new ids; those without a trace id stay without."""
    path = tmp_path / "recording.jsonl"
    span = simple_span(1)
    span.trace_id, span.span_id = TRACE_ID, SPAN_ID
    path.write_bytes(json_lines([LOGS, request_of(span), OTHER_LOGS]))

    assert 0 == main(["send", str(path), "--endpoint", receiver.endpoint, "--fresh-ids"])
    first, spans, other = receiver.bodies()
    (sent,) = request_of().FromString(spans).resource_spans[0].scope_spans[0].spans
    assert sent.trace_id != TRACE_ID
    assert {(sent.trace_id, sent.span_id)} == {(each.trace_id, each.span_id) for each in records_of([first])}
    assert [(b"", b"")] == [(each.trace_id, each.span_id) for each in records_of([other])]
