"""The memory of decoded values, in bytes: approximate, and never less than the memory of their texts.

The size on the wire is no measure: a request of one large span and a thousand small ones is not shared equally, values
are left out, and a value of two bytes takes fifty.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from sys import getsizeof
from typing import Any, Final

from spanscore.model import Span

SPAN_SIZE: Final = 640
"""A span without attributes, with short names, and its place in the table of traces."""
EVENT_SIZE: Final = 256
VALUE_SIZE: Final = 128
"""A value and its place in its mapping or list: a number, or key and text without their characters."""

SHORT_CHARS: Final = 64
"""ASCII text up to this length is one object in all spans that repeat it."""

SHORT_NAMES: Final = 96
"""So many characters of names are in the size of a span."""

_MOST_COUNTED: Final = 16_384


ASCII_SIZE: Final = getsizeof("aa") - 2
"""Bytes of an ASCII text without its characters."""


def text_memory(text: str) -> int:
    """Return the bytes of a text, or of all keys of a mapping as one text: those of `getsizeof`, which takes longer."""
    return ASCII_SIZE + len(text) if text.isascii() else getsizeof(text)


def text_size(text: str) -> int:
    """Return the bytes of a text, without its place."""
    return len(text) if len(text) <= SHORT_CHARS and text.isascii() else text_memory(text)


def names_size(name: str, status_message: str, scope: str) -> int:
    """Return the bytes of these names in addition to `SPAN_SIZE`, which covers short ones."""
    if len(name) + len(status_message) + len(scope) <= SHORT_NAMES:
        return 0
    return text_memory(name) + text_memory(status_message) + text_memory(scope)


def attributes_size(attributes: Mapping[str, Any]) -> int:
    """Return the bytes of attributes that no decoder has counted; of very many values only the first are counted."""
    size = count = 0
    unseen: list[Any] = [attributes]
    while unseen and count < _MOST_COUNTED:  # a list that holds another one twice has more values than it takes
        each = unseen.pop()
        count += len(each)
        size += len(each) * VALUE_SIZE
        values = each
        if isinstance(each, Mapping):
            size += text_memory("".join(key for key in each if isinstance(key, str)))
            values = each.values()
        for value in islice(values, _MOST_COUNTED):
            if isinstance(value, str):
                size += text_size(value)
            elif isinstance(value, bytes):
                size += getsizeof(value)
            elif isinstance(value, (list, tuple, Mapping)):
                unseen.append(value)
    return size


def span_size(span: Span) -> int:
    """Return the bytes of a span that no decoder has counted, without shared objects."""
    size = SPAN_SIZE + names_size(span.name, span.status_message, span.scope) + attributes_size(span.attributes)
    for event in span.events:
        size += EVENT_SIZE + text_size(event.name) + attributes_size(event.attributes)
    return size
