"""Senders of trace requests: bytes in, no look at the answer's content."""

from __future__ import annotations

import http.client
from collections import deque
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

import grpc

_METHOD: Final = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_UNLIMITED: Final = [("grpc.max_send_message_length", -1)]
_AT_ONCE: Final = 8
_TIMEOUT_S: Final = 60


class HttpClient:
    """Posts requests one after the other, a load over one connection: servers close one that is idle."""

    def __init__(self, port: int, path: str = "/v1/traces") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
        self._path = path

    def send(self, bodies: Sequence[bytes], content_type: str = "application/x-protobuf") -> None:
        """Send, and return when all are answered."""
        for body in bodies:
            self._connection.request("POST", self._path, body, {"Content-Type": content_type})
            response = self._connection.getresponse()
            answer = response.read()
            if response.status != HTTPStatus.OK:
                message = f"the server answered {response.status}: {answer[:200]!r}"
                raise RuntimeError(message)
        self._connection.close()


class GrpcClient:
    """Calls the trace service, a few calls at once over one connection."""

    def __init__(self, port: int) -> None:
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=_UNLIMITED)
        self._export: grpc.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(_METHOD)

    def send(self, bodies: Sequence[bytes]) -> None:
        """Send, and return when all are answered."""
        running: deque[grpc.Future[bytes]] = deque()
        for body in bodies:
            if len(running) == _AT_ONCE:
                running.popleft().result()
            running.append(self._export.future(body, timeout=_TIMEOUT_S))
        for call in running:
            call.result()

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()
