"""Scores, and the received spans, sent over OTLP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from annotated_types import MinLen

from spanscore.contracts import Emitter, Host
from spanscore.contracts.settings import Example, SecretText, Text, Url
from spanscore.emitters.otlp.forward import Forward
from spanscore.emitters.otlp.forward_settings import ForwardSettings
from spanscore.emitters.otlp.otlp_logs import CAPACITY, OtlpLogs
from spanscore.emitters.otlp.otlp_metrics import OtlpMetrics
from spanscore.emitters.sending.backlog import QueueLimits
from spanscore.emitters.sending.client import Protocol
from spanscore.emitters.sending.destination import Destination


@dataclass(frozen=True, slots=True, kw_only=True)
class OtlpExporter:
    """Sends scores, and spans where asked to, by OTLP."""

    protocol: Protocol = "http/protobuf"
    """The protocol of the requests."""
    endpoint: Annotated[Url | None, Example("http://localhost:4318")] = None
    """The receiver's base URL: http://localhost:4318, or http://localhost:4317 with grpc. With https:// over TLS."""
    headers: Annotated[Mapping[Text, SecretText], Example({"x-api-key": "${env:API_KEY:-}"})] = field(
        default_factory=dict
    )
    """Sent with every request, such as an API key. Never shown."""
    signals: Annotated[tuple[Literal["metrics", "logs", "traces"], ...], MinLen(1)] = ("metrics", "logs", "traces")
    """The signals to send: `metrics` and `logs` of the scores, `traces` for the received spans with their scores. The
    metrics and logs that `serve` receives are always sent on to the same receiver."""

    @property
    def url(self) -> str:
        """The receiver's base URL."""
        return self.endpoint or f"http://localhost:{4317 if self.protocol == 'grpc' else 4318}"

    @property
    def sends_spans(self) -> bool:
        """Whether received spans go on to the receiver."""
        return "traces" in self.signals


class Otlp:
    """An OTLP receiver, such as the Collector, Jaeger or Grafana Alloy.

    Takes score metrics and log events, and the spans that were received, whose roots carry their scores; from `serve`
    also the metrics and logs that were received, as they came.
    """

    Settings: ClassVar = OtlpExporter

    @classmethod
    def configured(cls, settings: OtlpExporter, host: Host) -> Mapping[str, Emitter]:
        """Return an emitter for each signal, and the one that sends received requests on.

        Raises:
            ConfigError: nothing can be sent there.
        """
        headers = {name: secret.reveal() for name, secret in settings.headers.items()}
        destination = Destination(endpoint=settings.url, protocol=settings.protocol, headers=headers)
        emitters: dict[str, Emitter] = {}
        if "metrics" in settings.signals:
            emitters["otlp_metrics"] = OtlpMetrics(destination.connect())
        if "logs" in settings.signals:
            # An agent's process has other uses for its memory.
            capacity = CAPACITY if host.passes_on is None else QueueLimits().capacity
            emitters["otlp_logs"] = OtlpLogs(destination.connect(), capacity=capacity)
        if host.passes_on is not None:
            emitters["forward"] = Forward(destination.connect(), ForwardSettings.for_host(host.passes_on))
        return emitters
