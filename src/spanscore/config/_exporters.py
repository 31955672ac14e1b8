"""The section `exporters`."""

from collections.abc import Mapping
from typing import Annotated, Literal

from annotated_types import MinLen
from pydantic import Field

from spanscore.config._section import Section, Text, written
from spanscore.config._values import FilePath, ListenAddress, Secret, Url


class OtlpExporter(Section):
    """Sends scores, and spans where asked to, by OTLP."""

    protocol: Literal["http/protobuf", "grpc"] = "http/protobuf"
    """How to send."""
    endpoint: Url = Field(
        default_factory=lambda given: f"http://localhost:{4317 if given.get('protocol') == 'grpc' else 4318}"
    )
    """The receiver's base URL: http://localhost:4318, or http://localhost:4317 with grpc. With https:// over TLS."""
    headers: Mapping[Text, Secret] = Field(default_factory=dict, examples=[{"x-api-key": "${env:API_KEY:-}"}])
    """Sent with every request, such as an API key. Never shown."""
    signals: Annotated[tuple[Literal["metrics", "logs", "traces"], ...], MinLen(1)] = ("metrics", "logs", "traces")
    """What to send: score metrics, score log events, the received spans."""


class PrometheusExporter(Section):
    """Serves score metrics, own metrics and health to be scraped."""

    endpoint: ListenAddress = written("localhost:9464")
    """host:port of /metrics, /livez and /readyz."""


class JsonlExporter(Section):
    """Appends one JSON object for each trajectory to a file, with the arguments and results of its tool calls."""

    path: FilePath = Field(examples=["scores.jsonl"])
    """The file."""


class ConsoleExporter(Section):
    """Prints one line for each trajectory."""


class Exporters(Section):
    """Where scores go; an exporter runs when it is listed."""

    otlp: OtlpExporter | None = None
    """An OTLP receiver, such as the Collector, Jaeger or Grafana Alloy."""
    prometheus: PrometheusExporter | None = None
    """A page for Prometheus."""
    jsonl: JsonlExporter | None = None
    """A JSON Lines file."""
    console: ConsoleExporter | None = None
    """The terminal."""
