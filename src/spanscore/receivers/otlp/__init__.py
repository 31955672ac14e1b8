"""The settings of OTLP over gRPC and HTTP. The servers are in `over_grpc` and `over_http`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final

from annotated_types import Ge, Gt, Le, MinLen

from spanscore.contracts.settings import Endpoint, Example, FilePath, ListenAddress, Size, Text, UrlPath
from spanscore.receivers.sockets.tls import Tls

_GRPC: Final = Endpoint("localhost", 4317)
_HTTP: Final = Endpoint("localhost", 4318)
_ORIGIN: Final = r"[a-z][a-z0-9+.-]*://[^\s/*?#@A-Z]+"  # as browsers send it: in lower case, without a path
_LARGEST_GRPC_MESSAGE_MIB: Final = 2047  # gRPC stores the limit as a signed 32-bit integer of bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTls:
    """TLS for clients that connect. Off without a certificate."""

    cert_file: Annotated[FilePath | None, Example("server.crt")] = None
    """The server's certificate chain, PEM."""
    key_file: Annotated[FilePath | None, Example("server.key")] = None
    """The certificate's private key, PEM."""
    client_ca_file: Annotated[FilePath | None, Example("clients.crt")] = None
    """Demand a client certificate signed by one of these authorities, PEM."""

    def __post_init__(self) -> None:
        if (self.cert_file is None) != (self.key_file is None):
            message = "'cert_file' and 'key_file' need each other"
            raise ValueError(message)
        if self.client_ca_file is not None and self.cert_file is None:
            message = "'client_ca_file' needs 'cert_file' and 'key_file'"
            raise ValueError(message)

    @property
    def files(self) -> Tls | None:
        """The files to serve TLS with; None without a certificate."""
        if self.cert_file is None or self.key_file is None:
            return None
        return Tls(cert_file=self.cert_file, key_file=self.key_file, client_ca_file=self.client_ca_file)


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcServer:
    """OTLP over gRPC."""

    endpoint: ListenAddress | Annotated[tuple[ListenAddress, ...], MinLen(1)] = _GRPC
    """host:port to listen on, or a list of them."""
    max_recv_msg_size_mib: Annotated[int, Ge(1), Le(_LARGEST_GRPC_MESSAGE_MIB)] = 64
    """The largest request, in MiB, after decompression."""
    tls: ServerTls | None = None
    """Serve TLS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cors:
    """The web pages that may send spans."""

    allowed_origins: tuple[Text, ...] = ()
    """Origins such as https://app.example.com; none by default."""

    def __post_init__(self) -> None:
        for index, text in enumerate(self.allowed_origins):
            if not re.fullmatch(_ORIGIN, text):
                hint = "; name each web page that may send" if "*" in text else ""
                must = f"must be an origin such as 'https://app.example.com', not {text!r}"
                message = f"allowed_origins[{index}]: {must}{hint}"
                raise ValueError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpServer:
    """OTLP over HTTP, protobuf and JSON."""

    endpoint: ListenAddress | Annotated[tuple[ListenAddress, ...], MinLen(1)] = _HTTP
    """host:port to listen on, or a list of them."""
    max_request_body_size: Annotated[Size, Gt(0)] = 64 * 2**20
    """The largest request, after decompression."""
    traces_url_path: UrlPath = "/v1/traces"
    """The path that takes traces."""
    cors: Cors = field(default_factory=Cors)
    """Cross-origin requests; off by default."""
    tls: ServerTls | None = None
    """Serve TLS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocols:
    """The protocols that are served. Only listed protocols are."""

    grpc: GrpcServer | None = None
    """OTLP over gRPC."""
    http: HttpServer | None = None
    """OTLP over HTTP."""

    def __post_init__(self) -> None:
        if self.grpc is None and self.http is None:
            message = "must list 'grpc', 'http' or both; leave 'protocols' out for both"
            raise ValueError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAuth:
    """The authentication of senders."""

    bearer_token_file: Annotated[FilePath, Example("tokens.txt")]
    """Accepted bearer tokens, one a line; read again when it changes. Emptied or removed, it revokes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtlpReceiver:
    """Receives OTLP."""

    protocols: Protocols = field(default_factory=lambda: Protocols(grpc=GrpcServer(), http=HttpServer()))
    """The protocols to serve; both gRPC and HTTP when left out."""
    auth: ServerAuth | None = None
    """Demand a bearer token of every client, on both protocols."""

    def largest_requests(self) -> Iterator[tuple[tuple[str, ...], int]]:
        """Yield the keys of the limits on a request's size, with each limit in bytes."""
        if self.protocols.grpc is not None:
            yield ("protocols", "grpc", "max_recv_msg_size_mib"), self.protocols.grpc.max_recv_msg_size_mib * 2**20
        if self.protocols.http is not None:
            yield ("protocols", "http", "max_request_body_size"), self.protocols.http.max_request_body_size


def listed(endpoints: Endpoint | Sequence[Endpoint]) -> Sequence[Endpoint]:
    """Return all endpoints, of which there may be a list or one."""
    return [endpoints] if isinstance(endpoints, Endpoint) else endpoints


class Otlp:
    """OTLP over gRPC and HTTP."""

    Settings: ClassVar = OtlpReceiver
