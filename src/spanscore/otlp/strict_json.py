"""Strict JSON: in UTF-8, without the constants that JSON does not have, of bounded nesting; at once or in steps.

In steps, what is large is taken apart a level at a time, and only what is small parsed at once. What is passed over was
read once by msgspec, which takes no JSON that `parse` refuses, but for invalid UTF-8.
"""

from __future__ import annotations

import codecs
import gc
import json
import re
import sys
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, NoReturn

from msgspec import UNSET, Raw, Struct, UnsetType, ValidationError, defstruct
from msgspec.json import Decoder

from spanscore.otlp.findings import VALUES_PER_SPAN, MalformedRequest
from spanscore.otlp.slices import Steps

_NESTING: Final = 1_000
"""How deep the JSON of a request may nest; 64 nested attribute values take some 270."""
_PARSER_KEEPS_TO_NESTING: Final = sys.version_info < (3, 12)
"""From Python 3.12 on the parser follows much deeper than the interpreter's recursion limit."""

_LARGE: Final = 2**20
_MOST_OPENINGS: Final = 2_000_000
_MOST_COMMAS: Final = 4_000_000

_SURROGATE: Final = re.compile(r"\\u[dD]")
_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|(u[dD][89a-fA-F][\da-fA-F]{2})|.)", re.DOTALL
)
"""Any escape, read from the left; the group matches only in a surrogate without its other half."""

AT_ONCE: Final = 2**18
"""Bytes: more is parsed in steps. This much takes some 20 ms at the most."""

_CHECKED_AT_ONCE: Final = 2**22
_PASSED_AT_ONCE: Final = 8_192  # items that are passed over, or escapes

_READ: Final = (
    *("traceId", "spanId", "parentSpanId", "flags", "name", "kind", "startTimeUnixNano", "endTimeUnixNano"),
    *("attributes", "droppedAttributesCount", "events", "timeUnixNano", "links", "status", "code", "message"),
    *("key", "keyStrindex", "value", "stringValue", "boolValue", "intValue", "doubleValue", "bytesValue"),
    *("arrayValue", "kvlistValue", "values", "stringValueStrindex"),
)
"""All that is read of any object in a resource, a scope or a span: an object may have millions of other members."""

_MEMBERS: Final[Decoder[Struct]] = Decoder(
    defstruct("_Members", [(name, Raw | UnsetType, UNSET) for name in _READ], gc=False)
)
_ITEMS: Final = Decoder(list[Raw])
_OBJECTS: Final = Decoder(list[defstruct("_Object", [], gc=False)])  # type: ignore[misc] # what is made here is a type

_EMPTY_OBJECT: Final = re.compile(rb"\{[ \t\r\n]*\}")
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
        message = "not valid JSON: it starts with a byte order mark"
        raise MalformedRequest(message)
    if _SURROGATE.search(source):
        source = _ESCAPE.sub(lambda escape: "\\ufffd" if escape[1] else escape[0], source)
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
    body = body.encode(errors="surrogatepass") if isinstance(body, str) else body
    return body.count(b"{") + body.count(b"[") > _MOST_OPENINGS or body.count(b",") > _MOST_COMMAS


def _refuse_constant(name: str) -> NoReturn:
    message = f"{name} is not JSON; as a double it is written in quotes"
    raise ValueError(message)


_PARSER: Final = json.JSONDecoder(parse_constant=_refuse_constant)


def too_deep() -> MalformedRequest:
    """Return what is wrong with a request that nests too deeply."""
    return MalformedRequest(f"nested too deeply; at most {_NESTING} levels are allowed")


def _nests_too_deeply(document: Any) -> bool:
    # Level by level, with one call for all values of a level: a loop over them would cost as much as the parsing.
    level = [document]
    for _ in range(_NESTING + 1):
        level = gc.get_referents(*level)
        if not level:
            return False
    return True


