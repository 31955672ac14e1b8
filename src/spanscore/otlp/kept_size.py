"""What decoded values keep in memory, in bytes: about, and never less than their texts take.

The size on the wire says little: a request of one large span and a thousand small ones is not shared equally, values
are left out, and a value of two bytes takes fifty.
"""

from __future__ import annotations

from collections.abc import Iterable
from sys import getsizeof
from typing import Final

SPAN_SIZE: Final = 640
"""A span without attributes, with short names, and its place in the table of traces."""
EVENT_SIZE: Final = 256
VALUE_SIZE: Final = 128
"""A value and its place in its mapping or list: a number, or what key and text take beside their characters."""

SHORT_CHARS: Final = 64
"""What is not longer, and ASCII, is one object in many spans, where it repeats."""

SHORT_NAMES: Final = 96
"""So many characters of names are in the size of a span."""


def text_size(text: str) -> int:
    """Return what a text takes, beside its place."""
    length = len(text)
    return length if length <= SHORT_CHARS and text.isascii() else getsizeof(text)


def keys_size(keys: Iterable[str]) -> int:
    """Return what the keys of a mapping take, beside their places."""
    return getsizeof("".join(keys))


def names_size(name: str, status_message: str, scope: str) -> int:
    """Return what these take beside the size of a span, which covers short ones."""
    if len(name) + len(status_message) + len(scope) <= SHORT_NAMES:
        return 0
    return getsizeof(name) + getsizeof(status_message) + getsizeof(scope)
