"""Readers of the scalars of OTLP/JSON: numbers (also as text), text, bytes, ids, and names of enumerations."""

from __future__ import annotations

import math
import re
from binascii import a2b_base64, unhexlify
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor

from spanscore.otlp.findings import Refusal, SpanRefused
from spanscore.otlp.ids import told_of_id

INT64: Final = (-(2**63), 2**63 - 1)

_BOUNDS: Final[Mapping[int, tuple[int, int]]] = {
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_FIXED32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_SINT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
    FieldDescriptor.TYPE_FIXED64: (0, 2**64 - 1),
    FieldDescriptor.TYPE_INT64: INT64,
    FieldDescriptor.TYPE_SFIXED64: INT64,
}
_IDS: Final = {
    "traceId": (Refusal.INVALID_TRACE_ID, "trace_id", 16),
    "spanId": (Refusal.INVALID_SPAN_ID, "span_id", 8),
    "parentSpanId": (Refusal.INVALID_PARENT_SPAN_ID, "parent_span_id", 8),
}
_LABELS: Final = {
    "KeyValue.key": "the key of an attribute",
    "Event.name": "the name of an event",
    "Event.time_unix_nano": "timeUnixNano of an event",
    "Status.code": "status.code",
    "Status.message": "status.message",
}
"""The names of fields in messages, for fields whose own name is not clear."""

_DIGITS: Final = 20  # of the largest 64-bit number; Python refuses to convert texts of some thousand
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_NAMED_DOUBLES: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_TO_STANDARD_BASE64: Final = str.maketrans("-_", "+/")
_NAMES_LISTED: Final = 6


def scalar_reader(field: Any) -> Callable[[Any], Any]:
    """Return a function that reads the values of a protobuf field, and raises SpanRefused for a wrong one."""
    message = field.containing_type.name
    name = _LABELS.get(f"{message}.{field.name}", field.json_name)
    if field.json_name in _IDS:
        refusal, told, length = _IDS[field.json_name]
        if message == "Link":
            refusal, told = Refusal.INVALID_LINK, f"{told} of a link"
        return partial(_identifier, refusal=refusal, name=told, length=length)
    if field.type == FieldDescriptor.TYPE_ENUM:
        return partial(_enum, numbers={each.name: each.number for each in field.enum_type.values}, name=name)
    if (bounds := _BOUNDS.get(field.type)) is not None:
        refusal = Refusal.INVALID_TIME if field.json_name.endswith("UnixNano") else Refusal.INVALID_VALUE
        return partial(integer, bounds=bounds, name=name, refusal=refusal)
    return partial(_OTHERS[field.type], name=name)


def is_repeated(field: Any) -> bool:
    """Return whether a field of a protobuf message is a list; the attribute's name depends on protobuf's version."""
    return bool(field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED)


def integer(raw: Any, bounds: tuple[int, int], name: str, refusal: Refusal = Refusal.INVALID_VALUE) -> int:
    """Read a number that JSON may write as a number or a string, in any notation."""
    number = _integer(raw)
    if number is None or not bounds[0] <= number <= bounds[1]:
        raise SpanRefused(refusal, f"{name} must be an integer from {bounds[0]} to {bounds[1]}")
    return number


def text(raw: Any, name: str) -> str:
    """Read a string."""
    if not isinstance(raw, str):
        raise SpanRefused(Refusal.INVALID_VALUE, f"{name} must be a string")
    return raw


def identifier(raw: Any) -> bytes | None:
    """Read an id; None if the value is not one."""
    try:
        return unhexlify(raw)
    except (ValueError, TypeError):
        return None


def _identifier(raw: Any, refusal: Refusal, name: str, length: int) -> bytes:
    read = identifier(raw)
    if read is None:
        raise SpanRefused(refusal, told_of_id(name, raw, length))
    return read


def _integer(raw: Any) -> int | None:
    if raw.__class__ is int:  # not isinstance: true is no number
        return int(raw)
    if raw.__class__ is str:
        if len(raw) <= _DIGITS and raw.isascii() and raw.removeprefix("-").isdigit():
            return int(raw)
        if not _NUMBER.fullmatch(raw) or not _is_whole(raw):
            return None
        raw = float(raw)
    # 1e18 is a number like any other; beyond the exact doubles it is what the sender's own double was.
    return int(raw) if raw.__class__ is float and raw.is_integer() else None


def _is_whole(number: str) -> bool:
    """Return whether a number in text has no fraction, however small: a double loses what is behind 16 digits."""
    try:
        exact = Decimal(number)
    except ArithmeticError:  # its exponent has some twenty digits
        return False
    return exact == exact.to_integral_value()


def _enum(raw: Any, numbers: Mapping[str, int], name: str) -> int:
    if not isinstance(raw, str):
        return integer(raw, _BOUNDS[FieldDescriptor.TYPE_INT32], name, Refusal.INVALID_ENUM)
    if raw not in numbers:
        first, *others = numbers
        known = f"one of {', '.join(numbers)}" if len(numbers) <= _NAMES_LISTED else f"{first} to {others[-1]}"
        raise SpanRefused(Refusal.INVALID_ENUM, f"{name} must be an integer or {known}")
    return numbers[raw]


def _bool(raw: Any, name: str) -> bool:
    if not isinstance(raw, bool):
        raise SpanRefused(Refusal.INVALID_VALUE, f"{name} must be true or false")
    return raw


def _double(raw: Any, name: str) -> float:
    if raw.__class__ is str and raw in _NAMED_DOUBLES:
        return _NAMED_DOUBLES[raw]
    if raw.__class__ in {int, float} or (raw.__class__ is str and _NUMBER.fullmatch(raw)):
        try:
            number = float(raw)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise SpanRefused(Refusal.INVALID_VALUE, f'{name} must be a 64-bit number, "NaN", "Infinity" or "-Infinity"')


def _bytes(raw: Any, name: str) -> bytes:
    encoded = text(raw, name).translate(_TO_STANDARD_BASE64).rstrip("=")
    try:
        return a2b_base64(encoded + "=" * (-len(encoded) % 4), strict_mode=True)
    except ValueError:
        raise SpanRefused(Refusal.INVALID_VALUE, f"{name} must be base64") from None


_OTHERS: Final[Mapping[int, Callable[..., Any]]] = {
    FieldDescriptor.TYPE_STRING: text,
    FieldDescriptor.TYPE_BYTES: _bytes,
    FieldDescriptor.TYPE_BOOL: _bool,
    FieldDescriptor.TYPE_DOUBLE: _double,
}
