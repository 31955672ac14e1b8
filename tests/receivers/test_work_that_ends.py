"""The work of a request ends with it, and what cannot be done for want of memory is to be asked for again."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from aiohttp import web

from receivers.otlp_requests import request_of, simple_span
from receivers.receiving import HERE, JSON, Receiver, over_grpc, over_http, retry_delay_s
from serving import DEADLINE_S, eventually, loop_thread
from spanscore.otlp.wire import length_delimited
from spanscore.receivers.sockets.http_server import BaseHttpServer

METRICS = b'{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m","gauge":{"dataPoints":[%s]}}]}]}]}'
POINTS = METRICS % b",".join([b"{}"] * 490_000)
RECORDS = length_delimited(1, length_delimited(2, length_delimited(2, b"") * 1_900_000))
"""Both take some seconds."""

LOGS = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


def is_at_work(receiver: Receiver) -> bool:
    """Return whether a request has its turn."""
    return receiver.admission.turns._free < 64


def over_http_and_gone(receiver: Receiver) -> None:
    """Send metrics in JSON, and close the connection while they are worked on."""
    head = (
        f"POST /v1/metrics HTTP/1.1\r\nHost: localhost\r\nContent-Type: {JSON}\r\nContent-Length: {len(POINTS)}\r\n\r\n"
    )
    with receiver.raw(head.encode(), POINTS):
        eventually(lambda: is_at_work(receiver))


def over_grpc_and_gone(receiver: Receiver) -> None:
    """Send logs in protobuf, and cancel the call while they are worked on."""
    with grpc.insecure_channel(receiver.grpc) as channel:
        call = channel.unary_unary(LOGS).future(RECORDS, timeout=DEADLINE_S)
        eventually(lambda: is_at_work(receiver))
        call.cancel()


@pytest.mark.parametrize(
    ("run", "send"),
    [
        (lambda: over_http(others=True, max_request_body_size=2**24), over_http_and_gone),
        (lambda: over_grpc(others=True, max_request_size=2**24), over_grpc_and_gone),
    ],
    ids=["HTTP", "gRPC"],
)
def test_the_work_of_who_is_gone_ends(run: Callable[[], Any], send: Callable[[Receiver], None]) -> None:
    """Its turn and its memory are free again, and nothing of it is taken or counted."""
    with run() as receiver:
        send(receiver)
        eventually(lambda: not is_at_work(receiver))

        assert receiver.admission.memory.free_bytes == 256 * 2**20
        assert [] == receiver.core.others_sent_on
        assert 0 == receiver.admission.requests.accepted


ONE = request_of(simple_span(1)).SerializeToString()


def test_no_memory_over_http() -> None:
    """The answer is 503 with a delay, and the connection ends."""
    with over_http() as receiver:
        receiver.core.fault = MemoryError()
        reply = receiver.post(ONE)

        assert (503, 1) == (reply.status, receiver.admission.requests.refused["no_memory"])
        assert int(reply.headers["Retry-After"]) >= 1
        assert receiver.admission.memory.free_bytes == 256 * 2**20


def test_no_memory_over_grpc() -> None:
    """The answer is UNAVAILABLE with a delay."""
    with over_grpc() as receiver, grpc.insecure_channel(receiver.grpc) as channel:
        receiver.core.fault = MemoryError()
        with pytest.raises(grpc.RpcError) as refused:
            channel.unary_unary(TRACES)(ONE, timeout=DEADLINE_S)

        error: Any = refused.value
        assert grpc.StatusCode.UNAVAILABLE == error.code()
        details = dict(error.trailing_metadata())["grpc-status-details-bin"]
        assert (retry_delay_s(details) or math.nan) > 0


class Failing(BaseHttpServer):
    """A server that finds no answer."""

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Run out of memory."""
        raise MemoryError


def test_no_answer_is_no_fault_of_the_client(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever went wrong, its request was valid, and it may come again."""
    with loop_thread() as thread:
        server = thread.call(Failing)
        (address,) = thread.call(lambda: server.listen([HERE], "test.endpoint"))
        thread.run(server.start())
        try:
            receiver = Receiver(thread, None, None, server, address)  # type: ignore[arg-type]
            reply = receiver.request("GET", "/")
        finally:
            thread.run(server.stop(0.1))

    assert (503, "5") == (reply.status, reply.headers["Retry-After"])
    assert {"message": "cannot be answered now"} == json.loads(reply.body)
    assert ["a request could not be answered: MemoryError"] == caplog.messages
