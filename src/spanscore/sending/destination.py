"""What of the SDK sends over OTLP."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter
from opentelemetry.sdk.environment_variables import OTEL_METRIC_EXPORT_INTERVAL
from opentelemetry.sdk.metrics.export import MetricExporter

from spanscore.sdk.identity import resource
from spanscore.sending.counted_exporter import CountedLogExporter
from spanscore.sending.outbox import Outbox
from spanscore.sending.sender import Sender

Protocol: TypeAlias = Literal["http/protobuf", "grpc"]

LOG_QUEUE_CAPACITY: Final = 8_192

_EXPORT_INTERVAL_MS: Final = 10_000  # scores are watched live; the SDK's minute is for totals
_POINTS_IN_A_REQUEST: Final = 5_000  # keeps it below the 4 MiB that a gRPC server takes by default


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """An OTLP receiver. What is not said here is as the SDK's environment variables say, timeouts and TLS above all.

    Args:
        endpoint: the base URL.
        protocol: how to send.
        headers: sent with every request.
    """

    endpoint: str
    protocol: Protocol = "http/protobuf"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def metric_interval_s() -> float:
    """Return how often metrics are sent: every ten seconds, or as OTEL_METRIC_EXPORT_INTERVAL says."""
    try:
        interval_ms = float(os.environ.get(OTEL_METRIC_EXPORT_INTERVAL, _EXPORT_INTERVAL_MS))
    except ValueError:
        interval_ms = 0.0
    return (interval_ms if interval_ms > 0 else _EXPORT_INTERVAL_MS) / 1000


def logger_provider(destination: Destination) -> tuple[LoggerProvider, Sender]:
    """Return a provider whose log records are sent in batches, within a second."""
    outbox = Outbox(LOG_QUEUE_CAPACITY)
    exporter = CountedLogExporter(_log_exporter(destination), outbox)
    provider = LoggerProvider(resource(), shutdown_on_exit=False)
    provider.add_log_record_processor(BatchLogRecordProcessor(exporter, max_queue_size=LOG_QUEUE_CAPACITY))
    return provider, Sender(
        outbox, lambda timeout_ms: provider.force_flush(int(timeout_ms)), lambda _: provider.shutdown()
    )


def metric_exporter(destination: Destination) -> MetricExporter:
    """Return what sends metrics."""
    # Only the protocol in use is loaded: each takes tens of milliseconds.
    if destination.protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as Grpc  # noqa: PLC0415

        return Grpc(destination.endpoint, headers=dict(destination.headers), max_export_batch_size=_POINTS_IN_A_REQUEST)
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as Http  # noqa: PLC0415

    return Http(_url(destination, "v1/metrics"), headers=dict(destination.headers))


def _log_exporter(destination: Destination) -> LogRecordExporter:
    if destination.protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as Grpc  # noqa: PLC0415

        return Grpc(destination.endpoint, headers=dict(destination.headers))
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as Http  # noqa: PLC0415

    return Http(_url(destination, "v1/logs"), headers=dict(destination.headers))


def _url(destination: Destination, path: str) -> str:
    return f"{destination.endpoint.rstrip('/')}/{path}"
