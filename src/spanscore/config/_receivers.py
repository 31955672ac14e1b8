"""The section `receivers`."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal

from annotated_types import Ge, Gt, Le, MinLen
from pydantic import AfterValidator, Field, model_validator

from spanscore.config._section import Section, Text, written
from spanscore.config._tree import Path
from spanscore.config._values import FilePath, ListenAddress, Secret, Size, UrlPath

_ORIGIN = r"[a-z][a-z0-9+.-]*://[^\s/*?#@A-Z]+"  # as browsers send it: in lower case, without a path
_LARGEST_GRPC_MESSAGE_MIB = 2047  # gRPC holds the limit in a signed 32-bit integer of bytes
_KAFKA_KEYS: Final = {
    "bootstrap.servers": "write 'brokers'",
    "metadata.broker.list": "write 'brokers'",
    "group.id": "write 'group_id'",
    "auto.offset.reset": "reading begins with the oldest record",
    "enable.auto.commit": "offsets are held until traces are scored",
    "enable.auto.offset.store": "offsets are held until traces are scored",
    "partition.assignment.strategy": "it is always cooperative-sticky",
    "group.protocol": "it is always classic",
}


class ServerTls(Section):
    """TLS for clients that connect. Off without a certificate."""

    cert_file: FilePath | None = Field(default=None, examples=["server.crt"])
    """The server's certificate chain, PEM."""
    key_file: FilePath | None = Field(default=None, examples=["server.key"])
    """The certificate's private key, PEM."""
    client_ca_file: FilePath | None = Field(default=None, examples=["clients.crt"])
    """Demand a client certificate signed by one of these authorities, PEM."""

    @model_validator(mode="after")
    def _complete(self) -> "ServerTls":
        if (self.cert_file is None) != (self.key_file is None):
            message = "'cert_file' and 'key_file' need each other"
            raise ValueError(message)
        if self.client_ca_file is not None and self.cert_file is None:
            message = "'client_ca_file' needs 'cert_file' and 'key_file'"
            raise ValueError(message)
        return self


class GrpcServer(Section):
    """OTLP over gRPC."""

    endpoint: ListenAddress | Annotated[tuple[ListenAddress, ...], MinLen(1)] = written("localhost:4317")
    """host:port to listen on, or a list of them."""
    max_recv_msg_size_mib: Annotated[int, Ge(1), Le(_LARGEST_GRPC_MESSAGE_MIB)] = 64
    """The largest request, in MiB, after decompression."""
    tls: ServerTls | None = None
    """Serve TLS."""


def _origin(text: str) -> str:
    if re.fullmatch(_ORIGIN, text):
        return text
    message = f"must be an origin such as 'https://app.example.com', not {text!r}"
    if "*" in text:
        message += "; name each web page that may send"
    raise ValueError(message)


class Cors(Section):
    """Which web pages may send spans."""

    allowed_origins: tuple[Annotated[Text, AfterValidator(_origin)], ...] = ()
    """Origins such as https://app.example.com; none by default."""


class HttpServer(Section):
    """OTLP over HTTP, protobuf and JSON."""

    endpoint: ListenAddress | Annotated[tuple[ListenAddress, ...], MinLen(1)] = written("localhost:4318")
    """host:port to listen on, or a list of them."""
    max_request_body_size: Annotated[Size, Gt(0)] = written("64MiB")
    """The largest request, after decompression."""
    traces_url_path: UrlPath = "/v1/traces"
    """The path that takes traces."""
    cors: Cors | None = None
    """Cross-origin requests; off by default."""
    tls: ServerTls | None = None
    """Serve TLS."""


class Protocols(Section):
    """The protocols that are served: those that are listed."""

    grpc: GrpcServer | None = None
    """OTLP over gRPC."""
    http: HttpServer | None = None
    """OTLP over HTTP."""

    @model_validator(mode="after")
    def _some(self) -> "Protocols":
        if self.grpc is None and self.http is None:
            message = "must list 'grpc', 'http' or both; leave 'protocols' out for both"
            raise ValueError(message)
        return self


class ServerAuth(Section):
    """Who may send spans."""

    bearer_token_file: FilePath = Field(examples=["tokens.txt"])
    """Accepted bearer tokens, one a line; read again when it changes. Emptied or removed, it revokes nothing."""


class OtlpReceiver(Section):
    """Receives OTLP."""

    protocols: Protocols = Field(default_factory=lambda: Protocols(grpc=GrpcServer(), http=HttpServer()))
    """What to serve; both gRPC and HTTP when left out."""
    auth: ServerAuth | None = None
    """Demand a bearer token of every client, on both protocols."""


def _kafka_settings(settings: Mapping[str, Secret]) -> Mapping[str, Secret]:
    for name in settings:
        if name in _KAFKA_KEYS:
            message = f"must not hold {name!r}: {_KAFKA_KEYS[name]}"
            raise ValueError(message)
    return settings


class KafkaReceiver(Section):
    """Reads OTLP from Kafka, as the Collector's Kafka exporter writes it."""

    brokers: Annotated[tuple[Text, ...], MinLen(1)] = ("localhost:9092",)
    """Brokers to start from, host:port."""
    topic: Text = "otlp_spans"
    """The topic, partitioned by trace id."""
    encoding: Literal["otlp_proto", "otlp_json"] = "otlp_proto"
    """What a record holds."""
    group_id: Text = "spanscore"
    """The consumer group; its members share the partitions."""
    dead_letter_topic: Text | None = Field(default=None, examples=["otlp_spans_unusable"])
    """Where to put records aside that cannot be used; without it they are only counted."""
    settings: Annotated[Mapping[Text, Secret], AfterValidator(_kafka_settings)] = Field(
        default_factory=dict,
        examples=[{"security.protocol": "SASL_SSL", "sasl.password": "${env:KAFKA_PASSWORD:-}"}],
    )
    """Settings of librdkafka, as text: those of TLS and SASL, or session.timeout.ms. Never shown."""


class Receivers(Section):
    """Where spans come from; a receiver runs when it is listed."""

    otlp: OtlpReceiver | None = None
    """OTLP over gRPC and HTTP."""
    kafka: KafkaReceiver | None = None
    """A Kafka topic; needs the extra: pip install "spanscore[kafka]"."""

    def largest_requests(self) -> "Iterator[tuple[Path, int]]":
        """Yield the keys that say how large a request over OTLP may be, and how many bytes that is."""
        at, protocols = ("receivers", "otlp", "protocols"), self.otlp.protocols if self.otlp is not None else None
        if protocols is not None and protocols.grpc is not None:
            yield (*at, "grpc", "max_recv_msg_size_mib"), protocols.grpc.max_recv_msg_size_mib * 2**20
        if protocols is not None and protocols.http is not None:
            yield (*at, "http", "max_request_body_size"), protocols.http.max_request_body_size
