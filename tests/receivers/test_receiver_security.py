from __future__ import annotations

import http.client
import ssl
from pathlib import Path
from typing import Any

import grpc
import pytest

from receivers.http2 import Call, message
from receivers.otlp_requests import decoded_span, request_of, simple_span
from receivers.receiving import PROTOBUF, Receiver, answered, over_grpc, over_http, reply
from serving import DEADLINE_S
from spanscore.errors import ConfigError
from spanscore.receivers.sockets.bearer import BearerTokens
from spanscore.receivers.sockets.tls import Tls

FILES = Path(__file__).parents[1] / "tls"
ONE = request_of(simple_span(1)).SerializeToString()
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

ONE_WAY = Tls(cert_file=FILES / "server.crt", key_file=FILES / "server.key")
MUTUAL = Tls(cert_file=FILES / "server.crt", key_file=FILES / "server.key", client_ca_file=FILES / "ca.crt")


@pytest.fixture
def tokens(tmp_path: Path) -> BearerTokens:
    """Return the token `secret`."""
    (tmp_path / "tokens").write_text("secret")
    return BearerTokens(tmp_path / "tokens")


def test_without_a_token_nothing_is_read_over_http(tokens: BearerTokens) -> None:
    """The answer to a request without a valid token does not wait for the body, and says what is needed."""
    with over_http(tokens=tokens) as receiver:
        head = f"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: {PROTOBUF}\r\nContent-Length: 9\r\n"
        right = "Authorization: Bearer secret\r\n"
        wrong = "Authorization: Bearer guess\r\n"
        for authorization in (
            "",
            wrong,
            "Authorization: Basic secret\r\n",
            right + right,
            right + wrong,
            wrong + right,
        ):
            with receiver.raw(f"{head}{authorization}\r\n".encode()) as connection:
                told = answered(connection)
            assert (401, "Bearer", (16, "a valid bearer token is needed")) == (
                told.status,
                told.headers["WWW-Authenticate"],
                told.error,
            )
        assert 200 == receiver.post(ONE, Authorization="Bearer secret").status
        assert [decoded_span(1)] == receiver.core.spans


def test_without_a_token_nothing_is_read_over_grpc(tokens: BearerTokens) -> None:
    """A call without a valid token ends before its message is sent; health needs no token."""
    with over_grpc(tokens=tokens) as receiver:
        right, wrong = (b"authorization", b"Bearer secret"), (b"authorization", b"Bearer guess")
        for metadata in ((), (wrong,), (right, right), (right, wrong), (wrong, right)):
            call = Call(receiver.port, metadata)
            assert (16, "a valid bearer token is needed") == call.status()
            call.close()
        call = Call(receiver.port, (right,))
        call.send(message(ONE))
        assert 0 == call.status().code
        call.close()
        with grpc.insecure_channel(str(receiver.address)) as channel:
            assert b"\x08\x01" == channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=DEADLINE_S)
        assert [decoded_span(1)] == receiver.core.spans


def trusting(certificate: str | None) -> ssl.SSLContext:
    """Return TLS for a client that trusts the authority and shows a certificate."""
    context = ssl.create_default_context(cafile=str(FILES / "ca.crt"))
    if certificate is not None:
        context.load_cert_chain(FILES / f"{certificate}.crt", FILES / f"{certificate}.key")
    return context


def status_over_https(receiver: Receiver, certificate: str | None) -> int:
    """Send spans and return the status."""
    connection = http.client.HTTPSConnection(
        "127.0.0.1", receiver.port, timeout=DEADLINE_S, context=trusting(certificate)
    )
    try:
        connection.request("POST", "/v1/traces", ONE, {"Content-Type": PROTOBUF})
        return reply(connection.getresponse()).status
    finally:
        connection.close()


def test_https_is_served() -> None:
    """A client that trusts the authority can send, and no certificate is asked of it."""
    with over_http(tls=ONE_WAY) as receiver:
        assert 200 == status_over_https(receiver, None)


