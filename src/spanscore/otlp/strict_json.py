"""Strict JSON: in UTF-8, without the constants that JSON does not have, of bounded nesting; at once or in steps.

In steps, large values are opened a level at a time, and only small ones are parsed at once. msgspec reads the skipped
parts once; apart from invalid UTF-8 it accepts no JSON that `parse` refuses.
"""

from __future__ import annotations

import codecs
import gc
import json
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final, NoReturn

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, defstruct
from msgspec.json import Decoder
from msgspec.structs import asdict

from spanscore.otlp.findings import MalformedRequest
from spanscore.otlp.slices import Steps

_NESTING: Final = 1_000
"""The deepest nesting of a request's JSON; 64 nested attribute values take some 270 levels."""
_PARSER_KEEPS_TO_RECURSION_LIMIT: Final = sys.version_info < (3, 12)
"""From Python 3.12 on the parser follows much deeper than the interpreter's recursion limit."""

_LARGE: Final = 2**20
MOST_OPENINGS: Final = 2_000_000
"""Objects and lists."""
_MOST_COMMAS: Final = 4_000_000

_SURROGATE: Final = re.compile(r"\\u[dD]")
_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|(u[dD][89a-fA-F][\da-fA-F]{2})|.)", re.DOTALL
)
"""Any escape, read from the left; the group matches only in a surrogate without its other half."""

_KINDS: Final = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}

NULL: Final = Raw(b"null")
AT_ONCE: Final = 2**18
"""Bytes: more is parsed in steps, and so is what has more values than this."""
VALUES_AT_ONCE: Final = 1_024
"""Objects, lists and commas, also in texts: this many are parsed in half a millisecond, and rewritten in four."""

_CHECKED_AT_ONCE: Final = 2**22
_PASSED_AT_ONCE: Final = 8_192  # items that are passed over, or escapes


def members_decoder(names: Iterable[str], *, is_strict: bool = False) -> Decoder[Struct]:
    """Return a decoder that returns these members of an object unparsed, and skips the others, or refuses them."""
    members = [(name, Raw | UnsetType, UNSET) for name in names]
    return Decoder(defstruct("_Members", members, gc=False, forbid_unknown_fields=is_strict))


_ITEMS: Final = Decoder(list[Raw])
_WHOLE: Final = Decoder(Raw)

_SURROGATE_BYTES: Final = re.compile(_SURROGATE.pattern.encode())
_ESCAPE_BYTES: Final = re.compile(_ESCAPE.pattern.encode(), re.DOTALL)


def parse(body: bytes | str) -> Any:
    """Parse strict JSON in UTF-8; of two equal keys the last wins, and a lone surrogate becomes U+FFFD.

    Raises:
        MalformedRequest: it is none, or nests deeper than 1,000.
    """
    try:
        source = body if isinstance(body, str) else body.decode()
    except UnicodeDecodeError as error:
        message = f"not valid UTF-8 at byte {error.start}"
        raise MalformedRequest(message, line=error.object.count(b"\n", 0, error.start) + 1) from error
    if source.startswith("\ufeff"):
        raise MalformedRequest("not valid JSON: it starts with a byte order mark")
    if _SURROGATE.search(source):
        source = _ESCAPE.sub(lambda escape: "\\ufffd" if escape[1] else escape[0], source)
    return _parsed(source)


def parse_part(content: bytes) -> Any:
    """Parse like `parse` a part of what `opening` returned, which has no lone surrogates: a text may be 60 MiB long.

    Raises:
        MalformedRequest: it nests deeper than 1,000, or has a number of thousands of digits.
    """
    return _parsed(content.decode())


def _parsed(source: str) -> Any:
    try:
        document = _decoded(source)
    except json.JSONDecodeError as error:
        raise MalformedRequest(f"not valid JSON: {error.msg} (column {error.colno})", line=error.lineno) from error
    except RecursionError as error:
        raise too_deep() from error
    except ValueError as error:  # a constant that is no JSON, or a number of more digits than Python converts
        has_digits = str(error).startswith("Exceeds the limit")
        told = f"an integer has more than {sys.get_int_max_str_digits()} digits" if has_digits else error
        raise MalformedRequest(f"not valid JSON: {told}") from error
    is_bounded = _PARSER_KEEPS_TO_RECURSION_LIMIT and sys.getrecursionlimit() <= _NESTING  # a host may have raised it
    if not is_bounded and _nests_too_deeply(document):
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


