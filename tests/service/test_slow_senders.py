from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest
from hyperframe.frame import DataFrame
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace.export import SpanExportResult

from receivers.h2_client import H2Client
from sdk_spans import recorded_spans, sdk_spans
from serving import DEADLINE_S, Running, serving
from spanscore.service.exposure import GRPC, HTTP

SLOW = 200
BATCHES = 5
PART = b"\x0a\x80\x01"


def slow_over_http(running: Running) -> list[Any]:
    """Begin bodies of which only the start comes; the server says that it reads them."""
    head = "POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nExpect: 100-continue\r\n"
    opened = []
    for _ in range(SLOW):
        connection = socket.create_connection(running.service.addresses[HTTP][0], DEADLINE_S)
        connection.sendall(f"{head}Content-Length: 1000\r\n\r\n".encode())
        assert b"100 Continue" in connection.recv(1000)
        connection.sendall(PART)
        opened.append(connection)
    return opened


def slow_over_grpc(running: Running) -> list[Any]:
    """Begin messages of which only the start comes, as many on a connection as are allowed."""
    clients = [H2Client(running.service.addresses[GRPC][0].port) for _ in range(SLOW // 100)]
    for client in clients:
        for _ in range(100):
            client.write(DataFrame(client.begin(), b"\0\0\0\x03\xe8" + PART))
    return clients


@pytest.mark.parametrize("begin", [slow_over_http, slow_over_grpc])
def test_slow_senders_cost_others_nothing(begin: Callable[[Running], list[Any]]) -> None:
    """Beside two hundred requests that never come to their end stock exporters lose nothing, over either protocol."""
    spans = recorded_spans("crewai-oi")
    with serving() as running:
        slow = begin(running)
        exporters = [
            GrpcExporter(endpoint=running.grpc, insecure=True),
            HttpExporter(endpoint=f"{running.http}/v1/traces"),
        ]
        told = [exporter.export(sdk_spans(spans)) for _ in range(BATCHES) for exporter in exporters]
        for each in [*exporters, *slow]:
            (each.shutdown if each in exporters else each.close)()
    assert [SpanExportResult.SUCCESS] * BATCHES * len(exporters) == told
