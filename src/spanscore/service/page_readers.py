"""Readers of the pages: a few at a time, and none that does not read keeps others out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Final, TypeAlias

from aiohttp import web

MOST_READERS: Final = 16
"""Of each page."""
TOO_MANY: Final = "too many readers"
"""The beginning of the 503: proxies, and servers with too many connections, have others."""

_PATIENCE_S: Final = 1.0
"""A reader that has read nothing for so many seconds is cut off if another one needs its place."""
_PIECE: Final = 64 * 1024
"""Bytes per write: the rest of the page is not copied for each reader."""
_HEADERS: Final = {"Server": "spanscore", "Cache-Control": "no-store"}

_log = logging.getLogger(__name__)

_Readers: TypeAlias = dict[asyncio.Transport | None, float]
"""The connection of each reader, and when it last took something: never, while its page is not made yet."""


class PageReaders:
    """Lets a few readers have a page at a time, in the running event loop.

    Each page has so many readers at most. Where others wait for its place, a reader may take nothing for `patience_s`.
    """

    def __init__(self, most: int = MOST_READERS, patience_s: float = _PATIENCE_S) -> None:
        self.dropped = 0
        """Readers that were turned away, or cut off as they did not read."""
        self._most: Final = most
        self._patience_s: Final = patience_s
        self._reading: Final[dict[str, _Readers]] = {}

    async def send(
        self, request: web.BaseRequest, page: str, make: Callable[[], Awaitable[web.Response]]
    ) -> web.StreamResponse:
        """Send the response from `make`, which is a `page`, if there is a place; else answer 503 with Retry-After."""
        readers = self._reading.setdefault(page, {})
        for gone in [each for each in readers if each is None or each.is_closing()]:
            del readers[gone]
        if len(readers) >= self._most:
            self.dropped += 1
            if not self._cut_slowest(readers):
                text = f"{TOO_MANY}: {self._most} others read this page\n"
                return web.Response(
                    status=HTTPStatus.SERVICE_UNAVAILABLE, text=text, headers=_HEADERS | {"Retry-After": "5"}
                )
        reader = request.transport
        readers[reader] = float("inf")
        try:
            try:
                made = await make()
            except Exception:  # noqa: BLE001 - people open pages to look for faults
                _log.exception("the page %s could not be made", page)
                return web.Response(status=HTTPStatus.INTERNAL_SERVER_ERROR, text="internal error\n", headers=_HEADERS)
            body = made.body
            if request.method == "HEAD" or not isinstance(body, bytes) or len(body) <= _PIECE:
                return made
            response = web.StreamResponse(status=made.status, headers=made.headers)
            response.content_length = len(body)
            with suppress(ConnectionError):
                await response.prepare(request)
                for place in range(0, len(body), _PIECE):
                    readers[reader] = asyncio.get_running_loop().time()
                    await response.write(body[place : place + _PIECE])
                await response.write_eof()
            return response
        finally:
            readers.pop(reader, None)

    def _cut_slowest(self, readers: _Readers) -> bool:
        slowest = min(readers, key=readers.__getitem__)
        if readers[slowest] > asyncio.get_running_loop().time() - self._patience_s:
            return False
        del readers[slowest]
        if slowest is not None:
            slowest.abort()
        return True
