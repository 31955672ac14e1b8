"""Runs that `spanscore serve` holds, for `spanscore mcp`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from spanscore.cli._http_client import http_answer
from spanscore.cli._run_tools import RunsFound
from spanscore.errors import InputError
from spanscore.messages.printable import printable
from spanscore.otlp.findings import MalformedRequest
from spanscore.reports.json_reports import bare_report, is_report
from spanscore.reports.reason_table import WantedRuns

_LIMIT_S: Final = 30.0
_OK: Final = 200
_HINTS: Final = {
    401: "it needs a bearer token: --header 'Authorization=Bearer TOKEN'",
    403: "it does not take this request",
    404: "there is no /runs.json: is it the port for Prometheus of `spanscore serve`, and does that have a page?",
    421: "its page has another host name: page.hosts has those that it takes",
    503: "too many readers, or it is stopping: ask again in some seconds",
}
_SHOWN: Final = 200


class ServeRuns:
    """The last runs of a receiver, from its `/runs.json`.

    Args:
        url: of its port for Prometheus, with the prefix of a proxy if there is one.
        headers: of each request, such as the token.
        content: whether content that it sends is shown.
    """

    def __init__(self, url: str, headers: Mapping[str, str], *, content: bool) -> None:
        self._url: Final = f"{url}/runs.json"
        self._headers: Final = headers
        self._content: Final = content

    def ask(self, asked: WantedRuns) -> RunsFound:
        """Return runs, the newest first, and the reasons of all that are held.

        Raises:
            InputError: there is no answer, or it is not the one of `spanscore serve`.
        """
        query = {key: value for key, value in asked._asdict().items() if value is not None}
        answer = http_answer(f"{self._url}?{urlencode(query)}", _LIMIT_S, self._headers, taken={400, *_HINTS})
        if answer.status != _OK:
            said = printable(answer.body[:_SHOWN].decode("utf-8", "replace").partition("\n")[0], _SHOWN)
            raise InputError(f"{self._url}: status {answer.status}: {_HINTS.get(answer.status, said)}")
        try:
            told = answer.document()
        except MalformedRequest:
            told = None
        if not _is_answer(told):
            raise InputError(f"{self._url}: the answer is not that of `spanscore serve`: {answer}")
        runs, reasons = told["runs"], told["reasons"]
        if not self._content:
            runs, reasons = [bare_report(each) for each in runs], [{**each, "errors": []} for each in reasons]
        head = {"runs": told.get("held"), **{key: told[key] for key in ("since", "as_of", "skipped") if key in told}}
        return RunsFound(told=head, reasons=reasons, matching=told.get("matching", len(runs)), runs=runs)


def _is_answer(told: Any) -> bool:
    return (
        isinstance(told, dict)
        and isinstance(told.get("runs"), list)
        and all(map(is_report, told["runs"]))
        and isinstance(told.get("reasons"), list)
        and all(isinstance(each, dict) for each in told["reasons"])
    )
