"""Rules 28 to 31, 56 and 67: what holds where we send on what we received."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import grpc
import pytest

from otlp_capture import PROTOCOLS, UNAVAILABLE, Capture, Reply, capturing, partial_success
from receivers.otlp_requests import request_of, simple_span
from spanscore.emitters.sending.client import Accepted, Client, Delivery, Protocol, Refused, Retries, TryAgain, connect

ONE = request_of(simple_span(1)).SerializeToString()
RETRYABLE = {
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DATA_LOSS,
}


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> Protocol:
    """Give each protocol."""
    found: Protocol = request.param
    return found


@pytest.fixture
def behind(protocol: Protocol) -> Iterator[Capture]:
    """Run the next receiver."""
    with capturing(protocol) as capture:
        yield capture


@pytest.fixture
def client(behind: Capture, protocol: Protocol) -> Iterator[Client]:
    """Connect to the next receiver."""
    client = connect(behind.endpoint, protocol)
    yield client
    client.close()


def delivered(client: Client, waits: list[float] | None = None) -> Accepted | Refused:
    """Send until the request is taken or refused, without waiting; note how long it would be waited."""
    noted = [] if waits is None else waits

    def pause(seconds: float, _: TryAgain) -> bool:
        noted.append(seconds)
        return False

    return Delivery(client, pause, Retries(initial_s=0.5)).send("traces", ONE)


@pytest.mark.parametrize("protocol", ["grpc"], indirect=True)
def test_028_the_codes_of_the_table_are_retried_and_no_others(behind: Capture, client: Client) -> None:
    """Six codes are retried, and RESOURCE_EXHAUSTED with RetryInfo."""
    for code in set(grpc.StatusCode) - {grpc.StatusCode.OK}:
        behind.replies.append(Reply(http=500, grpc=code))
        answer = client.send("traces", ONE)
        assert (code, code in RETRYABLE) == (code, isinstance(answer, TryAgain))
    behind.replies.append(Reply(http=429, grpc=grpc.StatusCode.RESOURCE_EXHAUSTED, retry_delay_s=2))
    assert TryAgain(reason="grpc_resource_exhausted", after_s=2) == client.send("traces", ONE)


def test_029_the_delay_is_kept_and_then_the_waits_grow(behind: Capture, client: Client) -> None:
    """Without a delay, waits double, plus or minus a half."""
    behind.replies.append(Reply(http=503, grpc=grpc.StatusCode.UNAVAILABLE, retry_delay_s=7))
    behind.replies.extend([UNAVAILABLE] * 4)
    waits: list[float] = []

    assert Accepted() == delivered(client, waits)
    assert [ONE] * 6 == [received.body for received in behind.seen]
    assert waits[0] >= 7
    assert [True] * 4 == [0.5 <= wait / (0.5 * 2**attempt) <= 1.5 for attempt, wait in enumerate(waits[1:], 1)]


def test_030_a_response_that_is_too_large_is_not_read(behind: Capture, client: Client) -> None:
    """Beyond 4 MiB; the request was answered, and is not sent again."""
    behind.replies.append(Reply(body=bytes(4 * 2**20 + 1)))
    assert isinstance(delivered(client), Refused)
    assert 1 == len(behind.seen)


def test_031_rejected_spans_are_not_sent_again(behind: Capture, client: Client) -> None:
    """They are counted, and the reason is reported."""
    behind.replies.append(partial_success(3, "no good"))
    assert Accepted(rejected=3, message="no good") == delivered(client)
    assert 1 == len(behind.seen)


@pytest.mark.parametrize("protocol", ["http/protobuf"], indirect=True)
@pytest.mark.parametrize(
    ("value", "at_least", "at_most"),
    [
        ("7", 7, 7),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 60, 60),  # a date, and no more than a minute is waited
        ("100000", 60, 60),
        ("-7", 0, 1),
        ("NaN", 0, 1),
        ("soon", 0, 1),
        ("", 0, 1),
    ],
)
def test_056_retry_after_is_understood(
    behind: Capture, client: Client, value: str, at_least: float, at_most: float
) -> None:
    """Seconds and dates, up to a minute; any other value is ignored."""
    behind.replies.append(Reply(http=503, headers={"Retry-After": value}))
    waits: list[float] = []
    assert Accepted() == delivered(client, waits)
    assert (1, True) == (len(waits), at_least <= waits[0] <= at_most)


def test_067_a_receiver_that_hangs_up_gets_the_same_request_again() -> None:
    """After waits that grow."""
    seen: list[bytes] = []

    class HangsUp(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.rfile.read(int(self.headers["content-length"])))
            if len(seen) == 3:
                self.send_response(200)
                self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the class names it
            """Print nothing."""

    waits: list[float] = []
    with HTTPServer(("127.0.0.1", 0), HangsUp) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        client = connect(f"http://127.0.0.1:{server.server_port}")
        assert Accepted() == delivered(client, waits)
        client.close()
        server.shutdown()
        thread.join()
    assert [ONE] * 3 == seen
    assert [True, True] == [0.5 <= wait / (0.5 * 2**attempt) <= 1.5 for attempt, wait in enumerate(waits)]
