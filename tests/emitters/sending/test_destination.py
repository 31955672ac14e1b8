from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from otlp_capture import Capture, capturing
from spanscore.emitters.sending import destination
from spanscore.emitters.sending.client import TIMEOUT_S, Client, Protocol, TrustFiles, TryAgain
from spanscore.emitters.sending.destination import Destination
from spanscore.errors import ConfigError


def test_the_environment_says_what_the_configuration_does_not(
    receiver: Capture, protocol: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its headers go along, and the configuration's come first."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Tenant=env,api-key=a%20b")
    client = Destination(endpoint=receiver.endpoint, protocol=protocol, headers={"Tenant": "shop"}).connect()
    client.send("logs", b"")
    client.close()

    (seen,) = receiver.seen
    headers = {name.lower(): value for name, value in seen.headers.items()}
    assert ("shop", "a b") == (headers["tenant"], headers["api-key"])


@pytest.mark.parametrize(
    ("value", "timeout_s"), [("0.05", 0.05), ("", TIMEOUT_S), ("0", TIMEOUT_S), ("soon", TIMEOUT_S)]
)
def test_the_timeout_of_a_request(value: str, timeout_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is OpenTelemetry's, in seconds as its SDK for Python reads it, else ten."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", value)

    assert timeout_s == connected_with(Destination(endpoint="http://localhost:1"), monkeypatch)[0]


def test_a_receiver_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request ends with the timeout."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.05")
    with capturing("http/protobuf") as receiver:
        receiver.hold()
        client = Destination(endpoint=receiver.endpoint).connect()
        assert TryAgain(reason="timeout") == client.send("logs", b"")
        client.close()
        receiver.go_on()


def test_whom_to_trust(protocol: Protocol, monkeypatch: pytest.MonkeyPatch) -> None:
    """The certificates are those that the environment names, over TLS only; a missing file is told at once."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere/ca.pem")
    Destination(endpoint="http://localhost:1", protocol=protocol).connect().close()

    with pytest.raises(ConfigError, match=r"/nowhere/ca\.pem"):
        Destination(endpoint="https://localhost:1", protocol=protocol).connect()


def test_who_we_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client certificate and its key may be named as well."""
    for name, path in (("CERTIFICATE", "ca"), ("CLIENT_CERTIFICATE", "cert"), ("CLIENT_KEY", "key")):
        monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_{name}", path)

    assert (
        TrustFiles(ca_file=Path("ca"), cert_file=Path("cert"), key_file=Path("key"))
        == (connected_with(Destination(endpoint="https://localhost:1"), monkeypatch)[1])
    )


def connected_with(to: Destination, monkeypatch: pytest.MonkeyPatch) -> tuple[float, TrustFiles | None]:
    """Return the timeout and the files that a client is made with."""
    made: list[Any] = []

    def connect(
        _endpoint: str, _protocol: Protocol, _headers: object, timeout_s: float, files: TrustFiles | None
    ) -> Client:
        made.append((timeout_s, files))
        raise ConfigError

    monkeypatch.setattr(destination, "connect", connect)
    with pytest.raises(ConfigError):
        to.connect()
    (timeout_s, files) = made[0]
    return timeout_s, files
