"""The pages: /metrics for Prometheus, /livez and /readyz for whoever starts and stops us, / for people to look at."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Final, TypeAlias

from aiohttp import web

from spanscore.service.live_page import LivePage
from spanscore.sockets.http_connection import HttpLimits
from spanscore.sockets.http_server import HttpServer

Page: TypeAlias = Callable[[str | None], tuple[str, bytes]]
"""Makes a page for an Accept header: its content type, and what it says."""

Readiness: TypeAlias = Callable[[], Mapping[str, str]]
"""Says of everything that is needed to take requests `ok`, or what is wrong with it."""

OK: Final = "ok"

_TEXT: Final = "text/plain; charset=utf-8"
_JSON: Final = "application/json"
_NOT_OURS: Final = (
    b"the Host must be localhost, an address of loopback or the one configured in exporters.prometheus.endpoint: "
    b"these pages are for this machine\n"
)
_UNKNOWN_NAME: Final = (
    b"the Host must be an address, localhost or one of page.hosts: the page of runs is shown under no other name\n"
)
_SERVER: Final = {"Server": "spanscore", "Cache-Control": "no-store"}

_log = logging.getLogger(__name__)


class Pages(HttpServer):
    """Serves the pages. But for that of runs, they show no configuration and nothing of what was received but names.

    Made in the event loop that serves them.

    Args:
        metrics: makes the metrics page.
        readiness: says whether requests are taken.
        limits: what clients may do.
        names: further names of this machine by which it may be asked.
        live: shows runs, where that is wanted.
    """

    def __init__(
        self,
        metrics: Page,
        readiness: Readiness,
        limits: HttpLimits | None = None,
        *,
        names: Collection[str] = (),
        live: LivePage | None = None,
    ) -> None:
        super().__init__(limits, names)
        self._live = live
        self._metrics = metrics
        self._readiness = readiness
        # A page of many series takes long, and what is received must not wait for it.
        self._maker = ThreadPoolExecutor(1, "spanscore-metrics")
        self._being_made: dict[str | None, asyncio.Future[tuple[str, bytes]]] = {}

    async def start(self) -> None:
        """Accept connections."""
        if self._live is not None:
            self._live.start()
        await super().start()

    async def stop(self, grace_s: float) -> None:
        """Stop serving."""
        if self._live is not None:
            self._live.stop()
        await super().stop(grace_s)
        self._maker.shutdown(wait=False, cancel_futures=True)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer with a page."""
        if self.is_misled(request):
            return _response(HTTPStatus.MISDIRECTED_REQUEST, _TEXT, _NOT_OURS)
        if request.method not in {"GET", "HEAD"}:
            return _response(HTTPStatus.METHOD_NOT_ALLOWED, _TEXT, b"the method must be GET\n", {"Allow": "GET, HEAD"})
        return await self._page(request)

    async def _page(self, request: web.BaseRequest) -> web.StreamResponse:
        match request.path:
            case "/metrics":
                return await self._metrics_page(request.headers.get("Accept"))
            case "/livez":
                return _response(HTTPStatus.OK, _TEXT, b"ok\n")
            case "/readyz":
                readiness = dict(self._readiness())
                ready = all(state == OK for state in readiness.values())
                return _response(
                    HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE, _JSON, json.dumps(readiness).encode()
                )
            case "/" | "/runs" if self._live is not None:
                return await self._runs(request, self._live)
            case _:
                page = b"/, " if self._live is not None else b""
                return _response(HTTPStatus.NOT_FOUND, _TEXT, b"there are %s/metrics, /livez and /readyz\n" % page)

    async def _runs(self, request: web.BaseRequest, live: LivePage) -> web.StreamResponse:
        if self.is_misnamed(request):
            return _response(HTTPStatus.MISDIRECTED_REQUEST, _TEXT, _UNKNOWN_NAME)
        if request.path == "/":
            try:
                return await live.page(request, self._maker)
            except Exception:  # noqa: BLE001 - as below
                _log.exception("the page of runs could not be made")
                return _response(HTTPStatus.INTERNAL_SERVER_ERROR, _TEXT, b"internal error\n")
        if request.method != "GET":
            return _response(HTTPStatus.METHOD_NOT_ALLOWED, _TEXT, b"the method must be GET\n", {"Allow": "GET"})
        return await live.stream(request)

    async def _metrics_page(self, accept: str | None) -> web.Response:
        try:
            making = self._being_made.get(accept)
            if making is None:  # those who ask meanwhile get the same page
                making = asyncio.get_running_loop().run_in_executor(self._maker, self._metrics, accept)
                self._being_made[accept] = making
                making.add_done_callback(lambda _: self._being_made.pop(accept))
            content_type, body = await asyncio.shield(making)
        except Exception:  # noqa: BLE001 - the page is for those who look for faults
            _log.exception("the metrics page could not be made")
            return _response(HTTPStatus.INTERNAL_SERVER_ERROR, _TEXT, b"internal error\n")
        return _response(HTTPStatus.OK, content_type, body)


def _response(status: int, content_type: str, body: bytes, headers: Mapping[str, str] | None = None) -> web.Response:
    told = _SERVER | {"Content-Type": content_type} | dict(headers or {})
    return web.Response(status=status, body=body, headers=told)
