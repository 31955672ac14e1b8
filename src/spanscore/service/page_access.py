"""Access to the page of runs and to `/runs.json`: with a bearer token, if they have any, and from no other site."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from aiohttp import web

from spanscore.receivers.sockets.bearer import BearerTokens

HEADERS: Final = {
    "Server": "spanscore",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Of each answer."""
TEXT: Final = {"Content-Type": "text/plain; charset=utf-8"}

_OWN_SITES: Final = frozenset({"same-origin", "none"})


def refusal(request: web.BaseRequest, tokens: BearerTokens | None) -> web.Response | None:
    """Return the answer to a reader that may not read the runs; None if it may."""
    asked = request.headers
    if tokens is not None and not tokens.accept(asked.getall("Authorization", [])):
        why = b"a valid bearer token is needed; browsers get it from a proxy in front of this page\n"
        return web.Response(
            status=HTTPStatus.UNAUTHORIZED, body=why, headers=HEADERS | TEXT | {"WWW-Authenticate": "Bearer"}
        )
    if asked.get("Sec-Fetch-Mode", "navigate") != "navigate" and asked.get("Sec-Fetch-Site", "none") not in _OWN_SITES:
        return web.Response(
            status=HTTPStatus.FORBIDDEN, body=b"the page is not a part of other pages\n", headers=HEADERS | TEXT
        )
    return None
