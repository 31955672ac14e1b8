"""Strict JSON in steps: what is large is taken apart a level at a time, and only what is small parsed at once.

What is passed over was read once by msgspec, which takes no JSON that `parse` refuses, but for invalid UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from msgspec import UNSET, Raw, Struct, UnsetType, ValidationError, defstruct
from msgspec.json import Decoder

from spanscore.otlp.findings import VALUES_PER_SPAN, MalformedRequest
from spanscore.otlp.slices import Steps
from spanscore.otlp.strict_json import ESCAPE, NESTING, SURROGATE, parse, too_deep

AT_ONCE: Final = 2**18
"""Bytes: more is parsed in steps. This much takes some 20 ms at the most."""

_CHECKED_AT_ONCE: Final = 2**22
_AT_ONCE: Final = 8_192  # items that are passed over, or escapes

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
_SURROGATE: Final = re.compile(SURROGATE.pattern.encode())
_ESCAPE: Final = re.compile(ESCAPE.pattern.encode(), re.DOTALL)
_CONTINUATION: Final = (0x80, 0xC0)  # of bytes of UTF-8 in the middle of a character


def parsing(raw: Raw, at_once: int = AT_ONCE) -> Steps[Any]:
    """Do what `parse` does with an object of OTLP/JSON, or a value in it, in steps.

    Of large objects only the members are kept that something may read, and of lists with more items than a span may
    have values it keeps of those behind whether they are objects, all of them: nothing else of them is ever read.

    Args:
        raw: what to parse.
        at_once: how many bytes of it are parsed at once.

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
    unread: dict[str, Any] | None = {} if _are_objects(raw) else None
    for start in range(VALUES_PER_SPAN, len(items), _AT_ONCE):
        passed = items[start : start + _AT_ONCE]
        items[start : start + len(passed)] = [unread] * len(passed)
        if max(map(len, passed)) > NESTING:  # only these may nest too deeply
            yield from (_Part(items, start + n, item) for n, item in enumerate(passed) if len(item) > NESTING)
        yield None


def _are_objects(raw: Raw) -> bool:
    try:
        _OBJECTS.decode(raw)
    except ValidationError:
        return False
    return True


def checking_utf8(body: bytes) -> Steps[None]:
    """Do what `parse` does about bytes that are not UTF-8, in steps.

    Raises:
        MalformedRequest: they are not.
    """
    start = 0
    while start < len(body):
        end = start + _CHECKED_AT_ONCE
        while end < len(body) and _CONTINUATION[0] <= body[end] < _CONTINUATION[1]:
            end += 1
        try:
            body[start:end].decode()
        except UnicodeDecodeError as error:
            message = f"not valid UTF-8 at byte {start + error.start}"
            raise MalformedRequest(message) from error
        start = end
        yield


def without_lone_surrogates(body: bytes) -> Steps[bytes]:
    """Do what `parse` does about lone surrogates, in steps; msgspec refuses them."""
    if not _SURROGATE.search(body):
        return body
    parts: list[bytes] = []
    behind = 0
    for number, escape in enumerate(_ESCAPE.finditer(body), 1):
        if escape[1]:
            parts += (body[behind : escape.start()], rb"\ufffd")
            behind = escape.end()
        if not number % _AT_ONCE:
            yield
    return b"".join([*parts, body[behind:]])
