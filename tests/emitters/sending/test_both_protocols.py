from __future__ import annotations

import threading

import grpc
import pytest

from otlp_capture import DEADLINE_S, OK, UNAVAILABLE, Capture, Reply, capturing, partial_success, port_of
from spanscore.emitters.sending.client import Accepted, Answer, Client, Protocol, Refused, Signal, TryAgain, connect


def test_a_request_arrives_as_it_is(receiver: Capture, client: Client) -> None:
    """The body goes over the wire unchanged, with the headers configured."""
    assert Accepted() == client.send("traces", b"\x0a\x00")

    assert [b"\x0a\x00"] == [request.body for request in receiver.seen]
    headers = {name.lower(): value for name, value in receiver.seen[0].headers.items()}
    assert "k" == headers["x-api-key"]
    assert headers["user-agent"].startswith("spanscore/")


@pytest.mark.parametrize("signal", ["traces", "metrics", "logs"])
def test_each_signal_has_its_own_place(receiver: Capture, client: Client, protocol: Protocol, signal: Signal) -> None:
    """A signal goes to its path of HTTP, or its service of gRPC."""
    client.send(signal, b"")

    service = {
        "traces": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        "metrics": "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        "logs": "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    }
    expected = f"/v1/{signal}" if protocol == "http/protobuf" else service[signal]
    assert [expected] == [request.path for request in receiver.seen]


def test_a_partial_success_is_told(receiver: Capture, client: Client) -> None:
    """What the receiver rejected is part of the answer, and so is a warning that rejects nothing."""
    receiver.replies += [partial_success(3, "too old"), partial_success(0, "nearly too old")]

    assert Accepted(rejected=3, message="too old") == client.send("traces", b"")
    assert Accepted(rejected=0, message="nearly too old") == client.send("traces", b"")


def test_an_answer_that_cannot_be_read_is_a_success(receiver: Capture, client: Client) -> None:
    """The request was taken, whatever the receiver says besides."""
    receiver.replies += [Reply(body=b"\xff")]

    assert Accepted() == client.send("traces", b"")


def test_an_answer_that_is_too_large_is_not_retried(receiver: Capture, client: Client) -> None:
    """More than 4 MiB are not read."""
    receiver.replies += [Reply(body=bytes(4 * 2**20 + 1)), OK]

    answer = client.send("traces", b"")

    assert isinstance(answer, Refused)
    assert not answer.about_content
    assert Accepted() == client.send("traces", b"")


def test_a_delay_is_passed_on(receiver: Capture, client: Client) -> None:
    """Who is to come again learns when, from RetryInfo or Retry-After."""
    receiver.replies += [
        Reply(http=429, grpc=grpc.StatusCode.RESOURCE_EXHAUSTED, retry_delay_s=7),
        Reply(http=503, grpc=grpc.StatusCode.UNAVAILABLE, retry_delay_s=0),
        UNAVAILABLE,
    ]

    answers = [client.send("traces", b"") for _ in range(3)]

    assert [7.0, None, None] == [answer.after_s for answer in answers if isinstance(answer, TryAgain)]


def test_nobody_there(protocol: Protocol) -> None:
    """Where nobody listens, the request is worth another try."""
    with capturing(protocol) as gone:
        endpoint = gone.endpoint
    client = connect(endpoint, protocol)

    answer = client.send("traces", b"")

    client.close()
    assert isinstance(answer, TryAgain)


def test_the_timeout_is_kept(receiver: Capture, protocol: Protocol) -> None:
    """A receiver that does not answer is given the timeout, and no more."""
    receiver.hold()
    client = connect(receiver.endpoint, protocol, timeout_s=0.05)

    answer = client.send("traces", b"")

    client.close()
    expected = "timeout" if protocol == "http/protobuf" else "grpc_deadline_exceeded"
    assert TryAgain(reason=expected) == answer


def test_abort_ends_a_request(receiver: Capture, client: Client) -> None:
    """Another thread can end the request that is being sent; those after it end at once."""
    receiver.hold()
    answers: list[Answer] = []
    sending = threading.Thread(target=lambda: answers.append(client.send("traces", b"")))
    sending.start()
    receiver.wait_for_requests(1)

    client.abort()
    sending.join(DEADLINE_S)
    answers.append(client.send("traces", b""))

    assert [TryAgain, TryAgain] == [type(answer) for answer in answers]
    assert 1 == len(receiver.seen)


def test_a_receiver_that_was_restarted_is_found_again(protocol: Protocol) -> None:
    """A connection to the old process costs no request."""
    with capturing(protocol) as receiver:
        client = connect(receiver.endpoint, protocol)
        client.send("traces", b"")
    with capturing(protocol, receiver, port_of(receiver)):
        answers = iter(lambda: client.send("traces", b"\x0a\x00"), Accepted())
        assert all(isinstance(answer, TryAgain) for answer in answers)

    client.close()
    assert [b"", b"\x0a\x00"] == receiver.bodies()


def test_the_words_of_a_receiver_are_one_short_line(receiver: Capture, client: Client) -> None:
    """What it says cannot fill a log, or move a cursor."""
    receiver.replies += [Reply(http=400, grpc=grpc.StatusCode.INVALID_ARGUMENT, message="bad\x1b[2J\n" + "x" * 1000)]

    answer = client.send("traces", b"")

    assert isinstance(answer, Refused)
    assert answer.message.isprintable()
    assert 200 == len(answer.message)
