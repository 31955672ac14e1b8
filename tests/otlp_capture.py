"""OTLP receivers for tests: real servers that keep what they get as it is on the wire, and answer as they are told."""

from __future__ import annotations

import ssl
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, get_value
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from deadline import DEADLINE_S
from spanscore.emitters.sending.client import Accepted, Answer, Protocol, Signal

PROTOCOLS: tuple[Protocol, ...] = ("http/protobuf", "grpc")


@dataclass(frozen=True, kw_only=True)
class Reply:
    """How to answer a request: with a status of HTTP or of gRPC, whichever the server speaks."""

    http: int = 200
    grpc: grpc.StatusCode = grpc.StatusCode.OK
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    retry_delay_s: float | None = None
    """As RetryInfo, and as Retry-After."""
    message: str = ""


OK = Reply()
UNAVAILABLE = Reply(http=503, grpc=grpc.StatusCode.UNAVAILABLE)
INVALID = Reply(http=400, grpc=grpc.StatusCode.INVALID_ARGUMENT, message="bad span")
FORBIDDEN = Reply(http=403, grpc=grpc.StatusCode.PERMISSION_DENIED, message="not you")


def partial_success(rejected: int, message: str) -> Reply:
    """Return the answer of a receiver that threw spans away."""
    partial = ExportTracePartialSuccess(rejected_spans=rejected, error_message=message)
    return Reply(body=ExportTraceServiceResponse(partial_success=partial).SerializeToString())


class Received(NamedTuple):
    """A request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: bytes


class _Gate:
    """Lets answers wait."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open = threading.Event()
        self._open.set()

    def hold(self) -> None:
        """Answer nothing until `go_on`."""
        self._open.clear()

    def go_on(self) -> None:
        """Answer what is held, and what comes."""
        self._open.set()


class Capture(_Gate):
    """Keeps requests, and answers each with the next reply; when there is none left, with success."""

    def __init__(self) -> None:
        super().__init__()
        self.replies: deque[Reply] = deque()
        self.seen: list[Received] = []
        """Every request."""
        self.endpoint = ""
        self._taken: list[bytes] = []

    def answer(self, received: Received) -> Reply:
        """Keep a request and return what to answer."""
        with self._changed:
            self.seen.append(received)
            reply = self.replies.popleft() if self.replies else OK
            if reply.http == 200:
                self._taken.append(received.body)
            self._changed.notify_all()
        assert self._open.wait(DEADLINE_S)
        return reply

    def bodies(self, count: int = 0) -> list[bytes]:
        """Return the requests that were answered with success, once there are that many."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._taken) >= count, DEADLINE_S)
            return list(self._taken)

    def wait_for_requests(self, count: int) -> None:
        """Wait until that many requests have come, whatever is answered."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.seen) >= count, DEADLINE_S)

    def spans(self, count: int = 0) -> list[Span]:
        """Return all spans taken, once there are that many."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(spans_of(self._taken)) >= count, DEADLINE_S)
            return spans_of(self._taken)


class InMemory(_Gate):
    """A client that leads nowhere: it keeps what is sent, and gives these answers, then always success."""

    def __init__(self, answers: Iterable[Answer] = ()) -> None:
        super().__init__()
        self.answers: deque[Answer] = deque(answers)
        self.sent: list[tuple[Signal, bytes]] = []
        """Every request."""
        self.taken: list[bytes] = []
        """Those answered with success."""
        self.suppressed: set[object] = set()
        """Whether instrumentation was told to look away."""

    def spans(self, count: int) -> list[Span]:
        """Return all spans taken, once there are that many."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(spans_of(self.taken)) >= count, DEADLINE_S)
            return spans_of(self.taken)

    def send(self, signal: Signal, body: bytes) -> Answer:
        """Keep a request."""
        assert self._open.wait(DEADLINE_S)
        self.sent.append((signal, body))
        self.suppressed.add(get_value(_SUPPRESS_INSTRUMENTATION_KEY))
        answer = self.answers.popleft() if self.answers else Accepted()
        if isinstance(answer, Accepted):
            with self._changed:
                self.taken.append(body)
                self._changed.notify_all()
        return answer

    def abort(self) -> None:
        """Answer what is held."""
        self.go_on()

    def close(self) -> None:
        """Do nothing."""


