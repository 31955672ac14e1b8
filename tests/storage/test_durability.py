from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import resource
import shutil
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import grpc
import pytest

from commands import serve
from receivers.otlp_requests import request_of, simple_span, trace_id
from serving import DEADLINE_S, ON_ANY_PORT, Running, eventually, serving
from spanscore import config
from spanscore.collect.table import TraceTable
from spanscore.config import parts as wiring
from spanscore.model import CloseReason
from spanscore.otlp.encoding import Encoding
from spanscore.receivers.intake.admission import Admission, Unavailable
from spanscore.receivers.intake.intake import Intake
from spanscore.scoring.engine import Engine
from spanscore.scoring.live_engine import LiveEngine
from spanscore.service.exposure import HTTP
from spanscore.storage.compaction import UNFINISHED
from spanscore.storage.directory import Directory, StorageError
from spanscore.storage.durability import Durability, default_directory
from spanscore.storage.records import Kind
from spanscore.storage.request_log import REQUESTS
from spanscore.storage.settings import StorageSettings
from spanscore.storage.storage import Storage

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
PROTOBUF = "application/x-protobuf"
_Result = TypeVar("_Result")

PARENT = b"\0\0\0\0\0\0\0\1"
CHILD = request_of(simple_span(1, 2, parent_span_id=PARENT)).SerializeToString()
ROOT = request_of(simple_span(1)).SerializeToString()
OTHER = request_of(simple_span(2)).SerializeToString()


def configuration(directory: Path, more: str = "traces: {decision_delay: 0s}", **storage: str) -> str:
    """Return the configuration of a receiver that stores there."""
    keys = {"durability": "crash", "directory": str(directory / "state"), **storage}
    section = ", ".join(f"{key}: {value}" for key, value in keys.items())
    return f"{ON_ANY_PORT.replace('storage: {durability: none}', f'storage: {{{section}}}')}\n{more}"


def was_taken(running: Running, body: bytes, content_type: str = PROTOBUF) -> bool:
    """Send a request, and return whether it is not to be sent again."""
    try:
        running.post(body, content_type)
    except urllib.error.HTTPError as error:
        error.close()
        assert 503 == error.code  # noqa: PT017 - the other answer is as good
        return False
    return True


@contextmanager
def killed(
    directory: Path, text: str, *requests: tuple[bytes, str], once: Callable[[], bool] = lambda: True
) -> Iterator[None]:
    """Have a receiver in a process of its own acknowledge requests, and kill it, once something is true."""
    path = directory / "killed.yaml"
    path.write_text(text)
    with serve("--config", path) as command:
        url = command.wait_for(r"TRACES_ENDPOINT=(\S+)")[1]
        for body, content_type in requests:
            request = urllib.request.Request(url, body, {"Content-Type": content_type})
            urllib.request.urlopen(request, timeout=DEADLINE_S).close()
        eventually(once)
    yield


def times_scored(directory: Path, trace: bytes) -> int:
    """Return how often it was written that a trace is scored; that comes after the answer to its sender."""
    return sum(each.read_bytes().count(trace) for each in (directory / "state").glob("*.closed"))


def scored(directory: Path, number: int) -> Callable[[], bool]:
    """Return a check whether a trace is scored, for `once` of `killed`."""
    return lambda: times_scored(directory, trace_id(number)) > 0


@pytest.mark.parametrize("durability", ["crash", "power"])
def test_a_trace_before_and_after_a_kill_is_scored_once(tmp_path: Path, durability: str) -> None:
    """Half of it was acknowledged by a process that was killed, in both encodings; all of it is in one score."""
    text = configuration(tmp_path, durability=durability)
    span = {"traceId": f"{1:032x}", "spanId": f"{3:016x}", "parentSpanId": PARENT.hex(), "name": "work"}
    span |= {"startTimeUnixNano": "1", "endTimeUnixNano": "2"}
    as_json = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()
    with killed(tmp_path, text, (CHILD, PROTOBUF), (as_json, "application/json")), serving(text) as running:
        assert 2 == running.service.engine.counts().live
        running.post(ROOT)
        running.post(CHILD)

        (report,) = running.reports.wait_for(1)
        assert (CloseReason.ROOT_ENDED, 0) == (report.close_reason, report.revision)
        counts = running.service.engine.counts()
        assert (4, 3, 0) == (counts.received, counts.in_closed, counts.live)
        assert {"duplicate": 1} == dict(counts.dropped)


