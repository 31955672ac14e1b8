"""OTLP receivers for tests: real servers on a port of their own that keep what they get."""

from __future__ import annotations

import contextlib
import gzip
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2, logs_service_pb2_grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from deadline import DEADLINE_S
from spanscore.sending.client import Protocol
from spanscore.sending.destination import Destination

PROTOCOLS: tuple[Protocol, ...] = ("http/protobuf", "grpc")


@dataclass
class OtlpServer:
    """What a server has received, and how it behaves."""

    protocol: Protocol
    endpoint: str = ""
    requests: list[Any] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    refuses: bool = False
    """Answer with an error that is not worth a retry."""
    answers: threading.Event = field(default_factory=threading.Event)
    """While it is not set, requests are not answered."""

    @property
    def destination(self) -> Destination:
        """Where to send to."""
        return Destination(endpoint=self.endpoint, protocol=self.protocol, headers={"x-api-key": "k"})

    def metrics(self) -> dict[str, Metric]:
        """Return the metrics of the last request by name."""
        (resource,) = self.requests[-1].resource_metrics
        return {metric.name: metric for scope in resource.scope_metrics for metric in scope.metrics}

    def log_records(self) -> list[LogRecord]:
        """Return all log records."""
        return [
            record
            for request in self.requests
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    def resource(self) -> dict[str, str]:
        """Return the resource of the last request."""
        request = self.requests[-1]
        (group,) = request.resource_logs if hasattr(request, "resource_logs") else request.resource_metrics
        return {attribute.key: attribute.value.string_value for attribute in group.resource.attributes}

    def take(self, request: Any, headers: dict[str, str]) -> None:
        """Keep a request."""
        self.requests.append(request)
        self.headers.append(headers)
        self.answers.wait(DEADLINE_S)


@contextlib.contextmanager
def serving(protocol: Protocol) -> Iterator[OtlpServer]:
    """Run a server."""
    server = OtlpServer(protocol)
    server.answers.set()
    with _grpc(server) if protocol == "grpc" else _http(server):
        yield server
        server.answers.set()


@contextlib.contextmanager
def _http(server: OtlpServer) -> Iterator[None]:
    requests: dict[str, Any] = {
        "/v1/metrics": metrics_service_pb2.ExportMetricsServiceRequest,
        "/v1/logs": logs_service_pb2.ExportLogsServiceRequest,
    }

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers["content-encoding"] == "gzip":
                body = gzip.decompress(body)
            server.take(requests[self.path].FromString(body), dict(self.headers.items()))
            with contextlib.suppress(OSError):  # who asked may have given up
                self.send_response(400 if server.refuses else 200)
                self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as above
            """Log nothing."""

    with ThreadingHTTPServer(("localhost", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        server.endpoint = f"http://localhost:{http.server_port}"
        yield
        http.shutdown()
        thread.join()


@contextlib.contextmanager
def _grpc(server: OtlpServer) -> Iterator[None]:
    class Metrics(metrics_service_pb2_grpc.MetricsServiceServicer):
        def Export(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 - the service's name
            _take(server, request, context)
            return metrics_service_pb2.ExportMetricsServiceResponse()

    class Logs(logs_service_pb2_grpc.LogsServiceServicer):
        def Export(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 - the service's name
            _take(server, request, context)
            return logs_service_pb2.ExportLogsServiceResponse()

    running = grpc.server(ThreadPoolExecutor(4))
    metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(Metrics(), running)
    logs_service_pb2_grpc.add_LogsServiceServicer_to_server(Logs(), running)
    port = running.add_insecure_port("localhost:0")
    running.start()
    server.endpoint = f"http://localhost:{port}"
    yield
    running.stop(0).wait()


def _take(server: OtlpServer, request: Any, context: grpc.ServicerContext) -> None:
    server.take(request, {str(key): str(value) for key, value in context.invocation_metadata()})
    if server.refuses:
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no")
