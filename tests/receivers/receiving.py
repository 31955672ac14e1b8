"""Runs single receivers for tests, with a core that only keeps what it is handed."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from google.rpc import error_details_pb2, status_pb2

from serving import DEADLINE_S, LoopThread, loop_thread
from spanscore.model import REFUSED, Span
from spanscore.receivers.intake.admission import Admission, SmallestFirst
from spanscore.receivers.intake.consumers import OtherSignal
from spanscore.receivers.intake.intake import Intake, IntakeCounts
from spanscore.receivers.otlp import HttpServer
from spanscore.receivers.otlp.over_grpc import OtlpGrpc
from spanscore.receivers.otlp.over_http import OtlpHttp
from spanscore.receivers.sockets.listening import Address
from spanscore.receivers.sockets.tls import Tls

PROTOBUF = "application/x-protobuf"
JSON = "application/json"

HERE = Address("127.0.0.1", 0)


@dataclass
class Core:
    """What a receiver hands over."""

    spans: list[Span] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    refused_points: Counter[str] = field(default_factory=Counter)
    sent_on: list[bytes] = field(default_factory=list)
    others_sent_on: list[tuple[OtherSignal, bytes]] = field(default_factory=list)
    fault: Exception | None = None
    """What taking spans raises."""
    is_full: bool = False
    """There is no room for what is to be sent on."""

    def accept(self, spans: Sequence[Span], size: int) -> None:
        """Take spans, or fail."""
        if self.fault is not None:
            raise self.fault
        self.spans += [span for span in spans if span.kind != REFUSED]
        self.sizes.append(size)

    def has_room(self, size: int, spans: Sequence[Span] = ()) -> bool:
        """Say so."""
        return not self.is_full

    def is_waiting(self) -> bool:
        """Return whether it is full."""
        return self.is_full

    def take(self, request: bytes) -> None:
        """Take spans to send on."""
        self.sent_on.append(request)

    def take_other(self, signal: OtherSignal, request: bytes) -> None:
        """Take metrics or logs to send on."""
        self.others_sent_on.append((signal, request))


class Reply(NamedTuple):
    """An HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def content_type(self) -> str | None:
        """In which encoding the body is."""
        return self.headers.get("Content-Type")

    @property
    def error(self) -> tuple[int, str]:
        """The code and the message of a Status, in either encoding."""
        if self.content_type == JSON:
            document = json.loads(self.body)
            return document["code"], document["message"]
        status = status_pb2.Status.FromString(self.body)
        return status.code, status.message


@dataclass
class Receiver:
    """A receiver that listens, and what is behind it."""

    thread: LoopThread
    core: Core
    admission: Admission
    server: Any
    address: Address

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.address.port

    @property
    def grpc(self) -> str:
        """Where it takes OTLP over gRPC, host:port."""
        return str(self.address)

    @property
    def http(self) -> str:
        """The base URL where it takes OTLP over HTTP."""
        return f"http://{self.address}"

    def connection(self) -> http.client.HTTPConnection:
        """Return a new HTTP connection."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)

    def post(self, body: bytes, content_type: str | None = PROTOBUF, path: str = "/v1/traces", **headers: str) -> Reply:
        """Send a request on a connection of its own."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if content_type is not None:
            sent["Content-Type"] = content_type
        return self.request("POST", path, body, sent)

    def serves(self, body: bytes) -> bool:
        """Return whether a request is taken; with short limits a busy machine may be too slow for one of them."""
        try:
            return self.post(body).status == 200
        except OSError:
            return False

    def request(self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] = {}) -> Reply:
        """Send a request on a connection of its own."""
        connection = self.connection()
        try:
            connection.request(method, path, body, dict(headers))
            return reply(connection.getresponse())
        finally:
            connection.close()

    def wait_for_call(self) -> None:
        """Return when a call over gRPC has begun, and the rest of its message is waited for."""

        async def begun() -> None:
            while not self.admission.unsized.arriving:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0)

        self.thread.start(begun()).result(DEADLINE_S)

    def raw(self, *parts: bytes) -> socket.socket:
        """Send bytes on a connection of its own, and return it."""
        opened = socket.create_connection(self.address, DEADLINE_S)
        for part in parts:
            opened.sendall(part)
        return opened


