"""The page of the last runs. Browsers ask for it again and again; it is made anew only if runs have come."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from http import HTTPStatus
from typing import Final

from aiohttp import web

from spanscore.messages.plural import plural
from spanscore.reports.page import encoded, policy
from spanscore.reports.page.page_data import LIVE_SCRIPTS, runs_page
from spanscore.service.recent_runs import RecentRuns

_PAUSE_S: Final = 2.0
"""As long as a browser waits before it asks again."""
_RUNS: Final = "\0"
"""Stands for the runs while the page around them is made; JSON and templates have none."""
_OWN_SITES: Final = frozenset({"same-origin", "none"})
_HEADERS: Final = {
    "Server": "spanscore",
    "Cache-Control": "no-store",
    "Content-Security-Policy": f"{policy(LIVE_SCRIPTS, live=True)}; frame-ancestors 'none'",
    "Content-Type": "text/html; charset=utf-8",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class LivePage:
    """Answers with the page of the last runs, in the running event loop.

    Args:
        recent: keeps the runs.
        pause_s: the page is made once in this time at most; in between, readers get the one that is there.
    """

    def __init__(self, recent: RecentRuns, pause_s: float = _PAUSE_S) -> None:
        self.recent: Final = recent
        self._pause_s: Final = pause_s
        self._page: asyncio.Future[bytes] | None = None
        self._last = ""
        self._due = 0.0

    async def answer(self, request: web.BaseRequest, maker: Executor) -> web.Response:
        """Return the page, or 304 if the reader has it. It is made in `maker`, once for all concurrent requests."""
        asked = request.headers
        if asked.get("Sec-Fetch-Mode", "navigate") != "navigate" and (
            asked.get("Sec-Fetch-Site", "none") not in _OWN_SITES
        ):
            why = b"the page is not a part of other pages\n"
            return web.Response(status=HTTPStatus.FORBIDDEN, body=why, headers=_HEADERS)
        page = self._current(maker)
        headers = {**_HEADERS, "ETag": f'"{self._last}"'}
        if headers["ETag"] in asked.get("If-None-Match", ""):
            return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
        try:
            return web.Response(body=await asyncio.shield(page), headers=headers)
        except Exception:
            self._page = None  # the next reader has it made again
            raise

    def _current(self, maker: Executor) -> asyncio.Future[bytes]:
        loop, page = asyncio.get_running_loop(), self._page
        if page is None or (page.done() and loop.time() >= self._due and self._last != self.recent.last):
            self._due = loop.time() + self._pause_s
            self._last = self.recent.last
            page = self._page = loop.run_in_executor(maker, _rendered, self.recent, self._last)
        return page


def _rendered(recent: RecentRuns, last: str) -> bytes:
    runs = recent.runs[::-1]
    fast = f"; {plural(recent.skipped, 'run')} came faster than they can be shown" if recent.skipped else ""
    told = {"sentence": f"The last {recent.most:,} runs at most{fast or ', each a few seconds after it is scored'}."}
    live = {"last": last, "ids": [run.id for run in runs], **told}
    values = {"title": "Live - spanscore", "verdict": "live", "headline": "Live", "reasons": [], "notes": [], **told}
    # The runs are bytes already, and may be many: they do not go through the template.
    before, behind = encoded(runs_page([_RUNS], {"live": live}, **values)).split(_RUNS.encode())
    return b"".join((before, b",".join(run.text for run in runs), behind))
