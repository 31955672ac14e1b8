"""`spanscore fetch`: traces out of Jaeger or Tempo, into a recording."""

from __future__ import annotations

import argparse
import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from typing import Final

from spanscore.cli import FAILED, OK
from spanscore.cli._overview import SUMMARIES
from spanscore.errors import InputError
from spanscore.recordings.foreign import Converted, from_foreign, is_foreign
from spanscore.recordings.writer import RecordingWriter
from spanscore.wording.plural import plural
from spanscore.wording.printable import printable

_PATHS: Final = ("/api/v3/traces/{}", "/api/v2/traces/{}", "/api/traces/{}")
"""Of Jaeger, of Tempo, and of earlier versions of both."""
_TIMEOUT_S: Final = 30.0
_MOST_BYTES: Final = 256 * 2**20
_NOT_FOUND: Final = 404
_TRACE: Final = re.compile("[0-9a-fA-F]{16,32}")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "fetch",
        help=SUMMARIES["fetch"],
        description=(
            "Take traces out of Jaeger (API v3) or Tempo and write them to a recording, which every command reads. "
            "Exit status: 0 all were found, 1 some were not or spans of them were refused, 2 usage."
        ),
    )
    parser.add_argument(
        "url", type=_base, metavar="URL", help="where Jaeger's page or Tempo answers: http://localhost:16686"
    )
    parser.add_argument("traces", nargs="+", type=_trace, metavar="TRACE_ID", help="in hexadecimal")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="where to, as spanscore record writes")
    parser.add_argument(
        "--append", action="store_true", help="write behind what is in the file, in place of: replace it"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Fetch the traces and return the exit status."""
    missing = []
    refused = []
    with RecordingWriter(arguments.output, append=arguments.append) as writer:
        for trace in arguments.traces:
            found = _fetched(arguments.url, trace)
            if found is None:
                missing.append(trace)
            else:
                writer.write("traces", found.body)
                refused += [f"{trace}: {each.told('span')}" for each in found.refused]
        if writer.written:
            print(f"{writer.path}: {plural(writer.written, 'trace')}")
    for trace in missing:
        print(f"{arguments.url} has no trace {trace}", file=sys.stderr)
    for line in refused:
        print(line, file=sys.stderr)
    return FAILED if missing or refused else OK


def _fetched(base: str, trace: str) -> Converted | None:
    """Return a trace as a request, None where there is none.

    Raises:
        InputError: the server cannot be asked, or answers something else.
    """
    for path in _PATHS:
        url = base + path.format(trace)
        answer = _answer(url)
        if answer is None:
            continue
        try:
            document = json.loads(answer)
        except ValueError as error:
            raise _no_trace(url, str(error)) from error
        found = from_foreign([document]) if is_foreign(document) else None
        if found and found.body:
            return found
        if found and (
            wrong := [*(each.what for each in found.problems), *(each.told("span") for each in found.refused)]
        ):
            raise _no_trace(url, wrong[0])
    return None


def _no_trace(url: str, why: str) -> InputError:
    return InputError(f"{url}: answers what is no trace: {printable(why, 200)}")


def _answer(url: str) -> bytes | None:
    request = urllib.request.Request(url, headers={"Accept": "application/json"})  # noqa: S310 - http or https, as checked
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:  # noqa: S310 - as above
            body: bytes = response.read(_MOST_BYTES + 1)
    except urllib.error.HTTPError as error:
        if error.code == _NOT_FOUND:
            return None
        message = f"{url}: answers with status {error.code}"
        raise InputError(message) from error
    except (OSError, ValueError) as error:
        message = f"{url}: cannot be asked: {getattr(error, 'reason', None) or error}"
        raise InputError(message) from error
    if len(body) > _MOST_BYTES:
        message = f"{url}: the answer is larger than {_MOST_BYTES >> 20} MiB"
        raise InputError(message)
    return body if body.lstrip()[:1] == b"{" else None  # a page of a server that knows no such path


def _base(text: str) -> str:
    if urllib.parse.urlsplit(text).scheme not in {"http", "https"}:
        message = f"must begin with http:// or https://, not {text!r}"
        raise argparse.ArgumentTypeError(message)
    return text.rstrip("/")


def _trace(text: str) -> str:
    if not _TRACE.fullmatch(text):
        message = f"must be 16 to 32 hexadecimal digits, not {text!r}"
        raise argparse.ArgumentTypeError(message)
    return text.lower()
