"""What an earlier process kept is taken in again: meanwhile health is answered, and nobody else is listened to."""

from __future__ import annotations

import asyncio
import math
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2

from receivers.otlp_requests import request_of, simple_span, trace_id
from serving import DEADLINE_S, Running, serving
from spanscore import config
from spanscore.collect.table import TraceTable
from spanscore.config import parts as wiring
from spanscore.model import Span
from spanscore.otlp.encoding import Encoding
from spanscore.receivers.intake.admission import Admission
from spanscore.receivers.intake.consumers import OtherSignal
from spanscore.receivers.intake.intake import Intake
from spanscore.receivers.sockets.listening import ListenError
from spanscore.scoring.engine import Engine
from spanscore.scoring.live_engine import LiveEngine
from spanscore.storage.directory import Directory, StorageError
from spanscore.storage.durability import Durability
from spanscore.storage.log_file import Disk
from spanscore.storage.records import FILE_HEADER_SIZE, Kind
from spanscore.storage.request_log import RequestLog
from spanscore.storage.syncer import Syncer
from storage.test_durability import CHILD, EXPORT, PARENT, PROTOBUF, ROOT, configuration, killed, scored

HEALTH = "/grpc.health.v1.Health/Check"
ORPHAN = request_of(simple_span(3, 2, parent_span_id=PARENT)).SerializeToString()
OTHER_ROOT = request_of(simple_span(2)).SerializeToString()


