"""From a URL to the client that sends there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Final, Literal, TypeAlias

from spanscore.contracts.settings import parsed_url
from spanscore.emitters.sending.client._answer import Client
from spanscore.emitters.sending.client._client_tls import TrustFiles, tls_context
from spanscore.errors import ConfigError

Protocol: TypeAlias = Literal["http/protobuf", "grpc"]

TIMEOUT_S: Final = 10.0
"""For one request, as OTLP's exporters have it."""

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
        protocol: the protocol of the requests.
        headers: sent with every request. Their values are shown nowhere.
        timeout_s: the time limit of one request.
        files: the trusted certificates and our own, for TLS; without them the system's are trusted.

    Raises:
        ConfigError: the URL is invalid, a header cannot be sent, or a file cannot be used.
    """
    try:
        url = parsed_url(endpoint)
    except ValueError as error:
        raise ConfigError(f"the endpoint {error}") from None
    sent = {name.lower(): value for name, value in (headers or {}).items()}
    for name, value in sent.items():
        _check_header(name, value)
    if files is not None and url.scheme != "https":
        raise ConfigError(f"certificates are of use only where the endpoint begins with https://, not for {endpoint!r}")
    trusted = (files or TrustFiles()) if url.scheme == "https" else None
    # Only what the protocol needs is loaded.
    if protocol == "grpc":
        from spanscore.emitters.sending.client._grpc import GrpcClient  # noqa: PLC0415

        return GrpcClient(url, sent, timeout_s, trusted)
    from spanscore.emitters.sending.client._http import HttpClient  # noqa: PLC0415

    tls = None if trusted is None else trusted.watched(partial(tls_context, trusted))
    return HttpClient(url, sent, timeout_s, tls)


def _check_header(name: str, value: str) -> None:
    if name in _OURS:
        raise ConfigError(f"the header {name!r} is spanscore's own to set")
    if not _HEADER_NAME.fullmatch(name) or name.endswith("-bin") or name.startswith("grpc-"):
        raise ConfigError(f"{name!r} is no name for a header: letters, digits, '-', '_' and '.' are allowed")
    if not _HEADER_VALUE.fullmatch(value):
        raise ConfigError(f"the value of the header {name!r} must be printable ASCII")
