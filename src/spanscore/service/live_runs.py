"""`/runs.json`: the last runs for programs, and the reasons for which they failed."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from datetime import UTC, datetime
from http import HTTPStatus
from itertools import islice
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

from aiohttp import web

from spanscore.messages.nearest import suggestion, unmatched
from spanscore.messages.printable import printable
from spanscore.reports.page import encoded
from spanscore.reports.page.story import cut
from spanscore.reports.reason_table import TRACE_ID_START, CountedRun, ReasonTable, WantedRuns
from spanscore.service.page_access import HEADERS, TEXT
from spanscore.service.recent_runs import PAUSE_S, HeldRuns, RecentRuns, Renewed, ShownRun

_MOST_RUNS: Final = 200
_MOST_BYTES: Final = 4 * 2**20
"""Of the runs in an answer."""
_MOST_AGENTS: Final = 20
"""The names in a row: senders choose them, and there may be another one in each run."""
_MOST_COMPARED: Final = 1_000
"""The runs whose values are compared with one that no run has: of 10,000, that could take seconds."""
_NUMBER: Final = re.compile(r"\d{1,9}", re.ASCII)
_JSON: Final = {
    "Content-Type": "application/json",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


class LiveRuns:
    """Answers with the last runs in the form of `spanscore score --json FILE`, in the running event loop.

    Reasons are counted once in `pause_s` at most; in between, answers are as of then.
    """

    def __init__(self, recent: RecentRuns, pause_s: float = PAUSE_S) -> None:
        self._recent: Final = recent
        self._counted: Final = Renewed(recent, _counted, pause_s)
        self._last: tuple[tuple[int, WantedRuns], bytes] | None = None
        """The answer that was made last: most readers ask for the same."""

    async def answer(self, request: web.BaseRequest, maker: Executor) -> web.Response:
        """Return the runs that are asked for, 304 if the reader has them, or 400 with what can be asked for."""
        try:
            wanted = _wanted(request.rel_url.raw_query_string)
        except ValueError as error:
            return web.Response(status=HTTPStatus.BAD_REQUEST, body=encoded(f"{error}\n"), headers=HEADERS | TEXT)
        counted = self._counted.made(maker)
        headers = {**HEADERS, **_JSON, "ETag": f'"{self._counted.version}"'}
        if headers["ETag"] in request.headers.get("If-None-Match", ""):
            return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
        made = await asyncio.shield(counted)
        body = await asyncio.get_running_loop().run_in_executor(maker, self._body, made, wanted)
        return web.Response(body=body, headers=headers)

    def _body(self, counted: _HeldReasons, wanted: WantedRuns) -> bytes:
        """Return the answer: of the runs only those that were counted, too."""
        asked = (counted.number, wanted)
        if self._last is None or self._last[0] != asked:
            held = [run for run in self._recent.held.runs if run.number <= counted.number]
            matching = [run for run in held if wanted.fit(run.counted)]
            unknown = [] if matching else list(_unknown(wanted, [run.counted for run in held]))
            told = b'"matching":%d,"unknown":%s' % (len(matching), encoded(json.dumps(unknown, ensure_ascii=False)))
            runs = b",".join(_newest(matching, wanted.limit))
            self._last = asked, b'%s,%s,"runs":[%s]}\n' % (counted.text, told, runs)
        return self._last[1]


class _HeldReasons(NamedTuple):
    """The reasons of the runs that are held at one time."""

    number: int
    """Of the last of these runs."""
    text: bytes
    """The beginning of an answer, up to the runs."""


def _wanted(query: str) -> WantedRuns:
    """Read the parameters of a request.

    Raises:
        ValueError: it has something else; the message names what is allowed.
    """
    given: dict[str, str] = {}
    for name, value in _parameters(query):
        if name not in WantedRuns._fields:
            known = suggestion(name, WantedRuns._fields) or f"; there are {', '.join(WantedRuns._fields)}"
            raise ValueError(f"there is no parameter {printable(name)!r}{known}")
        if name in given or not value:
            raise ValueError(f"{name}: must be given once and not be empty")
        given[name] = value
    trace = given.get("trace", "").lower() or None
    if trace is not None and not TRACE_ID_START.fullmatch(trace):
        raise ValueError(f"trace: must be 4 to 32 hexadecimal digits, not {printable(given['trace'])!r}")
    limit = given.get("limit", str(_MOST_RUNS))
    if not _NUMBER.fullmatch(limit) or int(limit) > _MOST_RUNS:
        raise ValueError(f"limit: must be a number from 0 to {_MOST_RUNS}, not {printable(limit)!r}")
    agent = given.get("agent")
    return WantedRuns(given.get("reason"), None if agent is None else cut(agent), trace, int(limit))


def _unknown(wanted: WantedRuns, runs: Sequence[CountedRun]) -> Iterator[str]:
    """Yield a message about each value that none of the runs has, with those of the newest runs."""
    newest = runs[-_MOST_COMPARED:]
    known: dict[str, list[str]] = {
        "reason": [each.text for run in newest for each in run.reasons],
        "agent": [run.agent for run in newest if run.agent],
        "trace": [],
    }
    for name, values in known.items():
        value = getattr(wanted, name)
        if value is not None and not any(map(WantedRuns(**{name: value}).fit, runs)):
            yield unmatched(name, value, values) or f"{name}: {printable(value)!r} matches no run"


def _parameters(query: str) -> Sequence[tuple[str, str]]:
    try:
        return parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), errors="strict")
    except UnicodeDecodeError:
        message = "the parameters must be UTF-8"
    except ValueError:
        message = "the parameters must be NAME=VALUE, with & between them"
    raise ValueError(message)


def _counted(held: HeldRuns) -> _HeldReasons:
    table = ReasonTable()
    for run in held.runs:
        table.count(run.counted)
    told = {
        "since": _rfc3339(held.since_s),
        "as_of": _rfc3339(held.as_of_s),
        "held": len(held.runs),
        "conversations": table.conversations,
        "failing": table.failing,
        "skipped": held.skipped,
        "reasons": [row._replace(agents=row.agents[:_MOST_AGENTS]).as_json() for row in table.rows()],
    }
    return _HeldReasons(held.number, encoded(json.dumps(told, ensure_ascii=False, separators=(",", ":"))[:-1]))


def _newest(runs: Sequence[ShownRun], most: int) -> Iterator[bytes]:
    left = _MOST_BYTES
    for run in islice(reversed(runs), most):
        line = run.line
        left -= len(line)
        if left < 0:
            return
        yield line


def _rfc3339(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
