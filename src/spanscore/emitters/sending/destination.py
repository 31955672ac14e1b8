"""An OTLP receiver to send to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from opentelemetry.sdk.environment_variables import (
    OTEL_EXPORTER_OTLP_CERTIFICATE,
    OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE,
    OTEL_EXPORTER_OTLP_CLIENT_KEY,
    OTEL_EXPORTER_OTLP_HEADERS,
    OTEL_EXPORTER_OTLP_TIMEOUT,
)
from opentelemetry.util.re import parse_env_headers

from spanscore.emitters.sending.client import TIMEOUT_S, Client, Protocol, TrustFiles, connect


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """An OTLP receiver. Further headers, timeout and TLS come from the SDK's environment variables.

    Args:
        endpoint: the base URL.
        protocol: the protocol of the requests.
        headers: sent with every request.
    """

    endpoint: str
    protocol: Protocol = "http/protobuf"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def connect(self) -> Client:
        """Return a new client. Nothing is sent before its first request.

        Raises:
            ConfigError: the endpoint is no URL, a header cannot be sent, or a file cannot be used.
        """
        headers = {
            **parse_env_headers(os.environ.get(OTEL_EXPORTER_OTLP_HEADERS, ""), liberal=True),
            **{name.lower(): value for name, value in self.headers.items()},
        }
        files = _trust_files() if self.endpoint.startswith("https:") else None
        return connect(self.endpoint, self.protocol, headers, _timeout_s(), files)


def _trust_files() -> TrustFiles:
    ca_file, cert_file, key_file = (
        Path(path) if (path := os.environ.get(name)) else None
        for name in (
            OTEL_EXPORTER_OTLP_CERTIFICATE,
            OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE,
            OTEL_EXPORTER_OTLP_CLIENT_KEY,
        )
    )
    return TrustFiles(ca_file=ca_file, cert_file=cert_file, key_file=key_file)


def _timeout_s() -> float:
    try:
        return float(os.environ.get(OTEL_EXPORTER_OTLP_TIMEOUT, "")) or TIMEOUT_S
    except ValueError:
        return TIMEOUT_S
