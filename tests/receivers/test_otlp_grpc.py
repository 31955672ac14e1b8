from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from queue import SimpleQueue
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from hyperframe.frame import SettingsFrame
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

from receivers.h2_client import H2Client
from receivers.http2 import PREFACE, Call, Status, message
from receivers.otlp_requests import field, request_of, simple_span
from receivers.receiving import HERE, Core, Receiver, busy, is_closed, over_grpc
from serving import DEADLINE_S, eventually, loop_thread, serving
from spanscore.receivers.intake.admission import Admission
from spanscore.receivers.intake.intake import Intake, IntakeCounts
from spanscore.receivers.otlp.over_grpc import GrpcLimits, OtlpGrpc

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
METRICS = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
LOGS = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
HEALTH = "/grpc.health.v1.Health"

ONE = request_of(simple_span(1)).SerializeToString()


@pytest.fixture(scope="module")
def shared() -> Any:
    """Serve all tests that leave no trace."""
    with over_grpc() as receiver:
        yield receiver


@pytest.fixture
def receiver(shared: Receiver) -> Receiver:
    """Serve a test that looks only at what it sends itself."""
    shared.core.spans.clear()
    shared.core.refused.clear()
    return shared


@contextmanager
def channel_to(receiver: Receiver) -> Iterator[grpc.Channel]:
    """Connect to a receiver; nothing is sent twice."""
    options = [("grpc.max_send_message_length", -1), ("grpc.enable_retries", 0), ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(str(receiver.address), options) as channel:
        yield channel


def export(receiver: Receiver, body: bytes, method: str = EXPORT) -> bytes:
    """Send a request and return the answer, which is no error."""
    with channel_to(receiver) as channel:
        answer: bytes = channel.unary_unary(method)(body, timeout=DEADLINE_S)
        return answer


def failure(receiver: Receiver, body: bytes, method: str) -> tuple[grpc.StatusCode, str]:
    """Return the code and the message of the error that a request is answered with."""
    with pytest.raises(grpc.RpcError) as raised:
        export(receiver, body, method)
    return raised.value.code(), raised.value.details()


FOR_GOOD = {3, 8, 13}
"""Codes that no client retries: versions of gRPC choose different ones."""


@pytest.mark.parametrize("sent", [message(ONE)[:-1], b""], ids=["short", "no message"])
def test_a_call_without_a_whole_message_is_refused_for_good(receiver: Receiver, sent: bytes) -> None:
    """What no gRPC client sends ends the call with an error that is not retried, and nothing is taken."""
    call = Call(receiver.port)
    call.send(sent)
    assert call.status().code in FOR_GOOD
    call.close()

    assert b"" == export(receiver, b"")
    assert [] == receiver.core.spans


def test_a_message_that_does_not_come_is_not_waited_for() -> None:
    """A client that stops in the middle of a message is cut off."""
    with over_grpc(limits=GrpcLimits(body_s=0.05)) as receiver:
        call = Call(receiver.port)
        call.send(message(ONE)[:-1], last=False)
        assert Status(4, "the request did not come in time") == call.status()
        call.close()


def test_metrics_need_an_exporter(receiver: Receiver) -> None:
    """Without it they are refused for good and counted, as over HTTP, and their sender is told so."""
    before = receiver.admission.requests.refused["not_found"]
    code, told = failure(receiver, b"", METRICS)

    assert (grpc.StatusCode.UNIMPLEMENTED, "metrics are taken only with exporters.otlp") == (code, told)
    assert 1 == receiver.admission.requests.refused["not_found"] - before


def test_requests_wait_and_are_sent_away_when_there_are_too_many() -> None:
    """A request that finds no room waits a short time, and then is told when to come again."""
    with over_grpc(admission={"max_requests": 1, "wait_s": 0.05}) as receiver:
        with busy(receiver):
            assert grpc.StatusCode.UNAVAILABLE == code_of(receiver)
        assert b"" == export(receiver, b"")


def test_who_sends_slowly_takes_nobodys_turn() -> None:
    """A message of which the rest never comes leaves its turn to others."""
    with over_grpc(admission={"max_requests": 1}) as receiver:
        slow = Call(receiver.port)
        slow.send(message(ONE)[:-1], last=False)
        eventually(lambda: receiver.thread.call(lambda: len(receiver.admission.unsized.arriving)) == 1)
        assert b"" == export(receiver, b"")
        slow.send(message(ONE)[-1:])
        assert 0 == slow.status().code
        slow.close()


def test_what_is_no_client_is_sent_away(receiver: Receiver) -> None:
    """A connection that does not answer the settings of HTTP/2 is closed within seconds, whatever it has sent."""
    silent, begun, deaf = (receiver.raw(sent) for sent in (b"", PREFACE, PREFACE + SettingsFrame(0).serialize()))
    for connection in (silent, begun, deaf):
        assert is_closed(connection)
        connection.close()


def test_an_idle_connection_is_kept_between_two_exports_of_metrics() -> None:
    """SDKs send metrics every 60 s. Stock exporters print a line when their connection is closed because it is idle."""
    assert 75 == GrpcLimits().idle_s
    with over_grpc(limits=GrpcLimits(idle_s=0.2)) as receiver, closing(H2Client(receiver.port)) as client:
        assert 0 == client.export(b"").code
        with suppress(ConnectionError):  # which is the end that is waited for
            while True:
                client.receive()
        assert [b"connection idle"] == [each.additional_data for each in client.goaway]


def test_a_stock_exporter_that_pauses_keeps_its_connection(
    receiver: Receiver, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its connection, and what it prints, is the same before and after another one was sent away for its silence."""
    with closing(receiver.raw()) as silent, channel_to(receiver) as channel:
        changes: SimpleQueue[grpc.ChannelConnectivity] = SimpleQueue()
        assert b"" == channel.unary_unary(EXPORT)(b"", timeout=DEADLINE_S)
        channel.subscribe(changes.put)
        assert is_closed(silent)  # after some seconds, in which nothing was exported
        assert b"" == channel.unary_unary(EXPORT)(b"", timeout=DEADLINE_S)
        assert {grpc.ChannelConnectivity.READY} == {changes.get(timeout=DEADLINE_S) for _ in range(changes.qsize())}
    assert "goaway" not in capfd.readouterr().err


def test_a_client_whose_idle_connection_is_closed_connects_again() -> None:
    """A client that sends rarely sends on a new connection each time, and loses nothing by that."""
    with over_grpc(limits=GrpcLimits(idle_s=0.2)) as receiver, channel_to(receiver) as channel:
        changes: SimpleQueue[grpc.ChannelConnectivity] = SimpleQueue()
        channel.subscribe(changes.put)
        export = channel.unary_unary(EXPORT)
        for _ in range(2):
            assert b"" == export(b"", timeout=DEADLINE_S)
            while changes.get(timeout=DEADLINE_S) is not grpc.ChannelConnectivity.IDLE:
                pass


def code_of(receiver: Receiver) -> grpc.StatusCode:
    """Send an empty request, and return how that went."""
    with channel_to(receiver) as channel:
        code: grpc.StatusCode = channel.unary_unary(EXPORT).future(b"", timeout=DEADLINE_S).code()
        return code


def health(channel: grpc.Channel, service: str) -> int:
    """Return what the health service says about a service."""
    check = channel.unary_unary(
        f"{HEALTH}/Check",
        health_pb2.HealthCheckRequest.SerializeToString,
        health_pb2.HealthCheckResponse.FromString,
    )
    status: int = check(health_pb2.HealthCheckRequest(service=service), timeout=DEADLINE_S).status
    return status


def test_health_is_served(receiver: Receiver) -> None:
    """The health service knows the server as a whole and the services that are served, and no other."""
    with channel_to(receiver) as channel:
        collector = "opentelemetry.proto.collector"
        services = ("", f"{collector}.trace.v1.TraceService", f"{collector}.logs.v1.LogsService")
        assert [health_pb2.HealthCheckResponse.SERVING] * 3 == [health(channel, service) for service in services]
        with pytest.raises(grpc.RpcError) as raised:
            health(channel, f"{collector}.metrics.v1.MetricsService")
        assert grpc.StatusCode.NOT_FOUND == raised.value.code()


def test_what_listens_can_be_stopped_at_once() -> None:
    """A server that is stopped before it was started, as where another address is in use, ends. Every time."""
    with loop_thread() as thread:
        thread.run(_listen_and_stop(300))


async def _listen_and_stop(times: int) -> None:
    intake = Intake(Core().accept, IntakeCounts())
    for _ in range(times):
        server = OtlpGrpc(intake, Admission(), max_request_size=1)
        server.listen([HERE], "test.endpoint")
        await server.stop(0)


@pytest.mark.parametrize(("method", "signal"), [(METRICS, "metrics"), (LOGS, "logs")])
def test_metrics_and_logs_are_sent_on(method: str, signal: str) -> None:
    """Where metrics and logs are sent on, they are taken as they are; what is no such request is refused."""
    with over_grpc(others=True) as receiver:
        assert b"" == export(receiver, b"\x0a\x00", method)
        assert [(signal, b"\x0a\x00")] == receiver.core.others_sent_on
        assert grpc.StatusCode.INVALID_ARGUMENT == failure(receiver, b"\xff", method)[0]


def test_a_bad_metric_costs_itself() -> None:
    """The others are sent on; the sender is told how many data points are not."""
    good, bad = field(2, field(1, b"good")), field(2, field(5, field(1, b"") * 2) + b"\x0a\x05")
    with over_grpc(others=True) as receiver:
        answer = ExportMetricsServiceResponse.FromString(export(receiver, field(1, field(2, good + bad)), METRICS))

        assert [("metrics", field(1, field(2, good)))] == receiver.core.others_sent_on
    assert 2 == answer.partial_success.rejected_data_points
    why = "malformed (resource_metrics[0].scope_metrics[0].metrics[1]: not valid protobuf)"
    assert f"2 data points refused: 2 for {why}" == answer.partial_success.error_message
    assert ({}, {"malformed": 2}) == (receiver.core.refused, receiver.core.refused_points)


def test_accepted_spans_are_sent_on() -> None:
    """Where spans are sent on, they are what was received of them, without the refused ones."""
    with over_grpc(spans_onward=True) as receiver:
        export(receiver, ONE)
        export(receiver, b"\x0a\x00")
        export(receiver, request_of(simple_span(0), simple_span(2)).SerializeToString())

        assert [ONE, request_of(simple_span(2)).SerializeToString()] == receiver.core.sent_on


def test_a_refused_request_is_released() -> None:
    """At once, and not when garbage is collected next: refused messages of 60 MiB would fill the memory until then."""
    body = b"\xff" * 2**20
    with serving() as running, grpc.insecure_channel(running.grpc) as channel:
        export = channel.unary_unary(EXPORT)
        gc.disable()
        tracemalloc.start()
        try:
            for _ in range(20):
                with pytest.raises(grpc.RpcError):
                    export(body)
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
            gc.enable()

    assert held < 5 * len(body)