def test_what_was_scored_before_a_kill_is_not_scored_again(tmp_path: Path) -> None:
    """A request that comes again after the kill is recognised."""
    text = configuration(tmp_path)
    sent = ((CHILD, PROTOBUF), (ROOT, PROTOBUF))
    with killed(tmp_path, text, *sent, once=scored(tmp_path, 1)), serving(text) as running:
        running.post(ROOT)
        running.post(request_of(simple_span(2)).SerializeToString())

        running.reports.wait_for(1)
        assert [2] == [report.trajectory.trace_id[-1] for report in running.reports.emitted]
        assert {"not_kept": 1} == dict(running.service.engine.counts().late)


def test_what_was_scored_and_not_sent_is_sent_after_a_kill(tmp_path: Path) -> None:
    """Spans and scores that waited for a receiver that did not answer reach it, and no metric counts them again."""
    nobody = socket.socket()
    nobody.bind(("127.0.0.1", 0))  # and does not listen; until it is closed, no other socket gets the port
    port = nobody.getsockname()[1]
    onward = f'{{endpoint: "http://127.0.0.1:{port}", signals: [traces]}}'
    text = configuration(tmp_path).replace("exporters: {", f"exporters: {{otlp: {onward}, ")
    behind = (
        f'receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}\n'
        'exporters: {prometheus: {endpoint: "127.0.0.1:0"}}'
    )
    sent = ((CHILD, PROTOBUF), (ROOT, PROTOBUF))
    with nobody, killed(tmp_path, text, *sent, once=scored(tmp_path, 1)):
        nobody.close()
        with serving(behind) as receiver:
            with serving(text) as running:
                running.reports.wait_for(1)
                eventually(lambda: receiver.service.engine.counts().received == 2)
                assert "spanscore_evaluations_total{" not in running.page("/metrics")[1]
            eventually(lambda: receiver.service.engine.counts().received == 2)
    with serving(text) as running:
        assert 0 == running.service.engine.counts().received


def test_a_line_that_was_written_before_a_kill_is_not_written_again(tmp_path: Path) -> None:
    """The file of scores has each line once, though the kill came before the trace was noted as scored."""
    scores = tmp_path / "scores.jsonl"
    text = configuration(tmp_path, f"traces: {{decision_delay: 0s}}\nexporters: {{jsonl: {{path: {scores}}}}}")
    text = text.replace('exporters: {prometheus: {endpoint: "127.0.0.1:0"}}\n', "")
    with killed(tmp_path, text, (CHILD, PROTOBUF), (ROOT, PROTOBUF), once=scored(tmp_path, 1)):
        written = scores.read_text()
        for closed in (tmp_path / "state").glob("*.closed"):
            closed.unlink()
        scores.write_text(written + '{"trace_id":"torn')
        with serving(text) as running:
            running.post(request_of(simple_span(2)).SerializeToString())
            running.reports.wait_for(2)

    lines = scores.read_text().splitlines()
    assert (written.strip(), '{"trace_id":"torn', 3) == (lines[0], lines[1], len(lines))
    assert f"{2:032x}" == json.loads(lines[2])["trace_id"]


def over_http(running: Running, body: bytes) -> None:
    """Send a request over HTTP."""
    running.post(body)


def over_grpc(running: Running, body: bytes) -> None:
    """Send a request over gRPC."""
    with grpc.insecure_channel(running.grpc) as channel:
        channel.unary_unary(EXPORT)(body, timeout=DEADLINE_S)


