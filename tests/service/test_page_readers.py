"""Readers of the pages: many, slow ones, and honest ones beside them."""

from __future__ import annotations

import socket
from contextlib import AbstractContextManager, ExitStack

from service.test_live_page import served
from service.test_pages import asked, pages_served
from serving import DEADLINE_S, eventually
from spanscore.receivers.sockets.listening import Address
from spanscore.service.page_readers import MOST_READERS, PageReaders

PAGE = b"x" * 4 * 2**20


def pages_of(readers: PageReaders) -> AbstractContextManager[Address]:
    """Serve a large metrics page."""
    return pages_served(lambda _: ("text/plain", PAGE), readers=readers)


def deaf(address: Address, path: str = "/metrics") -> socket.socket:
    """Ask for a page and do not read it."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(DEADLINE_S)
    client.connect(address)
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    return client


def all_of(client: socket.socket) -> bytes:
    """Read to the end."""
    return b"".join(iter(lambda: client.recv(2**20), b""))


def test_there_are_so_many_readers_and_no_more() -> None:
    """Who comes then is told so, with a delay, and counted; one that has all of its page makes room."""
    readers = PageReaders(patience_s=DEADLINE_S)
    with pages_of(readers) as address, ExitStack() as stack:
        reading = [stack.enter_context(deaf(address)) for _ in range(MOST_READERS)]
        assert all(client.recv(12) == b"HTTP/1.1 200" for client in reading)
        refused = all_of(stack.enter_context(deaf(address)))
        assert refused.startswith(b"HTTP/1.1 503")
        assert b"Retry-After: 5" in refused
        assert refused.endswith(b"\r\n\r\ntoo many readers: 16 others read this page\n")
        assert all_of(reading[0]).endswith(PAGE)
        eventually(lambda: b"200 OK" in stack.enter_context(deaf(address)).recv(64))

        assert readers.dropped


def test_readers_that_do_not_read_keep_nobody_out() -> None:
    """Sixty of them, and each honest reader after them has the whole page."""
    readers = PageReaders(patience_s=0)
    with pages_of(readers) as address, ExitStack() as stack:
        for _ in range(60):
            assert stack.enter_context(deaf(address)).recv(12) == b"HTTP/1.1 200"
        for _ in range(3):
            assert all_of(stack.enter_context(deaf(address))).endswith(PAGE)

        assert readers.dropped >= 60 - MOST_READERS


def test_the_page_of_runs_has_readers_too() -> None:
    """Those of the metrics page take none of its places."""
    readers = PageReaders()
    with served(readers=readers) as page:
        assert 200 == page.ask()[0]
        assert set(readers._reading) == {"/"}


def test_a_large_page_is_as_it_was_made() -> None:
    """In pieces, with its length; HEAD has the length only."""
    get, head = asked(lambda _: ("text/x", PAGE), ("GET", "/metrics"), ("HEAD", "/metrics"))

    assert (200, "text/x", PAGE) == get
    assert (200, "text/x", b"") == head
