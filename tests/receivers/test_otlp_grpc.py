from __future__ import annotations

import gc
import gzip
import tracemalloc
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from queue import SimpleQueue
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from hyperframe.frame import SettingsFrame
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceResponse,
)

from receivers.h2_client import H2Client
from receivers.http2 import PREFACE, Call, Status, message
from receivers.otlp_requests import decoded_span, request_of, simple_span
from receivers.receiving import HERE, Core, Receiver, busy, is_closed, over_grpc, retry_delay_s, violations
from serving import DEADLINE_S, eventually, loop_thread, serving
from spanscore.receivers.intake.admission import Admission
from spanscore.receivers.intake.behind import Behind
from spanscore.receivers.intake.intake import Intake, IntakeCounts
from spanscore.receivers.otlp.over_grpc import GrpcLimits, OtlpGrpc

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
METRICS = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
LOGS = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
HEALTH = "/grpc.health.v1.Health"
GZIP = ((b"grpc-encoding", b"gzip"),)

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


def export(receiver: Receiver, body: bytes, method: str = EXPORT, **how: Any) -> bytes:
    """Send a request and return the answer, which is no error."""
    with channel_to(receiver) as channel:
        answer: bytes = channel.unary_unary(method)(body, timeout=DEADLINE_S, **how)
        return answer


