"""A client of HTTP/2 that does what it is told: it may go on after a GOAWAY, or do far too much of anything."""

from __future__ import annotations

import base64
import socket
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from hpack import Decoder, Encoder
from hyperframe.frame import (
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from receivers.http2 import EXPORT, PREFACE, message
from serving import DEADLINE_S

_FRAME_HEAD = 9
_LARGEST_FRAME = 16_384


class Ended(NamedTuple):
    """How a call ended."""

    code: int
    """Of gRPC; -1 where the stream was reset."""
    details: bytes
    """A Status; empty where there is none."""


class H2Client:
    """One connection, with as many calls on it as are asked for."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), DEADLINE_S)
        self.goaway: list[GoAwayFrame] = []
        """What the server said when it asked for no more calls."""
        self._received = b""
        self._encoder, self._decoder = Encoder(), Decoder()
        self._next_stream = 1
        self._initial_window = 65_535
        self._windows: Counter[int] = Counter({0: 65_535})
        self._ended: dict[int, Ended] = {}
        self.socket.sendall(PREFACE + SettingsFrame(0).serialize())

    def begin(self, headers: Iterable[tuple[bytes, bytes]] = (), path: bytes = EXPORT) -> int:
        """Begin a call, and return its stream."""
        stream = self._next_stream
        self._next_stream += 2
        self.write(HeadersFrame(stream, self.head(headers, path), flags=["END_HEADERS"]))
        return stream

    def head(self, headers: Iterable[tuple[bytes, bytes]] = (), path: bytes = EXPORT) -> bytes:
        """Return the headers of a call, encoded."""
        head = [
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", path),
            (b":authority", b"test"),
            (b"content-type", b"application/grpc"),
            (b"te", b"trailers"),
        ]
        return self._encoder.encode([*head, *headers])

    def send(self, stream: int, data: bytes, *, last: bool = True) -> None:
        """Send data of a call, as fast as the server lets us."""
        for start in range(0, len(data), _LARGEST_FRAME):
            chunk = data[start : start + _LARGEST_FRAME]
            while min(self._windows[0], self._windows[stream] + self._initial_window) < len(chunk):
                self.receive()
            self._windows.subtract({0: len(chunk), stream: len(chunk)})
            self.write(DataFrame(stream, chunk))
        if last:
            self.write(DataFrame(stream, b"", flags=["END_STREAM"]))

    def export(self, body: bytes) -> Ended:
        """Make a call."""
        stream = self.begin()
        self.send(stream, message(body))
        return self.end_of(stream)

    def end_of(self, stream: int) -> Ended:
        """Wait for the end of a call."""
        while stream not in self._ended:
            self.receive()
        return self._ended[stream]

    def write(self, *frames: Frame) -> None:
        """Send frames."""
        self.socket.sendall(b"".join(frame.serialize() for frame in frames))

    def receive(self) -> None:
        """Wait for a frame, and take it in."""
        frame, length = Frame.parse_frame_header(memoryview(self._exactly(_FRAME_HEAD)))
        frame.parse_body(memoryview(self._exactly(length)))
        match frame:
            case WindowUpdateFrame():
                self._windows[frame.stream_id] += frame.window_increment
            case SettingsFrame() if "ACK" not in frame.flags:
                self._initial_window = frame.settings.get(SettingsFrame.INITIAL_WINDOW_SIZE, self._initial_window)
                self.write(SettingsFrame(0, flags=["ACK"]))
            case PingFrame() if "ACK" not in frame.flags:
                self.write(PingFrame(0, frame.opaque_data, flags=["ACK"]))
            case GoAwayFrame():
                self.goaway.append(frame)
            case RstStreamFrame():
                self._ended.setdefault(frame.stream_id, Ended(-1, b""))
            case HeadersFrame():
                self._learn(frame)

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def _learn(self, frame: HeadersFrame) -> None:
        headers = {str(name): str(value) for name, value in self._decoder.decode(frame.data)}
        if "grpc-status" in headers:
            details = headers.get("grpc-status-details-bin", "")
            decoded = base64.b64decode(details + "=" * (-len(details) % 4))
            self._ended[frame.stream_id] = Ended(int(headers["grpc-status"]), decoded)

    def _exactly(self, length: int) -> bytes:
        while len(self._received) < length:
            part = self.socket.recv(65536)
            if not part:
                raise ConnectionError("the connection was closed")
            self._received += part
        taken, self._received = self._received[:length], self._received[length:]
        return taken
