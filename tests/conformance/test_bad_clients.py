"""What bad clients do to connections: they lose theirs, and cost no other client anything."""

from __future__ import annotations

import gzip
import io
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from hyperframe.frame import ContinuationFrame, Frame, HeadersFrame, PingFrame, RstStreamFrame, SettingsFrame

from commands import python
from conformance.doors import GRPC, HTTP, OK, RESOURCE_EXHAUSTED, Served, Told, over_grpc, over_http
from conformance.processes import Process
from receivers.h2_client import H2Client
from receivers.http2 import Call, message
from receivers.otlp_requests import request_of, simple_span
from receivers.raw_http import head
from receivers.receiving import PROTOBUF, Receiver, answered, is_closed
from serving import DEADLINE_S, eventually
from spanscore.receivers.sockets.http_limits import HttpLimits

ONE = request_of(simple_span(1)).SerializeToString()
MANY = 20_000

WORKED_S = 0.2
WORKS = f"import time\nwhile time.process_time() < {WORKED_S}: pass"
"""Once it ends, whatever else works without end has had about as much of a processor, on a machine of any load."""


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    """Serve all tests that leave no trace."""
    with HTTP.run() as running:
        yield running


def rapid_reset(client: H2Client) -> Iterator[Frame]:
    """Begin calls and give them up at once."""
    for stream in range(1, 2 * MANY, 2):
        yield HeadersFrame(stream, client.head(), flags=["END_HEADERS"])
        yield RstStreamFrame(stream, 8)


def pings(client: H2Client) -> Iterator[Frame]:
    """Ask without end whether somebody is there."""
    return (PingFrame(0, bytes(8)) for _ in range(MANY))


def settings(client: H2Client) -> Iterator[Frame]:
    """Change settings without end, each time to be acknowledged."""
    return (SettingsFrame(0, {SettingsFrame.INITIAL_WINDOW_SIZE: 65_535 + index % 2}) for index in range(MANY))


def continuation(client: H2Client) -> Iterator[Frame]:
    """Send headers without end."""
    yield HeadersFrame(1, client.head())
    for _ in range(MANY):
        yield ContinuationFrame(1, b"\0\x01x\x7f\x81\x01" + b"v" * 256)


def open_calls(client: H2Client) -> Iterator[Frame]:
    """Begin calls, and send nothing of them."""
    return (HeadersFrame(stream, client.head(), flags=["END_HEADERS"]) for stream in range(1, MANY, 2))


@pytest.mark.parametrize("flood", [rapid_reset, pings, settings, continuation, open_calls])
def test_floods_over_http2(process: Process, flood: Callable[[H2Client], Iterator[Frame]]) -> None:
    """Whatever a client sends without end, memory is bounded and others are served meanwhile."""

    def pour() -> None:
        with suppress(ConnectionError):  # it is sent away
            frames = list(flood(attacker))
            for start in range(0, len(frames), 100):
                attacker.write(*frames[start : start + 100])

    with process.peak() as peak:
        attacker = H2Client(process.grpc_port)
        pouring = threading.Thread(target=pour)
        pouring.start()
        while pouring.is_alive():
            assert Told(OK) == over_grpc(process, ONE)
        assert Told(OK) == over_http(process, ONE)
        attacker.close()
    assert peak.grown < 64 * 2**20


def test_a_bomb_over_http(process: Process) -> None:
    """A small body that inflates to far more than the limit is refused at the limit, for little work and memory."""
    bomb = gzip.compress(bytes(2**28), 1)
    began = time.thread_time()
    with gzip.open(io.BytesIO(bomb)) as inflated:
        while inflated.read(2**20):
            pass
    all_of_it_s = time.thread_time() - began
    with process.peak() as peak:
        before_s = process.cpu_s()
        told = over_http(process, bomb, Content_Encoding="gzip")
        spent_s = process.cpu_s() - before_s
    assert RESOURCE_EXHAUSTED == told.code
    assert spent_s < all_of_it_s
    assert peak.grown <= process.max_request_size + 32 * 2**20


