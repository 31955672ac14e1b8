"""What a real OTLP receiver was sent of metrics and logs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from otlp_capture import INVALID, Capture, capturing
from spanscore.emitters.sending.client import Protocol
from spanscore.emitters.sending.destination import Destination

_REFUSED = 10
"""More requests than a test sends."""


class OtlpServer:
    """Reads what a receiver has captured."""

    def __init__(self, protocol: Protocol, capture: Capture) -> None:
        self.capture = capture
        self.destination = Destination(endpoint=capture.endpoint, protocol=protocol, headers={"x-api-key": "k"})
        """Where to send to."""

    def refuse(self) -> None:
        """Answer with an error that is not worth a retry."""
        self.capture.replies.extend([INVALID] * _REFUSED)

    def metrics(self) -> dict[str, Metric]:
        """Return the metrics of the last request by name."""
        (resource,) = self._requests()[-1].resource_metrics
        return {metric.name: metric for scope in resource.scope_metrics for metric in scope.metrics}

    def log_records(self) -> list[LogRecord]:
        """Return all log records."""
        return [
            record
            for request in self._requests()
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    def resource(self) -> dict[str, str]:
        """Return the resource of the last request."""
        request = self._requests()[-1]
        (group,) = request.resource_logs if hasattr(request, "resource_logs") else request.resource_metrics
        return {attribute.key: attribute.value.string_value for attribute in group.resource.attributes}

    def _requests(self) -> list[Any]:
        return [
            (ExportMetricsServiceRequest if "metrics" in path else ExportLogsServiceRequest).FromString(body)
            for path, _, body in self.capture.seen
        ]


@contextmanager
def serving(protocol: Protocol) -> Iterator[OtlpServer]:
    """Run a server."""
    with capturing(protocol) as capture:
        yield OtlpServer(protocol, capture)
