"""`spanscore fetch`: traces out of Jaeger or Tempo, into a recording."""

from __future__ import annotations

import argparse
import http.client
import re
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple

from spanscore.cli import FAILED, OK
from spanscore.cli._recordings import tell_of_left_behind
from spanscore.errors import InputError
from spanscore.messages.plural import plural
from spanscore.messages.printable import printable
from spanscore.otlp.findings import MalformedRequest
from spanscore.otlp.from_protobuf import trace_ids
from spanscore.otlp.strict_json import parse
from spanscore.recordings.files import MAX_REQUEST_SIZE
from spanscore.recordings.foreign import Converted, from_foreign, is_foreign
from spanscore.recordings.writer import RecordingWriter

_PATHS: Final = ("/api/v3/traces/{}", "/api/v2/traces/{}", "/api/traces/{}")
"""Of Jaeger, of Tempo, and of earlier versions of both."""
_TIMEOUT_S: Final = 30.0
"""Of each step: to connect, and to wait for more."""
_LIMIT_S: Final = 60.0
"""Of an answer from start to end."""
_OK: Final = 200
_NOT_FOUND: Final = 404
_OF_NO_PATH: Final = ("", "text/plain")
"""Content types of Jaeger's and Tempo's responses at unknown paths. A page of HTML comes from another server."""
_TRACE: Final = re.compile("[0-9a-fA-F]{16,32}")


def define(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Download traces from Jaeger (API v3) or Tempo and write them to a recording, which every command reads. The "
        "file is written when all answers have arrived. Exit status: 0 all traces were found, 1 a trace was not found "
        "or spans of it were refused, 2 usage, or the server cannot be reached or its answer is no trace; the file "
        "then stays as it was."
    )
    parser.add_argument(
        "url", type=_base, metavar="URL", help="where Jaeger's page or Tempo answers: http://localhost:16686"
    )
    parser.add_argument("traces", nargs="+", type=_trace, metavar="TRACE_ID", help="in hexadecimal")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="where to, as spanscore record writes")
    parser.add_argument("--append", action="store_true", help="append to FILE instead of replacing it")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, *, limit_s: float = _LIMIT_S) -> int:
    """Fetch the traces and return the exit status.

    Args:
        arguments: of the command.
        limit_s: how long the server may take for an answer from start to end.

    Raises:
        InputError: the server cannot be asked, is no Jaeger or Tempo, or answers something else.
    """
    with RecordingWriter(arguments.output, append=arguments.append) as writer:
        tell_of_left_behind(writer)
        answers = {trace: _fetched(arguments.url, trace, limit_s) for trace in arguments.traces}
        found = {trace: each for trace, each in answers.items() if each is not None}
        for each in found.values():
            writer.write("traces", each.body)
    if found:
        print(f"{writer.path}: {plural(len(found), 'trace')}")
    missing = [trace for trace in answers if trace not in found]
    refused = [f"{trace}: {each.told('span')}" for trace, answer in found.items() for each in answer.refused]
    for trace in missing:
        print(f"{arguments.url} has no trace {trace}", file=sys.stderr)
    for line in refused:
        print(line, file=sys.stderr)
    return FAILED if missing or refused else OK


class _HttpResponse(NamedTuple):
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


def _fetched(base: str, trace: str, limit_s: float) -> Converted | None:
    """Return a trace as a request, None if Jaeger or Tempo answers that it has none.

    Raises:
        InputError: the server cannot be asked, is no Jaeger or Tempo, or answers something else.
    """
    is_known = False
    unknown: InputError | None = None
    for path in _PATHS:
        url = base + path.format(trace)
        answer = _answer(url, limit_s)
        try:
            document = answer.document()
        except MalformedRequest as error:
            raise _no_trace(url, str(error)) from error
        found = from_foreign([document]) if answer.status == _OK and is_foreign(document) else None
        if found and found.body:
            _check_asked(url, trace, found.body)
            return found
        if found and (
            wrong := [*(each.what for each in found.problems), *(each.told("span") for each in found.refused)]
        ):
            raise _no_trace(url, wrong[0])
        is_known = is_known or found is not None or _is_without_trace(document)
        if answer.status != _NOT_FOUND or answer.content_type not in _OF_NO_PATH:
            unknown = unknown or InputError(
                f"{url}: this server is neither Jaeger nor Tempo: it answers with {answer}, which is no form of a trace"
            )
    if unknown and not is_known:  # Jaeger answers with its page at a path that it does not know
        raise unknown
    return None


