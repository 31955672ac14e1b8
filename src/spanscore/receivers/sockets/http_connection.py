"""One client's HTTP/1.1 connection: aiohttp's, with limits on the client's time and on its data."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from enum import Enum, auto
from http import HTTPStatus
from typing import Any, Final, cast

from aiohttp import HttpVersion10, HttpVersion11, StreamReader, web
from aiohttp.http_exceptions import BadHttpMethod, LineTooLong
from aiohttp.http_parser import RawRequestMessage

from spanscore.receivers.sockets.http_answers import (
    NOT_HTTP,
    RETRY_AFTER_S,
    ReadyAnswer,
    last_answer,
    not_http,
    raw_answer,
)
from spanscore.receivers.sockets.http_limits import HttpLimits

VERSIONS: Final = (HttpVersion10, HttpVersion11)

_HEAD_END: Final = b"\r\n\r\n"
_HEAD_BYTES: Final = 64 * 1024
_HEADERS: Final = 100
_READ_BUFFER: Final = 256 * 1024
_LINGER_S: Final = 2.0

_HEADERS_TOO_LARGE: Final = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE

_log = logging.getLogger(__name__)


class Clients:
    """The clients of one server: how many there are, and which of them wait for an answer."""

    def __init__(self, limits: HttpLimits) -> None:
        self._limits = limits
        self._connections: dict[Connection, str] = {}
        """The address of each client; empty for those of this machine."""
        self._peers: Counter[str] = Counter()
        self.progress: Final = asyncio.Event()
        """Set when a request is answered, or a client is gone."""
        self.is_closed = False
        """Whether new connections are refused."""

    def admit(self, connection: Connection, peer: str) -> bool:
        """Let a client in, unless there are too many.

        If all places are taken, an idle client is displaced, or else one that has been sending a request for long.
        """
        limits = self._limits
        if self.is_closed or self._peers[peer] >= limits.connections_per_peer:
            return False
        if len(self._connections) >= limits.connections and not self._displace():
            return False
        self._connections[connection] = peer
        if peer:
            self._peers[peer] += 1
        return True

    def dismiss(self, connection: Connection) -> None:
        """Forget a client that is gone. May be called twice."""
        peer = self._connections.pop(connection, "")
        if peer:
            self._peers[peer] -= 1
            if not self._peers[peer]:
                del self._peers[peer]
        self.progress.set()

    def cut_late(self, now: float) -> None:
        """Close the connections of clients that take too long."""
        for connection in list(self._connections):
            connection.cut_if_late(now)

    async def answered(self) -> None:
        """Wait until no request is under way."""
        while any(connection.is_busy for connection in self._connections):
            self.progress.clear()
            await self.progress.wait()

    def _displace(self) -> bool:
        idle = [connection for connection in self._connections if connection.is_idle]
        late = asyncio.get_running_loop().time() - self._limits.patience_s
        # Searched only if no client is idle.
        giving_way = idle or [each for each in self._connections if each.since <= late and each.is_sending]
        if giving_way:
            min(giving_way, key=lambda connection: connection.since).displace()
        return bool(giving_way)


class _Phase(Enum):
    """The state of a connection: the event that it waits for."""

    HEAD = auto()
    BODY = auto()
    ANSWER = auto()
    NEXT = auto()
    END = auto()
    """The error was sent; the client may read it before the connection closes."""


class Connection(web.RequestHandler):
    """One client's connection.

    aiohttp limits the size of each header, but not the time that a client takes or the number of connections.
    """

    __slots__ = ("_body", "_clients", "_head", "_phase", "_tail", "_times", "_was_admitted", "since")

    _tail: bytes

    def __init__(
        self, manager: web.Server, clients: Clients, limits: HttpLimits, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(
            manager,
            loop=loop,
            access_log=cast("logging.Logger", None),
            auto_decompress=False,
            max_headers=_HEADERS,
            read_bufsize=_READ_BUFFER,
            keepalive_timeout=limits.idle_s,
            logger=_log,
        )
        self._times = {
            _Phase.HEAD: limits.head_s,
            _Phase.BODY: limits.body_s,
            _Phase.ANSWER: limits.answer_s,
            _Phase.NEXT: limits.idle_s,
            _Phase.END: _LINGER_S,
        }
        self._clients = clients
        self._body: StreamReader | None = None
        """The body of the request that was parsed last: no other can be broken."""
        self._was_admitted = False
        self._enter(_Phase.HEAD)

    @property
    def is_busy(self) -> bool:
        """Whether a request is being received or answered."""
        return self._phase in {_Phase.BODY, _Phase.ANSWER}

    @property
    def is_idle(self) -> bool:
        """Whether no part of a request has arrived."""
        return self._phase is _Phase.NEXT or (self._phase is _Phase.HEAD and not self._head)

    @property
    def is_sending(self) -> bool:
        """Whether a part of a request has arrived, but not the rest."""
        request = self._current_request
        if self._phase is _Phase.HEAD:
            return bool(self._head)
        return self._phase is _Phase.BODY and request is not None and not request.content.is_eof()

    def begin(self) -> None:
        """Learn that a request is being answered."""
        if self._phase is not _Phase.BODY:
            self._enter(_Phase.BODY)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the client, or answer that it should retry later."""
        self._was_admitted = self._clients.admit(self, _remote_peer(transport.get_extra_info("peername")))
        if self._was_admitted:
            super().connection_made(transport)
        else:
            refused, status = cast("asyncio.Transport", transport), HTTPStatus.SERVICE_UNAVAILABLE
            self._cut(refused, status, "too many connections", f"Retry-After: {RETRY_AFTER_S}\r\n")

    def connection_lost(self, exc: BaseException | None) -> None:
        """Make room for the next one."""
        self._clients.dismiss(self)
        if self._was_admitted:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Look for the end of the headers, which must come soon and before too many bytes."""
        if self._phase is _Phase.END:
            return
        if self._phase is _Phase.NEXT and data:
            self._enter(_Phase.HEAD)
        if self._phase is _Phase.HEAD and data:
            seen = self._tail + data
            end = seen.find(_HEAD_END)
            self._head += len(data) if end < 0 else end
            if self._head > _HEAD_BYTES and self.transport is not None:
                self._cut(self.transport, _HEADERS_TOO_LARGE, f"the headers are larger than {_HEAD_BYTES} bytes")
                return
            self._tail = seen[-len(_HEAD_END) + 1 :]
            if end >= 0:
                self._enter(_Phase.BODY)
        super().data_received(data)
        self._end_broken_body()

    def eof_received(self) -> None:
        """Close when the client has read why it is cut off."""
        if self._phase is _Phase.END and self.transport is not None:
            self.transport.close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer invalid HTTP, or a request whose handler failed, for example for lack of memory.

        The log gets only the type of the error: its text contains received data.
        """
        if request.writer.output_size:
            raise ConnectionError
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            _log.error("a request could not be answered: %s", type(exc).__name__)
            return last_answer(HTTPStatus.SERVICE_UNAVAILABLE, "cannot be answered now", {"Retry-After": RETRY_AFTER_S})
        _log.debug("refused a request that is not valid HTTP: %s", type(exc).__name__)
        if isinstance(exc, LineTooLong) or "Too many headers" in (message or ""):
            return last_answer(_HEADERS_TOO_LARGE, "a header is too large, or there are too many")
        if isinstance(exc, BadHttpMethod):
            return last_answer(status, "not valid HTTP/1.1: it does not begin with a method in capitals, such as POST")
        return not_http(status)

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send an answer: to a version of HTTP that is not spoken here, in one that is."""
        self._enter(_Phase.ANSWER)
        if request.version not in VERSIONS and self.transport is not None:
            self._cut(self.transport, HTTPStatus.BAD_REQUEST, NOT_HTTP)
            return resp, False
        result: tuple[web.StreamResponse, bool] = resp, False
        if isinstance(resp, ReadyAnswer) and self._can_take_ready(request) and self.transport is not None:
            self.transport.write(resp.bytes_now())
        else:
            usual = resp.response() if isinstance(resp, ReadyAnswer) else resp
            result = await super().finish_response(request, usual, start_time)
        self._enter(_Phase.NEXT)
        self._clients.progress.set()
        return result

    def resume_reading(self, resume_parser: bool = True) -> None:  # noqa: FBT001, FBT002 - aiohttp's signature
        """Read on, if reading is paused: aiohttp calls it after each part of a body, and then parses nothing anew."""
        if self._reading_paused:
            super().resume_reading(resume_parser)

    def displace(self) -> None:
        """Make room for another client at once."""
        self._clients.dismiss(self)
        self.force_close()

    def cut_if_late(self, now: float) -> None:
        """Close a connection whose client takes too long."""
        if now - self.since > self._times[self._phase]:
            if self._phase is not _Phase.NEXT:
                _log.debug("cut off a client that was too slow (%s)", self._phase.name.lower())
            transport = self.transport
            self.force_close()
            if transport is not None:
                transport.abort()  # closing alone would wait until the client has read its answers

    def _can_take_ready(self, request: web.BaseRequest) -> bool:
        """Return whether a client keeps its connection, speaks HTTP/1.1 only, and has read its earlier responses."""
        is_usual = request.keep_alive and request.version == HttpVersion11
        return is_usual and not self._upgraded and not self.writing_paused

    def _end_broken_body(self) -> None:
        """Fail the reader of a body whose rest cannot be read: aiohttp reports it only to the next request."""
        if not self._messages:
            return
        message, body = self._messages[-1]
        if isinstance(message, RawRequestMessage):
            self._body = body
        elif self._body is not None and not self._body.is_eof() and self._body.exception() is None:
            self._body.set_exception(web.RequestPayloadError("the body cannot be read"))
            self._lingering_time = 0.0  # aiohttp would read on, and log the error with its traceback

    def _enter(self, phase: _Phase) -> None:
        self._phase = phase
        self.since = self._loop.time()
        self._head = 0
        self._tail = b""

    def _cut(self, transport: asyncio.Transport, status: HTTPStatus, why: str, headers: str = "") -> None:
        """Answer a request that aiohttp has not parsed, and close after the client had time to read the response."""
        transport.write(raw_answer(status, why, headers))
        self._enter(_Phase.END)
        if self._was_admitted and transport.can_write_eof():
            transport.write_eof()
        else:
            transport.close()


def _remote_peer(name: Any) -> str:
    """Return the address of a client; empty for all clients of this machine."""
    host = str(name[0]) if isinstance(name, tuple) else ""
    return "" if host in {"127.0.0.1", "::1"} else host
