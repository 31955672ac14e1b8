from __future__ import annotations

import asyncio
import gc
import socket

import pytest
from aiohttp import web

from deadline import DEADLINE_S
from spanscore.receivers.sockets.http_server import BaseHttpServer
from spanscore.receivers.sockets.listening import Address


class Thinking(BaseHttpServer):
    """Answers when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Wait, and greet."""
        self.is_asked.set()
        await self.may_answer.wait()
        return web.Response(text="hello")


async def stop_when_connected(steps: int) -> socket.socket:
    """Connect to a server, stop it so many steps of its event loop later, and return what is connected."""
    server = Thinking()
    (address,) = server.listen([Address("127.0.0.1", 0)], "key")
    await server.start()
    client = socket.create_connection(address, DEADLINE_S)
    for _ in range(steps):
        await asyncio.sleep(0)
    await server.stop(0.0)
    return client


@pytest.mark.parametrize("steps", range(6))
def test_a_connection_is_closed_however_far_it_has_come_when_the_server_stops(steps: int) -> None:
    """It gets an end, and an answer where it was accepted too late for anything else; no socket stays open."""
    with asyncio.run(stop_when_connected(steps)) as client:
        gc.collect()  # warns of each socket that was left open, which fails the test
        try:
            told = client.recv(2**16)
        except ConnectionResetError:  # nobody had accepted it
            told = b""
        assert told == b"" or told.startswith(b"HTTP/1.1 503 ")


def test_who_gives_no_time_does_not_wait_for_an_answer() -> None:
    """With a grace of 0 it stops at once, though a request is under way."""

    async def stop_when_asked() -> None:
        server = Thinking()
        (address,) = server.listen([Address("127.0.0.1", 0)], "key")
        await server.start()
        with socket.create_connection(address, DEADLINE_S) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await server.is_asked.wait()
            await server.stop(0.0)

    asyncio.run(asyncio.wait_for(stop_when_asked(), DEADLINE_S))
