"""`spanscore send`, run as a user runs it, with real receivers."""

from __future__ import annotations

import io
import json
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from emitters.sending.test_http import answering
from otlp_capture import FORBIDDEN, INVALID, UNAVAILABLE, Capture, Reply, capturing, partial_success
from receivers.otlp_requests import CORPUS, corpus_lines, from_json, request_of, simple_span, to_json
from spanscore.cli import main, send
from spanscore.emitters.sending.client import Protocol, Retries

RECORDING = str(CORPUS / "strands.jsonl.gz")


def framed(*requests: ExportTraceServiceRequest) -> bytes:
    """Return requests in protobuf, each behind its length."""
    bodies = [each.SerializeToString() for each in requests]
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


def test_a_recording_is_sent_in_its_order(protocol: Protocol, capsys: pytest.CaptureFixture[str]) -> None:
    """Each recorded request is one request again, with the same spans; a summary says what was sent where."""
    expected = [from_json(line) for line in corpus_lines("strands")]
    with capturing(protocol) as receiver:
        arguments = ["--endpoint", receiver.endpoint, "--protocol", protocol, "--header", "x-api-key=k=1"]
        assert 0 == main(["send", RECORDING, *arguments])

    assert expected == [ExportTraceServiceRequest.FromString(body) for body in receiver.bodies()]
    assert {"k=1"} == {received.headers["x-api-key"] for received in receiver.seen}
    spans = len(receiver.spans())
    out = capsys.readouterr().out
    assert out.startswith(f"sent {spans} spans in {len(expected)} requests to {receiver.endpoint} in ")


def test_protobuf_is_sent_as_it_is(receiver: Capture, tmp_path: Path) -> None:
    """A recording in protobuf goes out byte for byte, unknown fields too."""
    path = tmp_path / "recording.pb"
    body = request_of(simple_span(1)).SerializeToString() + b"\xc8\x3e\x96\x01"
    path.write_bytes(len(body).to_bytes(4, "big") + body)

    assert 0 == main(["send", str(path), "--endpoint", receiver.endpoint])
    assert [body] == receiver.bodies()


