"""The pages: /metrics for Prometheus, /livez and /readyz for orchestrators, / for people, /runs.json for programs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Final, TypeAlias

from aiohttp import web

from spanscore.receivers.sockets.bearer import BearerTokens
from spanscore.receivers.sockets.http_limits import HttpLimits
from spanscore.receivers.sockets.http_server import BaseHttpServer
from spanscore.service.live_page import LivePage
from spanscore.service.page_access import refusal
from spanscore.service.page_readers import PageReaders

Page: TypeAlias = Callable[[str | None], tuple[str, bytes]]
"""Returns a page for an Accept header: its content type, and its text."""

Readiness: TypeAlias = Callable[[], Mapping[str, str]]
"""Returns the state of everything that is needed to take requests: `ok`, `ok, but ...`, or the problem."""

OK: Final = "ok"
OK_BUT: Final = f"{OK}, but "
"""The beginning of a state in which requests are taken, although something is wrong."""

_TEXT: Final = "text/plain; charset=utf-8"
_JSON: Final = "application/json"
_NOT_OURS: Final = (
    b"the Host must be localhost, an address of loopback, the one configured in exporters.prometheus.endpoint, or one "
    b"of page.hosts: these pages are for this machine\n"
)
_UNKNOWN_NAME: Final = (
    b"the Host must be an address, localhost or one of page.hosts: the page of runs is shown under no other name\n"
)
_SERVER: Final = {"Server": "spanscore", "Cache-Control": "no-store"}


def is_ok(state: str) -> bool:
    """Return whether requests are taken in a state."""
    return state == OK or state.startswith(OK_BUT)


class Pages(BaseHttpServer):
    """Serves the pages. Except for the runs, they show no configuration, and only names of received data.

    Made in the event loop that serves them.

    Args:
        metrics: makes the metrics page.
        readiness: returns the states that decide whether requests are taken.
        limits: the limits for clients.
        names: more host names that requests may use for this machine.
        live: the page of runs, if it is served.
        tokens: the bearer tokens of which readers of the runs need one; without them, everybody may read.
        readers: limits the readers of each page.
    """

    def __init__(  # noqa: PLR0913 - the pages, and their limits
        self,
        metrics: Page,
        readiness: Readiness,
        limits: HttpLimits | None = None,
        *,
        names: Collection[str] = (),
        live: LivePage | None = None,
        tokens: BearerTokens | None = None,
        readers: PageReaders | None = None,
    ) -> None:
        super().__init__(limits, names)
        self._live = live
        self._tokens = tokens
        self._readers = readers or PageReaders()
        self._metrics = metrics
        self._readiness = readiness
        # A page of many series takes long, and received requests must not wait for it.
        self._maker = ThreadPoolExecutor(1, "spanscore-metrics")
        self._being_made: dict[str | None, asyncio.Future[tuple[str, bytes]]] = {}

    async def start(self) -> None:
        """Accept connections."""
        if self._live is not None:
            self._live.recent.start()
        await super().start()

    async def stop(self, grace_s: float) -> None:
        """Stop serving."""
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
        # A proxy that cuts a prefix off may leave its slash.
        match path := f"/{request.path.lstrip('/')}":
            case "/metrics":
                accept = request.headers.get("Accept")
                return await self._readers.send(request, path, lambda: self._metrics_page(accept))
            case "/livez":
                return _response(HTTPStatus.OK, _TEXT, b"ok\n")
            case "/readyz":
                readiness = dict(self._readiness())
                ready = all(is_ok(state) for state in readiness.values())
                return _response(
                    HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE, _JSON, json.dumps(readiness).encode()
                )
            case "/" | "/runs.json" if self._live is not None:
                return await self._shown_runs(request, path, self._live)
            case _:
                pages = b"/, /runs.json, " if self._live is not None else b""
                return _response(HTTPStatus.NOT_FOUND, _TEXT, b"there are %s/metrics, /livez and /readyz\n" % pages)

    async def _shown_runs(self, request: web.BaseRequest, path: str, live: LivePage) -> web.StreamResponse:
        if self.is_misnamed(request):
            return _response(HTTPStatus.MISDIRECTED_REQUEST, _TEXT, _UNKNOWN_NAME)
        refused = refusal(request, self._tokens)
        if refused is not None:
            return refused
        shown = live if path == "/" else live.runs
        return await self._readers.send(request, path, lambda: shown.answer(request, self._maker))

    async def _metrics_page(self, accept: str | None) -> web.Response:
        making = self._being_made.get(accept)
        if making is None:  # concurrent requests get the same page
            making = asyncio.get_running_loop().run_in_executor(self._maker, self._metrics, accept)
            self._being_made[accept] = making
            making.add_done_callback(lambda _: self._being_made.pop(accept))
        content_type, body = await asyncio.shield(making)
        return _response(HTTPStatus.OK, content_type, body)


def _response(status: int, content_type: str, body: bytes, headers: Mapping[str, str] | None = None) -> web.Response:
    told = _SERVER | {"Content-Type": content_type} | dict(headers or {})
    return web.Response(status=status, body=body, headers=told)
