"""Rules 21 to 42, without those for clients: OTLP over gRPC."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2

from conformance.doors import (
    EXPORT,
    GRPC,
    INVALID_ARGUMENT,
    OK,
    RESOURCE_EXHAUSTED,
    UNAVAILABLE,
    Told,
    over_grpc,
    told_by_grpc,
)
from conformance.processes import Process
from receivers.http2 import Call, message
from receivers.otlp_requests import decoded_span, request_of, simple_span
from receivers.receiving import Receiver, busy, violations
from serving import DEADLINE_S, eventually
from spanscore.receivers.intake.arriving import ArrivingBody
from spanscore.receivers.sockets.bearer import BearerTokens

ONE = request_of(simple_span(1)).SerializeToString()
GZIP = ((b"grpc-encoding", b"gzip"),)
DAMAGED, UNIMPLEMENTED, UNAUTHENTICATED = 13, 12, 16


@pytest.fixture(scope="module")
def shared() -> Iterator[Receiver]:
    """Serve all tests that leave no trace."""
    with GRPC.run() as receiver:
        yield receiver


def failure(receiver: Receiver, body: bytes, method: str = EXPORT, **how: Any) -> Any:
    """Send a request and return the error it is answered with."""
    with grpc.insecure_channel(receiver.grpc, [("grpc.enable_retries", 0)]) as channel:
        with pytest.raises(grpc.RpcError) as raised:
            channel.unary_unary(method)(body, timeout=DEADLINE_S, **how)
        return raised.value


def code_of_raw(receiver: Receiver, sent: bytes, headers: tuple[tuple[bytes, bytes], ...] = ()) -> int:
    """Send what no client of gRPC sends, and return the code that the call ends with."""
    call = Call(receiver.port, headers)
    call.send(sent)
    code = call.status().code
    call.close()
    assert Told(OK) == over_grpc(receiver, b"")  # the server is unharmed
    return code


def test_021_the_service_has_its_path(receiver: Receiver) -> None:
    """Export of opentelemetry.proto.collector.trace.v1.TraceService, one message each way."""
    path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
    with grpc.insecure_channel(receiver.grpc) as channel:
        assert b"" == channel.unary_unary(path)(ONE, timeout=DEADLINE_S)
    assert [decoded_span(1)] == receiver.core.spans


def test_022_bytes_that_are_not_protobuf_are_an_invalid_argument(receiver: Receiver) -> None:
    """A BadRequest names the mistake; clients do not retry."""
    error = failure(receiver, b"\xff\xff garbage")
    details = dict(error.trailing_metadata())["grpc-status-details-bin"]

    assert (INVALID_ARGUMENT, [error.details()]) == (error.code().value[0], violations(details))


def test_023_a_message_that_is_too_large_is_not_retried(receiver: Receiver) -> None:
    """RESOURCE_EXHAUSTED without RetryInfo."""
    told = told_by_grpc(failure(receiver, bytes(2**20 + 1)))
    assert (RESOURCE_EXHAUSTED, None) == (told.code, told.retry_after_s)


def test_024_a_message_that_inflates_too_far_costs_no_memory(process: Process) -> None:
    """It is refused at the limit, and takes the memory of the limit once."""
    bomb = gzip.compress(bytes(60 * 2**20))
    assert len(bomb) < 65_535  # what may be sent without asking
    with process.peak() as peak:
        call = Call(process.grpc_port, GZIP)
        call.send(message(bomb, compressed=True))
        assert RESOURCE_EXHAUSTED == call.status().code
        call.close()
    assert peak.grown < 2 * process.max_request_size


@pytest.mark.parametrize("why", ["closed", "no room", "no memory", "fault"])
def test_025_a_request_to_retry_has_a_delay(why: str) -> None:
    """UNAVAILABLE, with a delay of 1 to 30 seconds."""
    admission = {"max_requests": 1, "max_bytes": 2**20, "wait_s": 0.0}
    with GRPC.run(admission=admission) as receiver, ExitStack() as meanwhile:
        if why == "closed":
            receiver.thread.call(receiver.admission.close)
        elif why == "fault":
            receiver.core.fault = OSError("no space left on device")
        elif why == "no memory":
            receiver.thread.run(ArrivingBody(receiver.admission.memory).add(2**20))
        else:
            meanwhile.enter_context(busy(receiver))
        told = over_grpc(receiver, ONE)
    assert (UNAVAILABLE, True) == (told.code, 1 <= (told.retry_after_s or 0) <= 30)


def test_026_overload_is_never_resource_exhausted(receiver: Receiver) -> None:
    """Without RetryInfo that code means "never again"."""
    with GRPC.run(admission={"max_requests": 1, "wait_s": 0.0}) as small:
        with grpc.insecure_channel(small.grpc) as channel:
            calls = [channel.unary_unary(EXPORT).future(ONE, timeout=DEADLINE_S) for _ in range(100)]
            codes = {call.code() for call in calls}
        assert codes <= {grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE}


def test_027_an_internal_error_can_be_retried() -> None:
    """If nothing was taken: UNAVAILABLE, never UNKNOWN, which is not retried."""
    with GRPC.run() as receiver:
        receiver.core.fault = RuntimeError("a bug")
        told = over_grpc(receiver, ONE)
    assert (UNAVAILABLE, "internal error", True) == (told.code, told.message, told.retry_after_s is not None)


@pytest.mark.parametrize("method", ["/other.Service/Export", EXPORT.replace("Export", "Import")])
def test_032_other_methods_are_not_implemented(receiver: Receiver, method: str) -> None:
    """A service or method that is not served is UNIMPLEMENTED."""
    assert grpc.StatusCode.UNIMPLEMENTED == failure(receiver, b"", method).code()


def test_033_a_client_without_a_token_is_refused_before_the_message_is_read(tmp_path: Path) -> None:
    """A missing or wrong token is UNAUTHENTICATED."""
    (tmp_path / "tokens").write_text("secret")
    with GRPC.run(tokens=BearerTokens(tmp_path / "tokens")) as receiver:
        for metadata in ((), ((b"authorization", b"Bearer guess"),), ((b"authorization", b"Basic secret"),)):
            call = Call(receiver.port, metadata)
            assert UNAUTHENTICATED == call.status().code
            call.close()
        assert Told(OK) == over_grpc(receiver, ONE, metadata=[("authorization", "Bearer secret")])


@pytest.mark.parametrize("damage", ["cut", "trailing", "two members", "other", "checksum"])
def test_034_damaged_gzip_is_a_permanent_error(receiver: Receiver, damage: str) -> None:
    """The code is not retried, and nothing of the message is taken."""
    whole = gzip.compress(ONE)
    sent = {
        "cut": whole[:-5],
        "trailing": whole + b"x",
        "two members": whole + whole,
        "other": b"not gzip",
        "checksum": whole[:-8] + bytes(8),
    }
    assert DAMAGED == code_of_raw(receiver, message(sent[damage], compressed=True), GZIP)
    assert [] == receiver.core.spans


def test_035_an_unknown_encoding_is_a_permanent_error(receiver: Receiver) -> None:
    """The code is not retried."""
    sent = message(gzip.compress(ONE), compressed=True)
    assert DAMAGED == code_of_raw(receiver, sent, ((b"grpc-encoding", b"zstd"),))


def test_036_a_compressed_message_must_name_its_encoding(receiver: Receiver) -> None:
    """Else INTERNAL, or INVALID_ARGUMENT with gRPC before 1.85."""
    assert code_of_raw(receiver, message(gzip.compress(ONE), compressed=True)) in {DAMAGED, INVALID_ARGUMENT}


def test_037_a_false_length_allocates_nothing(process: Process) -> None:
    """A message that announces 4 GiB is refused at once."""
    with process.peak() as peak:
        call = Call(process.grpc_port)
        call.send(b"\0\xff\xff\xff\xffabc", last=False)
        assert RESOURCE_EXHAUSTED == call.status().code
        call.close()
    assert peak.grown < 32 * 2**20


def test_038_a_cancelled_call_is_not_taken(receiver: Receiver) -> None:
    """Nothing is taken if the deadline passes, or the client leaves in the middle."""
    for ending in ("cancel", "deadline"):
        timeout = ((b"grpc-timeout", b"1m"),) if ending == "deadline" else ()
        call = Call(receiver.port, timeout)
        call.send(message(ONE)[:-1], last=False)
        if ending == "deadline":
            assert 4 == call.status().code
        call.close()
    assert Told(OK) == over_grpc(receiver, b"")
    assert [] == receiver.core.spans


def test_039_a_whole_request_counts_even_if_the_client_leaves(receiver: Receiver) -> None:
    """After its last byte a request is taken whole, or not at all."""
    for _ in range(20):
        call = Call(receiver.port)
        call.send(message(request_of(simple_span(1), simple_span(2)).SerializeToString()))
        call.close()
    eventually(lambda: over_grpc(receiver, b"") == Told(OK))
    assert receiver.core.spans == [decoded_span(1), decoded_span(2)] * (len(receiver.core.spans) // 2)


def test_040_too_many_pings_end_their_connection_only(receiver: Receiver) -> None:
    """That connection is closed with `too_many_pings`."""
    call = Call(receiver.port)
    with grpc.insecure_channel(receiver.grpc) as channel:
        other = channel.unary_unary(EXPORT)
        assert b"" == other(b"", timeout=DEADLINE_S)
        call.ping(10)
        assert b"too_many_pings" in call.farewell()
        call.close()
        assert b"" == other(b"", timeout=DEADLINE_S)


def test_041_health_is_served_until_the_end() -> None:
    """SERVING, and NOT_SERVING from the beginning of the end."""
    with GRPC.run() as receiver, grpc.insecure_channel(receiver.grpc) as channel:
        watch = channel.unary_stream(
            "/grpc.health.v1.Health/Watch",
            health_pb2.HealthCheckRequest.SerializeToString,
            health_pb2.HealthCheckResponse.FromString,
        )(health_pb2.HealthCheckRequest())
        assert health_pb2.HealthCheckResponse.SERVING == next(watch).status
        slow = Call(receiver.port)
        slow.send(message(ONE)[:-1], last=False)
        receiver.wait_for_call()
        stopping = receiver.thread.start(receiver.server.stop(DEADLINE_S))
        assert health_pb2.HealthCheckResponse.NOT_SERVING == next(watch).status
        assert UNAVAILABLE == over_grpc(receiver, ONE).code
        slow.send(message(ONE)[-1:])
        assert 0 == slow.status().code
        slow.close()
        stopping.result(DEADLINE_S)
        assert [decoded_span(1)] == receiver.core.spans


@pytest.mark.parametrize("size", [-1, 0])
def test_042_there_is_always_a_limit(size: int) -> None:
    """A negative limit, which gRPC reads as none, is refused at the start."""
    with pytest.raises(ValueError, match=re.escape(f"at least 1 byte, not {size}")), GRPC.run(max_request_size=size):
        pass