def failure(receiver: Receiver, body: bytes, method: str = EXPORT, **how: Any) -> tuple[grpc.StatusCode, str, bytes]:
    """Return the code, the message and the details of the error that a request is answered with."""
    with pytest.raises(grpc.RpcError) as raised:
        export(receiver, body, method, **how)
    details = dict(raised.value.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
    return raised.value.code(), raised.value.details(), details


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_spans_are_taken(receiver: Receiver, compression: grpc.Compression) -> None:
    """A request is answered without a partial success once its spans are taken, compressed or not."""
    assert b"" == export(receiver, ONE, compression=compression)
    assert [decoded_span(1)] == receiver.core.spans


@pytest.mark.parametrize("body", [b"", b"\x0a\x00", b"\x0a\x02\x12\x00"])
def test_an_empty_request_is_fine(receiver: Receiver, body: bytes) -> None:
    """Nothing, and envelopes with nothing in them, are a success."""
    assert b"" == export(receiver, body)


def test_refused_spans_are_counted_in_the_partial_success(receiver: Receiver) -> None:
    """Bad spans cost themselves only: the answer says how many and why, the others are taken."""
    body = request_of(simple_span(1), simple_span(0), simple_span(0, 2)).SerializeToString()
    partial = ExportTraceServiceResponse.FromString(export(receiver, body)).partial_success

    assert 2 == partial.rejected_spans
    assert partial.error_message.startswith("2 of 3 spans refused: 2 for invalid_trace_id (resource")
    assert [decoded_span(1)] == receiver.core.spans


def test_a_warning_rejects_nothing(receiver: Receiver) -> None:
    """What was taken but not as it was sent is told with no rejected spans."""
    answer = export(receiver, request_of(simple_span(1, parent_span_id=bytes(8))).SerializeToString())
    partial = ExportTraceServiceResponse.FromString(answer).partial_success

    expected = "all spans accepted, but not as they were sent: zero_parent_span_id (1)"
    assert (0, expected) == (partial.rejected_spans, partial.error_message)


@pytest.mark.parametrize("body", [b"\xff\xff garbage", request_of(simple_span(0)).SerializeToString()])
def test_what_can_never_be_taken_is_an_invalid_argument(receiver: Receiver, body: bytes) -> None:
    """A request that cannot be decoded, or without a good span, must not be sent again."""
    code, told, details = failure(receiver, body)

    assert (grpc.StatusCode.INVALID_ARGUMENT, [told]) == (code, violations(details))
    assert b"" == export(receiver, ONE)


def test_a_message_may_have_the_largest_size_and_no_more() -> None:
    """One byte more is an error that the sender must not retry; after decompression too."""
    body = request_of(simple_span(1, name="n" * 1000)).SerializeToString()
    with over_grpc(max_request_size=len(body)) as receiver:
        for compression in (grpc.Compression.NoCompression, grpc.Compression.Gzip):
            assert b"" == export(receiver, body, compression=compression)
            code, _, details = failure(receiver, body + b"x", compression=compression)
            assert (grpc.StatusCode.RESOURCE_EXHAUSTED, b"") == (code, details)


def test_there_is_always_a_limit() -> None:
    """GRPC would take a negative limit for none."""
    with pytest.raises(ValueError, match="at least 1 byte, not -1"), over_grpc(max_request_size=-1):
        pass


def test_a_bomb_is_not_inflated(receiver: Receiver) -> None:
    """A small message that would inflate to fifty times the limit is refused at the limit."""
    call = Call(receiver.port, GZIP)
    call.send(message(gzip.compress(bytes(50 * 2**20)), compressed=True))
    assert Status(8, "Decompressed message larger than max") == call.status()
    call.close()


GZIPPED = gzip.compress(ONE)
FOR_GOOD = {3, 8, 13}
"""Codes that no client retries: versions of gRPC choose different ones."""


@pytest.mark.parametrize(
    ("headers", "sent"),
    [
        (GZIP, message(GZIPPED[:-5], compressed=True)),
        (GZIP, message(GZIPPED + b"x", compressed=True)),
        (GZIP, message(GZIPPED + GZIPPED, compressed=True)),
        (GZIP, message(b"not gzip", compressed=True)),
        (((b"grpc-encoding", b"zstd"),), message(GZIPPED, compressed=True)),
        ((), message(GZIPPED, compressed=True)),
        ((), b"\0\xff\xff\xff\xffabc"),
        ((), message(ONE)[:-1]),
        ((), b""),
    ],
    ids=["cut", "trailing", "two members", "other", "zstd", "no encoding", "length", "short", "no message"],
)
def test_damaged_messages_are_refused_for_good(receiver: Receiver, headers: Any, sent: bytes) -> None:
    """What no gRPC client sends ends the call with an error that is not retried, and nothing is taken."""
    call = Call(receiver.port, headers)
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


def test_a_call_that_is_given_up_is_not_taken(receiver: Receiver) -> None:
    """When the client goes away before all of a message is there, nothing of it is taken."""
    call = Call(receiver.port)
    call.send(message(ONE)[:-1], last=False)
    call.close()

    assert b"" == export(receiver, b"")
    assert [] == receiver.core.spans


@pytest.mark.parametrize("method", ["/other.Service/Export", EXPORT.replace("Export", "Import")])
def test_other_methods_are_not_implemented(receiver: Receiver, method: str) -> None:
    """There are no further services, and no further methods."""
    assert grpc.StatusCode.UNIMPLEMENTED == failure(receiver, b"", method)[0]


def test_metrics_need_an_exporter(receiver: Receiver) -> None:
    """Without it they are refused for good and counted, as over HTTP, and their sender is told so."""
    before = receiver.admission.requests.refused["not_found"]
    code, told, _ = failure(receiver, b"", METRICS)

    assert (grpc.StatusCode.UNIMPLEMENTED, "metrics are taken only with exporters.otlp") == (code, told)
    assert 1 == receiver.admission.requests.refused["not_found"] - before


def test_calls_are_served_side_by_side(receiver: Receiver) -> None:
    """A hundred requests at once on one connection are all taken."""
    with channel_to(receiver) as channel:
        calls = [channel.unary_unary(EXPORT).future(ONE, timeout=DEADLINE_S) for _ in range(100)]
        assert [b""] * 100 == [call.result() for call in calls]

    assert [decoded_span(1)] * 100 == receiver.core.spans


def test_at_the_end_requests_are_sent_away() -> None:
    """Once admission is closed requests are to be sent again later; nothing is taken."""
    with over_grpc() as receiver:
        receiver.thread.call(receiver.admission.close)
        code, told, details = failure(receiver, ONE)

        assert (grpc.StatusCode.UNAVAILABLE, "shutting down") == (code, told)
        assert 1 <= (retry_delay_s(details) or 0) <= 30
        assert [] == receiver.core.spans


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
        eventually(lambda: receiver.thread.call(lambda: len(receiver.admission.set_aside.arriving)) == 1)
        assert b"" == export(receiver, b"")
        slow.send(message(ONE)[-1:])
        assert 0 == slow.status().code
        slow.close()


def test_a_fault_of_ours_is_not_the_senders(caplog: pytest.LogCaptureFixture) -> None:
    """When taking spans fails for a reason of ours, the sender is asked to try again, and the log says why."""
    with over_grpc() as receiver:
        receiver.core.fault = RuntimeError("a bug")
        code, told, details = failure(receiver, ONE)

        assert (grpc.StatusCode.UNAVAILABLE, "internal error") == (code, told)
        assert retry_delay_s(details) is not None
        assert ["a request could not be taken"] == [
            record.message for record in caplog.records if record.name.startswith("spanscore")
        ]


def test_too_many_pings_end_a_connection_and_no_other(receiver: Receiver) -> None:
    """Who pings without end is sent away."""
    call = Call(receiver.port)
    with channel_to(receiver) as channel:
        other = channel.unary_unary(EXPORT)
        assert b"" == other(b"", timeout=DEADLINE_S)
        call.ping(10)
        assert b"too_many_pings" in call.farewell()
        call.close()
        assert b"" == other(b"", timeout=DEADLINE_S)


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


def test_at_the_end_health_is_told_and_requests_under_way_are_finished() -> None:
    """At the end watchers are told, connections refused, and a request that has begun is taken and answered."""
    with over_grpc() as receiver, channel_to(receiver) as channel:
        watch = channel.unary_stream(
            f"{HEALTH}/Watch",
            health_pb2.HealthCheckRequest.SerializeToString,
            health_pb2.HealthCheckResponse.FromString,
        )(health_pb2.HealthCheckRequest())
        assert health_pb2.HealthCheckResponse.SERVING == next(watch).status
        slow = Call(receiver.port)
        slow.send(message(ONE)[:-1], last=False)
        receiver.wait_for_call()

        stopping = receiver.thread.start(receiver.server.stop(DEADLINE_S))
        assert health_pb2.HealthCheckResponse.NOT_SERVING == next(watch).status
        assert grpc.StatusCode.UNAVAILABLE == failure(receiver, ONE)[0]
        slow.send(message(ONE)[-1:])
        assert 0 == slow.status().code
        slow.close()
        stopping.result(DEADLINE_S)
        assert [decoded_span(1)] == receiver.core.spans


def test_what_listens_can_be_stopped_at_once() -> None:
    """A server that is stopped before it was started, as where another address is in use, ends. Every time."""
    with loop_thread() as thread:
        thread.run(_listen_and_stop(300))


async def _listen_and_stop(times: int) -> None:
    intake = Intake(Behind(take=Core().accept), IntakeCounts())
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