@pytest.mark.parametrize("send", [over_http, over_grpc])
def test_the_end_scores_what_is_due_and_keeps_the_rest(tmp_path: Path, send: Callable[[Running, bytes], None]) -> None:
    """A trace that waits for late children or for its root waits on in the next process, and is scored there, once."""
    patient = configuration(tmp_path, "traces: {decision_delay: 1h}")
    text = configuration(tmp_path, "traces: {decision_delay: 500ms}")
    with serving(text) as running:
        send(running, request_of(simple_span(3)).SerializeToString())
        running.reports.wait_for(1)
    with serving(patient) as running:
        send(running, CHILD)
        send(running, OTHER)
        send(running, request_of(simple_span(3)).SerializeToString())
        running.stop()
        assert [] == running.reports.emitted
    with serving(patient) as running:
        assert (2, {}) == (running.service.engine.counts().live, dict(running.service.engine.counts().late))
        send(running, request_of(simple_span(2, 2, parent_span_id=PARENT)).SerializeToString())
        send(running, ROOT)
        running.stop()
        assert [] == running.reports.emitted
    with serving(text) as running:
        reports = running.reports.wait_for(2)
        assert {(1, CloseReason.ROOT_ENDED, True), (2, CloseReason.ROOT_ENDED, True)} == {
            (report.trajectory.trace_id[-1], report.close_reason, report.complete) for report in reports
        }
        assert 4 == running.service.engine.counts().in_closed
    assert [] == list((tmp_path / "state").glob("*.requests"))


def test_no_trace_gets_due_while_requests_under_way_are_finished(tmp_path: Path) -> None:
    """Senders are refused from the beginning of the end: a late child cannot come, so that its trace waits for it."""
    delay_s = 0.3
    text = configuration(tmp_path, f"traces: {{decision_delay: {delay_s}s}}")
    with serving(text) as running:
        with socket.create_connection(running.service.addresses[HTTP][0]) as slow:
            head = f"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: {PROTOBUF}\r\n"
            slow.sendall(f"{head}Expect: 100-continue\r\nContent-Length: {len(OTHER)}\r\n\r\n".encode())
            assert b"100 Continue" in slow.recv(1000)
            running.post(ROOT)
            stopping = running.thread.start(running.service.stop(DEADLINE_S))
            due = time.monotonic() + 2 * delay_s
            eventually(lambda: time.monotonic() > due)
            slow.sendall(OTHER)
            assert b"200 OK" in slow.recv(1000)
        stopping.result(DEADLINE_S)
        assert [] == running.reports.emitted
    with serving(configuration(tmp_path, "traces: {decision_delay: 1h}")) as running:
        running.post(CHILD)
        assert (3, 0) == (running.service.engine.counts().live, running.service.engine.counts().late.total())


def test_the_end_closes_no_trace_that_became_due_unseen(tmp_path: Path) -> None:
    """A span of it may be in a socket that was not read: it waits for the next start, which scores it whole."""
    with serving(configuration(tmp_path, "traces: {decision_delay: 1h}")) as running:
        running.post(ROOT)
        running.service.engine._clock = lambda: time.monotonic() + 7_200  # while the loop did not run
        running.stop()
        assert [] == running.reports.emitted
    with serving(configuration(tmp_path, "traces: {decision_delay: 0s}")) as running:
        (report,) = running.reports.wait_for(1)
        assert (True, "root_ended") == (report.complete, report.close_reason)


def test_late_spans_after_an_end_are_counted(tmp_path: Path) -> None:
    """A trace that was scored before is not begun anew, wherever it was scored: before the end, or after a replay."""
    patient = configuration(tmp_path, "traces: {decision_delay: 1h}")
    text = configuration(tmp_path)
    with serving(text) as running:
        running.post(ROOT)
        running.reports.wait_for(1)
    with serving(patient) as running:
        running.post(OTHER)
    with serving(text) as running:
        running.reports.wait_for(1)
    for _ in range(2):
        with serving(text) as running:
            running.post(CHILD)
            running.post(ROOT)
            running.post(OTHER)
            counts = running.service.engine.counts()
            assert (0, {"not_kept": 3}) == (counts.live, dict(counts.late))
            assert [] == running.reports.emitted


