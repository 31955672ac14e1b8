"""Whether bytes are a message in protobuf, found out in steps: for what is passed on as it came.

Fields that follow each other are a message by themselves. So a large one is parsed some fields at a time, and a field
that is large and a message itself is taken apart, too.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from spanscore.otlp.findings import MalformedRequest
from spanscore.otlp.slices import Steps
from spanscore.otlp.wire import Place, WireError, fields

AT_ONCE: Final = 2**20
"""Bytes: so much is parsed in some 10 ms."""

_FIELDS_AT_ONCE: Final = 8_192
_DEEPEST: Final = 100  # protobuf's own limit


def checking(body: bytes, message_type: type[Message], at_once: int = AT_ONCE) -> Steps[None]:
    """Find out whether bytes are a message of that type.

    Args:
        body: the bytes.
        message_type: the type.
        at_once: how many bytes are parsed at once.

    Raises:
        MalformedRequest: they are not.
    """
    try:
        yield from _checking(body, (0, len(body)), message_type, at_once, _DEEPEST)
    except (DecodeError, WireError) as error:
        message = f"not an {message_type.DESCRIPTOR.name} in protobuf"
        raise MalformedRequest(message) from error


def _checking(body: bytes, place: Place, message_type: Any, at_once: int, levels: int) -> Steps[None]:
    begin, end = place
    if end - begin <= at_once or not levels:
        message_type.FromString(body[begin:end])
        return
    inside = message_type.DESCRIPTOR.fields_by_number
    for count, (start, number, first, behind) in enumerate(fields(body, place), 1):
        if behind - begin > at_once:
            message_type.FromString(body[begin:start])
            begin = start
            yield
        known = inside.get(number)
        if behind - begin > at_once and known is not None and known.message_type:
            yield from _checking(body, (first, behind), GetMessageClass(known.message_type), at_once, levels - 1)
            begin = behind
        if not count % _FIELDS_AT_ONCE:
            yield
    message_type.FromString(body[begin:end])
