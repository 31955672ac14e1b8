"""The page of the last runs. Browsers ask for it again and again; it is made anew only if runs have come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final

from aiohttp import web

from spanscore.messages.plural import plural
from spanscore.reports.page import encoded, policy
from spanscore.reports.page.page_data import LIVE_SCRIPTS, reasons_data, runs_page
from spanscore.reports.reason_table import ReasonTable
from spanscore.reports.reason_words import failed_for
from spanscore.service.live_runs import LiveRuns
from spanscore.service.page_access import HEADERS
from spanscore.service.recent_runs import MOST_PER_S, PAUSE_S, HeldRuns, RecentRuns, Renewed

_RUNS: Final = "\0"
"""Stands for the runs while the page around them is made; JSON and templates have none."""
_HTML: Final = {
    "Content-Security-Policy": f"{policy(LIVE_SCRIPTS, live=True)}; frame-ancestors 'none'",
    "Content-Type": "text/html; charset=utf-8",
}


class LivePage:
    """Answers with the page of the last runs, in the running event loop.

    The page is made once in `pause_s` at most; in between, readers get the one that is there. `alarms` returns the
    alarms of monitors in a sentence, or an empty text.
    """

    def __init__(
        self,
        recent: RecentRuns,
        pause_s: float = PAUSE_S,
        trace_url: str | None = None,
        alarms: Callable[[], str] | None = None,
    ) -> None:
        self.recent: Final = recent
        self._trace_url: Final = trace_url
        self._alarms: Final = alarms
        self.runs: Final = LiveRuns(recent, pause_s)
        """The same runs for programs."""
        self._page: Final = Renewed(recent, self._rendered, pause_s)

    async def answer(self, request: web.BaseRequest, maker: Executor) -> web.Response:
        """Return the page, or 304 if the reader has it. It is made in `maker`, once for all concurrent requests."""
        page = self._page.made(maker)
        headers = {**HEADERS, **_HTML, "ETag": f'"{self._page.version}"'}
        if headers["ETag"] in request.headers.get("If-None-Match", ""):
            return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
        return web.Response(body=await asyncio.shield(page), headers=headers)

    def _rendered(self, held: HeldRuns) -> bytes:
        runs, table = held.runs[::-1], ReasonTable()
        for run in held.runs:
            table.count(run.counted)
        rows = table.rows()
        passed = "No run failed" if runs else "Waiting for runs"
        told = {"headline": failed_for(table, rows) if rows else passed, "sentence": _sentence(held)}
        if self._alarms is not None and (alarms := self._alarms()):
            told["sentence"] = f"{alarms} {told['sentence']}"
        live = {"last": held.last, "ids": [run.id for run in runs], **told}
        data = {"why": reasons_data(rows), "trace_url": self._trace_url, "live": live}
        values = {"title": "Live - spanscore", "verdict": "live", "reasons": [], "notes": [], **told}
        # The runs are bytes already, and may be many: they do not go through the template.
        before, behind = encoded(runs_page([_RUNS], data, **values)).split(_RUNS.encode())
        return b"".join((before, b",".join(run.text for run in runs), behind))


def _sentence(held: HeldRuns) -> str:
    """Return which runs are on the page, and what is missing."""
    since, as_of = (datetime.fromtimestamp(each, UTC) for each in (held.since_s, held.as_of_s))
    form = "%H:%M" if since.date() == as_of.date() else "%Y-%m-%d %H:%M"
    conversations = sum(run.counted.is_conversation for run in held.runs)
    more = f" and {plural(conversations, 'conversation')}" if conversations else ""
    shown = f"{plural(len(held.runs) - conversations, 'run')}{more}"
    if held.skipped:  # so those that are shown are not all of the last ones
        other = plural(held.skipped, "other run")
        return f"{shown} since {since:{form}} UTC; not shown: {other}, as more than {MOST_PER_S} a second came."
    return f"{f'The last {shown}' if held.runs else 'No run'}, since {since:{form}} UTC."