def parsing(raw: Raw, at_once: int = AT_ONCE) -> Steps[Any]:
    """Do what `parse` does with an object of OTLP/JSON, or a value in it, in steps.

    Of large objects only the members are kept that something may read, and of lists with more items than a span may
    have values it keeps of those behind whether they are objects, all of them: nothing else of them is ever read.

    Raises:
        MalformedRequest: as `parse`.
    """
    whole: list[Any] = [None]
    left: list[Iterator[_Part | None]] = [iter([_Part(whole, 0, raw)])]  # not by recursion: it may nest a thousand deep
    while left:
        try:
            part = next(left[-1])
        except StopIteration:
            left.pop()
            continue
        if part is not None:
            part.into[part.key], inside = _read(part.raw, at_once)
            left += inside
        yield
    return whole[0]


class _Part(NamedTuple):
    """A value that is still to be parsed."""

    into: Any
    key: Any
    raw: Raw


def _read(raw: Raw, at_once: int) -> tuple[Any, list[Iterator[_Part | None]]]:
    """Return a value, and where it is large the parts that are to be read into it."""
    opening = bytes(memoryview(raw)[:1])
    if len(raw) <= at_once or opening not in {b"{", b"["}:
        return parse(bytes(raw)), []
    try:
        if opening == b"{":
            # What is not kept must not make it an empty one.
            parsed: dict[str, Any] = {} if _EMPTY_OBJECT.match(raw) else {"": None}
            return parsed, [_members(_MEMBERS.decode(raw), parsed)]
        items: list[Any] = _ITEMS.decode(raw)
        return items, [_items(raw, items)]
    except RecursionError as error:
        raise too_deep() from error


def _members(members: Struct, parsed: dict[str, Any]) -> Iterator[_Part]:
    for name in _READ:
        if (raw := getattr(members, name)) is not UNSET:
            yield _Part(parsed, name, raw)


def _items(raw: Raw, items: list[Any]) -> Iterator[_Part | None]:
    """Yield the items that are to be read, and None now and then while the others are passed over."""
    yield from (_Part(items, index, item) for index, item in enumerate(items[:VALUES_PER_SPAN]))
    if len(items) <= VALUES_PER_SPAN:
        return
    unread: dict[str, Any] | None = {}
    try:
        _OBJECTS.decode(raw)
    except ValidationError:
        unread = None
    for start in range(VALUES_PER_SPAN, len(items), _PASSED_AT_ONCE):
        passed = items[start : start + _PASSED_AT_ONCE]
        items[start : start + len(passed)] = [unread] * len(passed)
        if max(map(len, passed)) > _NESTING:  # only these may nest too deeply
            yield from (_Part(items, start + n, item) for n, item in enumerate(passed) if len(item) > _NESTING)
        yield None


def checking_utf8(body: bytes) -> Steps[None]:
    """Do what `parse` does about bytes that are not UTF-8, in steps.

    Raises:
        MalformedRequest: they are not.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(body), _CHECKED_AT_ONCE):
        begun = len(decoder.getstate()[0])  # bytes of a character that goes on here
        end = start + _CHECKED_AT_ONCE
        try:
            decoder.decode(body[start:end], end >= len(body))
        except UnicodeDecodeError as error:
            message = f"not valid UTF-8 at byte {start - begun + error.start}"
            raise MalformedRequest(message) from error
        yield


def without_lone_surrogates(body: bytes) -> Steps[bytes]:
    """Do what `parse` does about lone surrogates, in steps; msgspec refuses them."""
    if not _SURROGATE_BYTES.search(body):
        return body
    parts: list[bytes] = []
    behind = 0
    for number, escape in enumerate(_ESCAPE_BYTES.finditer(body), 1):
        if escape[1]:
            parts += (body[behind : escape.start()], rb"\ufffd")
            behind = escape.end()
        if not number % _PASSED_AT_ONCE:
            yield
    return b"".join([*parts, body[behind:]])
