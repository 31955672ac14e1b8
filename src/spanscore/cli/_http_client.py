"""Responses of an HTTP server, whole and within a time limit."""

from __future__ import annotations

import argparse
import http.client
import re
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Container, Mapping
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple

from spanscore.errors import InputError
from spanscore.messages.plural import plural
from spanscore.messages.printable import printable
from spanscore.otlp.findings import MalformedRequest
from spanscore.otlp.strict_json import MOST_OPENINGS, check_number_of_values, parse
from spanscore.recordings.files import MAX_REQUEST_SIZE

_TIMEOUT_S: Final = 30.0
"""Of each step: to connect, and to wait for more."""
_NOT_FOUND: Final = 404
_BYTES_OF_OBJECT: Final = 16
"""The fewest of an object in a large answer, where attributes have 18: millions of empty ones fill the memory."""


class HttpResponse(NamedTuple):
    """An answer of a server."""

    status: int
    content_type: str
    body: bytes

    def document(self) -> Any:
        """Return the JSON object in it, None if it begins as none.

        Raises:
            MalformedRequest: it is broken.
        """
        return parse(self.body) if self.body.lstrip()[:1] == b"{" else None

    def __str__(self) -> str:
        form = f"of type {printable(self.content_type)}" if self.content_type else "without a Content-Type"
        return f"status {self.status} and {plural(len(self.body), 'byte')} {form}"


class _SameServer(urllib.request.HTTPRedirectHandler):
    """Follows no redirect to another server, whose response would not be the requested one."""

    def redirect_request(  # noqa: PLR0913, PLR0917 - as the standard library has it
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """Return the next request.

        Raises:
            InputError: it would go to another scheme, host or port.
        """
        if _server(newurl) != _server(req.full_url):
            raise InputError(
                f"{req.full_url}: answers with status {code}, a redirect to {printable(newurl, 200)}. This is another "
                "server, which is not followed: name it in the command if it is the right one"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _server(url: str) -> tuple[str, str | None, int | None]:
    """Return the scheme, host and port of a URL. Raises ValueError if its port is none."""
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def http_answer(
    url: str, limit_s: float, headers: Mapping[str, str] | None = None, taken: Container[int] = frozenset({_NOT_FOUND})
) -> HttpResponse:
    """Ask a server for JSON, on a thread: a server that sends a byte now and then keeps no time limit of a socket.

    Args:
        url: of the server, with http or https.
        limit_s: how long it may take for an answer from start to end.
        headers: more headers of the request.
        taken: the statuses that are answers; the others are errors, but for those below 300.

    Raises:
        InputError: the server cannot be asked, or its answer is an error, not whole or too large, also by its values.
    """
    asked = {"Accept": "application/json", **(headers or {})}
    answers: SimpleQueue[HttpResponse | Exception] = SimpleQueue()

    def ask() -> None:
        try:
            answers.put(_asked(url, asked, taken))
        except Exception as error:  # noqa: BLE001 - raised again below
            answers.put(error)

    threading.Thread(target=ask, name="spanscore-http", daemon=True).start()
    try:
        answer = answers.get(timeout=limit_s)
    except Empty:
        raise InputError(f"{url}: the answer is not complete after {limit_s:g} s") from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _asked(url: str, headers: Mapping[str, str], taken: Container[int]) -> HttpResponse:
    try:
        request = urllib.request.Request(url, headers=dict(headers))  # noqa: S310 - http or https, as checked
        try:
            response = urllib.request.build_opener(_SameServer).open(request, timeout=_TIMEOUT_S)
        except urllib.error.HTTPError as error:
            if error.code not in taken:
                raise InputError(f"{url}: answers with status {error.code}{_redirect(error)}") from error
            response = error
        with response:
            body: bytes = response.read(MAX_REQUEST_SIZE + 1)
            if len(body) <= MAX_REQUEST_SIZE and (left := response.length):
                raise InputError(f"{url}: the answer is cut short: {len(body):,} of {len(body) + left:,} bytes came")
    except (http.client.InvalidURL, OSError, ValueError, OverflowError) as error:
        message = f"{url}: cannot be asked: {printable(str(getattr(error, 'reason', None) or error), 200)}"
        raise InputError(message) from error
    except http.client.HTTPException as error:
        message = f"{url}: its answer is not valid HTTP: {printable(f'{type(error).__name__}: {error}', 200)}"
        raise InputError(message) from error
    if len(body) > MAX_REQUEST_SIZE:
        raise InputError(f"{url}: the answer is larger than {MAX_REQUEST_SIZE >> 20} MiB")
    try:
        check_number_of_values(body, max(MOST_OPENINGS, len(body) // _BYTES_OF_OBJECT), "answer")
    except MalformedRequest as error:
        raise InputError(f"{url}: {error}") from error
    has_type = "Content-Type" in response.headers  # without one, the standard library takes it for text/plain
    return HttpResponse(response.status, response.headers.get_content_type() if has_type else "", body)


def _redirect(error: urllib.error.HTTPError) -> str:
    """Return where a redirect leads that is not followed: to no HTTP, or in a circle."""
    to = error.headers.get("Location")
    return f", a redirect to {printable(to, 200)}, which is not followed" if to else ""


def base_url(text: str) -> str:
    """Read the address of a server, for argparse."""
    if not re.match("https?://", text, re.IGNORECASE):
        raise argparse.ArgumentTypeError(f"must begin with http:// or https://, not {text!r}")
    return text.rstrip("/")
