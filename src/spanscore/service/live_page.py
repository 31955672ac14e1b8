"""The page of the last runs, and the stream of events that keeps it up to date."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import suppress
from http import HTTPStatus
from typing import Final, cast

from aiohttp import web

from spanscore.page import encoded, policy, render
from spanscore.page.runs import COLUMNS, SCRIPTS, embedded_data
from spanscore.service.recent_runs import RecentRuns, ShownRun
from spanscore.sockets.http_connection import Connection

MOST_CLIENTS: Final = 16

_SCRIPTS: Final = (*SCRIPTS, "live.js")
_WAITING: Final = 256
"""Events that wait for one client."""
_ALIVE_S: Final = 15.0
"""So often something is sent: who is gone is noticed."""
_AGAIN_MS: Final = 2_000
_OWN_SITES: Final = frozenset({"same-origin", "none"})
_HEADERS: Final = {
    "Server": "spanscore",
    "Cache-Control": "no-store",
    "Content-Security-Policy": f"{policy(_SCRIPTS, live=True)}; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_PAGE_HEADERS: Final = {**_HEADERS, "Content-Type": "text/html; charset=utf-8"}
_STREAM_HEADERS: Final = {**_HEADERS, "Content-Type": "text/event-stream"}


class LivePage:
    """Shows runs to a few clients, in the running event loop.

    Args:
        recent: keeps the runs; started and closed with the page.
    """

    def __init__(self, recent: RecentRuns) -> None:
        self.dropped = 0
        """Clients that were cut off as they did not read what they asked for."""
        self._recent: Final = recent
        self._clients: Final[set[_Client]] = set()
        self._is_over = False
        self._being_made: asyncio.Future[bytes] | None = None

    def start(self) -> None:
        """Keep runs, and tell those who look."""
        self._recent.start(self._tell)

    def stop(self) -> None:
        """End all streams. May be called twice."""
        self._is_over = True
        self._recent.close(0)
        for client in list(self._clients):
            client.end()

    async def page(self, request: web.BaseRequest, maker: Executor) -> web.Response:
        """Return the page as it is now, made elsewhere; those who ask meanwhile get the same one."""
        if request.headers.get("Sec-Fetch-Mode", "navigate") != "navigate" and not _is_own(request):
            return _refusal(HTTPStatus.FORBIDDEN, "the page is not a part of other pages")
        if self._being_made is None:
            runs, last = self._recent.runs, f"{self._recent.session}-{self._recent.last}"
            loop = asyncio.get_running_loop()
            self._being_made = loop.run_in_executor(maker, _rendered, runs, last, self._recent.most)
            self._being_made.add_done_callback(self._made)
        return web.Response(body=await asyncio.shield(self._being_made), headers=_PAGE_HEADERS)

    async def stream(self, request: web.BaseRequest) -> web.StreamResponse:
        """Send each run as an event, from the one that the client has seen last until it leaves or the server ends."""
        if (refused := self._refused(request)) is not None:
            return refused
        client = _Client(request, self._unseen(request))
        self._clients.add(client)
        try:
            return await client.serve()
        finally:
            self._clients.discard(client)

    def _made(self, _page: asyncio.Future[bytes]) -> None:
        self._being_made = None

    def _refused(self, request: web.BaseRequest) -> web.Response | None:
        if not _is_own(request):
            return _refusal(HTTPStatus.FORBIDDEN, "the runs are for the page of this server")
        self._clients.difference_update([client for client in self._clients if client.is_gone])
        if self._is_over or len(self._clients) >= MOST_CLIENTS:
            why = "this server ends" if self._is_over else f"{MOST_CLIENTS} pages are open already"
            return _refusal(HTTPStatus.SERVICE_UNAVAILABLE, why)
        return None

    def _unseen(self, request: web.BaseRequest) -> list[ShownRun]:
        seen = request.headers.get("Last-Event-ID") or request.query.get("after", "")
        found = re.fullmatch(rf"{self._recent.session}-(\d{{1,18}})", seen, re.ASCII)
        after = int(found[1]) if found else 0  # of another process nothing is known
        return [run for run in self._recent.runs if run.number > after]

    def _tell(self, runs: Sequence[ShownRun]) -> None:
        events: list[ShownRun | bytes] = [*runs]
        if self._recent.skipped:
            events.append(f"event: skipped\ndata: {self._recent.skipped}\n\n".encode())
        for client in list(self._clients):
            if not client.add(events):
                self.dropped += not client.is_gone
                self._clients.discard(client)
                client.cut()


class _Client:
    """One browser that looks."""

    def __init__(self, request: web.BaseRequest, unseen: Sequence[ShownRun]) -> None:
        self._request: Final = request
        self._most: Final = _WAITING + len(unseen)
        # Not bounded by itself: its end has room in it, too.
        self._events: Final[asyncio.Queue[ShownRun | bytes | None]] = asyncio.Queue()
        self.add(unseen)

    @property
    def is_gone(self) -> bool:
        transport = self._request.transport
        return transport is None or transport.is_closing()

    def add(self, events: Sequence[ShownRun | bytes]) -> bool:
        """Have events sent; False where too many wait for the client then, or it is gone."""
        if self._events.qsize() + len(events) > self._most or self.is_gone:
            return False
        for event in events:
            self._events.put_nowait(event)
        return True

    def end(self) -> None:
        """Send what waits, and end the stream."""
        self._events.put_nowait(None)

    def cut(self) -> None:
        """Close the connection of a client that does not read."""
        if self._request.transport is not None:
            self._request.transport.abort()
        self.end()

    async def serve(self) -> web.StreamResponse:
        response = web.StreamResponse(headers=_STREAM_HEADERS)
        with suppress(ConnectionError):
            await response.prepare(self._request)
            cast("Connection", self._request.protocol).stay()
            await response.write(f"retry: {_AGAIN_MS}\n\n".encode())
            while (event := await self._next()) is not None:
                await response.write(event)
        return response

    async def _next(self) -> bytes | None:
        try:
            async with asyncio.timeout(_ALIVE_S):
                event = await self._events.get()
        except TimeoutError:
            return b":\n\n"
        return b"id: %s\ndata: %s\n\n" % (event.id, event.text) if isinstance(event, ShownRun) else event


def _is_own(request: web.BaseRequest) -> bool:
    """Return whether no other page has asked, as far as a browser says."""
    return request.headers.get("Sec-Fetch-Site", "none") in _OWN_SITES


def _refusal(status: HTTPStatus, why: str) -> web.Response:
    return web.Response(status=status, text=f"{why}\n", headers={**_HEADERS, "Retry-After": "5"})


def _rendered(runs: Sequence[ShownRun], last: str, most: int) -> bytes:
    data = embedded_data((run.text.decode() for run in reversed(runs)), live={"after": last, "most": most})
    told = {
        "verdict": "live",
        "headline": "Live",
        "sentence": f"The last {most:,} runs at most, each as soon as it is scored.",
        "reasons": [],
        "notes": [],
        "columns": COLUMNS,
    }
    return encoded(render("runs.html", data, title="Live - spanscore", scripts=_SCRIPTS, live=True, **told))