def check_number_of_values(body: bytes | str, most: int = MOST_OPENINGS, noun: str = "request") -> None:
    """Refuse a request that might take more memory or time than any honest one of this size.

    Characters in texts count, too. The check takes a hundredth of the time of parsing.

    Args:
        body: the request; an empty list in it takes 60 bytes of memory.
        most: the most objects and lists that it may have; twice as many values, or four million.
        noun: the word for it in messages.

    Raises:
        MalformedRequest: it has more.
    """
    if len(body) <= most:
        return
    body = body.encode(errors="surrogatepass") if isinstance(body, str) else body
    commas = max(_MOST_COMMAS, 2 * most)
    if body.count(b"{") + body.count(b"[") > most or body.count(b",") > commas:
        raise MalformedRequest(f"the {noun} has more than {most:,} objects and lists, or {commas:,} values")


def is_small(raw: bytes | Raw, at_once: int = AT_ONCE) -> bool:
    """Return whether JSON is small enough to parse in one step. A scalar in a request always is."""
    if isinstance(raw, Raw) and bytes(memoryview(raw)[:1]) not in {b"{", b"["}:
        return True
    return len(raw) <= at_once and (len(raw) <= VALUES_AT_ONCE or has_few_values(bytes(raw), VALUES_AT_ONCE))


def has_few_values(body: bytes | str, most: int) -> bool:
    """Return whether JSON has at most so many objects, lists and commas; characters in texts count, too."""
    count: Callable[[Any], int] = body.count
    return sum(map(count, "{[," if isinstance(body, str) else (b"{", b"[", b","))) <= most


def opened(raw: Any, members: Decoder[Struct] | None = None) -> Any:
    """Return a value whose direct members are not parsed; a value that is parsed already is returned unchanged.

    Args:
        raw: the value.
        members: reads the members of an object that are returned; none without it.

    Raises:
        MalformedRequest: it nests deeper than can be read from where this is called.
    """
    if not isinstance(raw, Raw):
        return raw
    try:
        match bytes(memoryview(raw)[:1]):
            case b"[":
                return _ITEMS.decode(raw)
            case b"{":
                found = () if members is None else asdict(members.decode(raw)).items()
                return {name: value for name, value in found if value is not UNSET}
            case _:
                return parse_part(bytes(raw))
    except RecursionError as error:
        raise too_deep() from error


def kind_of_json(raw: Any) -> str:
    """Return the JSON type of a parsed value, for messages."""
    return _KINDS[type(raw)]


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON; as a double it is written in quotes")


_PARSER: Final = json.JSONDecoder(parse_constant=_refuse_constant)


def too_deep() -> MalformedRequest:
    """Return the error of a request that nests too deeply."""
    return MalformedRequest(f"nested too deeply; at most {_NESTING} levels are allowed")


def _nests_too_deeply(document: Any) -> bool:
    # Level by level, with one call for all values of a level: a loop over them would cost as much as the parsing.
    level = [document]
    for _ in range(_NESTING + 1):
        level = gc.get_referents(*level)
        if not level:
            return False
    return True


def checking_utf8(body: bytes) -> Steps[None]:
    """Check that bytes are UTF-8, as `parse` does, in steps.

    Raises:
        MalformedRequest: they are not UTF-8.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(body), _CHECKED_AT_ONCE):
        begun = len(decoder.getstate()[0])  # bytes of a character that continues here
        end = start + _CHECKED_AT_ONCE
        try:
            decoder.decode(body[start:end], end >= len(body))
        except UnicodeDecodeError as error:
            raise MalformedRequest(f"not valid UTF-8 at byte {start - begun + error.start}") from error
        yield


def opening(body: bytes) -> Steps[Raw]:
    """Return valid JSON as it is written, but for lone surrogates, in steps.

    Raises:
        MalformedRequest: it is not valid.
    """
    yield from checking_utf8(body)
    try:
        return _WHOLE.decode(body)
    except RecursionError as error:
        raise too_deep() from error
    except DecodeError as error:
        mended = yield from without_lone_surrogates(body)
        if mended != body:
            return (yield from opening(mended))
        raise MalformedRequest(f"not valid JSON: {str(error).removeprefix('JSON is malformed: ')}") from error


def without_lone_surrogates(body: bytes) -> Steps[bytes]:
    """Replace lone surrogates, as `parse` does, in steps; msgspec refuses them."""
    if not _SURROGATE_BYTES.search(body):
        return body
    mended = bytearray(body)
    for number, escape in enumerate(_ESCAPE_BYTES.finditer(body), 1):
        if escape[1]:
            mended[slice(*escape.span())] = rb"\ufffd"  # as long as the surrogate
        if not number % _PASSED_AT_ONCE:
            yield
    return bytes(mended)