def test_late_spans_before_an_end_make_a_revision(tmp_path: Path) -> None:
    """Its trace is scored again at the end, as only the late spans are stored; it does not count as complete."""
    text = configuration(tmp_path, "traces: {decision_delay: 0s}")
    with serving(text) as running:
        running.post(ROOT)
        running.reports.wait_for(1)
        running.post(CHILD)
        running.stop()
        first, second = running.reports.emitted
    assert (0, CloseReason.ROOT_ENDED, True) == (first.revision, first.close_reason, first.complete)
    assert (1, CloseReason.SHUTDOWN, False) == (second.revision, second.close_reason, second.complete)
    with serving(text) as running:
        assert (0, 0) == (running.service.engine.counts().live, running.service.engine.counts().late.total())


def test_a_root_that_waits_for_its_scores_is_passed_on_once_across_an_end(tmp_path: Path) -> None:
    """Its trace is not scored at the end, and the next process gets it again; it leaves from there, with its scores."""
    patient = "traces: {decision_delay: 1h}"
    with serving() as receiver:
        onward = f'{{endpoint: "{receiver.http}", signals: [traces]}}'

        def forwarding(more: str) -> str:
            return configuration(tmp_path, more).replace("exporters: {", f"exporters: {{otlp: {onward}, ")

        for _ in range(2):
            with serving(forwarding(patient)) as running:
                if not running.service.engine.counts().received:
                    running.post(ROOT)
        assert 0 == receiver.service.engine.counts().received
        with serving(forwarding("traces: {decision_delay: 0s}")) as running:
            running.reports.wait_for(1)
        assert 1 == receiver.service.engine.counts().received


def test_what_waited_goes_on_waiting(tmp_path: Path) -> None:
    """A trace without a root is closed when its time is over, also where most of it was in another process."""
    text = configuration(tmp_path, "traces: {decision_delay: 0s, trace_timeout: 50ms}")
    patient = configuration(tmp_path, "traces: {trace_timeout: 1h}")
    with killed(tmp_path, patient, (CHILD, PROTOBUF)), serving(text) as running:
        (report,) = running.reports.wait_for(1)
        assert CloseReason.TIMED_OUT == report.close_reason


def test_a_long_trace_does_not_fill_the_storage(tmp_path: Path) -> None:
    """While it is open, others come and go, three times as much as there is room for; in the end all of it is there."""
    text = configuration(tmp_path, "traces: {decision_delay: 0s, trace_timeout: 1h}", max_size="64KiB")
    with serving(text) as running:
        for number in range(2, 200):
            long = simple_span(1, number, parent_span_id=PARENT)
            body = request_of(long, simple_span(number, name="n" * 1_000)).SerializeToString()
            eventually(lambda: was_taken(running, body))  # noqa: B023 - used in this round only
        running.reports.wait_for(198)
    with serving(text) as running:
        assert 198 == running.service.engine.counts().live


def test_a_storage_without_room_for_it_asks_senders_to_retry(tmp_path: Path) -> None:
    """What cannot be stored is not acknowledged on either protocol; smaller requests are, and room makes it end."""
    text = configuration(tmp_path, "traces: {decision_delay: 0s, trace_timeout: 1h}", max_size="20KiB")
    with serving(text) as running:
        big = request_of(simple_span(1, 2, parent_span_id=PARENT, name="n" * 12_000)).SerializeToString()
        running.post(big)
        other = big.replace(PARENT, b"87654321")
        with pytest.raises(urllib.error.HTTPError) as refused:
            running.post(other)
        with refused.value as answer:
            assert (503, True) == (answer.code, int(answer.headers["Retry-After"]) >= 1)
        with grpc.insecure_channel(running.grpc) as channel, pytest.raises(grpc.RpcError) as error:
            channel.unary_unary(EXPORT)(other, timeout=DEADLINE_S)
        details = dict(error.value.trailing_metadata())
        assert (grpc.StatusCode.UNAVAILABLE, True) == (
            error.value.code(),
            b"RetryInfo" in details["grpc-status-details-bin"],
        )
        assert (200, 1) == (running.readiness()[0], running.service.engine.counts().received)
        running.post(ROOT)
        running.reports.wait_for(1)
        eventually(lambda: was_taken(running, other))


