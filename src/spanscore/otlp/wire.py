"""The protobuf wire format, as far as it takes to find the messages inside a message without parsing them.

Bounded and without recursion: a walk takes time in proportion to the bytes, whatever they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import Final, TypeAlias

Place: TypeAlias = tuple[int, int]
"""The place of a message in the bytes: its first byte, and the byte after its last."""

VARINT: Final = 0
FIXED64: Final = 1
LENGTH_DELIMITED: Final = 2
_START_GROUP: Final = 3
_END_GROUP: Final = 4
FIXED32: Final = 5

_FIRST_TAG: Final = 1 << 3  # field numbers count from 1, and have 29 bits
_LAST_TAG: Final = 2**32 - 1

_MORE: Final = 0x80  # set on each byte of a varint but its last
_ONE_BYTE: Final = tuple(bytes([value]) for value in range(_MORE))
_VARINT_BYTES: Final = 10
_VARINTS_REMEMBERED: Final = 1_024
_MOST_IN_GROUP: Final = 16
"""Fields and ends of groups in one unknown group, so that a walk over fields skips little with each: OTLP has none."""

# What nearly every field begins with, which is read without a call: a tag of one byte, and a length of one or two.
_ONE_BYTE_AND_TYPE: Final = 0x87
_SHORT_PREFIX: Final = 2
_LONGEST_SHORT: Final = 2**14 - 1


FIELDS_LOOKED_AT: Final = 2_048
"""Fields of a refused span or log record that are looked at for its ids: more than any that is not refused may have."""


class WireError(ValueError):
    """The bytes are not in the protobuf wire format."""


def fields(body: bytes, place: Place) -> Iterator[tuple[int, int, int, int]]:
    """Yield the start of every field of the message at `place`, and the result of `field_at`.

    Raises:
        WireError: the message is broken; raised after the fields before the break were yielded.
    """
    start, end = place
    while start < end:
        number, first, behind = field_at(body, start, end)
        yield start, number, first, behind
        start = behind


def contents(body: bytes, place: Place, number: int) -> Iterator[Place]:
    """Yield the place of the content of each field of that number; raises as `fields`."""
    return ((first, behind) for _, known, first, behind in fields(body, place) if known == number)


def field_at(body: bytes, position: int, end: int) -> tuple[int, int, int]:
    """Return the number of the field at `position`, the start of its content, and its end.

    The number is 0, and the content empty, unless the field is length-delimited; the message around it ends at `end`.

    Raises:
        WireError: it is broken.
    """
    tag = body[position]
    if tag & _ONE_BYTE_AND_TYPE == LENGTH_DELIMITED and tag >= _FIRST_TAG and position + _SHORT_PREFIX < end:
        length, first = body[position + 1], position + _SHORT_PREFIX
        if length >= _MORE:
            length, first = length ^ _MORE | body[first] << 7, first + 1
        behind = first + length
        if length <= _LONGEST_SHORT and behind <= end:
            return tag >> 3, first, behind
    tag, first = _tag(body, position, end)
    behind = _skip(body, first, end, tag)
    return (tag >> 3, _varint(body, first, end)[1], behind) if tag & 7 == LENGTH_DELIMITED else (0, behind, behind)


def length_delimited(number: int, content: bytes) -> bytes:
    """Encode a length-delimited field."""
    return encoded_tag(number) + behind_length(content)


def behind_length(content: bytes) -> bytes:
    """Encode the content of a length-delimited field behind its length."""
    return _encoded_varint(len(content)) + content


def length_prefix(number: int, length: int) -> bytes:
    """Encode the tag and the length before the content of a length-delimited field."""
    return encoded_tag(number) + _encoded_varint(length)


def encoded_tag(number: int, wire_type: int = LENGTH_DELIMITED) -> bytes:
    """Encode the tag of a field."""
    return _encoded_varint(number << 3 | wire_type)


def joined_field(body: bytes, place: Place, number: int) -> bytes:
    """Return the length-delimited field of that number; empty when it is absent, joined when it comes in parts.

    Raises:
        WireError: the message is broken.
    """
    return b"".join(body[first:end] for _, found, first, end in fields(body, place) if found == number)


def readable_field(body: bytes, place: Place, number: int, most: int | None = None) -> bytes:
    """Return the last length-delimited field of that number before any break of the message; empty if there is none.

    Args:
        body: the bytes around the message.
        place: the place of the message.
        number: the number of the field.
        most: the most fields of the message to read; None for all, which may be millions.
    """
    content = b""
    with suppress(WireError):
        for _, found, first, end in islice(fields(body, place), most):
            content = body[first:end] if found == number else content
    return content


def is_utf8(content: bytes) -> bool:
    """Return whether the content of a field can be a text."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _varint(body: bytes, position: int, end: int) -> tuple[int, int]:
    """Return the number, and the position after it."""
    value = shift = 0
    for index in range(position, min(end, position + _VARINT_BYTES)):
        byte = body[index]
        if byte < _MORE:
            return value | byte << shift, index + 1
        value |= (byte ^ _MORE) << shift
        shift += 7
    raise WireError(f"the number at byte {position} does not end")


def _tag(body: bytes, position: int, end: int) -> tuple[int, int]:
    """Return a tag, and the position after it."""
    tag, behind = _varint(body, position, end)
    if not _FIRST_TAG <= tag <= _LAST_TAG:
        raise WireError(f"at byte {position} is no field number")
    return tag, behind


@lru_cache(_VARINTS_REMEMBERED)  # most are tags and short lengths
def _encoded_varint(value: int) -> bytes:
    if 0 <= value < _MORE:  # nearly all tags and most lengths
        return _ONE_BYTE[value]
    encoded = bytearray()
    while value >= _MORE:
        encoded.append(value & (_MORE - 1) | _MORE)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _skip(body: bytes, position: int, end: int, tag: int) -> int:
    """Return the position after a field whose tag was read; groups may nest."""
    groups: list[int] = []
    for _ in range(_MOST_IN_GROUP + 1):
        wire_type = tag & 7
        start = position
        if wire_type == VARINT:
            _, position = _varint(body, position, end)
        elif wire_type == FIXED64:
            position += 8
        elif wire_type == FIXED32:
            position += 4
        elif wire_type == LENGTH_DELIMITED:
            length, start = _varint(body, position, end)
            position = start + length
        elif wire_type == _START_GROUP:
            groups.append(tag >> 3)
        elif wire_type == _END_GROUP and groups and groups[-1] == tag >> 3:
            groups.pop()
        else:
            raise WireError(f"byte {position} is behind a tag that protobuf does not know")
        if position > end:
            raise WireError(f"the field at byte {start} is cut off")
        if not groups:
            return position
        tag, position = _tag(body, position, end)
    raise WireError(f"the group before byte {position} has more than {_MOST_IN_GROUP} fields")