def _is_without_trace(document: Any) -> bool:
    """Return whether Jaeger (an error) or Tempo (an empty trace) reports that it has no such trace."""
    return isinstance(document, dict) and (
        any(isinstance(document.get(key), dict) for key in ("error", "trace", "result"))
        or isinstance(document.get("errors"), list)
    )


def _check_asked(url: str, trace: str, body: bytes) -> None:
    """Refuse an answer with another trace than the one that was asked for."""
    asked = bytes.fromhex(trace.zfill(32))
    try:
        other = next((each for each in trace_ids(body) if each != asked), None)
    except MalformedRequest as error:
        raise _no_trace(url, str(error)) from error
    if other is not None:
        message = f"{url}: answers with trace {other.hex()}, which is not the one asked for"
        raise InputError(message)


def _no_trace(url: str, why: str) -> InputError:
    return InputError(f"{url}: the answer is no trace: {printable(why, 200)}")


class _SameServer(urllib.request.HTTPRedirectHandler):
    """Follows no redirect to another server, whose response would not be the requested trace."""

    def redirect_request(  # noqa: PLR0913, PLR0917 - as the standard library has it
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """Return the next request.

        Raises:
            InputError: it would go to another scheme, host or port.
        """
        if _server(newurl) != _server(req.full_url):
            message = (
                f"{req.full_url}: answers with status {code}, a redirect to {printable(newurl, 200)}. This is another "
                "server, which is not followed: name it in the command if it is the right one"
            )
            raise InputError(message)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _server(url: str) -> tuple[str, str | None, int | None]:
    """Return the scheme, host and port of a URL.

    Raises:
        ValueError: it is none.
    """
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _answer(url: str, limit_s: float) -> _HttpResponse:
    """Ask a server, on a thread: a server that sends a byte now and then keeps no time limit of a socket."""
    answers: SimpleQueue[_HttpResponse | Exception] = SimpleQueue()

    def ask() -> None:
        try:
            answers.put(_asked(url))
        except Exception as error:  # noqa: BLE001 - raised again below
            answers.put(error)

    threading.Thread(target=ask, name="spanscore-fetch", daemon=True).start()
    try:
        answer = answers.get(timeout=limit_s)
    except Empty:
        message = f"{url}: the answer is not complete after {limit_s:g} s"
        raise InputError(message) from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _asked(url: str) -> _HttpResponse:
    try:
        request = urllib.request.Request(url, headers={"Accept": "application/json"})  # noqa: S310 - http or https, as checked
        try:
            response = urllib.request.build_opener(_SameServer).open(request, timeout=_TIMEOUT_S)
        except urllib.error.HTTPError as error:
            if error.code != _NOT_FOUND:
                message = f"{url}: answers with status {error.code}{_redirect(error)}"
                raise InputError(message) from error
            response = error
        with response:
            body: bytes = response.read(MAX_REQUEST_SIZE + 1)
            if len(body) <= MAX_REQUEST_SIZE and (left := response.length):
                message = f"{url}: the answer is cut short: {len(body):,} of {len(body) + left:,} bytes came"
                raise InputError(message)
    except (http.client.InvalidURL, OSError, ValueError, OverflowError) as error:
        message = f"{url}: cannot be asked: {printable(str(getattr(error, 'reason', None) or error), 200)}"
        raise InputError(message) from error
    except http.client.HTTPException as error:
        message = f"{url}: its answer is not valid HTTP: {printable(f'{type(error).__name__}: {error}', 200)}"
        raise InputError(message) from error
    if len(body) > MAX_REQUEST_SIZE:
        message = f"{url}: the answer is larger than {MAX_REQUEST_SIZE >> 20} MiB"
        raise InputError(message)
    has_type = "Content-Type" in response.headers  # without one, the standard library takes it for text/plain
    return _HttpResponse(response.status, response.headers.get_content_type() if has_type else "", body)


def _redirect(error: urllib.error.HTTPError) -> str:
    """Return where a redirect leads that is not followed: to no HTTP, or in a circle."""
    to = error.headers.get("Location")
    return f", a redirect to {printable(to, 200)}, which is not followed" if to else ""


def _base(text: str) -> str:
    if not re.match("https?://", text, re.IGNORECASE):
        message = f"must begin with http:// or https://, not {text!r}"
        raise argparse.ArgumentTypeError(message)
    return text.rstrip("/")


def _trace(text: str) -> str:
    if not _TRACE.fullmatch(text):
        message = f"must be 16 to 32 hexadecimal digits, not {text!r}"
        raise argparse.ArgumentTypeError(message)
    return text.lower()