def test_who_fills_the_storage_with_open_traces_locks_nobody_out(tmp_path: Path) -> None:
    """The heaviest give way and are scored as incomplete; small ones beside them are taken and whole.

    Each sender sends again what is refused for now, as exporters do. Every span that was taken is in a score.
    """
    flood = [
        request_of(simple_span(number, 2, parent_span_id=PARENT, name="n" * 100_000)).SerializeToString()
        for number in range(100, 140)
    ]
    children = [
        request_of(simple_span(number, 2, parent_span_id=PARENT)).SerializeToString() for number in range(1, 41)
    ]
    roots = [request_of(simple_span(number)).SerializeToString() for number in range(1, 41)]
    patient = configuration(tmp_path, "traces: {decision_delay: 0s, trace_timeout: 1h}", max_size="1MiB")
    with serving(patient) as running:
        taken = 0
        for heavy, child in zip(flood, children, strict=True):
            taken += was_taken(running, heavy)
            eventually(lambda: was_taken(running, child))  # noqa: B023 - used in this round only
        counts = running.service.engine.counts()
        evicted = {report.trajectory.trace_id[-1] for report in running.reports.emitted}
        assert (40 + taken, 40 + taken - len(evicted)) == (counts.received, counts.live)
        assert {CloseReason.EVICTED: len(evicted)} == dict(counts.closed)
        assert (True, True) == (taken > 5, evicted <= set(range(100, 140)))
    with serving(patient) as running:
        assert 40 + taken - len(evicted) == running.service.engine.counts().live
        for root in roots:
            eventually(lambda: was_taken(running, root))  # noqa: B023 - used in this round only
        running.reports.wait_for(40)
        spans = {report.trajectory.trace_id[-1]: report.close_reason for report in running.reports.emitted}
        assert dict.fromkeys(range(1, 41), CloseReason.ROOT_ENDED) == spans
        assert 80 == running.service.engine.counts().in_closed


def test_a_disk_without_room_asks_senders_to_retry(tmp_path: Path) -> None:
    """Where the system refuses to write, nothing is acknowledged; requests are taken again when it does not."""
    with serving(configuration(tmp_path, "traces: {trace_timeout: 1h}")) as running:
        running.post(CHILD)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
        try:
            with pytest.raises(urllib.error.HTTPError) as refused:
                running.post(CHILD)
            refused.value.close()
            assert (503, {"otlp": "ok", "storage": "cannot write: file too large"}) == running.readiness()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        eventually(lambda: running.readiness()[0] == 200)
        running.post(CHILD)
        assert {"duplicate": 1} == dict(running.service.engine.counts().dropped)


def test_a_directory_that_was_removed_is_noticed_and_made_again(tmp_path: Path) -> None:
    """Nothing is acknowledged while its parent is missing; then it goes on, and counts what is lost."""
    with serving(configuration(tmp_path / "parent", "traces: {trace_timeout: 1h}")) as running:
        running.post(CHILD)
        shutil.rmtree(tmp_path / "parent")
        assert not was_taken(running, ROOT)
        status, states = running.readiness()
        assert (503, True) == (status, f"'{tmp_path / 'parent' / 'state'}'" in states["storage"])
        (tmp_path / "parent").mkdir()
        eventually(lambda: running.readiness()[0] == 200)
        running.post(ROOT)
        assert ("1.0", 2) == (storage_metrics(running)["lost_total"], running.service.engine.counts().received)


