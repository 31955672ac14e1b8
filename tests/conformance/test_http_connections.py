"""Rules 61 to 66: connections of HTTP/1.1, and what bad clients do with them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.doors import HTTP
from receivers.otlp_requests import decoded_span, request_of, simple_span
from receivers.raw_http import head
from receivers.receiving import JSON, PROTOBUF, Receiver, answered, is_closed
from serving import eventually
from spanscore import config
from spanscore.errors import ConfigError
from spanscore.receivers.otlp import Cors
from spanscore.receivers.sockets.http_limits import HttpLimits

ONE = request_of(simple_span(1)).SerializeToString()
ORIGIN = "https://app.example.com"


@pytest.fixture(scope="module")
def shared() -> Iterator[Receiver]:
    """Serve all tests that leave no trace."""
    with HTTP.run() as receiver:
        yield receiver


def test_061_a_connection_is_kept(receiver: Receiver) -> None:
    """A thousand requests, also ahead of the responses, or with `Expect: 100-continue`."""
    told = b""
    with receiver.raw() as connection:
        for number in range(1, 1_001):
            connection.sendall(head(len(ONE)) + ONE)
            while told.count(b"HTTP/1.1 200") < number:
                told += connection.recv(65536)
    assert [decoded_span(1)] * 1_000 == receiver.core.spans

    told = b""
    with receiver.raw(b"".join(head(len(body)) + body for body in (ONE, b"\xff", ONE))) as pipelined:
        while told.count(b"HTTP/1.1") < 3:
            told += pipelined.recv(65536)
    assert [b"200", b"400", b"200"] == re.findall(rb"HTTP/1.1 (\d+)", told)

    with receiver.raw(head(len(ONE), PROTOBUF, "Expect: 100-continue")) as asking:
        assert b"HTTP/1.1 100 Continue\r\n\r\n" == asking.recv(65536)
        asking.sendall(ONE)
        assert 200 == answered(asking).status
    assert 417 == receiver.post(ONE, Expect="a-miracle").status


def test_062_a_body_may_come_in_chunks(receiver: Receiver) -> None:
    """Without an announced length."""
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in ONE)
    with receiver.raw(head(None, PROTOBUF, "Transfer-Encoding: chunked"), chunks, b"0\r\n\r\n") as connection:
        assert 200 == answered(connection).status
    assert [decoded_span(1)] == receiver.core.spans


SMUGGLED = {
    "both lengths": head(5, PROTOBUF, "Transfer-Encoding: chunked"),
    "two lengths": head(5, PROTOBUF, "Content-Length: 6"),
    "one length twice": head(5, PROTOBUF, "Content-Length: 5"),
    "signed length": head(None, PROTOBUF, "Content-Length: +5"),
    "list of lengths": head(None, PROTOBUF, "Content-Length: 5, 5"),
    "bare line feeds": head(5).replace(b"\r\n", b"\n"),
    "folded header": head(5, PROTOBUF, "X-Folded: a\r\n b"),
    "space before colon": head(None, PROTOBUF, "Content-Length : 5"),
    "space in a name": head(5, PROTOBUF, "X Space: a"),
    "zero byte": head(5, PROTOBUF, "X-Nul: \0"),
    "chunked, and more": head(None, PROTOBUF, "Transfer-Encoding: chunked, identity"),
    "chunked twice": head(None, PROTOBUF, "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
    "chunked in quotes": head(None, PROTOBUF, 'Transfer-Encoding: "chunked"'),
    "no coding": head(5, PROTOBUF, "Transfer-Encoding:"),
    "other coding": head(None, PROTOBUF, "Transfer-Encoding: gzip"),
    "no version": head(5).replace(b" HTTP/1.1", b""),
    "a later version": head(5).replace(b"HTTP/1.1", b"HTTP/2.0"),
    "more than a version": head(5).replace(b"HTTP/1.1", b"HTTP/1.1 x"),
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "chunks in the old version": head(None, PROTOBUF, "Transfer-Encoding: chunked").replace(b"HTTP/1.1", b"HTTP/1.0"),
    "no host": head(5).replace(b"Host: x\r\n", b""),
    "two hosts": head(5, PROTOBUF, "Host: y"),
}


@pytest.mark.parametrize("shape", SMUGGLED)
def test_063_an_ambiguous_request_is_refused(receiver: Receiver, shape: str) -> None:
    """If another server might see other requests, the response is 400 and the connection is closed."""
    with receiver.raw(SMUGGLED[shape], b"5\r\nhello\r\n0\r\n\r\n") as connection:
        told = answered(connection)
        assert (400, True) == (told.status, json.loads(told.body)["message"].startswith("not valid HTTP/1.1"))
        assert is_closed(connection)
    assert [] == receiver.core.spans


def test_a_later_version_is_answered_in_ours(receiver: Receiver) -> None:
    """Also where the request is whole before anything follows it."""
    with receiver.raw(SMUGGLED["a later version"]) as connection:
        connection.sendall(b"hello")
        told = answered(connection)
        assert (400, b'{"message": "not valid HTTP/1.1"}') == (told.status, told.body)
        assert is_closed(connection)


def test_methods_are_in_capitals(receiver: Receiver) -> None:
    """The message says so to who writes requests by hand."""
    with receiver.raw(head(0).replace(b"POST", b"post")) as connection:
        told = answered(connection)
    message = "not valid HTTP/1.1: it does not begin with a method in capitals, such as POST"
    assert (400, {"message": message}) == (told.status, json.loads(told.body))


def test_064_slow_clients_are_disconnected() -> None:
    """Headers may take 10 s, a body and the reading of a response 30 s."""
    assert (10, 30, 30) == (HttpLimits().head_s, HttpLimits().body_s, HttpLimits().answer_s)
    with HTTP.run(limits=HttpLimits(head_s=1, body_s=1, answer_s=1, idle_s=1)) as receiver:
        late = request_of(simple_span(2)).SerializeToString()
        slow = [
            receiver.raw(),
            receiver.raw(b"POST /v1/traces HTTP/1.1\r\nHost: "),
            receiver.raw(head(1_000), late),
            receiver.raw(head(None, PROTOBUF, "Transfer-Encoding: chunked"), b"%x\r\n%b\r\n" % (len(late), late)),
            idle := receiver.raw(head(0)),
        ]
        assert 200 == answered(idle).status
        eventually(lambda: receiver.serves(ONE))
        for connection in slow:
            assert is_closed(connection)
            connection.close()
        assert [decoded_span(1)] * max(1, len(receiver.core.spans)) == receiver.core.spans


HEADERS = {
    "all too large": [f"X-{index}: {'v' * 1000}" for index in range(70)],
    "one far too large": ["X-Large: " + "v" * 70_000],
    "one too large": ["X-Large: " + "v" * 10_000],
    "too many": [f"X-{index}: v" for index in range(101)],
}


@pytest.mark.parametrize("headers", HEADERS)
def test_065_headers_are_bounded(receiver: Receiver, headers: str) -> None:
    """More than 64 KiB, or more than 100 headers, are answered with 431."""
    with receiver.raw(head(5, PROTOBUF, *HEADERS[headers])) as connection:
        assert 431 == answered(connection).status
        assert is_closed(connection)


def test_066_web_pages_send_only_if_they_are_named(receiver: Receiver) -> None:
    """Without credentials; a wildcard is refused in the configuration."""
    preflight = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST"}
    for asked in (receiver.request("OPTIONS", "/v1/traces", headers=preflight), receiver.post(b"", Origin=ORIGIN)):
        assert [] == [name for name in asked.headers if name.startswith("Access-Control")]
    with pytest.raises(ConfigError, match=r"allowed_origins.*'\*'"):
        config.loads('receivers: {otlp: {protocols: {http: {cors: {allowed_origins: ["*"]}}}}}', "", Path())
    with HTTP.run(cors=Cors(allowed_origins=(ORIGIN,))) as named:
        allowed = named.request("OPTIONS", "/v1/traces", headers=preflight)
        assert (204, ORIGIN) == (allowed.status, allowed.headers["Access-Control-Allow-Origin"])
        assert "POST" == allowed.headers["Access-Control-Allow-Methods"]
        sent = named.post(b"", JSON, Origin=ORIGIN)
        assert (200, ORIGIN) == (sent.status, sent.headers["Access-Control-Allow-Origin"])
        assert "Origin" == sent.headers["Vary"]
        assert "Access-Control-Allow-Credentials" not in sent.headers
        assert 405 == named.request("OPTIONS", "/v1/traces", headers={"Origin": "https://evil.example"}).status
