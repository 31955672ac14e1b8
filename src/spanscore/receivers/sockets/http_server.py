"""An HTTP/1.1 server with limits against misbehaving clients."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, cast

from aiohttp import HttpVersion10, web

from spanscore.receivers.sockets.http_answers import not_http
from spanscore.receivers.sockets.http_connection import VERSIONS, Clients, Connection
from spanscore.receivers.sockets.http_limits import HttpLimits
from spanscore.receivers.sockets.listening import Address, bound
from spanscore.receivers.sockets.tls import Tls

_CODING: Final = "Transfer-Encoding"
_PORT: Final = re.compile(r":\d*$", re.ASCII)
_SWEEP_S: Final = 1.0
_LAST_ANSWERS_S: Final = 1.0
_SHORTEST_S: Final = 0.001
"""For aiohttp none is no limit."""
_STEPS_TO_CLOSE: Final = 3
"""Steps of the event loop in which connections just accepted are made, sent away, and closed."""


class BaseHttpServer(ABC):
    """Serves any number of addresses, in the event loop that it is made in.

    Args:
        limits: the limits for clients.
        names: more host names that requests may use for this machine.
    """

    def __init__(self, limits: HttpLimits | None = None, names: Collection[str] = ()) -> None:
        self._names = frozenset(name.lower() for name in ("localhost", *names))
        self._is_for_this_machine = False
        self._limits = limits or HttpLimits()
        self._clients = Clients(self._limits)
        self._loop = asyncio.get_running_loop()
        # No client waits for the response if the connection is lost: the work on it ends, too.
        self._manager = web.Server(self._checked, handler_cancellation=True)
        self._bound: list[tuple[socket.socket, ssl.SSLContext | None]] = []
        self._servers: list[asyncio.Server] = []
        self._sweeping: asyncio.TimerHandle | None = None

    @abstractmethod
    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request; does not raise."""

    def listen(self, addresses: Sequence[Address], key: str, tls: Tls | None = None) -> list[Address]:
        """Bind the addresses and return them, with the port that the system chose where it is 0.

        Raises:
            ConfigError: a file of TLS cannot be used.
            ListenError: one of them cannot be bound; then none is.
        """
        # Names under which other machines reach it are not known here.
        self._is_for_this_machine = all(address.is_loopback for address in addresses)
        context = None if tls is None else tls.reloading_context()
        sockets = bound(addresses, key)
        self._bound += [(opened, context) for opened in sockets]
        return [Address(*opened.getsockname()[:2]) for opened in sockets]

    def is_misled(self, request: web.BaseRequest) -> bool:
        """Return whether a request to a loopback address has a Host header that does not name this machine.

        A web page can let its own name resolve to our address (DNS rebinding), so that the browser takes us for its
        server. This is impossible with an IP address, and browsers always send the Host header.
        """
        return self._is_for_this_machine and not all(map(self._is_ours, request.headers.getall("Host", [])))

    def is_misnamed(self, request: web.BaseRequest) -> bool:
        """Return whether a request's Host header is a name that is not configured as ours, on any address.

        IP addresses are always accepted, as in `is_misled`.
        """
        return not all(map(self._is_ours_or_address, request.headers.getall("Host", [])))

    async def start(self) -> None:
        """Accept connections."""
        while self._bound:
            opened, tls = self._bound.pop()
            timeout_s = self._limits.head_s if tls else None
            server = await self._loop.create_server(
                self._connection, sock=opened, ssl=tls, ssl_handshake_timeout=timeout_s
            )
            self._servers.append(server)
        if self._sweeping is None:
            self._sweep()

    async def trouble(self) -> str | None:
        """Return the reason if an address accepts no connections; None if all do.

        A socket that has stopped listening is closed: asyncio would try to accept from it for ever.
        """
        for server in self._servers:
            if server.is_serving() and not all(_is_listening(opened) for opened in server.sockets):
                server.close()
        return None if self._servers and all(server.is_serving() for server in self._servers) else "not listening"

    async def refuse(self, grace_s: float) -> None:
        """Refuse new connections at once, and wait up to `grace_s` for running requests. Open connections stay open."""
        self._clients.is_closed = True
        for opened, _ in self._bound:
            opened.close()
        self._bound.clear()
        servers, self._servers = self._servers, []
        for listening in (opened for server in servers for opened in server.sockets):
            self._loop.remove_reader(listening.fileno())
            with suppress(OSError):  # not every system can
                listening.shutdown(socket.SHUT_RDWR)
        # A connection that was accepted in this step is made in the next one, for which asyncio needs its server open.
        await asyncio.sleep(0)
        for server in servers:
            server.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await self._clients.answered()

    async def stop(self, grace_s: float) -> None:
        """Refuse connections at once, give the requests under way their time, and close all."""
        await self.refuse(grace_s)
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None
        self._manager.pre_shutdown()
        await self._manager.shutdown(min(max(grace_s, _SHORTEST_S), _LAST_ANSWERS_S))
        for _ in range(_STEPS_TO_CLOSE):
            await asyncio.sleep(0)

    def _connection(self) -> Connection:
        return Connection(self._manager, self._clients, self._limits, self._loop)

    async def _checked(self, request: web.BaseRequest) -> web.StreamResponse:
        cast("Connection", request.protocol).begin()
        coding = request.headers.get(_CODING)
        is_ambiguous = coding is not None and (not coding or request.version == HttpVersion10)
        if request.version not in VERSIONS or is_ambiguous:
            return not_http()  # the next bytes may be the body, or another request
        return await self.answer(request)

    def _is_ours(self, host: str) -> bool:
        address = _address(host)
        return _name(host) in self._names or (address is not None and address.is_loopback)

    def _is_ours_or_address(self, host: str) -> bool:
        return _name(host) in self._names or _address(host) is not None

    def _sweep(self) -> None:
        self._clients.cut_late(self._loop.time())
        limits = self._limits
        shortest_s = min(limits.head_s, limits.body_s, limits.answer_s, limits.idle_s)
        self._sweeping = self._loop.call_later(min(_SWEEP_S, shortest_s / 4), self._sweep)


def _name(host: str) -> str:
    return _PORT.sub("", host.lower())


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(_name(host).removeprefix("[").removesuffix("]"))
    except ValueError:
        return None


def _is_listening(opened: socket.socket) -> bool:
    try:
        return bool(opened.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    except OSError:
        return False
