from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from email.utils import formatdate
from pathlib import Path

import pytest

from otlp_capture import DEADLINE_S, OK, Capture, Reply, capturing, partial_success
from spanscore.emitters.sending.client import Accepted, Refused, TryAgain, connect

CERTIFICATES = Path(__file__).parents[2] / "tls"
RETRYABLE = {429, 502, 503, 504}
SUCCESS = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


@pytest.fixture
def receiver() -> Iterator[Capture]:
    """A receiver over HTTP."""
    with capturing("http/protobuf") as capture:
        yield capture


@contextmanager
def answering(*conversations: Callable[[socket.socket], None], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Run a server that has these conversations, one a connection, and then listens no more; give its URL."""

    def serve() -> None:
        for converse in conversations:
            with (
                suppress(OSError),
                listening.accept()[0] as accepted,
                tls.wrap_socket(accepted, server_side=True) if tls else accepted as connection,
            ):
                converse(connection)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(DEADLINE_S)
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"{'https' if tls else 'http'}://localhost:{listening.getsockname()[1]}"
        thread.join(DEADLINE_S)


def read_request(connection: socket.socket) -> None:
    """Read a request with an empty body."""
    received = b""
    while not received.endswith(b"\r\n\r\n"):
        received += connection.recv(4096)


STATUSES = [200, 202, 204, 299, 300, 301, 307, 400, 401, 403, 404, 408, 413, 415, 422, 429, *range(500, 506)]


def test_every_status_is_taken_as_otlp_says(receiver: Capture) -> None:
    """429, 502, 503 and 504 are worth another try, no other error is; redirects are not followed."""
    with closing(connect(receiver.endpoint)) as client:
        for status in STATUSES:
            receiver.replies += [Reply(http=status, headers={"location": f"{receiver.endpoint}/elsewhere"})]
            reason = f"http_{status}"
            expected = (
                Accepted()
                if status < 300
                else TryAgain(reason=reason)
                if status in RETRYABLE
                else Refused(reason=reason, about_content=status in {400, 413, 422})
            )
            assert (status, expected) == (status, client.send("traces", b"\x0a\x00"))
    assert ["/v1/traces"] * len(STATUSES) == [request.path for request in receiver.seen]


def test_the_receivers_reason_is_told(receiver: Capture) -> None:
    """The message of the Status in the body is part of the answer."""
    receiver.replies += [Reply(http=400, message="no such tenant")]
    client = connect(receiver.endpoint)

    assert Refused(reason="http_400", message="no such tenant", about_content=True) == client.send("traces", b"")
    client.close()


def test_a_reason_that_cannot_be_read_is_none(receiver: Capture) -> None:
    """Not every body is a Status."""
    receiver.replies += [Reply(http=400, body=b"\xff")]
    client = connect(receiver.endpoint)

    assert Refused(reason="http_400", about_content=True) == client.send("traces", b"")
    client.close()


DELAYS: dict[str, float | None] = {
    "3": 3.0,
    " 120 ": 120.0,
    "0": None,
    "-5": None,
    "NaN": None,
    "inf": None,
    "1.5": None,
    "soon": None,
    "": None,
    "٣": None,
    "9" * 5000: 999999999.0,
    "Wed, 21 Oct 2015 07:28:00 GMT": None,
    "Wed, 99 Oct 2015 07:28:00 GMT": None,
    "Wed, 21 Oct 99999 07:28:00 GMT": None,
}


def test_retry_after(receiver: Capture) -> None:
    """Seconds are read; what is no delay, or lies in the past, counts as nothing."""
    with closing(connect(receiver.endpoint)) as client:
        for value, expected in DELAYS.items():
            receiver.replies += [Reply(http=503, headers={"retry-after": value.encode().decode("latin-1")})]
            told = client.send("traces", b"")
            assert (value, TryAgain(reason="http_503", after_s=expected)) == (value, told)


def test_retry_after_a_date(receiver: Capture) -> None:
    """A date means the time until then."""
    receiver.replies += [Reply(http=429, headers={"retry-after": formatdate(time.time() + 1000, usegmt=True)})]
    client = connect(receiver.endpoint)

    answer = client.send("traces", b"")

    client.close()
    assert isinstance(answer, TryAgain)
    assert answer.after_s is not None
    assert 900 < answer.after_s <= 1001


@pytest.mark.parametrize("path", ["/otlp", "/otlp/", "/otlp/v1/traces"])
def test_the_endpoint_may_have_a_path(receiver: Capture, path: str) -> None:
    """Signals go below the path of the base URL; the URL for traces is taken for its base."""
    client = connect(receiver.endpoint + path)

    client.send("logs", b"")

    client.close()
    assert ["/otlp/v1/logs"] == [request.path for request in receiver.seen]


def test_the_body_is_said_to_be_protobuf(receiver: Capture) -> None:
    """The receiver learns the encoding from the content type."""
    client = connect(receiver.endpoint, headers={"Host": "tenant.example"})

    client.send("traces", b"\x0a\x00")

    client.close()
    headers = {name.lower(): value for name, value in receiver.seen[0].headers.items()}
    assert ("application/x-protobuf", "2", "tenant.example") == (
        headers["content-type"],
        headers["content-length"],
        headers["host"],
    )


def test_one_connection_serves_many_requests() -> None:
    """The connection is kept open between requests."""

    def converse(connection: socket.socket) -> None:
        for _ in range(3):
            read_request(connection)
            connection.sendall(SUCCESS)

    with answering(converse) as endpoint:
        client = connect(endpoint)
        assert [Accepted()] * 3 == [client.send("traces", b"") for _ in range(3)]
        client.close()


def test_a_connection_that_was_closed_meanwhile_costs_nothing() -> None:
    """A receiver may close a connection that is kept open: the request goes out again on a new one, at once."""

    def once(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(SUCCESS)

    with answering(once, once) as endpoint:
        client = connect(endpoint)
        assert [Accepted()] * 2 == [client.send("traces", b"") for _ in range(2)]
        client.close()


def test_a_receiver_that_hangs_up_is_tried_again() -> None:
    """Without an answer nobody knows whether the request was taken."""
    with answering(read_request) as endpoint:
        client = connect(endpoint)
        assert TryAgain(reason="unreachable") == client.send("traces", b"")
        client.close()


def test_an_answer_in_another_encoding_is_a_success() -> None:
    """What a receiver says in JSON or HTML is not read as protobuf."""
    partial = partial_success(3, "too old").body

    def converse(connection: socket.socket) -> None:
        read_request(connection)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(partial)}\r\n\r\n"
        connection.sendall(head.encode() + partial)

    with answering(converse) as endpoint:
        client = connect(endpoint)
        assert Accepted() == client.send("traces", b"")
        client.close()


@pytest.mark.parametrize("garbage", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 abc\r\n\r\n", b"\x00" * 100_000])
def test_what_does_not_speak_http_is_tried_again(garbage: bytes) -> None:
    """A wrong server may be replaced by the right one."""

    def converse(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(garbage)

    with answering(converse) as endpoint:
        client = connect(endpoint)
        assert isinstance(client.send("traces", b""), TryAgain)
        client.close()


@pytest.mark.parametrize("reads_on", [True, False])
def test_an_answer_before_the_body_is_read_is_heard(*, reads_on: bool) -> None:
    """A receiver that finds a request too large answers and hangs up: that is a refusal, and no lost connection."""

    def converse(connection: socket.socket) -> None:
        connection.recv(1)
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        while reads_on and connection.recv(2**20):
            pass

    with answering(converse) as endpoint:
        client = connect(endpoint)
        assert Refused(reason="http_413", about_content=True) == client.send("traces", bytes(8 * 2**20))
        client.close()


@pytest.mark.parametrize(
    "beginning", [b"", b"HTTP/1.1 200 OK\r\nX-Header: ", b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"]
)
def test_an_answer_that_trickles_in_ends_with_the_timeout(beginning: bytes) -> None:
    """The timeout is for the whole request, however often a byte of the answer comes."""
    ended = threading.Event()

    def converse(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(beginning)
        while not ended.wait(0.01):
            connection.sendall(b"H")

    with answering(converse) as endpoint:
        client = connect(endpoint, timeout_s=0.2)
        answer = client.send("traces", b"")
        ended.set()
        client.close()
    assert TryAgain(reason="timeout") == answer


@pytest.mark.parametrize(("trusted", "expected"), [(False, TryAgain(reason="tls")), (True, Accepted())])
def test_certificates_are_verified(
    monkeypatch: pytest.MonkeyPatch, *, trusted: bool, expected: Accepted | TryAgain
) -> None:
    """Over TLS nothing is sent to a receiver whose certificate is not trusted."""
    received: list[bytes] = []

    def converse(connection: socket.socket) -> None:
        received.append(connection.recv(4096))
        connection.sendall(SUCCESS)

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(CERTIFICATES / "server.crt", CERTIFICATES / "server.key")
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATES / "ca.crt"))
    with answering(converse, tls=tls) as endpoint:
        client = connect(endpoint)
        assert expected == client.send("traces", b"")
        client.close()
    assert trusted == any(received)


def test_a_missing_certificate_of_ours_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The receiver tells of it after our request was begun, and does not read that."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(CERTIFICATES / "server.crt", CERTIFICATES / "server.key")
    tls.load_verify_locations(CERTIFICATES / "ca.crt")
    tls.verify_mode = ssl.CERT_REQUIRED
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATES / "ca.crt"))
    with answering(lambda _: None, tls=tls) as endpoint, closing(connect(endpoint)) as client:
        answer = client.send("traces", b"")

    assert isinstance(answer, TryAgain)
    assert ("tls", "tlsv13 alert certificate required") == (answer.reason, answer.problem)


def test_many_requests_use_no_more_descriptors(receiver: Capture) -> None:
    """Connections that broke are closed."""
    receiver.replies += [Reply(http=503, headers={"connection": "close"})] * 50 + [OK]
    client = connect(receiver.endpoint)
    before = len(list(Path("/proc/self/fd").iterdir()))

    while client.send("traces", b"") != Accepted():
        pass

    client.close()
    assert before + 5 > len(list(Path("/proc/self/fd").iterdir()))