class Gate:
    """Where a replay stops until it may go on."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.may_go_on = threading.Event()

    def directory(self, path: Path) -> Directory:
        """Open a directory whose requests cannot be read before that."""
        gate = self

        class Slow(Directory):
            def read(self, name: str, start: int, size: int) -> bytes:
                if name.endswith(".requests") and size > FILE_HEADER_SIZE:
                    gate.wait()
                return super().read(name, start, size)

        return Slow(path)

    def wait(self) -> None:
        """Wait until the replay may go on."""
        self.reached.set()
        assert self.may_go_on.wait(DEADLINE_S)


def health(running: Running) -> int:
    """Ask over gRPC."""
    with grpc.insecure_channel(running.grpc) as channel:
        check = channel.unary_unary(HEALTH, None, health_pb2.HealthCheckResponse.FromString)
        return int(check(b"", timeout=DEADLINE_S).status)


def test_health_is_answered_during_a_replay_and_nothing_is_taken(tmp_path: Path) -> None:
    """Who sends is asked to come again, over both protocols; then everything is there, once."""
    text, gate = configuration(tmp_path), Gate()
    with (
        killed(tmp_path, text, (CHILD, PROTOBUF)),
        serving(text, is_ready=False, open_directory=gate.directory) as running,
    ):
        assert gate.reached.wait(DEADLINE_S)
        assert 200 == running.page("/livez")[0]
        assert (503, {"otlp": "ok", "storage": "replaying stored requests"}) == running.readiness()
        assert health_pb2.HealthCheckResponse.NOT_SERVING == health(running)
        with pytest.raises(urllib.error.HTTPError) as refused:
            running.post(ROOT)
        with refused.value as answer:
            assert (503, True) == (answer.code, int(answer.headers["Retry-After"]) >= 1)
        with grpc.insecure_channel(running.grpc) as channel, pytest.raises(grpc.RpcError) as error:
            channel.unary_unary(EXPORT)(ROOT, timeout=DEADLINE_S)
        details = dict(error.value.trailing_metadata())["grpc-status-details-bin"]
        assert (grpc.StatusCode.UNAVAILABLE, True) == (error.value.code(), b"RetryInfo" in details)
        assert 0 == running.service.engine.counts().received
        with pytest.raises(StorageError, match="another process"), serving(text):
            pass

        gate.may_go_on.set()
        running.thread.run(running.service.ready())
        assert (200, health_pb2.HealthCheckResponse.SERVING) == (running.readiness()[0], health(running))
        running.post(ROOT)
        (report,) = running.reports.wait_for(1)
        counts = running.service.engine.counts()
        assert (1, 2, 2) == (report.trajectory.trace_id[-1], counts.received, counts.in_closed)


def test_an_end_during_a_replay_loses_nothing(tmp_path: Path) -> None:
    """What was not taken in waits for the next start, and what was scored before the kill is still known then."""
    text, gate = configuration(tmp_path), Gate()
    with killed(tmp_path, text, (CHILD, PROTOBUF), (OTHER_ROOT, PROTOBUF), once=scored(tmp_path, 2)):
        with serving(text, is_ready=False, open_directory=gate.directory) as running:
            assert gate.reached.wait(DEADLINE_S)
            stopping = running.thread.start(running.service.stop())
            gate.may_go_on.set()
            stopping.result(DEADLINE_S)
            assert [] == running.reports.emitted
        with serving(text) as running:
            running.post(OTHER_ROOT)
            running.post(ROOT)
            (report,) = running.reports.wait_for(1)
            counts = running.service.engine.counts()
    assert (1, 2, {"not_kept": 1}) == (report.trajectory.trace_id[-1], counts.in_closed, dict(counts.late))


def test_a_port_in_use_is_told_before_the_replay(tmp_path: Path) -> None:
    """Nothing is taken in by a process that cannot listen, and all of it by the next one."""
    text = configuration(tmp_path)
    with killed(tmp_path, text, (CHILD, PROTOBUF)), socket.create_server(("127.0.0.1", 0)) as used:
        taken = text.replace("127.0.0.1:0", f"127.0.0.1:{used.getsockname()[1]}", 1)
        gate = Gate()
        with pytest.raises(ListenError), serving(taken, open_directory=gate.directory):
            pass
        assert not gate.reached.is_set()
        with serving(text) as running:
            assert 1 == running.service.engine.counts().live


@pytest.mark.parametrize("is_killed", [False, True])
def test_what_came_again_is_not_scored_again_after_a_restart(tmp_path: Path, *, is_killed: bool) -> None:
    """Not even where an open trace keeps the file in which it stands, and a process in between was killed."""
    text = configuration(tmp_path, "traces: {decision_delay: 0s, trace_timeout: 1h}")
    with serving(text) as running:
        running.post(ROOT)
        running.reports.wait_for(1)
        running.post(ROOT)
        running.post(ORPHAN)
    if is_killed:
        with killed(tmp_path, text, (ORPHAN, PROTOBUF)):
            pass
    for _ in range(2):
        with serving(text) as running:
            assert [] == running.reports.emitted
            assert {3} == {trace for trace in range(1, 9) if running.service.engine.is_open(trace_id(trace))}


class Onward:
    """Sends on what is received, and gives a replay up at the second request."""

    def __init__(self) -> None:
        self.replay: asyncio.Task[None] | None = None
        self._taken = 0

    def has_room(self, size: int, spans: Sequence[Span] = ()) -> bool:
        """Return True."""
        return True

    def is_waiting(self) -> bool:
        """Return False."""
        return False

    def take(self, request: bytes) -> None:
        """Take a request."""
        self._taken += 1
        if self._taken == 2 and self.replay is not None:
            self.replay.cancel()

    def take_other(self, signal: OtherSignal, request: bytes) -> None:
        """Do nothing."""


class Stored:
    """An engine behind a storage, in the running event loop."""

    def __init__(self, text: str, **how: Any) -> None:
        loaded = config.loads(text, "test.yaml", Path()).for_serve()
        pipeline = wiring.pipeline(loaded)
        table = TraceTable(loaded.traces, wiring.root_condition(loaded, pipeline.reader))
        self.live = LiveEngine(Engine(table, pipeline, {}, time.monotonic))
        self.engine = self.live.engine
        self.durability = Durability(loaded.storage, self.live, Admission())
        self.intake = Intake(self.live.take, store=self.durability, **how)
        self.durability.open()

    async def end(self) -> None:
        """Let go of the directory; what is open stays there."""
        self.live.stop()
        await self.durability.stop()


def test_a_replay_that_is_given_up_half_way_is_begun_anew(tmp_path: Path) -> None:
    """The next process takes in all of it: what was restored before, what was being restored, and what came after."""
    text = configuration(tmp_path, "traces: {trace_timeout: 1h}")
    long = "x" * 2**18  # requests are read a few at a time, but not if they are so large
    spans = [simple_span(n, 2, name=long, parent_span_id=PARENT) for n in (1, 2, 3)]
    bodies = [request_of(span).SerializeToString() for span in spans]

    async def scenario() -> tuple[int, int]:
        onward = Onward()
        given_up = Stored(text, spans_onward=onward)
        onward.replay = asyncio.create_task(given_up.durability.replay(given_up.intake))
        await asyncio.wait([onward.replay])
        assert onward.replay.cancelled()
        await given_up.end()
        whole = Stored(text)
        await whole.durability.replay(whole.intake)
        await whole.end()
        return given_up.engine.counts().received, whole.engine.counts().received

    with killed(tmp_path, text, *((body, PROTOBUF) for body in bodies)):
        assert (2, 3) == asyncio.run(scenario())


class Full(Onward):
    """Has no room until it was asked twice."""

    asked = 0

    def has_room(self, size: int, spans: Sequence[Span] = ()) -> bool:
        """Return whether there is room."""
        self.asked += 1
        return self.asked > 2

    def is_waiting(self) -> bool:
        """Return True."""
        return True

    def take(self, request: bytes) -> None:
        """Take a request, for which there is room."""
        assert self.asked > 2
        super().take(request)


def test_a_replay_waits_for_the_next_receiver(tmp_path: Path) -> None:
    """Stored requests that do not fit into the queue wait, and none is dropped."""

    async def scenario() -> tuple[int, int]:
        onward = Full()
        stored = Stored(configuration(tmp_path, "traces: {trace_timeout: 1h}"), spans_onward=onward)
        await stored.durability.replay(stored.intake)
        await stored.end()
        return onward.asked, stored.engine.counts().received

    with killed(tmp_path, configuration(tmp_path, "traces: {trace_timeout: 1h}"), (CHILD, PROTOBUF)):
        assert (3, 1) == asyncio.run(scenario())


class Held(Onward):
    """Has no room for what open traces hold, and nothing that waits to be sent."""

    def has_room(self, size: int, spans: Sequence[Span] = ()) -> bool:
        """Return False."""
        return False


def test_a_replay_does_not_wait_for_its_own_traces(tmp_path: Path) -> None:
    """Open traces are scored, and make room, only after the replay."""
    text = configuration(tmp_path, "traces: {trace_timeout: 1h}")

    async def scenario() -> int:
        stored = Stored(text, spans_onward=Held())
        async with asyncio.timeout(DEADLINE_S):
            await stored.durability.replay(stored.intake)
        await stored.end()
        return stored.engine.counts().received

    with killed(tmp_path, text, (CHILD, PROTOBUF)):
        assert 1 == asyncio.run(scenario())


class Noting:
    """Sends on what is received, and notes when it was last asked to."""

    def __init__(self) -> None:
        self.at = -math.inf

    def has_room(self, size: int, spans: Sequence[Span] = ()) -> bool:
        """Return True."""
        return True

    def is_waiting(self) -> bool:
        """Return False."""
        return False

    def take(self, request: bytes) -> None:
        """Take a request."""
        self.at = time.monotonic()

    def take_other(self, signal: OtherSignal, request: bytes) -> None:
        """Do nothing."""


def test_late_children_have_time_after_a_replay(tmp_path: Path) -> None:
    """Their senders were asked to come again, so that the time of the replay is no time in which they could come."""
    text = configuration(tmp_path, "traces: {decision_delay: 10m}")

    async def scenario() -> float:
        onward = Noting()
        stored = Stored(text, spans_onward=onward)
        await stored.durability.replay(stored.intake)
        due = stored.engine.table.next_due()
        await stored.end()
        assert due is not None
        return due - 600 - onward.at

    with killed(tmp_path, text, (ROOT, PROTOBUF), (OTHER_ROOT, PROTOBUF)):
        assert asyncio.run(scenario()) >= 0


def written(directory: Path, run: int, sequence: int, requests: Mapping[float, bytes]) -> None:
    """Store requests as a process does that receives them at these times, in seconds of its clock."""
    files = Directory(directory)
    syncer = Syncer(files, 0.0, lambda _: None)
    at = [0.0]
    log = RequestLog(Disk(files=files, syncer=syncer, run=run, monotonic_ns=lambda: int(at[0] * 1e9)), 2**20)
    log.sequence = sequence
    for at[0], body in requests.items():
        log.hold(log.append(Kind.PROTOBUF, body), {trace_id(1): 1}, 1)
    log.end()
    assert syncer.end(DEADLINE_S)
    files.unlock()


def test_several_restarts_take_no_time_from_late_children(tmp_path: Path) -> None:
    """Each process gives them their time anew, and a replay of what several have received does so, too."""
    for run, first in enumerate((1, 3, 5)):
        root = request_of(simple_span(first)).SerializeToString()
        other = request_of(simple_span(first + 1, 2, parent_span_id=PARENT)).SerializeToString()
        written(tmp_path / "state", run + 1, 2 * run, {100.0: root, 105.0: other})

    async def open_traces() -> set[int]:
        stored = Stored(configuration(tmp_path, "traces: {decision_delay: 12s}"))
        await stored.durability.replay(stored.intake)
        found = {trace for trace in range(1, 9) if stored.engine.is_open(trace_id(trace))}
        await stored.end()
        return found

    assert {1, 2, 3, 4, 5, 6} == asyncio.run(open_traces())


class Told:
    """Notes which traces are still needed when they are scored, and which are done with."""

    def __init__(self) -> None:
        self.needed: list[int] = []
        self.not_needed: list[int] = []

    def scored(self, trace_id: bytes) -> None:
        """Note it."""
        self.needed.append(trace_id[-1])

    def done(self, trace_id: bytes) -> None:
        """Note it."""
        self.not_needed.append(trace_id[-1])


def test_a_span_that_came_before_its_trace_was_scored_is_not_done_with_it(tmp_path: Path) -> None:
    """It belongs to a revision: scoring what was closed before it leaves its request where it is."""
    text = configuration(tmp_path, "traces: {num_traces: 1, trace_timeout: 1h}")
    spans = [simple_span(1, 2, parent_span_id=PARENT), simple_span(2, 2, parent_span_id=PARENT)]
    late = simple_span(1, 3, parent_span_id=PARENT)

    async def scenario() -> tuple[list[int], list[int], int]:
        first = Stored(text)
        await first.durability.replay(first.intake)
        first.live.rest()
        for span in (*spans, late):  # each closes the trace before; nothing is scored yet
            first.intake.accept(await first.intake.decode(request_of(span).SerializeToString(), Encoding.PROTOBUF))
        told = Told()
        first.live.ledger.subscribe(told)
        first.engine.work(math.inf)
        await first.end()
        second = Stored(text)
        await second.durability.replay(second.intake)
        await second.end()
        return told.needed, told.not_needed, second.engine.counts().received

    assert ([1], [2], 2) == asyncio.run(scenario())
