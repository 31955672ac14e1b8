from __future__ import annotations

import asyncio
import os
import socket
import sys

import pytest

from spanscore.receivers.sockets.listening import Address, ListenError, bound, resolved, why_no_connection


def test_a_name_stands_for_its_addresses() -> None:
    """Localhost is one or two addresses, none of which other machines reach."""
    addresses = resolved("localhost", 4317, "key")

    assert Address("127.0.0.1", 4317) in addresses
    assert all(address.is_loopback for address in addresses)


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [("127.0.0.1", True), ("127.1.2.3", True), ("::1", True), ("0.0.0.0", False), ("::", False), ("10.0.0.1", False)],
)
def test_who_can_reach_an_address(host: str, *, is_loopback: bool) -> None:
    """Only the loopback addresses are this machine's alone."""
    assert is_loopback == Address(host, 1).is_loopback


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("192.0.2.1", "key: cannot listen on 192.0.2.1:4317: it is no address of this machine"),
        ("host.invalid", "key: cannot listen on host.invalid:4317: "),
    ],
)
def test_what_is_not_here_cannot_be_listened_on(host: str, why: str) -> None:
    """An unknown name and another machine's address are errors that name the key."""
    with pytest.raises(ListenError, match=f"^{why}"):
        resolved(host, 4317, "key")


def test_the_addresses_of_a_name_get_one_port() -> None:
    """Where the system chooses the port, it is the same for all addresses."""
    sockets = bound([Address("127.0.0.1", 0), Address("127.0.0.2", 0)], "key")
    ports = {opened.getsockname()[1] for opened in sockets}
    for opened in sockets:
        opened.close()

    assert 1 == len(ports)


def test_addresses_are_bound_all_or_none() -> None:
    """When one of two addresses is in use, the other one is free again."""
    with socket.create_server(("127.0.0.2", 0)) as used:
        port = used.getsockname()[1]
        with pytest.raises(ListenError, match=f"^key: cannot listen on 127.0.0.2:{port}: address already in use$"):
            bound([Address("127.0.0.1", port), Address("127.0.0.2", port)], "key")
        socket.create_server(("127.0.0.1", port)).close()


def test_an_address_is_written_as_an_endpoint() -> None:
    """IPv6 addresses are in brackets."""
    assert ["127.0.0.1:1", "[::1]:2"] == [str(Address("127.0.0.1", 1)), str(Address("::1", 2))]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on descriptors")
def test_without_descriptors_nothing_is_known() -> None:
    """Clients may have all of them: that says nothing about a socket that listens, and raises nothing."""
    import resource  # noqa: PLC0415 - not on Windows

    async def scenario() -> str | None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        lowest_free = os.dup(0)
        os.close(lowest_free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
        try:
            return await why_no_connection(Address("127.0.0.1", 9))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert asyncio.run(scenario()) is None