@pytest.mark.parametrize("door", ["http", "grpc"])
def test_without_descriptors_those_connected_are_served(process: Process, door: str) -> None:
    """When there are too many connections for the process, it waits without working, and goes on when some are gone."""
    port = process.grpc_port if door == "grpc" else process.http_address[1]
    connected = socket.create_connection(("127.0.0.1", process.http_address[1]), DEADLINE_S)
    connected.sendall(head(0))
    assert 200 == answered(connected).status
    with few_descriptors(process), ExitStack() as crowd:
        for _ in range(20):
            crowd.enter_context(socket.create_connection(("127.0.0.1", port)))
        for _ in range(10):
            connected.sendall(head(len(ONE)) + ONE)
            assert 200 == answered(connected).status
        before_s = process.cpu_s()
        assert 0 == python("-c", WORKS).returncode
        assert process.cpu_s() - before_s < WORKED_S / 2
        crowd.close()
        send = over_grpc if door == "grpc" else over_http
        eventually(lambda: _sent(send, process))
    connected.close()


@contextmanager
def few_descriptors(process: Process) -> Iterator[None]:
    """Let a process have ten more open files than it has now."""
    pid = process.process.pid
    few = len(list(Path(f"/proc/{pid}/fd").iterdir())) + 10
    before, most = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (few, most))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (before, most))


def _sent(send: Callable[..., Told], to: Served) -> bool:
    try:
        return send(to, ONE) == Told(OK)
    except OSError:
        return False


@pytest.mark.parametrize(
    "chunk", [b"ZZ\r\nhello\r\n", b"5\r\nhelloXX", b"5 x\r\nhello\r\n", b"-5\r\n", b"F" * 20 + b"\r\n"]
)
def test_broken_chunks_are_refused_at_once(receiver: Receiver, chunk: bytes) -> None:
    """Nothing that could come behind would make a body of them."""
    receiver.core.spans.clear()
    with receiver.raw(head(None, PROTOBUF, "Transfer-Encoding: chunked"), b"5\r\nhello\r\n", chunk) as connection:
        assert 400 == answered(connection).status  # and not 408, for which the limit is far away
        assert is_closed(connection)
    assert [] == receiver.core.spans


def test_answers_that_nobody_reads_are_not_kept() -> None:
    """A client that sends on and on and reads nothing is cut off, with what it has not read."""
    limits = HttpLimits(answer_s=0.3, connections=1)
    with HTTP.run(limits=limits) as receiver, socket.socket() as greedy:
        # So that there is little room for answers on their way, here and at the receiver.
        greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        greedy.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        greedy.settimeout(DEADLINE_S)
        greedy.connect(receiver.address)
        requests = head(0) * 1_000
        with suppress(TimeoutError, ConnectionError):
            while True:
                greedy.sendall(requests)
        eventually(lambda: receiver.serves(ONE))


def test_a_length_that_is_a_lie_ends_in_time() -> None:
    """A body that is shorter than announced is not waited for, and one that is longer is refused."""
    with HTTP.run(limits=HttpLimits(body_s=0.2)) as receiver:
        with receiver.raw(head(len(ONE) + 1), ONE) as shorter:
            assert is_closed(shorter)
        with receiver.raw(head(len(ONE)) + ONE + b"x") as longer:
            assert 400 == answered(longer).status
            assert is_closed(longer)
        assert [] == receiver.core.spans


def test_large_messages_wait_for_each_other() -> None:
    """Over gRPC nobody knows how large a message is: as many are read at once as there is memory for the largest."""
    with GRPC.run(admission={"max_bytes": 4 * 2**20, "wait_s": 10}) as receiver:  # two of a megabyte at once
        slow = []
        for _ in range(2):
            slow.append(Call(receiver.port))
            slow[-1].send(message(ONE)[:-1], last=False)
            eventually(lambda: receiver.thread.call(lambda: len(receiver.admission.unsized.arriving)) == len(slow))
        assert Told(OK) == over_grpc(receiver, ONE)  # a slow one had to go
        gone = slow[0].status()
        assert 14 == gone.code
        slow[1].send(message(ONE)[-1:])
        assert 0 == slow[1].status().code
        for call in slow:
            call.close()
