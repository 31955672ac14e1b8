"""Just enough HTTP/2 to send gRPC what no gRPC client sends."""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Iterable
from typing import NamedTuple

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
EXPORT = b"/opentelemetry.proto.collector.trace.v1.TraceService/Export"

_DATA, _HEADERS, _SETTINGS, _PING, _GOAWAY = 0, 1, 4, 6, 7
_END_STREAM, _END_HEADERS = 1, 4
_LARGEST_FRAME = 16_384


class Status(NamedTuple):
    """How a call ended."""

    code: int
    message: str


def message(body: bytes, *, compressed: bool = False) -> bytes:
    """Return a message as gRPC frames it."""
    return struct.pack(">BI", compressed, len(body)) + body


class Call:
    """One call on a connection of its own.

    Headers go out uncompressed, and answers of gRPC have theirs so on a new connection: no HPACK is needed.
    """

    def __init__(self, port: int, headers: Iterable[tuple[bytes, bytes]] = (), path: bytes = EXPORT) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 20)
        sent = [
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", path),
            (b":authority", b"test"),
            (b"content-type", b"application/grpc"),
            (b"te", b"trailers"),
            *headers,
        ]
        encoded = b"".join(b"\0" + _literal(name) + _literal(value) for name, value in sent)
        self._socket.sendall(PREFACE + _frame(_SETTINGS, 0, 0, b"") + _frame(_HEADERS, _END_HEADERS, 1, encoded))

    def send(self, data: bytes, *, last: bool = True) -> None:
        """Send data on the call's stream: no more than 64 KiB in all, which may be sent without being asked for."""
        starts = range(0, len(data), _LARGEST_FRAME)
        frames = [_frame(_DATA, 0, 1, data[start : start + _LARGEST_FRAME]) for start in starts]
        if last:
            frames.append(_frame(_DATA, _END_STREAM, 1, b""))
        # At once: a receiver that refuses the first of it may close before the rest is sent.
        self._socket.sendall(b"".join(frames))

    def ping(self, times: int) -> None:
        """Send pings."""
        self._socket.sendall(_frame(_PING, 0, 0, bytes(8)) * times)

    def status(self) -> Status:
        """Wait for the end of the call."""
        received = b""
        while (found := re.search(rb"\x0bgrpc-status.(\d+)\x00\x0cgrpc-message(.)", received, re.DOTALL)) is None:
            part = self._socket.recv(65536)
            assert part, "the connection was closed"
            received += part
        length = found[2][0]
        start = found.end()
        return Status(int(found[1]), received[start : start + length].decode())

    def farewell(self) -> bytes:
        """Wait until the connection is closed, and return what was said last."""
        received = b""
        while part := self._socket.recv(65536):
            received += part
        return received

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _literal(text: bytes) -> bytes:
    assert len(text) < 0x7F
    return bytes([len(text)]) + text
