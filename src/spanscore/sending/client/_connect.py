"""From a URL to the client that sends there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias
from urllib.parse import SplitResult, urlsplit

from spanscore.errors import ConfigError
from spanscore.sending.client._answer import Client
from spanscore.sending.client._tls import TrustFiles, tls_context

Protocol: TypeAlias = Literal["http/protobuf", "grpc"]

TIMEOUT_S: Final = 10.0
"""For one request, as OTLP's exporters have it."""

_CREDENTIALS: Final = re.compile(r"[^/?#]*//[^/?#]*@")
_PRINTABLE: Final = re.compile(r"[\x21-\x7e]+")
_HEADER_NAME: Final = re.compile(r"[a-z0-9_.-]+")
_HEADER_VALUE: Final = re.compile(r"[\x20-\x7e]*")
_OURS: Final = frozenset(
    {"connection", "content-encoding", "content-length", "content-type", "te", "transfer-encoding", "user-agent"}
)


def connect(
    endpoint: str,
    protocol: Protocol = "http/protobuf",
    headers: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
    files: TrustFiles | None = None,
) -> Client:
    """Return a client for an OTLP receiver. Nothing is sent before the first request.

    Args:
        endpoint: the base URL, `http://` or `https://`; over TLS the receiver's certificate is verified.
        protocol: how to send.
        headers: sent with every request. Their values are shown nowhere.
        timeout_s: how long one request may take.
        files: whom to trust and who we are, over TLS; without them the system says whom.

    Raises:
        ConfigError: the URL is none, a header cannot be sent, or a file cannot be used.
    """
    url = _url(endpoint)
    sent = {name.lower(): value for name, value in (headers or {}).items()}
    for name, value in sent.items():
        _check_header(name, value)
    if files is not None and url.scheme != "https":
        message = f"certificates are of use only where the endpoint begins with https://, not for {endpoint!r}"
        raise ConfigError(message)
    tls = tls_context(files or TrustFiles()) if url.scheme == "https" else None
    # Only what the protocol needs is loaded.
    if protocol == "grpc":
        from spanscore.sending.client._grpc import GrpcClient  # noqa: PLC0415

        return GrpcClient(url, sent, timeout_s, files)
    from spanscore.sending.client._http import HttpClient  # noqa: PLC0415

    return HttpClient(url, sent, timeout_s, tls)


def _url(endpoint: str) -> SplitResult:
    if _CREDENTIALS.match(endpoint):  # no message may show them
        message = "the endpoint's URL must not hold a user name or a password; send them in a header"
        raise ConfigError(message)
    message = f"the endpoint must be a URL such as 'http://localhost:4318', not {endpoint!r}"
    try:
        url = urlsplit(endpoint)
        port = url.port
    except ValueError:
        raise ConfigError(message) from None
    if url.scheme not in {"http", "https"} or not url.hostname or port == 0 or not _PRINTABLE.fullmatch(endpoint):
        raise ConfigError(message)
    return url


def _check_header(name: str, value: str) -> None:
    if name in _OURS:
        message = f"the header {name!r} is spanscore's own to set"
        raise ConfigError(message)
    if not _HEADER_NAME.fullmatch(name) or name.endswith("-bin") or name.startswith("grpc-"):
        message = f"{name!r} is no name for a header: letters, digits, '-', '_' and '.' are allowed"
        raise ConfigError(message)
    if not _HEADER_VALUE.fullmatch(value):
        message = f"the value of the header {name!r} must be printable ASCII"
        raise ConfigError(message)
