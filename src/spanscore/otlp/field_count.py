"""Whether a large message in protobuf has too many fields, found out before it is parsed.

A field may be two bytes long and take fifty when it is parsed: 64 MiB of them would become gigabytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from google.protobuf.message import Message

from spanscore.otlp.wire import field_at

PARSED_AT_ONCE: Final = 4 * 2**20
"""Bytes: a larger request is taken apart, and its spans are parsed one by one."""
MOST_FIELDS: Final = 1_500_000
"""Of one message and all in it."""

_LARGE: Final = 2**20  # bytes; what is smaller may have any number of fields

_DEEPEST: Final = 100  # protobuf's own limit
_SMALLEST: Final = 2  # bytes of a field
_SMALL: Final = 16  # bytes; of what is not longer the fields are not counted, but taken to be as many as fit


def has_too_many_fields(body: bytes, message_type: type[Message]) -> bool:
    """Return whether a serialized message of that type is large, and has more fields than are parsed.

    Raises:
        WireError: it is none.
    """
    if len(body) <= _LARGE:
        return False
    left = MOST_FIELDS
    # Depth first, so that what is still to be looked at is little.
    pending = [(0, len(body), _messages_in(message_type.DESCRIPTOR))]
    while pending and len(pending) <= _DEEPEST:  # the parser comes no deeper either
        position, end, inside = pending.pop()
        while position < end:
            number, start, position = field_at(body, position, end)
            left -= 1
            if number in inside:
                if position - start > _SMALL:
                    pending += ((position, end, inside), (start, position, _messages_in(inside[number])))
                    break
                left -= (position - start) // _SMALLEST
            if left < 0:
                return True
    return False


@cache
def _messages_in(message: Any) -> Mapping[int, Any]:
    """Return the types of the messages in a message, by the number of the field."""
    return {field.number: field.message_type for field in message.fields if field.message_type}