def test_standard_input(receiver: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dash reads what is piped in."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(to_json(request_of(simple_span(1))))))

    assert 0 == main(["send", "-", "--endpoint", receiver.endpoint])
    assert [simple_span(1)] == receiver.spans()


def test_a_refused_request_fails_and_the_rest_is_sent(
    receiver: Capture, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the receiver finds wrong with a request is told, and those behind it are sent."""
    receiver.replies += [INVALID, partial_success(1, "too old")]
    path = tmp_path / "recording.pb"
    path.write_bytes(framed(*(request_of(simple_span(number)) for number in (1, 2, 3))))

    assert 1 == main(["send", str(path), "--endpoint", receiver.endpoint])
    told = capsys.readouterr()
    assert [
        "request 1: 1 span refused (http_400): bad span",
        "request 2: 1 span refused (partial success): too old",
    ] == told.err.splitlines()
    assert told.out.startswith("sent 1 span in 3 requests to ")
    assert told.out.endswith(" s; 2 spans not taken\n")
    assert [2, 3] == [span.trace_id[-1] for span in receiver.spans()]


def test_who_is_not_let_in_stops(receiver: Capture, capsys: pytest.CaptureFixture[str]) -> None:
    """A refusal that all requests would meet ends it."""
    receiver.replies += [FORBIDDEN]

    assert 1 == main(["send", RECORDING, "--endpoint", receiver.endpoint])
    assert "refused (http_403): not you" in capsys.readouterr().err
    assert 1 == len(receiver.seen)


def test_a_port_without_otlp(receiver: Capture, capsys: pytest.CaptureFixture[str]) -> None:
    """A refusal without a message asks for the port."""
    receiver.replies += [Reply(http=405)]

    assert 1 == main(["send", RECORDING, "--endpoint", receiver.endpoint])
    assert "refused (http_405): is this the port of an OTLP receiver over HTTP?\n" in capsys.readouterr().err


def test_a_receiver_that_is_away(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If there is nobody, nothing was refused: it was not sent. The rest is counted without being tried."""
    monkeypatch.setattr(send, "_RETRIES", Retries(max_s=0.01, max_elapsed_s=0.0))
    path = tmp_path / "recording.pb"
    path.write_bytes(framed(*(request_of(simple_span(number)) for number in (1, 2, 3))))

    assert 1 == main(["send", str(path), "--endpoint", "http://localhost:1"])
    told = capsys.readouterr()
    assert "request 1: 1 span not sent (retries_exhausted): unreachable\n" == told.err
    assert told.out.startswith("sent 0 spans in 1 request to http://localhost:1 in ")
    assert told.out.endswith(" s; 3 spans not taken\n")


def test_a_receiver_that_is_busy_is_waited_for(receiver: Capture, capsys: pytest.CaptureFixture[str]) -> None:
    """The request is sent again, and nothing counts as refused."""
    receiver.replies += [UNAVAILABLE]

    assert 0 == main(["send", RECORDING, "--endpoint", receiver.endpoint])
    assert capsys.readouterr().err.startswith(f"cannot send to {receiver.endpoint} now (http_503): trying again in ")
    assert receiver.seen[0].body == receiver.seen[1].body


def answer_in_http(connection: socket.socket) -> None:
    """Answer as an HTTP server that reads no HTTP/2."""
    connection.recv(1_000)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")


def greet(connection: socket.socket) -> None:
    """Speak first, as a server of another protocol does."""
    connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
    connection.recv(1_000)


@pytest.mark.parametrize("serve", [answer_in_http, greet])
@pytest.mark.parametrize(
    ("scheme", "told"),
    [
        ("http", "does not answer in gRPC: HTTP needs --protocol http/protobuf and its port"),
        ("https", "does not answer in TLS: without it the endpoint begins with http://"),
    ],
)
def test_the_port_of_another_protocol(
    serve: Callable[[socket.socket], None], scheme: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A port of another protocol is not tried again, and one line says what to do."""
    with answering(serve) as address:
        endpoint = address.replace("http", scheme)
        began = time.monotonic()
        assert 1 == main(["send", RECORDING, "--endpoint", endpoint, "--protocol", "grpc"])
        took_s = time.monotonic() - began

    assert f"{endpoint} {told}\n" == capsys.readouterr().err
    assert took_s < 2


def test_what_cannot_be_read_fails(receiver: Capture, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A broken line and a bad span are told; what can be read is sent."""
    path = tmp_path / "recording.jsonl"
    bad = request_of(simple_span(1), Span(trace_id=b"short"))
    path.write_bytes(b"\n".join([b'{"resourceSpans": oops}', to_json(bad), b'{"resourceMetrics": []}']))

    assert 1 == main(["send", str(path), "--endpoint", receiver.endpoint])
    told = capsys.readouterr().err.splitlines()
    assert [f"{path}:1", f"{path}:2", "1 request with other signals than spans and logs left out"] == [
        told[0].partition(": ")[0],
        told[1].partition(": ")[0],
        told[2],
    ]
    assert [simple_span(1)] == receiver.spans()


def test_nothing_to_send_fails(receiver: Capture, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty recording is hardly what was meant."""
    path = tmp_path / "recording.json"
    path.write_text("{}")

    assert 1 == main(["send", str(path), "--endpoint", receiver.endpoint])
    assert [] == receiver.seen
    assert capsys.readouterr().out.startswith("sent 0 spans in 0 requests to ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--endpoint", "localhost:4318"],
        ["--endpoint", "http://localhost:1", "--header", "token"],
        ["--endpoint", "http://localhost:1", "--header", "content-length=0"],
        [],
    ],
)
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The exit status is 2, and the message does not repeat what may be a secret."""
    try:
        status: object = main(["send", RECORDING, *arguments])
    except SystemExit as ended:
        status = ended.code
    assert 2 == status
    assert "token" not in capsys.readouterr().err


def test_fresh_ids(receiver: Capture, tmp_path: Path) -> None:
    """Spans get other ids and stay related as they were: the receiver does not take them for repeats."""
    path = tmp_path / "recording.jsonl"
    link = Span.Link(trace_id=b"l" * 16, span_id=b"l" * 8)
    root, child = simple_span(1, 1), simple_span(1, 2, parent_span_id=bytes(7) + b"\1", links=[link])
    path.write_bytes(b"\n".join(to_json(request_of(each)) for each in (child, root)))
    for _ in range(2):
        assert 0 == main(["send", str(path), "--endpoint", receiver.endpoint, "--fresh-ids"])

    spans = receiver.spans()
    ids = [{span.trace_id for span in spans[start : start + 2]} for start in (0, 2)]
    assert [1, 1] == [len(each) for each in ids]
    assert 3 == len({root.trace_id, *ids[0], *ids[1]})
    assert [spans[1].span_id, b""] == [span.parent_span_id for span in spans[:2]]
    assert 5 == len({root.span_id, *(span.span_id for span in spans)})
    assert link != spans[0].links[0]
    assert ["work"] * 4 == [span.name for span in spans]


def test_fresh_ids_keep_unknown_fields(receiver: Capture, tmp_path: Path) -> None:
    """New ids change nothing that we do not know."""
    path = tmp_path / "recording.pb"
    unknown = b"\xc8\x3e\x96\x01"
    path.write_bytes(request_of(simple_span(1)).SerializeToString() + unknown)

    assert 0 == main(["send", str(path), "--endpoint", receiver.endpoint, "--fresh-ids"])
    assert receiver.bodies()[0].endswith(unknown)


@pytest.mark.parametrize("options", [(), ("--fresh-ids",)])
def test_a_refused_span_costs_no_other(options: Sequence[str], receiver: Capture, tmp_path: Path) -> None:
    """A receiver may refuse a whole request for it, so a stand-in is sent in a request of its own."""
    path = tmp_path / "recording.pb"
    body = request_of(simple_span(1), simple_span(1, 2, name="?!?!")).SerializeToString()
    path.write_bytes(body.replace(b"?!?!", b"\xff!?!"))

    assert 1 == main(["send", str(path), "--endpoint", receiver.endpoint, *options])
    sent, standing_in = map(ExportTraceServiceRequest.FromString, receiver.bodies())
    (span,), (other,) = (each.resource_spans[0].scope_spans[0].spans for each in (sent, standing_in))
    assert ("work", b"", "refused: invalid_utf8") == (span.name, other.span_id, other.name)
    assert span.trace_id == other.trace_id


def test_a_span_that_cannot_be_sent_is_told(
    receiver: Capture, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One in JSON may nest deeper than protobuf can; a stand-in is sent for it."""
    path = tmp_path / "recording.json"
    request = json.loads(to_json(request_of(simple_span(1), simple_span(1, 2))))
    value = {"stringValue": "x"}
    for _ in range(70):
        value = {"arrayValue": {"values": [value]}}
    request["resourceSpans"][0]["scopeSpans"][0]["spans"][1]["attributes"] = [{"key": "k", "value": value}]
    path.write_text(json.dumps(request))

    assert 1 == main(["send", str(path), "--endpoint", receiver.endpoint])
    assert "1 span refused (too_deep): resourceSpans[0].scopeSpans[0].spans[1]: " in capsys.readouterr().err
    assert ["work", "refused: too_deep"] == [span.name for span in receiver.spans()]


def test_a_recording_of_json_lines_with_arrays(receiver: Capture, tmp_path: Path) -> None:
    """Several requests in one array are several requests."""
    path = tmp_path / "recording.json"
    requests = [json.loads(to_json(request_of(simple_span(number)))) for number in (1, 2)]
    path.write_text(json.dumps(requests))

    assert 0 == main(["send", str(path), "--endpoint", receiver.endpoint])
    assert 2 == len(receiver.seen)


def test_a_recording_without_spans_is_told(
    receiver: Capture, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit status has its reason."""
    (tmp_path / "empty.pb").touch()

    assert 1 == main(["send", str(tmp_path / "empty.pb"), "--endpoint", receiver.endpoint])
    assert "nothing to send: no span and no log record was found\n" == capsys.readouterr().err
