"""Strict JSON: in UTF-8, without the constants that JSON does not have, of bounded nesting."""

from __future__ import annotations

import gc
import json
import re
import sys
from typing import Any, Final, NoReturn

from spanscore.otlp.findings import MalformedRequest

NESTING: Final = 1_000
"""How deep the JSON of a request may nest; 64 nested attribute values take some 270."""
_PARSER_KEEPS_TO_NESTING: Final = sys.version_info < (3, 12)
"""From Python 3.12 on the parser follows much deeper than the interpreter's recursion limit."""

_LARGE: Final = 2**20
_MOST_OPENINGS: Final = 2_000_000
_MOST_COMMAS: Final = 4_000_000

SURROGATE: Final = re.compile(r"\\u[dD]")
ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|(u[dD][89a-fA-F][\da-fA-F]{2})|.)", re.DOTALL
)
"""Any escape, read from the left; the group matches only in a surrogate without its other half."""


def parse(body: bytes | str) -> Any:
    """Parse strict JSON in UTF-8; of two equal keys the last wins, and a lone surrogate becomes U+FFFD.

    Raises:
        MalformedRequest: it is none, or nests deeper than 1,000.
    """
    source = _source(body)
    if SURROGATE.search(source):
        source = ESCAPE.sub(lambda escape: "\\ufffd" if escape[1] else escape[0], source)
    try:
        document = _decoded(source)
    except json.JSONDecodeError as error:
        message = f"not valid JSON: {error.msg} (column {error.colno})"
        raise MalformedRequest(message, line=error.lineno) from error
    except RecursionError as error:
        raise too_deep() from error
    except ValueError as error:  # a number of more digits than Python converts
        message = f"not valid JSON: {error}"
        raise MalformedRequest(message) from error
    if not _PARSER_KEEPS_TO_NESTING and _nests_too_deeply(document):
        raise too_deep()
    return document


def _decoded(source: str) -> Any:
    # The parser lets no other thread run, and what it makes can be no garbage yet: to look for some again and again
    # takes three times as long as to parse.
    pauses = len(source) > _LARGE and gc.isenabled()
    if pauses:
        gc.disable()
    try:
        return _PARSER.decode(source)
    finally:
        if pauses:
            gc.enable()


def has_too_many_values(body: bytes | str) -> bool:
    """Return whether parsing might take more memory than any honest request of this size: an empty list takes 60 bytes.

    Counts what stands in texts, too, and takes a hundredth of the time of parsing.
    """
    if len(body) <= _MOST_OPENINGS:
        return False
    if isinstance(body, str):
        return body.count("{") + body.count("[") > _MOST_OPENINGS or body.count(",") > _MOST_COMMAS
    return body.count(b"{") + body.count(b"[") > _MOST_OPENINGS or body.count(b",") > _MOST_COMMAS


def _source(body: bytes | str) -> str:
    if isinstance(body, str):
        source = body
    else:
        try:
            source = body.decode()
        except UnicodeDecodeError as error:
            message = f"not valid UTF-8 at byte {error.start}"
            raise MalformedRequest(message, line=body.count(b"\n", 0, error.start) + 1) from error
    if source.startswith("\ufeff"):
        message = "not valid JSON: it starts with a byte order mark"
        raise MalformedRequest(message)
    return source


def _refuse_constant(name: str) -> NoReturn:
    message = f"{name} is not JSON; as a double it is written in quotes"
    raise ValueError(message)


_PARSER: Final = json.JSONDecoder(parse_constant=_refuse_constant)


def too_deep() -> MalformedRequest:
    """Return what is wrong with a request that nests too deeply."""
    return MalformedRequest(f"nested too deeply; at most {NESTING} levels are allowed")


def _nests_too_deeply(document: Any) -> bool:
    # Level by level, with one call for all values of a level: a loop over them would cost as much as the parsing.
    level = [document]
    for _ in range(NESTING + 1):
        level = gc.get_referents(*level)
        if not level:
            return False
    return True
