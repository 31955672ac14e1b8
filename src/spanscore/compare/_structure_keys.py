"""Keys of JSON values whose hashes a sender cannot choose: if these collided, tables of keys would take quadratic time.

Python hashes text and bytes with a secret, but numbers by their remainder: numbers that could collide become bytes. The
keys of lists and objects are their JSON text, in one spelling: nested tuples would take thirty times as long for
arguments with a million values, and more memory.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from math import isfinite
from operator import itemgetter
from typing import Any, Final

import msgspec

NUMBERS: Final = frozenset({int, float})
DISTINCT: Final = 2**61 - 1
"""Python hashes a number to its remainder by this: integers nearer to 0 have hashes of their own, all others not."""


_encode: Final = msgspec.json.Encoder(enc_hook=repr, order="sorted").encode
_MAY_VARY: Final = re.compile(rb"\.0|\de|\d{19}")
"""Part of the text of each float that is a whole number, and of each integer beyond 64 bits; texts may have it, too."""
_pack: Final = msgspec.msgpack.Encoder(enc_hook=repr).encode
_NOT_FINITE: Final = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")
"""Part of each NaN and infinity in MessagePack, where JSON has `null`; other values may have it, too."""
_LEVELS: Final = 32
"""Deeper values are not read by recursion: it could exhaust the stack."""
_PLAIN: Final = frozenset({bool, type(None)})


def number_key(value: float) -> Hashable:
    """Return a key that is equal for equal numbers, and has few hash collisions: mostly the number itself."""
    return value if -DISTINCT < value < DISTINCT else secret_key(value)


def secret_key(value: float) -> bytes:
    """Return a key that is equal for equal numbers, and hashed with a secret. No text is equal to it."""
    if type(value) is int or value.is_integer():
        return b"%x" % int(value)  # in base 16 there is no limit to the digits, and it takes little time
    return repr(value).encode()


def structure_key(value: Any) -> bytes:
    """Return a key that is equal for equal lists and objects.

    What is not JSON, but a caller in Python may pass by mistake, is equal to what JSON makes of it: a tuple to a list.
    """
    try:
        key = _encode(value)
        may_vary = _MAY_VARY.search(key) or (b"null" in key and _NOT_FINITE.search(_pack(value)))
    except Exception:  # noqa: BLE001 - too deep, an integer too long, a lone surrogate, or no JSON at all
        return _encode(_spelled(value, _LEVELS))
    return _encode(_spelled(value, _LEVELS)) if may_vary else key


def _spelled(value: Any, levels: int) -> Any:
    """Return a value that is written like all values that are equal to it."""
    kind = type(value)
    if kind is str:
        return _clean(value)
    if kind is int or kind is float:
        return _number(value)
    if kind is dict or kind is list or kind is tuple:
        if not levels:
            return msgspec.Raw(_flat(value))
        if kind is dict:
            return {_clean(name): _spelled(item, levels - 1) for name, item in value.items()}
        return [_spelled(item, levels - 1) for item in value]
    return value if kind in _PLAIN else repr(value)


def _number(value: float) -> Any:
    if type(value) is float and not value.is_integer():
        return value if isfinite(value) else msgspec.Raw(repr(value).encode())
    whole = int(value)  # in base 16 there is no limit to the digits, and it takes little time
    return whole if -(2**63) <= whole < 2**64 else msgspec.Raw(b"0x%x" % whole)


def _clean(text: Any) -> str:
    """Return a text that can be encoded."""
    if type(text) is not str:
        return repr(text)
    try:
        text.encode()
    except UnicodeEncodeError:
        return repr(text)
    return text


def _flat(value: Any) -> bytes:
    """Return the JSON text of a list or an object as `_encode` writes it, without recursion."""
    parts: list[bytes] = []
    pending = [value]
    while pending:
        current = pending.pop()
        kind = type(current)
        if kind is dict:
            ends, members = b"{}", []
            for name, item in sorted(((_clean(name), item) for name, item in current.items()), key=itemgetter(0)):
                members += [b",", _encode(name) + b":", item]
        elif kind is list or kind is tuple:
            ends, members = b"[]", [member for item in current for member in (b",", item)]
        else:
            parts.append(current if kind is bytes else _encode(_spelled(current, 1)))
            continue
        parts.append(ends[:1])
        pending.append(ends[1:])
        pending += reversed(members[1:])
    return b"".join(parts)