def reply(answer: http.client.HTTPResponse) -> Reply:
    """Read an answer."""
    return Reply(answer.status, dict(answer.getheaders()), answer.read())


def answered(connection: socket.socket, method: str = "POST") -> Reply:
    """Read an answer that was asked for by hand."""
    answer = http.client.HTTPResponse(connection, method=method)
    answer.begin()
    return reply(answer)


def is_closed(connection: socket.socket) -> bool:
    """Wait until the other side closes the connection; what it still sends does not count."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return True


@asynccontextmanager
async def having_turn(turns: SmallestFirst, size: int = 0, wait_s: float | None = None) -> AsyncIterator[None]:
    """Have a turn meanwhile."""
    await turns.take(size, wait_s)
    try:
        yield
    finally:
        turns.give_back()


@contextmanager
def busy(receiver: Receiver) -> Iterator[None]:
    """Let one request have its turn meanwhile."""
    begun: Future[None] = Future()
    end = asyncio.Event()

    async def work() -> None:
        async with having_turn(receiver.admission.turns):
            begun.set_result(None)
            await end.wait()

    working = receiver.thread.start(work())
    begun.result(DEADLINE_S)
    try:
        yield
    finally:
        receiver.thread.call(end.set)
        working.result(DEADLINE_S)


def retry_delay_s(details: bytes) -> float | None:
    """Return the delay of a Status in protobuf; None without RetryInfo."""
    for detail in status_pb2.Status.FromString(details).details:
        retry = error_details_pb2.RetryInfo()
        if detail.Unpack(retry):
            return float(retry.retry_delay.ToTimedelta().total_seconds())
    return None


def violations(details: bytes) -> list[str]:
    """Return what the BadRequest of a Status in protobuf says."""
    for detail in status_pb2.Status.FromString(details).details:
        bad = error_details_pb2.BadRequest()
        if detail.Unpack(bad):
            return [violation.description for violation in bad.field_violations]
    return []


@contextmanager
def _running(
    build: Callable[[Intake, Admission], Any], *, others: bool, spans_onward: bool, tls: Tls | None, admission: Any
) -> Iterator[Receiver]:
    core = Core()
    with loop_thread() as thread:

        def make() -> tuple[Admission, Any]:
            made = Admission(**(admission or {}))
            intake = Intake(
                core.accept,
                IntakeCounts(refused=core.refused, refused_points=core.refused_points),
                spans_onward=core if spans_onward else None,
                others_onward=core if others else None,
            )
            return made, build(intake, made)

        made, server = thread.call(make)
        address = thread.call(lambda: server.listen([HERE], "test.endpoint", tls))[0]
        thread.run(server.start())
        try:
            yield Receiver(thread, core, made, server, address)
        finally:
            thread.run(server.stop(0.1))


def over_http(
    *,
    others: bool = False,
    spans_onward: bool = False,
    tls: Tls | None = None,
    tokens: Any = None,
    admission: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Any:
    """Run an HTTP receiver."""
    limits = settings.pop("limits", None)
    made = HttpServer(**{"max_request_body_size": 2**20} | settings)
    return _running(
        lambda intake, gate: OtlpHttp(intake, gate, made, tokens, limits),
        others=others,
        spans_onward=spans_onward,
        tls=tls,
        admission=admission,
    )


def over_grpc(
    *,
    others: bool = False,
    spans_onward: bool = False,
    tls: Tls | None = None,
    admission: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Any:
    """Run a gRPC receiver."""
    made = {"max_request_size": 2**20} | settings
    return _running(
        lambda intake, gate: OtlpGrpc(intake, gate, **made),
        others=others,
        spans_onward=spans_onward,
        tls=tls,
        admission=admission,
    )
