from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest
from google.protobuf.any_pb2 import Any
from google.rpc.status_pb2 import Status

from otlp_capture import Capture, Reply, capturing
from spanscore.emitters.sending.client import Accepted, Client, Refused, TryAgain, connect

RETRYABLE = {
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DATA_LOSS,
}
CODES = [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK]


@pytest.fixture
def receiver() -> Iterator[Capture]:
    """A receiver over gRPC."""
    with capturing("grpc") as capture:
        yield capture


@pytest.fixture
def client(receiver: Capture) -> Iterator[Client]:
    """A client of the receiver."""
    client = connect(receiver.endpoint, "grpc")
    yield client
    client.close()


@pytest.mark.parametrize("code", CODES)
def test_every_code_is_taken_as_otlp_says(receiver: Capture, client: Client, code: grpc.StatusCode) -> None:
    """The codes in OTLP's table are worth another try, no other is; RESOURCE_EXHAUSTED only with RetryInfo."""
    receiver.replies += [Reply(grpc=code, message="no")]

    reason = f"grpc_{code.name.lower()}"
    expected = (
        TryAgain(reason=reason)
        if code in RETRYABLE
        else Refused(reason=reason, message="no", about_content=code is grpc.StatusCode.INVALID_ARGUMENT)
    )
    assert expected == client.send("traces", b"")


@pytest.mark.parametrize("code", CODES)
def test_retry_info_makes_only_resource_exhausted_worth_a_retry(
    receiver: Capture, client: Client, code: grpc.StatusCode
) -> None:
    """With RetryInfo, RESOURCE_EXHAUSTED joins the codes of the table, and the delay is told."""
    receiver.replies += [Reply(grpc=code, retry_delay_s=1.5)]

    reason = f"grpc_{code.name.lower()}"
    expected = (
        TryAgain(reason=reason, after_s=1.5)
        if code in RETRYABLE | {grpc.StatusCode.RESOURCE_EXHAUSTED}
        else Refused(reason=reason, about_content=code is grpc.StatusCode.INVALID_ARGUMENT)
    )
    assert expected == client.send("traces", b"")


@pytest.mark.parametrize(
    "details",
    [
        b"\xff",
        Status(code=8).SerializeToString(),
        Status(details=[Any(type_url="type.googleapis.com/google.rpc.Help")]).SerializeToString(),
        Status(details=[Any(type_url="type.googleapis.com/google.rpc.RetryInfo", value=b"\xff")]).SerializeToString(),
    ],
)
def test_details_without_retry_info_change_nothing(receiver: Capture, client: Client, details: bytes) -> None:
    """Garbage, and details of other kinds, are no RetryInfo."""
    receiver.replies += [Reply(grpc=grpc.StatusCode.RESOURCE_EXHAUSTED, body=details)]

    assert Refused(reason="grpc_resource_exhausted") == client.send("traces", b"")


@pytest.mark.parametrize("delay_s", [0, -5])
def test_a_delay_of_nothing(receiver: Capture, client: Client, delay_s: float) -> None:
    """RetryInfo without a time to wait still says that the request is worth another try."""
    receiver.replies += [Reply(grpc=grpc.StatusCode.RESOURCE_EXHAUSTED, retry_delay_s=delay_s)]

    assert TryAgain(reason="grpc_resource_exhausted") == client.send("traces", b"")


def test_a_large_request_is_sent(receiver: Capture, client: Client) -> None:
    """What the receiver takes is for the receiver to say: here it is more than 4 MiB, which it refuses."""
    answer = client.send("traces", bytes(5 * 2**20))

    assert isinstance(answer, Refused)
    assert "grpc_resource_exhausted" == answer.reason
    assert Accepted() == client.send("traces", bytes(3 * 2**20))


def test_a_certificate_is_demanded(receiver: Capture) -> None:
    """With https:// nothing goes to a receiver without TLS."""
    client = connect(receiver.endpoint.replace("http:", "https:"), "grpc", timeout_s=5)

    answer = client.send("traces", b"")

    client.close()
    assert isinstance(answer, TryAgain)
    assert [] == receiver.seen
