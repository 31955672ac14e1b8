"""Addresses to listen on: resolved, checked, and bound all or not at all."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from ipaddress import ip_address
from typing import Final, NamedTuple

from spanscore.errors import SpanscoreError
from spanscore.messages.faults import reason_of

_BACKLOG: Final = 512
_ATTEMPTS: Final = 20
_TRY_S: Final = 0.2
_NO_DESCRIPTOR: Final = (errno.EMFILE, errno.ENFILE)
_NO_SUCH_FAMILY: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


class ListenError(SpanscoreError):
    """An address cannot be listened on. The message names the address, the configuration key and the reason."""


class Address(NamedTuple):
    """An address to listen on: IP address and port. With port 0 the system chooses one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether it is reachable from this machine only."""
        return ip_address(self.host.partition("%")[0]).is_loopback

    @property
    def is_every_host(self) -> bool:
        """Whether it stands for all addresses of this machine, as 0.0.0.0 does. gRPC takes those of IPv6, too."""
        return ip_address(self.host.partition("%")[0]).is_unspecified


def resolved(host: str, port: int, key: str) -> list[Address]:
    """Return the addresses of this machine that a host name resolves to: for localhost those of IPv4 and IPv6.

    Args:
        host: a name or an IP address.
        port: the port.
        key: the configuration key it comes from, for messages.

    Raises:
        ListenError: the name is not known, or none of its addresses is this machine's.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise _error(Address(host, port), key, getattr(error, "strerror", None) or str(error)) from error
    hosts = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    usable = [name for name in hosts if _is_usable(name)]
    if not usable:
        raise _error(Address(host, port), key, "it is no address of this machine")
    return [Address(name, port) for name in usable]


def bound(addresses: Sequence[Address], key: str) -> list[socket.socket]:
    """Return a listening socket for every address. With port 0 all of them get the same port.

    Raises:
        ListenError: one cannot be bound; then none is.
    """
    # The port that the system chooses for the first address may be in use on the second.
    chosen = len(addresses) > 1 and not any(address.port for address in addresses)
    for _ in range(_ATTEMPTS if chosen else 0):
        with suppress(ListenError):
            return _bound(addresses, key)
    return _bound(addresses, key)


def why_not(address: Address, key: str) -> ListenError:
    """Return why an address that another library could not bind cannot be listened on."""
    try:
        _listening(address).close()
    except OSError as error:
        return _listen_error(address, key, error)
    return _error(address, key, "it cannot be listened on")


async def why_no_connection(address: Address) -> str | None:
    """Return the reason if a connection to an address of ours fails; None if it succeeds."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.settimeout(0)
            async with asyncio.timeout(_TRY_S):
                await asyncio.get_running_loop().sock_connect(tried, address)
    except TimeoutError:
        return "no connection is accepted"
    except OSError as error:
        # Without a descriptor nothing can be tried, and nothing is known.
        return None if error.errno in _NO_DESCRIPTOR else reason_of(error)
    return None


def _bound(addresses: Sequence[Address], key: str) -> list[socket.socket]:
    sockets: list[socket.socket] = []
    with ExitStack() as stack:
        port = 0
        for address in addresses:
            wanted = address._replace(port=address.port or port)
            try:
                opened = stack.enter_context(_listening(wanted))
            except OSError as error:
                raise _listen_error(wanted, key, error) from error
            port = opened.getsockname()[1]
            sockets.append(opened)
        stack.pop_all()
    return sockets


def _listening(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name != "nt":  # there it would let two programs have one port
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        opened.bind(address)
        # At once: two sockets that may reuse addresses can be bound to one port as long as neither listens.
        opened.listen(_BACKLOG)
        opened.settimeout(0)
    except BaseException:
        opened.close()
        raise
    return opened


def _is_usable(host: str) -> bool:
    try:
        _listening(Address(host, 0)).close()
    except OSError as error:
        return error.errno not in _NO_SUCH_FAMILY
    return True


def _listen_error(address: Address, key: str, error: OSError) -> ListenError:
    return _error(address, key, reason_of(error))


def _error(address: Address, key: str, reason: str) -> ListenError:
    return ListenError(f"{key}: cannot listen on {address}: {reason}")
