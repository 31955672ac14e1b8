"""`spanscore fetch`: traces out of Jaeger or Tempo, into a recording."""

from __future__ import annotations

import argparse
import re
from typing import Any, Final

from spanscore.cli import FAILED, OK
from spanscore.cli._http_client import base_url, http_answer
from spanscore.cli._recordings import define_mask, tell, tell_of_left_behind, tell_of_masked
from spanscore.config.parts import masked_requests
from spanscore.errors import InputError
from spanscore.messages.plural import plural
from spanscore.messages.printable import printable
from spanscore.otlp.findings import MalformedRequest
from spanscore.otlp.from_protobuf import trace_ids
from spanscore.recordings.foreign import Converted, from_foreign, is_foreign
from spanscore.recordings.writer import RecordingWriter

_PATHS: Final = ("/api/v3/traces/{}", "/api/v2/traces/{}", "/api/traces/{}")
"""Of Jaeger, of Tempo, and of earlier versions of both."""
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
        "file is written when all answers have arrived. Exit status: 0 all traces were found, 1 a trace was not found, "
        "spans of it were refused, or a mask matched nothing, 2 usage, or the server cannot be reached or its answer "
        "is no trace; the file then stays as it was."
    )
    parser.add_argument(
        "url", type=base_url, metavar="URL", help="where Jaeger's page or Tempo answers: http://localhost:16686"
    )
    parser.add_argument("traces", nargs="+", type=_trace, metavar="TRACE_ID", help="in hexadecimal")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="where to, as spanscore record writes")
    parser.add_argument("--append", action="store_true", help="append to FILE instead of replacing it")
    define_mask(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, *, limit_s: float = _LIMIT_S) -> int:
    """Fetch the traces and return the exit status.

    Raises:
        InputError: the server cannot be asked, is no Jaeger or Tempo, or answers something else.
    """
    masked = masked_requests(arguments.mask)
    with RecordingWriter(arguments.output, append=arguments.append, masked=masked) as writer:
        tell_of_left_behind(writer)
        answers = {trace: _fetched(arguments.url, trace, limit_s) for trace in arguments.traces}
        found = {trace: each for trace, each in answers.items() if each is not None}
        for each in found.values():
            writer.write("traces", each.body)
    is_unmasked = bool(found) and tell_of_masked(masked, writer)
    if found and not is_unmasked:
        print(f"{writer.path}: {plural(len(found), 'trace')}")
    missing = [trace for trace in answers if trace not in found]
    refused = [f"{trace}: {each.told('span')}" for trace, answer in found.items() for each in answer.refused]
    tell(*(f"{arguments.url} has no trace {trace}" for trace in missing), *refused)
    return FAILED if missing or refused or is_unmasked else OK


def _fetched(base: str, trace: str, limit_s: float) -> Converted | None:
    """Return a trace as a request, None if Jaeger or Tempo answers that it has none."""
    is_known = False
    unknown: InputError | None = None
    for path in _PATHS:
        url = base + path.format(trace)
        answer = http_answer(url, limit_s)
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
        raise InputError(f"{url}: answers with trace {other.hex()}, which is not the one asked for")


def _no_trace(url: str, why: str) -> InputError:
    return InputError(f"{url}: the answer is no trace: {printable(why, 200)}")


def _trace(text: str) -> str:
    if not _TRACE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"must be 16 to 32 hexadecimal digits, not {text!r}")
    return text.lower()
