from __future__ import annotations

import pytest

from spanscore.emitters.sending.client import Protocol, connect
from spanscore.errors import ConfigError


@pytest.mark.parametrize("endpoint", ["http://localhost:4318", "https://otlp.example/otlp", "http://[::1]:4317"])
def test_urls(protocol: Protocol, endpoint: str) -> None:
    """A base URL is all that is needed; nothing is sent before the first request."""
    connect(endpoint, protocol).close()


@pytest.mark.parametrize(
    "endpoint",
    [
        "",
        "localhost:4318",
        "ftp://localhost",
        "http://",
        "http://:4318",
        "http://localhost:0",
        "http://localhost:99999",
        "http://localhost:port",
        "http://local host:4318",
        "http://localhost:4318/\n",
        "http://[::1",
        "http://bücher.example",
    ],
)
def test_what_is_no_url_is_refused(protocol: Protocol, endpoint: str) -> None:
    """The message shows what was given, and what it should look like."""
    with pytest.raises(ConfigError) as caught:
        connect(endpoint, protocol)
    assert f"the endpoint must be a URL such as 'http://localhost:4318', not {endpoint!r}" == str(caught.value)


@pytest.mark.parametrize("endpoint", ["http://me:hunter2@localhost", "http://me:hunter2@[::1", "//me:hunter2@host:x"])
def test_passwords_are_not_shown(protocol: Protocol, endpoint: str) -> None:
    """A URL with a password is refused, and the message does not show it."""
    with pytest.raises(ConfigError) as caught:
        connect(endpoint, protocol)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("content-type", "text/plain"),
        ("Content-Length", "0"),
        ("transfer-encoding", "chunked"),
        ("a b", "x"),
        ("", "x"),
        ("a:b", "x"),
        ("token-bin", "x"),
        ("grpc-timeout", "1S"),
        ("x-api-key", "secret\r\nx-evil: 1"),
        ("x-api-key", "secret\0"),
        ("x-api-key", "secrét"),
    ],
)
def test_headers_that_cannot_be_sent_are_refused(protocol: Protocol, name: str, value: str) -> None:
    """The message names the header and never shows its value."""
    with pytest.raises(ConfigError) as caught:
        connect("http://localhost:4318", protocol, {name: value})
    assert name.lower() in str(caught.value)
    assert "secr" not in str(caught.value)
