"""Agents whose calls stand in logs: equal reports through every door, in whatever order logs come."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import permutations
from pathlib import Path

import grpc
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from commands import serve
from deadline import DEADLINE_S
from otlp.log_requests import logs, pairs, record
from otlp_capture import capturing, records_of
from receivers.otlp_requests import request_of, simple_span, span_id, to_json, trace_id
from service.test_kafka_partitions import Member
from serving import ON_ANY_PORT, Running, eventually, serving
from spanscore import config
from spanscore.config import parts as wiring
from spanscore.model import Report, ToolCall
from spanscore.receivers.kafka.kafka_records import KafkaRecord
from spanscore.recordings.files import Recording
from spanscore.runs import offline
from spanscore.trajectories.wanted import Wanted

DETAILS = "gen_ai.client.inference.operation.details"
ASKED = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "book", "arguments": {"n": 1}}]}
TOLD = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "ok"}]}
NAMES = (DETAILS,)


def chat(number: int) -> Span:
    """Return a request to a model, without content."""
    attributes = pairs({"gen_ai.operation.name": "chat"})
    return simple_span(1, number, parent_span_id=span_id(1), name="chat", attributes=attributes)


def said(number: int, at_ns: int, **messages: Sequence[object]) -> bytes:
    """Return a request with what stands in the log of that request to a model."""
    attributes = {f"gen_ai.{side}.messages": list(each) for side, each in messages.items()}
    made = record(DETAILS, attributes, trace_id=trace_id(1), span_id=span_id(number), time_unix_nano=at_ns)
    return logs([made, record("http.request", body="of no interest")]).SerializeToString()


SPANS = request_of(chat(2), chat(3), simple_span(1)).SerializeToString()
FIRST, SECOND = said(2, 10, output=[ASKED]), said(3, 20, input=[ASKED, TOLD])
CALLS = (ToolCall(name="book", arguments={"n": 1}, result="ok", call_id="c1", start_ns=2, end_ns=2),)


def post(running: Running | str, body: bytes, path: str, content_type: str = "application/x-protobuf") -> bytes:
    """Send a request over HTTP, and return the answer."""
    url = running if isinstance(running, str) else running.http
    request = urllib.request.Request(f"{url}{path}", body, {"Content-Type": content_type})
    with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
        return bytes(answer.read())


def call(running: Running, body: bytes, signal: str) -> None:
    """Send a request over gRPC."""
    method = f"/opentelemetry.proto.collector.{signal}.v1.{signal.title()}Service/Export"
    with grpc.insecure_channel(running.grpc) as channel:
        channel.unary_unary(method)(body, timeout=DEADLINE_S)


def test_over_http() -> None:
    """In protobuf and in JSON; a record that comes twice counts once, and records come before the spans."""
    with serving(f"{ON_ANY_PORT}\ntraces: {{decision_delay: 0s}}") as running:
        as_json = to_json(logs_of(SECOND))
        assert b"" == post(running, FIRST, "/v1/logs")
        assert b"{}" == post(running, as_json, "/v1/logs", "application/json")
        post(running, FIRST, "/v1/logs")
        post(running, SPANS, "/v1/traces")

        (report,) = running.reports.wait_for(1)
        assert (CALLS, True) == (report.trajectory.calls, report.complete)
        assert {"duplicate": 1} == dict(running.service.engine.counts().dropped)


def test_records_that_are_wrong_in_json() -> None:
    """They are told with their place, over HTTP as spans are, and the others are taken."""
    good = json.loads(to_json(logs_of(FIRST)))["resourceLogs"]
    bad = [{"scopeLogs": [{"logRecords": [{"body": []}]}]}]
    wrong = "resourceLogs[{}].scopeLogs[0].logRecords[0]: body: the value must be an object"
    with serving(ON_ANY_PORT) as running:
        answer = json.loads(
            post(running, json.dumps({"resourceLogs": good + bad}).encode(), "/v1/logs", "application/json")
        )["partialSuccess"]
        assert ("1", True) == (answer["rejectedLogRecords"], wrong.format(1) in answer["errorMessage"])
        assert answer["errorMessage"].startswith("1 of 3 log records refused: 1 for invalid_value")
        assert 1 == running.service.engine.counts().received
        assert {"invalid_value": 1} == dict(running.service.engine.tallies.refused)
        for request, told in (
            ({"resourceLogs": bad}, wrong.format(0)),
            ([], "the request must be an object, not an array"),
            ({"resourceLogs": {}}, "resourceLogs must be an array, not an object"),
        ):
            with pytest.raises(urllib.error.HTTPError) as refused:
                post(running, json.dumps(request).encode(), "/v1/logs", "application/json")
            with refused.value:
                assert 400 == refused.value.code
                assert told in json.loads(refused.value.read())["message"]


def test_a_record_that_is_broken_in_protobuf_costs_no_other(tmp_path: Path) -> None:
    """Of any service, over HTTP and gRPC, and in a file: it is refused, and the others are taken and sent on."""
    body = FIRST + logs([record("user.login", body="?!?!")]).SerializeToString().replace(b"?!?!", b"\xff!?!")
    path = tmp_path / "logs.pb"
    path.write_bytes(b"".join(len(each).to_bytes(4, "big") + each for each in (SPANS, body)))
    with capturing("http/protobuf") as behind:
        next_hop = f"otlp: {{endpoint: '{behind.endpoint}', signals: [traces]}}, prometheus"
        with serving(ON_ANY_PORT.replace("prometheus", next_hop)) as running:
            told = ExportLogsServiceResponse.FromString(post(running, body, "/v1/logs")).partial_success
            assert (1, True) == (told.rejected_log_records, told.error_message.startswith("1 of 3 log records refused"))
            call(running, body, "logs")
            assert {"duplicate": 1} == dict(running.service.engine.counts().dropped)
            eventually(
                lambda: [DETAILS, "http.request"] * 2 == [each.event_name for each in records_of(behind.bodies())]
            )
    recording = Recording([path], log_names=NAMES)
    before, batch = recording.read()
    assert ([], [trace_id(1)]) == (before.finished, batch.finished[:1])
    assert [DETAILS] == [span.name for span in batch.spans]
    assert ["1 log record refused"] == [str(each).partition(" (")[0].rpartition(": ")[2] for each in recording.problems]


def test_records_that_are_not_read_are_counted() -> None:
    """By why: what they are called, or that they belong nowhere; what is read counts as spans."""
    lost = logs([record(DETAILS, trace_id=b""), record("other"), record("other")]).SerializeToString()
    with serving(ON_ANY_PORT) as running:
        post(running, FIRST, "/v1/logs")
        post(running, lost, "/v1/logs")

        told = ExportLogsServiceResponse.FromString(post(running, lost, "/v1/logs")).partial_success
        assert 0 == told.rejected_log_records
        assert told.error_message.startswith(
            "no_run: 1 log record left out, because their run is not known; they may hold tool calls. They have "
            "neither a trace id nor gen_ai.conversation.id, conversation.id or session.id; let the agent write "
        )
        assert {"other_event": 5, "no_run": 2} == dict(running.service.engine.tallies.unread)
        assert 1 == running.service.engine.counts().received


def logs_of(request: bytes) -> object:
    """Parse a request."""
    return logs([]).FromString(request)


def test_over_grpc_and_late() -> None:
    """Records that come when the trace was scored cause another revision."""
    late = "traces: {decision_delay: 10ms}"
    with serving(f"{ON_ANY_PORT}\n{late}") as running:
        call(running, SPANS, "trace")
        (before,) = running.reports.wait_for(1)
        assert () == before.trajectory.calls
        call(running, FIRST, "logs")
        call(running, SECOND, "logs")

        eventually(lambda: CALLS == running.reports.emitted[-1].trajectory.calls)
        assert running.reports.emitted[-1].revision


def test_a_run_without_spans_ends_when_nothing_more_comes() -> None:
    """There is no root to wait for."""
    whole = f"{ON_ANY_PORT}\ntraces: {{trace_timeout: 10ms}}"
    attributes = {"gen_ai.conversation.id": "s", "gen_ai.output.messages": [ASKED], "gen_ai.input.messages": [TOLD]}
    with serving(whole) as running:
        post(running, logs([record(DETAILS, attributes, trace_id=b"", span_id=b"")]).SerializeToString(), "/v1/logs")

        (report,) = running.reports.wait_for(1)
        assert (True, b"", "s") == (report.complete, report.trajectory.root_span_id, report.trajectory.conversation_id)
        assert ["book"] == [each.name for each in report.trajectory.calls]


SESSION = {"gen_ai.conversation.id": "s", "gen_ai.output.messages": [ASKED], "gen_ai.input.messages": [TOLD]}
OF_SESSION = logs([record(DETAILS, SESSION, trace_id=b"", span_id=b"")]).SerializeToString()
PREDICTED = blake2b(b"agent\0s\0", digest_size=16).digest()


def foreign_span() -> bytes:
    """Return a request of somebody who has computed the trace id of the session, and ends that trace first."""
    root = simple_span(1)
    root.trace_id = PREDICTED
    return request_of(root).SerializeToString()


def test_spans_cannot_take_a_session_over(tmp_path: Path) -> None:
    """A trace of spans with the id under which a session is reported is another one, also while it is remembered."""
    text = f"{ON_ANY_PORT}\ntraces: {{decision_delay: 0s, trace_timeout: 10ms}}"
    with serving(text) as running:
        call(running, foreign_span(), "trace")
        running.reports.wait_for(1)
        post(running, OF_SESSION, "/v1/logs")
        foreign, report = running.reports.wait_for(2)

    assert ((), 0) == (foreign.trajectory.calls, report.revision)
    assert ["book"] == [each.name for each in report.trajectory.calls]
    assert PREDICTED == report.trajectory.trace_id
    assert report.trajectory == offline_report(tmp_path / "logs.pb", OF_SESSION).trajectory


def test_a_session_outlives_a_kill_beside_spans_with_its_id(tmp_path: Path) -> None:
    """What is stored of it, and that the other trace is closed, are told apart after the restart, too."""
    stored = f"{{durability: crash, directory: {tmp_path / 'state'}}}"
    text = ON_ANY_PORT.replace("{durability: none}", stored) + "\ntraces: {decision_delay: 0s, trace_timeout: 1h}"
    path = tmp_path / "killed.yaml"
    path.write_text(text)
    with serve("--config", path) as command:
        url = command.wait_for(r"TRACES_ENDPOINT=(\S+)/v1/traces")[1]
        post(url, OF_SESSION, "/v1/logs")
        post(url, foreign_span(), "/v1/traces")
    with serving(text.replace("1h", "10ms")) as running:
        eventually(
            lambda: (
                [PREDICTED] == [each.trajectory.trace_id for each in running.reports.emitted if each.trajectory.calls]
            )
        )
        assert all(not each.revision for each in running.reports.emitted)


def test_a_session_from_kafka_beside_spans_with_its_id() -> None:
    """The session holds its partition until it is scored, whatever becomes of the spans; its key is the reported id."""

    async def scenario() -> None:
        member = Member(0)
        member.partitions.intake.reload(Wanted(log_names=NAMES))
        key = PREDICTED.hex().encode()
        await member.partitions.take([KafkaRecord(0, 4, key, foreign_span())])
        await member.partitions.take([KafkaRecord(0, 5, key, OF_SESSION)])
        assert {0: 5} == member.offsets
        assert (1, 1) == (member.engine.counts().in_closed, member.engine.counts().live)
        assert not any(member.partitions.wrong_keys.values())

    asyncio.run(scenario())


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0, 1)])
def test_offline(tmp_path: Path, order: Sequence[int]) -> None:
    """A recording holds logs between spans, in one document or in several, or in protobuf."""
    requests = [
        (request_of(chat(2), chat(3), simple_span(1)), SPANS),
        (logs_of(FIRST), FIRST),
        (logs_of(SECOND), SECOND),
    ]
    lines, framed = tmp_path / "a.jsonl", tmp_path / "b.pb"
    lines.write_bytes(b"\n".join(to_json(requests[index][0]) for index in order))
    framed.write_bytes(b"".join(len(requests[index][1]).to_bytes(4, "big") + requests[index][1] for index in order))
    settings = config.default().for_files()
    for path in (lines, framed):
        recording = Recording([path], log_names=wiring.wanted(settings).log_names)
        (report,) = offline.score(recording, settings, wiring.pipeline(settings))
        assert (CALLS, True, 0) == (report.trajectory.calls, report.complete, recording.problem_count)


def offline_report(path: Path, *requests: bytes) -> Report:
    """Write a recording and return its only report."""
    path.write_bytes(b"".join(requests))
    settings = config.default().for_files()
    recording = Recording([path], log_names=wiring.wanted(settings).log_names)
    (report,) = offline.score(recording, settings, wiring.pipeline(settings))
    return report


def test_what_is_the_same_live_and_offline(tmp_path: Path) -> None:
    """Trajectories and scores; a run of logs alone is over when nothing more came, or when the recording ends."""
    attributes = {"gen_ai.conversation.id": "s", "gen_ai.output.messages": [ASKED], "gen_ai.input.messages": [TOLD]}
    logged = logs([record(DETAILS, attributes, trace_id=b"", span_id=b"")]).SerializeToString()
    with serving(f"{ON_ANY_PORT}\ntraces: {{decision_delay: 10ms, trace_timeout: 10ms}}") as running:
        post(running, logged, "/v1/logs")
        of_logs = running.reports.wait_for(1)[-1]
        post(running, SPANS, "/v1/traces")
        running.reports.wait_for(2)
        post(running, FIRST, "/v1/logs")
        post(running, SECOND, "/v1/logs")
        eventually(lambda: CALLS == running.reports.emitted[-1].trajectory.calls)
        revised = running.reports.emitted[-1]

    for live, recorded in (
        (of_logs, offline_report(tmp_path / "logs.pb", logged)),
        (revised, offline_report(tmp_path / "all.pb", SPANS, FIRST, SECOND)),
    ):
        assert (live.trajectory, live.evaluations, live.complete) == (
            recorded.trajectory,
            recorded.evaluations,
            recorded.complete,
        )
        assert 0 == recorded.revision
    assert ("timed_out", "shutdown") == (
        of_logs.close_reason,
        offline_report(tmp_path / "logs.pb", logged).close_reason,
    )
    assert "root_ended" == revised.close_reason == offline_report(tmp_path / "all.pb", SPANS, FIRST).close_reason
    assert revised.revision


def test_an_end_before_a_run_of_logs_is_over(tmp_path: Path) -> None:
    """Without storage it is scored and does not count as complete; with storage it goes on after the restart."""
    patient = "traces: {decision_delay: 1h, trace_timeout: 1h}"
    with serving(f"{ON_ANY_PORT}\n{patient}") as running:
        post(running, FIRST, "/v1/logs")
        running.stop()
        (report,) = running.reports.emitted
        assert ("shutdown", False) == (report.close_reason, report.complete)

    stored = ON_ANY_PORT.replace("{durability: none}", f"{{directory: {tmp_path / 'state'}}}")
    for body in (FIRST, SECOND):
        with serving(f"{stored}\n{patient}") as running:
            call(running, body, "logs")
            running.stop()
            assert [] == running.reports.emitted
    with serving(f"{stored}\ntraces: {{decision_delay: 0s, trace_timeout: 10ms}}") as running:
        (report,) = running.reports.wait_for(1)
        of_logs = (replace(CALLS[0], start_ns=10, end_ns=10),)
        assert ("timed_out", True, of_logs) == (report.close_reason, report.complete, report.trajectory.calls)
    with serving(f"{stored}\n{patient}") as running:
        call(running, FIRST, "logs")
        assert {"not_kept": 1} == dict(running.service.engine.counts().late)


def test_one_file_of_spans_and_logs_one_behind_the_other(tmp_path: Path) -> None:
    """In protobuf that is one message, in which each part is still told from the others, wherever it stands."""
    settings = config.default().for_files()
    for number, order in enumerate(permutations((FIRST, SPANS, SECOND))):
        path = tmp_path / f"{number}.pb"
        path.write_bytes(b"".join(order))
        recording = Recording([path], log_names=wiring.wanted(settings).log_names)
        (report,) = offline.score(recording, settings, wiring.pipeline(settings))
        assert (CALLS, True, 0) == (report.trajectory.calls, report.complete, recording.problem_count)


def test_from_kafka() -> None:
    """Logs stand in the topic of the spans; an open trace of records holds its partition, too."""

    async def scenario() -> None:
        member = Member(0)
        member.partitions.intake.reload(Wanted(log_names=NAMES))
        key = trace_id(1).hex().encode()
        await member.partitions.take([KafkaRecord(0, 4, key, FIRST)])
        assert {0: 4} == member.offsets
        await member.partitions.take([KafkaRecord(0, 5, key, SPANS)])
        assert {0: 6} == member.offsets
        assert 4 == member.engine.counts().in_closed

    asyncio.run(scenario())


def test_records_outlive_a_kill(tmp_path: Path) -> None:
    """What was acknowledged is in the score of the process that comes after."""
    stored = f"{{durability: crash, directory: {tmp_path / 'state'}}}"
    text = ON_ANY_PORT.replace("{durability: none}", stored) + "\ntraces: {decision_delay: 0s}"
    path = tmp_path / "killed.yaml"
    path.write_text(text)
    with serve("--config", path) as command:
        post(command.wait_for(r"LOGS_ENDPOINT=(\S+)")[1], FIRST, "")
        url = command.wait_for(r"TRACES_ENDPOINT=(\S+)/v1/traces")[1]
        post(url, to_json(logs_of(SECOND)), "/v1/logs", "application/json")
    with serving(text) as running:
        assert 2 == running.service.engine.counts().live
        post(running, FIRST, "/v1/logs")
        post(running, SPANS, "/v1/traces")

        (report,) = running.reports.wait_for(1)
        assert CALLS == report.trajectory.calls
        assert {"duplicate": 1} == dict(running.service.engine.counts().dropped)


def test_logs_that_nobody_reads_are_neither_kept_nor_stored(tmp_path: Path) -> None:
    """They are acknowledged, and that is all."""
    stored = f"{{durability: crash, directory: {tmp_path / 'state'}}}"
    with serving(ON_ANY_PORT.replace("{durability: none}", stored)) as running:
        assert b"" == post(running, logs([record("http.request")] * 100).SerializeToString(), "/v1/logs")
        assert (0, 0) == (running.service.engine.counts().received, running.service.engine.counts().live)


@pytest.mark.parametrize("signals", ["[traces]", "[metrics]"])
def test_what_is_not_ours_goes_on_whatever_is_sent_of_ours(signals: str) -> None:
    """`signals` is about scores and spans: metrics and logs that are received are passed on byte for byte."""
    metrics = ExportMetricsServiceRequest(resource_metrics=[{"schema_url": "s"}]).SerializeToString()
    with capturing("http/protobuf") as behind:
        next_hop = f"otlp: {{endpoint: '{behind.endpoint}', signals: {signals}}}, prometheus"
        with serving(ON_ANY_PORT.replace("prometheus", next_hop)) as running:
            post(running, FIRST, "/v1/logs")
            post(running, metrics, "/v1/metrics")
            behind.wait_for_requests(2)
            seen = [(each.path, each.body) for each in behind.seen[:2]]
        assert [("/v1/logs", FIRST), ("/v1/metrics", metrics)] == seen


def test_logs_that_nobody_reads_in_a_recording(tmp_path: Path) -> None:
    """They are passed over and counted: a file of them is no empty one, and nothing is wrong with it."""
    unread = logs([record("http.request", body="x")])
    (tmp_path / "logs.jsonl").write_bytes(to_json(unread))
    (tmp_path / "logs.pb").write_bytes(unread.SerializeToString())
    for names in ((), NAMES):
        recording = Recording([tmp_path], log_names=names)
        assert [] == [batch for batch in recording.read() if batch.spans]
        assert ({"other_event": 2}, [], 0) == (recording.unread, recording.empty_files(), recording.problem_count)