def test_a_segment_that_cannot_be_written_anew_is_not_tried_with_each_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Where room is short and the disk does not take the smaller file, requests go on, and it is tried now and then."""

    def failures() -> int:
        return caplog.text.count("a file could not be compacted")

    patient = configuration(tmp_path, "traces: {decision_delay: 0s, trace_timeout: 1h}", max_size="1MiB")
    with serving(patient) as running:
        began = time.monotonic()
        for number in range(1, 9):  # each makes a segment of its own, of which only the open trace is needed
            still_open = simple_span(number, 2, parent_span_id=PARENT)
            ended = simple_span(100 + number, name="n" * 100_000)
            running.post(request_of(still_open, ended).SerializeToString())
            for segment in (tmp_path / "state").glob(f"*{REQUESTS}"):
                segment.with_name(segment.name + UNFINISHED).mkdir(exist_ok=True)
        eventually(lambda: failures() > 0)
        for _ in range(20):
            running.post(CHILD)
        assert failures() <= 1 + (time.monotonic() - began) / 10


@pytest.mark.parametrize("is_made_again", [True, False])
def test_a_trace_whose_files_were_removed_is_scored_at_the_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, is_made_again: bool
) -> None:
    """The next start would not find it, or find it in part; one that is stored is left for it."""
    parent = tmp_path / "parent"
    with serving(configuration(parent, "traces: {trace_timeout: 1h}")) as running:
        running.post(CHILD)
        shutil.rmtree(parent)
        if is_made_again:
            eventually(lambda: running.readiness()[0] == 503)
            parent.mkdir()
            eventually(lambda: running.readiness()[0] == 200)
        engine = running.service.engine
    assert {"shutdown": 1} == {reason: count for reason, count in engine.counts().closed.items() if count}
    assert "storage: files were removed, so traces are scored as they are: 1" in caplog.text


async def stored(intake: Intake) -> None:
    """Return when what was taken is safe enough to be acknowledged."""
    assert intake.store is not None
    await intake.store.stored()


@pytest.mark.parametrize(("durability", "waits"), [("power", True), ("crash", False)])
def test_the_answer_waits_for_the_disk(tmp_path: Path, durability: str, waits: bool) -> None:  # noqa: FBT001 - a case of the test
    """With `power` a request is not acknowledged before the disk has it, and others are taken meanwhile."""
    begun, synced = threading.Event(), threading.Event()

    class Slow(Directory):
        def sync(self, file: int) -> None:
            begun.set()
            assert synced.wait(DEADLINE_S)
            super().sync(file)

    async def run(intake: Intake) -> bool:
        intake.accept(await intake.decode(CHILD, Encoding.PROTOBUF))
        answers = [asyncio.ensure_future(stored(intake))]
        intake.accept(await intake.decode(ROOT, Encoding.PROTOBUF))
        answers.append(asyncio.ensure_future(stored(intake)))
        assert await asyncio.to_thread(begun.wait, DEADLINE_S)
        waited = not any(answer.done() for answer in answers)
        synced.set()
        await asyncio.gather(*answers)
        return waited

    assert waits is with_directory(configuration(tmp_path, durability=durability), Slow, run)


def test_what_the_disk_did_not_take_is_not_acknowledged(tmp_path: Path) -> None:
    """When a sync fails, all who wait for it are asked to retry; the next request goes to another file, and is fine."""
    failures = iter([True])

    class Failing(Directory):
        def sync(self, file: int) -> None:
            if next(failures, False):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            super().sync(file)

    async def run(intake: Intake) -> list[bool]:
        intake.accept(await intake.decode(CHILD, Encoding.PROTOBUF))
        with pytest.raises(Unavailable):
            await stored(intake)
        intake.accept(await intake.decode(CHILD, Encoding.PROTOBUF))
        await stored(intake)
        return [file.stat().st_size > len(CHILD) for file in (tmp_path / "state").glob("*.requests")]

    assert [True, True] == with_directory(configuration(tmp_path, durability="power"), Failing, run)


def with_directory(
    text: str, directory: type[Directory], run: Callable[[Intake], Coroutine[Any, Any, _Result]]
) -> _Result:
    """Run something with an intake that stores in such a directory, and return its result."""

    async def main() -> _Result:
        loaded = config.loads(text, "test.yaml", Path()).for_serve()
        pipeline = wiring.pipeline(loaded)
        table = TraceTable(loaded.traces, wiring.root_condition(loaded, pipeline.reader))
        live = LiveEngine(Engine(table, pipeline, {}, time.monotonic))
        durability = Durability(loaded.storage, live, Admission(), directory)
        intake = Intake(live.take, store=durability)
        durability.open()
        await durability.replay(intake)
        try:
            return await run(intake)
        finally:
            live.stop()
            await durability.stop()

    return asyncio.run(main())


def test_its_metrics_tell_how_it_is(tmp_path: Path) -> None:
    """The size, the bound, and what went wrong are on the page."""
    with serving(configuration(tmp_path, max_size="1MiB")) as running:
        running.post(CHILD)
        found = storage_metrics(running)

    assert len(CHILD) < float(found["size_bytes"]) < 10 * len(CHILD)
    assert ("1.048576e+06", "0.0", "0.0") == (
        found["capacity_bytes"],
        found["lost_total"],
        found["sync_failures_total"],
    )


def storage_metrics(running: Running) -> dict[str, str]:
    """Return what the page says of the storage."""
    _, text = running.page("/metrics")
    return dict(re.findall(r"^spanscore_storage_(\w+)(?:\{.*\})? (\S+)$", text, re.MULTILINE))


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    """Two receivers do not share a directory, and the second one says so before it listens."""
    text = configuration(tmp_path)
    with serving(text), pytest.raises(StorageError, match=r"another process \(\d+\) uses it"), serving(text):
        pass
    with serving(text):
        pass


def test_a_request_that_cannot_be_read_any_more_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A stored request that this version refuses keeps nobody from starting, and its content stays out of the log."""
    directory = Directory(tmp_path / "state")
    storage = Storage(directory, StorageSettings(), lambda _: None)
    for kind, body in ((Kind.JSON, b"{canary"), (Kind.PROTOBUF, CHILD)):
        storage.requests.hold(storage.append(kind, body), {b"\1" * 16: 1}, 1)
    assert storage.end(DEADLINE_S)
    directory.unlock()
    with serving(configuration(tmp_path)) as running:
        assert 1 == running.service.engine.counts().live

    assert "storage: a stored request cannot be read; its spans are lost" in caplog.text
    assert "canary" not in caplog.text