def spans_of(bodies: Sequence[bytes]) -> list[Span]:
    """Return the spans of requests."""
    return [
        span
        for body in bodies
        for resource_spans in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope_spans in resource_spans.scope_spans
        for span in scope_spans.spans
    ]


def records_of(bodies: Sequence[bytes]) -> list[LogRecord]:
    """Return the log records of requests."""
    return [
        record
        for body in bodies
        for resource_logs in ExportLogsServiceRequest.FromString(body).resource_logs
        for scope_logs in resource_logs.scope_logs
        for record in scope_logs.log_records
    ]


@contextmanager
def capturing(
    protocol: Protocol,
    capture: Capture | None = None,
    port: int = 0,
    tls: Path | None = None,
    client_ca: Path | None = None,
) -> Iterator[Capture]:
    """Run a receiver; with a capture and a port of before, that one is there again.

    Args:
        protocol: what it speaks.
        capture: what keeps the requests.
        port: where it listens.
        tls: the path of its certificate and of its key, without .crt and .key.
        client_ca: who has to vouch for its clients.
    """
    capture = capture or Capture()
    serve = _http if protocol == "http/protobuf" else _grpc
    with serve(capture, port, tls, client_ca) as bound:
        capture.endpoint = f"https://127.0.0.1:{bound}" if tls else f"http://127.0.0.1:{bound}"
        try:
            yield capture
        finally:
            capture.go_on()


def port_of(capture: Capture) -> int:
    """Return the port a capture listens on."""
    return int(capture.endpoint.rpartition(":")[2])


@contextmanager
def _http(capture: Capture, port: int, tls: Path | None, client_ca: Path | None) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            connections.add(self.connection)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            reply = capture.answer(Received(self.path, dict(self.headers), body))
            status = Status(message=reply.message).SerializeToString() if reply.message else reply.body
            self.send_response(reply.http)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(status)))
            if reply.retry_delay_s is not None:
                self.send_header("retry-after", f"{reply.retry_delay_s:g}")
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(status)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the class names it
            """Print nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Print nothing: clients go away in these tests."""

    connections: set[Any] = set()
    server = Server(("127.0.0.1", port), Handler)
    if tls is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=client_ca)
        context.load_cert_chain(f"{tls}.crt", f"{tls}.key")
        context.verify_mode = ssl.CERT_REQUIRED if client_ca else ssl.CERT_NONE
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        capture.go_on()
        thread.join()
        for connection in connections:  # a server that is killed leaves none open
            connection.close()
        server.server_close()


@contextmanager
def _grpc(capture: Capture, port: int, tls: Path | None, client_ca: Path | None) -> Iterator[int]:
    def export(path: str, request: bytes, context: grpc.ServicerContext) -> bytes:
        metadata = {key: str(value) for key, value in context.invocation_metadata()}
        reply = capture.answer(Received(path, metadata, request))
        if reply.grpc is grpc.StatusCode.OK:
            return reply.body
        if reply.retry_delay_s is not None or reply.body:
            details = _details(reply) if reply.retry_delay_s is not None else reply.body
            context.set_trailing_metadata([("x-id", "1"), ("grpc-status-details-bin", details)])
        context.abort(reply.grpc, reply.message)
        raise AssertionError

    class Handlers(grpc.GenericRpcHandler):
        def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
            path = handler_call_details.method
            return grpc.unary_unary_rpc_method_handler(lambda request, context: export(path, request, context))

    server = grpc.server(ThreadPoolExecutor(4), handlers=[Handlers()], options=[("grpc.so_reuseport", 0)])
    if tls is None:
        bound = server.add_insecure_port(f"127.0.0.1:{port}")
    else:
        pair = Path(f"{tls}.key").read_bytes(), Path(f"{tls}.crt").read_bytes()
        authority = client_ca and client_ca.read_bytes()
        bound = server.add_secure_port(
            f"127.0.0.1:{port}", grpc.ssl_server_credentials([pair], authority, authority is not None)
        )
    server.start()
    try:
        yield bound
    finally:
        capture.go_on()
        server.stop(0).wait()


def _details(reply: Reply) -> bytes:
    delay = Duration()
    delay.FromNanoseconds(round((reply.retry_delay_s or 0) * 1e9))
    status = Status(code=reply.grpc.value[0], message=reply.message)
    status.details.add().Pack(RetryInfo(retry_delay=delay))
    return status.SerializeToString()
