"""`spanscore send`, run as a user runs it, with real receivers."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from otlp_capture import FORBIDDEN, INVALID, PROTOCOLS, UNAVAILABLE, Capture, capturing, partial_success, spans_of
from receivers.otlp_requests import CORPUS, corpus_lines, from_json, request_of, simple_span, to_json
from spanscore.cli import main
from spanscore.cli._replay import Pace, rewritten
from spanscore.sending.client import Protocol

RECORDING = str(CORPUS / "strands.jsonl.gz")


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> Protocol:
    """Each protocol."""
    return request.param


@pytest.fixture
def receiver() -> Iterator[Capture]:
    """A receiver over HTTP."""
    with capturing("http/protobuf") as capture:
        yield capture


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
    assert told.out.startswith("sent 1 span in 3 requests, 2 spans refused to ")
    assert [2, 3] == [span.trace_id[-1] for span in receiver.spans()]


def test_who_is_not_let_in_stops(receiver: Capture, capsys: pytest.CaptureFixture[str]) -> None:
    """A refusal that all requests would meet ends it."""
    receiver.replies += [FORBIDDEN]

    assert 1 == main(["send", RECORDING, "--endpoint", receiver.endpoint])
    assert "refused (http_403): not you" in capsys.readouterr().err
    assert 1 == len(receiver.seen)


def test_a_receiver_that_is_busy_is_waited_for(receiver: Capture, capsys: pytest.CaptureFixture[str]) -> None:
    """The request is sent again, and nothing counts as refused."""
    receiver.replies += [UNAVAILABLE]

    assert 0 == main(["send", RECORDING, "--endpoint", receiver.endpoint])
    assert capsys.readouterr().err.startswith(f"cannot send to {receiver.endpoint} now (http_503): trying again in ")
    assert receiver.seen[0].body == receiver.seen[1].body


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
        ["--endpoint", "http://localhost:1", "--speed", "-1"],
        ["--endpoint", "http://localhost:1", "--speed", "nan"],
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


def test_shift_time(receiver: Capture, tmp_path: Path) -> None:
    """The recording is moved so that its last span ends when it is sent; nothing else about times changes."""
    path = tmp_path / "recording.jsonl"
    event = Span.Event(time_unix_nano=1_500)
    first = simple_span(1, 1, start_time_unix_nano=1_000, end_time_unix_nano=2_000, events=[event])
    last = simple_span(2, 1, start_time_unix_nano=3_000, end_time_unix_nano=5_000)
    path.write_bytes(b"\n".join(to_json(request_of(each)) for each in (last, first)))
    before = time.time_ns()

    assert 0 == main(["send", str(path), "--endpoint", receiver.endpoint, "--shift-time"])

    spans = receiver.spans()
    shift = spans[0].end_time_unix_nano - 5_000
    assert before <= shift + 5_000 <= time.time_ns()
    assert [(3_000, 5_000), (1_000, 2_000)] == [
        (span.start_time_unix_nano - shift, span.end_time_unix_nano - shift) for span in spans
    ]
    assert 1_500 == spans[1].events[0].time_unix_nano - shift


def test_shift_time_needs_files(receiver: Capture, capsys: pytest.CaptureFixture[str]) -> None:
    """What can be read only once cannot be moved: its end is not known at its beginning."""
    assert 2 == main(["send", "-", "--endpoint", receiver.endpoint, "--shift-time"])
    assert "save it to a file" in capsys.readouterr().err


def test_to_kafka(capsys: pytest.CaptureFixture[str]) -> None:
    """Each trace of a request becomes a record with its id as key, so that all of a trace go to one partition."""
    pytest.importorskip("confluent_kafka", reason="needs the package confluent-kafka: pip install --group test")
    from receivers.kafka_cluster import cluster  # noqa: PLC0415 - it needs the package

    names = ("strands", "agno-oi")
    expected = spans_of([from_json(line).SerializeToString() for name in names for line in corpus_lines(name)])
    with cluster() as brokers:
        to = ["--kafka", ",".join(brokers.brokers), "--topic", "recorded"]
        assert 0 == main(["send", *(str(CORPUS / f"{name}.jsonl.gz") for name in names), *to])
        records = brokers.read("recorded")

    keys = {message.key() for message in records}
    assert {span.trace_id.hex().encode() for span in expected} == keys
    assert len(keys) == len({(message.key(), message.partition()) for message in records})
    for message in records:
        assert {message.key()} == {span.trace_id.hex().encode() for span in spans_of([message.value() or b""])}
    sent = spans_of([message.value() or b"" for message in records])
    assert sorted(span.SerializeToString() for span in expected) == sorted(span.SerializeToString() for span in sent)
    assert capsys.readouterr().out.startswith(f"sent {len(expected)} spans in {len(records)} records to recorded at ")


def test_kafka_that_does_not_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be written is told, and the exit status says so."""
    pytest.importorskip("confluent_kafka", reason="needs the package confluent-kafka: pip install --group test")

    assert 1 == main(["send", RECORDING, "--kafka", "127.0.0.1:1", "--setting", "message.timeout.ms=200"])
    told = capsys.readouterr()
    assert "a record could not be written: Local: Message timed out" in told.err
    assert told.out.startswith("sent 0 spans in 0 records, ")


def test_the_pace_of_the_recording() -> None:
    """Requests are as far apart as they were, divided by the speed; being late delays nothing behind it."""
    now = 50.0
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        nonlocal now
        waits.append(seconds)
        now += seconds

    pace = Pace(2.0, lambda: now, sleep)
    for moment_s in (100, 104, 103, 0):
        pace.wait(moment_s * 10**9)
    now += 10
    for moment_s in (110, 130):
        pace.wait(moment_s * 10**9)

    assert [2.0, 3.0] == waits
    assert 50 + 30 / 2 == now


def test_as_fast_as_possible() -> None:
    """Speed 0 never waits."""
    Pace(0, lambda: 0.0, lambda _: pytest.fail("it waited")).wait(10**18)


def test_times_stay_times() -> None:
    """However far a span is moved, its times stay in the range of 64 bits, and one that is not set stays so."""
    spans = [simple_span(1, start_time_unix_nano=5, end_time_unix_nano=2**64 - 1), simple_span(2, end_time_unix_nano=0)]
    moved = [
        (span.start_time_unix_nano, span.end_time_unix_nano)
        for shift_ns in (-10, 10)
        for span in spans_of([rewritten(request_of(*spans).SerializeToString(), shift_ns=shift_ns)])
    ]

    assert [(0, 2**64 - 11), (0, 0), (15, 2**64 - 1), (11, 0)] == moved


def test_what_is_rewritten_keeps_unknown_fields() -> None:
    """New ids and times change nothing that we do not know."""
    unknown = b"\xc8\x3e\x96\x01"
    body = request_of(simple_span(1)).SerializeToString() + unknown

    assert rewritten(body, b"key", 1).endswith(unknown)
    assert body == rewritten(body)


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
