"""OTLP over HTTP/1.1, one connection that is kept open."""

from __future__ import annotations

import io
import re
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, RemoteDisconnected
from socket import SHUT_RDWR, socket
from typing import Any, Final
from urllib.parse import SplitResult

from google.protobuf.message import DecodeError
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # it lacks the marker py.typed

from spanscore.emitters.sending.client._answer import (
    MAX_RESPONSE_SIZE,
    Answer,
    Refused,
    Signal,
    TryAgain,
    accepted,
    shown,
)
from spanscore.sdk.identity import scope_version
from spanscore.watched_files import WatchedFiles

_PROTOBUF: Final = "application/x-protobuf"
_OWN_PATH: Final = re.compile(r"/v1/(?:traces|metrics|logs)\Z")
"""Paths of single signals, with which an endpoint may end."""
_RETRYABLE: Final = frozenset({429, 502, 503, 504})
_ABOUT_CONTENT: Final = frozenset({400, 413, 422})
_LOST: Final = (BrokenPipeError, ConnectionResetError, RemoteDisconnected)
_LONGEST_NUMBER: Final = 9


class HttpClient:
    """Sends over HTTP. Redirects are not followed: requests are for the configured receiver only."""

    def __init__(
        self,
        url: SplitResult,
        headers: Mapping[str, str],
        timeout_s: float,
        tls: WatchedFiles[ssl.SSLContext] | None = None,
    ) -> None:
        self._url: Final = url
        self._prefix: Final = _OWN_PATH.sub("", url.path.rstrip("/"))
        agent = f"spanscore/{scope_version()}"
        self._headers: Final = {**headers, "content-type": _PROTOBUF, "user-agent": agent}
        self._timeout_s: Final = timeout_s
        self._tls: Final = tls
        self._connection: HTTPConnection | None = None
        self._aborted = False

    def send(self, signal: Signal, body: bytes) -> Answer:
        """Send a request and wait for the answer."""
        try:
            return _answer(*self._posted(f"{self._prefix}/v1/{signal}", body))
        except (OSError, HTTPException) as error:
            self.close()
            return _not_reached(error)

    def abort(self) -> None:
        """End the request that is being sent, and all later ones."""
        self._aborted = True
        connection = self._connection
        opened = connection.sock if connection is not None else None
        if opened is not None:
            with suppress(OSError):
                socket.shutdown(opened, SHUT_RDWR)  # wakes the thread that waits on it; closing would not

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _posted(self, path: str, body: bytes) -> tuple[HTTPResponse, bytes]:
        kept = self._connection is not None
        deadline = time.monotonic() + self._timeout_s
        try:
            return self._post(path, body, deadline)
        except _LOST:
            if not kept or self._aborted:
                raise
        # A connection that was kept open may be closed by the receiver at any time.
        self.close()
        return self._post(path, body, deadline)

    def _post(self, path: str, body: bytes, deadline: float) -> tuple[HTTPResponse, bytes]:
        connection = self._connected(deadline)
        with suppress(BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):  # it may answer before it has read all
            connection.request("POST", path, body, self._headers)
        response = connection.getresponse()
        content = response.read(MAX_RESPONSE_SIZE + 1)
        if response.will_close or len(content) > MAX_RESPONSE_SIZE:
            self.close()
        return response, content

    def _connected(self, deadline: float) -> HTTPConnection:
        if self._connection is None and not self._aborted:
            if self._tls is not None:
                self._tls.look_again()
            host, port, left_s = self._url.hostname or "", self._url.port, _left_s(deadline)
            self._connection = (
                HTTPConnection(host, port, timeout=left_s)
                if self._tls is None
                else HTTPSConnection(host, port, timeout=left_s, context=self._tls.content)
            )
            self._connection.connect()
        connection = self._connection
        if connection is None or self._aborted:
            raise ConnectionAbortedError
        connection.sock.settimeout(_left_s(deadline))

        def response(opened: socket, *args: Any, **kwargs: Any) -> HTTPResponse:
            return _TimedResponse(opened, *args, deadline=deadline, **kwargs)

        connection.response_class = response  # type: ignore[assignment]  # it is only called
        return connection


class _TimedResponse(HTTPResponse):
    """A response that has to be there by a deadline, however slowly it trickles in."""

    def __init__(self, opened: socket, *args: Any, deadline: float, **kwargs: Any) -> None:
        super().__init__(opened, *args, **kwargs)
        self.fp = io.BufferedReader(_TimedReader(opened, self.fp.detach(), deadline))


class _TimedReader(io.RawIOBase):
    def __init__(self, opened: socket, raw: io.RawIOBase, deadline: float) -> None:
        self._socket = opened
        self._raw = raw
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._socket.settimeout(_left_s(self._deadline))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _left_s(deadline: float) -> float:
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


def _not_reached(error: OSError | HTTPException) -> TryAgain:
    match error:
        case TimeoutError():
            return TryAgain(reason="timeout")
        case ssl.SSLCertVerificationError():
            return TryAgain(reason="tls", problem=error.verify_message.removesuffix("."), untrusted=True)
        case ssl.SSLError():
            return TryAgain(reason="tls", problem=(error.reason or "connection cut off").replace("_", " ").lower())
        case OSError():
            return TryAgain(reason="unreachable", problem=error.strerror or "")
        case _:
            return TryAgain(reason="not_http")


def _answer(response: HTTPResponse, content: bytes) -> Answer:
    if len(content) > MAX_RESPONSE_SIZE:
        return Refused(reason="response_too_large")
    read = content if response.headers.get_content_type() == _PROTOBUF else b""
    if HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
        return accepted(read)
    reason = f"http_{response.status}"
    if response.status in _RETRYABLE:
        return TryAgain(reason=reason, after_s=retry_after_s(response.headers.get("retry-after"), time.time()))
    message = ""
    with suppress(DecodeError):
        message = shown(Status.FromString(read).message)
    return Refused(reason=reason, message=message, about_content=response.status in _ABOUT_CONTENT)


def retry_after_s(value: str | None, now: float) -> float | None:
    """Return the seconds in a Retry-After header (a number or a date); None if it is missing or neither.

    Args:
        value: the header.
        now: seconds since the Unix epoch.
    """
    value = (value or "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:_LONGEST_NUMBER]) or None
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    after_s = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
    return after_s if after_s > 0 else None
