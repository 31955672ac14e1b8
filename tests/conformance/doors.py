"""The doors of a running receiver, each with a client that tells answers of gRPC and of HTTP in the same words."""

from __future__ import annotations

import http.client
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import grpc
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from otlp_capture import Capture, capturing
from receivers import receiving
from receivers.otlp_requests import to_json, trace_id
from receivers.receiving import JSON, PROTOBUF, Receiver, Reply, reply, retry_delay_s
from serving import DEADLINE_S, Running, eventually, serving

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
DETAILS = "grpc-status-details-bin"

OK, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, UNAVAILABLE = 0, 3, 8, 14

numbers = itertools.count(1)
"""Numbers for trace ids: tests that share a receiver look at their own traces only."""


class Served(Protocol):
    """A receiver that listens."""

    @property
    def grpc(self) -> str:
        """Where it takes OTLP over gRPC, host:port."""
        ...

    @property
    def http(self) -> str:
        """The base URL where it takes OTLP over HTTP."""
        ...


class Told(NamedTuple):
    """What the sender of a request is told, over whichever door."""

    code: int
    """Of gRPC; over HTTP that of the Status in the body."""
    message: str = ""
    rejected: int | None = None
    """Of the partial success; None where it is not set."""
    retry_after_s: float | None = None


@dataclass(frozen=True)
class Door:
    """One way in."""

    name: str
    send_encoded: Callable[[Served, bytes], Told]
    encode: Callable[[ExportTraceServiceRequest], bytes]
    run: Callable[..., AbstractContextManager[Receiver]]
    """Runs a receiver that has this door only, with a core that keeps what it is handed."""

    def send(self, to: Served, request: ExportTraceServiceRequest) -> Told:
        """Send a request."""
        return self.send_encoded(to, self.encode(request))


class Chain:
    """A receiver, and one behind it that keeps what is sent on as it is on the wire."""

    def __init__(self, running: Running, behind: Capture) -> None:
        self.running = running
        self.behind = behind

    def sent_on(self, trace: int, count: int = 1) -> Sequence[Span]:
        """Return the spans of a trace that came out behind, once there are that many."""

        def found() -> list[Span]:
            return [span for span in self.behind.spans() if span.trace_id == trace_id(trace)]

        eventually(lambda: len(found()) >= count)
        return found()


@contextmanager
def chain(**keys: str) -> Iterator[Chain]:
    """Run a receiver that sends on what it takes, with these further sections in its configuration."""
    with capturing("http/protobuf") as behind:
        sections = {
            "traces": "{decision_delay: 0s}",
            "annotate": "none",
            "exporters": f'{{otlp: {{endpoint: "{behind.endpoint}", signals: [traces]}}}}',
            "receivers": '{otlp: {protocols: {grpc: {endpoint: "127.0.0.1:0"}, http: {endpoint: "127.0.0.1:0"}}}}',
            **keys,
        }
        with serving("\n".join(f"{key}: {value}" for key, value in sections.items())) as running:
            yield Chain(running, behind)


def over_grpc(to: Served, body: bytes, method: str = EXPORT, **how: Any) -> Told:
    """Send over gRPC."""
    options = [("grpc.max_send_message_length", -1), ("grpc.enable_retries", 0), ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(to.grpc, options) as channel:
        answer, call = None, None
        try:
            answer, call = channel.unary_unary(method).with_call(body, timeout=DEADLINE_S, **how)
        except grpc.RpcError as error:
            return told_by_grpc(error)
        assert call.code() is grpc.StatusCode.OK
        return _accepted(answer)


def told_by_grpc(error: Any) -> Told:
    """Return what an error of gRPC tells."""
    details = dict(error.trailing_metadata() or ()).get(DETAILS, b"")
    return Told(error.code().value[0], error.details() or "", retry_after_s=retry_delay_s(details))


def over_http(to: Served, body: bytes, content_type: str = PROTOBUF, **headers: str) -> Told:
    """Send over HTTP."""
    answer = post(to, body, content_type, **headers)
    assert content_type == answer.content_type
    if answer.status != 200:
        code, message = answer.error
        after = answer.headers.get("Retry-After")
        return Told(code, message, retry_after_s=None if after is None else int(after))
    return _accepted(answer.body) if content_type == PROTOBUF else _accepted_in_json(answer.body)


def post(to: Served, body: bytes, content_type: str = PROTOBUF, path: str = "/v1/traces", **more: str) -> Reply:
    """Send over HTTP, and return the answer as it is."""
    host, _, port = to.http.removeprefix("http://").rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=DEADLINE_S)
    try:
        headers = {name.replace("_", "-"): value for name, value in more.items()}
        connection.request("POST", path, body, {"Content-Type": content_type} | headers)
        return reply(connection.getresponse())
    finally:
        connection.close()


def _accepted(body: bytes) -> Told:
    try:
        answer = ExportTraceServiceResponse.FromString(body)
    except DecodeError:  # what no client could read is no success
        return Told(-1)
    if not answer.HasField("partial_success"):
        assert body == b""
        return Told(OK)
    return Told(OK, answer.partial_success.error_message, answer.partial_success.rejected_spans)


def _accepted_in_json(body: bytes) -> Told:
    answer = json.loads(body)
    if "partialSuccess" not in answer:
        assert body == b"{}"
        return Told(OK)
    partial = answer["partialSuccess"]
    return Told(OK, partial["errorMessage"], int(partial.get("rejectedSpans", 0)))


def over_http_as_json(to: Served, body: bytes) -> Told:
    """Send JSON over HTTP."""
    return over_http(to, body, JSON)


def _protobuf(request: ExportTraceServiceRequest) -> bytes:
    return request.SerializeToString()


GRPC = Door("grpc", over_grpc, _protobuf, receiving.over_grpc)
HTTP = Door("http", over_http, _protobuf, receiving.over_http)
AS_JSON = Door("json", over_http_as_json, to_json, receiving.over_http)
DOORS = (GRPC, HTTP, AS_JSON)