def test_https_can_ask_for_certificates() -> None:
    """With an authority for clients only those with its certificate get through."""
    with over_http(tls=MUTUAL) as receiver:
        assert 200 == status_over_https(receiver, "client")
        for certificate in (None, "stranger"):
            with pytest.raises((ssl.SSLError, ConnectionError)):
                status_over_https(receiver, certificate)


def test_old_tls_is_refused() -> None:
    """Below TLS 1.2 nobody gets through."""
    with over_http(tls=ONE_WAY) as receiver:
        context = trusting(None)
        context.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
        connection = http.client.HTTPSConnection("127.0.0.1", receiver.port, timeout=DEADLINE_S, context=context)
        with pytest.raises(ssl.SSLError):
            connection.connect()
        connection.close()


@pytest.mark.parametrize("serve", [over_http, over_grpc])
def test_only_suites_that_authenticate_what_they_encrypt(serve: Any) -> None:
    """Of TLS 1.2, suites with GCM are served, and those with CBC refused."""
    served = ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384"]
    refused = ["ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES128-SHA256", "ECDHE-ECDSA-AES256-SHA384"]
    with serve(tls=ONE_WAY) as receiver:
        chosen = [suite_chosen(receiver, suite) for suite in served + refused]
    assert [*served, None, None, None] == chosen


def suite_chosen(receiver: Receiver, offered: str) -> str | None:
    """Shake hands in TLS 1.2 with one suite, and return it; None where that is refused."""
    context = trusting(None)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(f"{offered}:@SECLEVEL=0")
    context.set_alpn_protocols(["h2"])
    with receiver.raw() as connection:
        try:
            with context.wrap_socket(connection, server_hostname="localhost") as secured:
                suite = secured.cipher()
        except (ssl.SSLError, ConnectionError):
            return None
    return None if suite is None else suite[0]


def export_with_tls(receiver: Receiver, certificate: str | None) -> bytes:
    """Send spans and return the answer."""
    pair = [(FILES / f"{certificate}.{kind}").read_bytes() for kind in ("key", "crt")] if certificate else [None, None]
    credentials = grpc.ssl_channel_credentials((FILES / "ca.crt").read_bytes(), *pair)
    with grpc.secure_channel(str(receiver.address), credentials) as channel:
        answer: bytes = channel.unary_unary(EXPORT)(ONE, timeout=DEADLINE_S)
        return answer


def test_grpc_with_tls_is_served() -> None:
    """A client that trusts the authority can send; with an authority for clients, only with its certificate."""
    with over_grpc(tls=ONE_WAY) as receiver:
        assert b"" == export_with_tls(receiver, None)
    with over_grpc(tls=MUTUAL) as receiver:
        assert b"" == export_with_tls(receiver, "client")
        for certificate in (None, "stranger"):
            with pytest.raises(grpc.RpcError) as raised:
                export_with_tls(receiver, certificate)
            assert grpc.StatusCode.UNAVAILABLE == raised.value.code()


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"cert_file": "none.crt", "key_file": "server.key"}, "none.crt and .*server.key cannot be used: no such file"),
        ({"cert_file": "server.crt", "key_file": "client.key"}, "cannot be used: key values mismatch"),
        ({"cert_file": "README.md", "key_file": "server.key"}, "cannot be used: "),
        (
            {"cert_file": "server.crt", "key_file": "server.key", "client_ca_file": "none.crt"},
            "none.crt cannot be used",
        ),
    ],
)
@pytest.mark.parametrize("serve", [over_http, over_grpc])
def test_unusable_files_are_an_error(serve: Any, files: dict[str, str], why: str) -> None:
    """What is wrong with the files of TLS is told before anything is listened on."""
    tls = Tls(**{name: FILES / file for name, file in files.items()})
    with pytest.raises(ConfigError, match=why), serve(tls=tls):
        pass