def test_the_default_directory_is_the_users() -> None:
    """It is the one of the XDG specification for what outlives a process."""
    assert Path("/states/spanscore") == default_directory({"XDG_STATE_HOME": "/states"})
    for home in ({}, {"XDG_STATE_HOME": "relative"}):
        assert Path("~/.local/state/spanscore").expanduser() == default_directory(home)


def test_what_could_never_be_kept_is_refused_for_good(tmp_path: Path) -> None:
    """A request that is larger than the whole storage is not asked for again, over HTTP and over gRPC."""
    large = request_of(simple_span(1, name="x" * 70_000)).SerializeToString()
    with serving(configuration(tmp_path, max_size="64KiB")) as running:
        with pytest.raises(urllib.error.HTTPError) as refused:
            running.post(large)
        with refused.value as error:
            assert (413, None) == (error.code, error.headers["Retry-After"])
            assert b"larger than the 49152 bytes" in error.read()
        with grpc.insecure_channel(running.grpc) as channel:
            call = channel.unary_unary(EXPORT).future(large, timeout=DEADLINE_S)
            assert grpc.StatusCode.RESOURCE_EXHAUSTED == call.code()
            assert "google.rpc.retryinfo-bin" not in dict(call.trailing_metadata())
        assert "2.0" == storage_metrics(running)["refused_total"]
