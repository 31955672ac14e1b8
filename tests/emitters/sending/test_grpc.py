from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import grpc
import pytest
from google.protobuf.any_pb2 import Any
from google.rpc.status_pb2 import Status
from hyperframe.frame import SettingsFrame

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


def test_every_code_is_taken_as_otlp_says(receiver: Capture, client: Client) -> None:
    """The codes in OTLP's table are worth another try, no other is; RESOURCE_EXHAUSTED only with RetryInfo."""
    for code in CODES:
        receiver.replies += [Reply(grpc=code, message="no"), Reply(grpc=code, retry_delay_s=1.5)]
        reason, is_bad = f"grpc_{code.name.lower()}", code is grpc.StatusCode.INVALID_ARGUMENT
        refused = Refused(reason=reason, message="no", about_content=is_bad)
        delayed = Refused(reason=reason, about_content=is_bad)
        expected = (
            TryAgain(reason=reason) if code in RETRYABLE else refused,
            TryAgain(reason=reason, after_s=1.5)
            if code in RETRYABLE | {grpc.StatusCode.RESOURCE_EXHAUSTED}
            else delayed,
        )
        assert (code, expected) == (code, (client.send("traces", b""), client.send("traces", b"")))


def test_details_without_retry_info_change_nothing(receiver: Capture, client: Client) -> None:
    """Garbage, and details of other kinds, are no RetryInfo."""
    for details in (
        b"\xff",
        Status(code=8).SerializeToString(),
        Status(details=[Any(type_url="type.googleapis.com/google.rpc.Help")]).SerializeToString(),
        Status(details=[Any(type_url="type.googleapis.com/google.rpc.RetryInfo", value=b"\xff")]).SerializeToString(),
    ):
        receiver.replies += [Reply(grpc=grpc.StatusCode.RESOURCE_EXHAUSTED, body=details)]
        assert (details, Refused(reason="grpc_resource_exhausted")) == (details, client.send("traces", b""))


def test_a_delay_of_nothing(receiver: Capture, client: Client) -> None:
    """RetryInfo without a time to wait still says that the request is worth another try."""
    receiver.replies += [Reply(grpc=grpc.StatusCode.RESOURCE_EXHAUSTED, retry_delay_s=delay_s) for delay_s in (0, -5)]

    assert [TryAgain(reason="grpc_resource_exhausted")] * 2 == [client.send("traces", b"") for _ in range(2)]


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


def test_after_a_time_out_the_next_request_has_a_new_connection(receiver: Capture) -> None:
    """The other end of the first may be gone without a word, or only answer pings."""
    host, port = receiver.endpoint.removeprefix("http://").rsplit(":", 1)
    with socket.create_server(("127.0.0.1", 0)) as listening, ExitStack() as opened:
        client = connect(f"http://127.0.0.1:{listening.getsockname()[1]}", "grpc", timeout_s=1.5)
        opened.callback(client.close)

        def serve() -> None:
            first = opened.enter_context(listening.accept()[0])
            first.sendall(SettingsFrame(0).serialize() + SettingsFrame(0, flags=["ACK"]).serialize())
            second = opened.enter_context(listening.accept()[0])
            onward = opened.enter_context(socket.create_connection((host, int(port))))
            threading.Thread(target=_relay, args=(onward, second), daemon=True).start()
            _relay(second, onward)

        threading.Thread(target=serve, daemon=True).start()
        answers = [client.send("traces", b""), client.send("traces", b"")]

    assert isinstance(answers[0], TryAgain)
    assert ("grpc_deadline_exceeded", Accepted()) == (answers[0].reason, answers[1])


def _relay(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while received := source.recv(65536):
            target.sendall(received)
