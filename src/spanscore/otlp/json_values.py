"""The values inside an OTLP/JSON span: attributes, and the ways JSON writes numbers, text and bytes."""

from __future__ import annotations

import math
import re
from binascii import a2b_base64
from collections.abc import Callable
from sys import getsizeof
from typing import Any, Final, TypeAlias

from spanscore.model import EMPTY, Attributes, AttributeValue
from spanscore.otlp.findings import (
    ATTRIBUTES_PER_SPAN,
    VALUE_DEPTH,
    VALUE_LENGTH,
    Caveat,
    Findings,
    Refusal,
    SpanRefused,
    ValueLeftOut,
)
from spanscore.otlp.kept_size import VALUE_SIZE, keys_size, text_size
from spanscore.reading.wanted import WantedAttributes

Bounds: TypeAlias = tuple[int, int]

UINT32: Final = (0, 2**32 - 1)
INT32: Final = (-(2**31), 2**31 - 1)
UINT64: Final = (0, 2**64 - 1)
INT64: Final = (-(2**63), 2**63 - 1)

_DIGITS: Final = 20  # of the largest 64-bit number; Python refuses to convert texts of some thousand
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_NAMED_DOUBLES: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_TO_STANDARD_BASE64: Final = str.maketrans("-_", "+/")


def attributes(raw: Any, findings: Findings, wanted: WantedAttributes | None = None) -> Attributes:
    """Read a list of KeyValue, or those that are wanted; of two equal keys the last wins."""
    if raw is None or raw == []:
        return EMPTY
    if not isinstance(raw, list):
        raise SpanRefused(Refusal.INVALID_VALUE, "attributes must be an array")
    values = findings.values + len(raw)
    if len(raw) > ATTRIBUTES_PER_SPAN or values > findings.most_values:
        raw = findings.first(raw)
    else:
        findings.values = values
    read: dict[str, AttributeValue] = {}
    for pair in raw:
        if wanted is not None and _is_unwanted(pair, wanted):
            continue
        before = findings.size
        try:
            key, value = _pair(pair, 1, findings)
        except ValueLeftOut as left_out:
            findings.size = before
            findings.leave_out_attributes(1, left_out.caveat)
        else:
            read[key] = value
    if not read:
        return EMPTY
    findings.size += len(read) * VALUE_SIZE + keys_size(read)
    return read


def any_value(raw: Any, findings: Findings) -> AttributeValue:
    """Read an AnyValue; None where it is absent, or too long."""
    try:
        return _value(raw, 1, findings)
    except ValueLeftOut:
        return None


def _is_unwanted(pair: Any, wanted: WantedAttributes) -> bool:
    if pair.__class__ is not dict:
        return False
    key = pair.get("key")
    return (key is None or isinstance(key, str)) and wanted[key or ""] is None


def integer(raw: Any, bounds: Bounds, name: str, refusal: Refusal = Refusal.INVALID_VALUE) -> int:
    """Read a number that JSON may write as a number or a string, in any notation; absent is 0."""
    if raw is None:
        return 0
    number = _integer(raw)
    if number is None or not bounds[0] <= number <= bounds[1]:
        raise SpanRefused(refusal, f"{name} must be an integer from {bounds[0]} to {bounds[1]}")
    return number


def text(raw: Any, name: str) -> str:
    """Read a string; absent is empty."""
    if raw is None:
        return ""
    if not isinstance(raw, str):
        raise SpanRefused(Refusal.INVALID_VALUE, f"{name} must be a string")
    return raw


def _integer(raw: Any) -> int | None:
    if raw.__class__ is int:  # not isinstance: true is no number
        return int(raw)
    if raw.__class__ is str:
        if len(raw) <= _DIGITS and raw.isascii() and raw.removeprefix("-").isdigit():
            return int(raw)
        if not _NUMBER.fullmatch(raw):
            return None
        raw = float(raw)
    # 1e18 is a number like any other; beyond the exact doubles it is what the sender's own double was.
    return int(raw) if raw.__class__ is float and raw.is_integer() else None


def _pair(raw: Any, depth: int, findings: Findings) -> tuple[str, AttributeValue]:
    if raw.__class__ is not dict:
        raise SpanRefused(Refusal.INVALID_VALUE, "an attribute must be an object with key and value")
    key = text(raw.get("key"), "the key of an attribute")
    if not key and raw.get("keyStrindex"):
        findings.caveats[Caveat.PROFILING_FIELD] += 1
    try:
        return key, _value(raw.get("value"), depth, findings)
    except SpanRefused as refused:
        raise SpanRefused(refused.reason, f"attribute {key[:100]!r}: {refused}") from None


def _value(raw: Any, depth: int, findings: Findings) -> AttributeValue:
    if raw is None:
        return None
    if raw.__class__ is not dict:
        raise SpanRefused(Refusal.INVALID_VALUE, 'the value must be an object such as {"stringValue": ...}')
    if depth > VALUE_DEPTH:
        findings.caveats[Caveat.DEPTH_LIMIT] += 1
        return None
    members = [(member, value) for member, value in raw.items() if value is not None and member in _MEMBERS]
    if not members:
        return None
    if len(members) > 1:
        raise SpanRefused(
            Refusal.INVALID_VALUE, f"{' and '.join(sorted(member for member, _ in members))} exclude each other"
        )
    member, value = members[0]
    return _MEMBERS[member](value, depth, findings)


def _string(raw: Any, _depth: int, findings: Findings) -> str:
    value = text(raw, "stringValue")
    if len(value) > VALUE_LENGTH:
        raise ValueLeftOut(Caveat.ATTRIBUTE_LIMIT)
    findings.size += text_size(value)
    return value


def _bool(raw: Any, _depth: int, _findings: Findings) -> bool:
    if not isinstance(raw, bool):
        raise SpanRefused(Refusal.INVALID_VALUE, "boolValue must be true or false")
    return raw


def _int(raw: Any, _depth: int, _findings: Findings) -> int:
    return integer(raw, INT64, "intValue")


def _double(raw: Any, _depth: int, _findings: Findings) -> float:
    if raw.__class__ is str and raw in _NAMED_DOUBLES:
        return _NAMED_DOUBLES[raw]
    if raw.__class__ in {int, float} or (raw.__class__ is str and _NUMBER.fullmatch(raw)):
        try:
            number = float(raw)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise SpanRefused(Refusal.INVALID_VALUE, 'doubleValue must be a 64-bit number, "NaN", "Infinity" or "-Infinity"')


def _bytes(raw: Any, _depth: int, findings: Findings) -> bytes:
    encoded = text(raw, "bytesValue").translate(_TO_STANDARD_BASE64).rstrip("=")
    try:
        value = a2b_base64(encoded + "=" * (-len(encoded) % 4), strict_mode=True)
    except ValueError:
        raise SpanRefused(Refusal.INVALID_VALUE, "bytesValue must be base64") from None
    if len(value) > VALUE_LENGTH:
        raise ValueLeftOut(Caveat.ATTRIBUTE_LIMIT)
    findings.size += getsizeof(value)
    return value


def _array(raw: Any, depth: int, findings: Findings) -> list[AttributeValue]:
    items = _values(raw, "arrayValue")
    findings.count_values(len(items))
    return [_value(item, depth + 1, findings) for item in items]


def _kvlist(raw: Any, depth: int, findings: Findings) -> dict[str, AttributeValue]:
    pairs = _values(raw, "kvlistValue")
    findings.count_values(len(pairs))
    mapping = dict(_pair(item, depth + 1, findings) for item in pairs)
    findings.size += keys_size(mapping)
    return mapping


def _values(raw: Any, member: str) -> list[Any]:
    values = raw.get("values", []) if isinstance(raw, dict) else None
    if values is None and isinstance(raw, dict):
        return []
    if not isinstance(values, list):
        raise SpanRefused(Refusal.INVALID_VALUE, f"{member} must be an object with an array of values")
    return values


def _profiling_field(_raw: Any, _depth: int, findings: Findings) -> None:
    findings.caveats[Caveat.PROFILING_FIELD] += 1


_MEMBERS: Final[dict[str, Callable[[Any, int, Findings], AttributeValue]]] = {
    "stringValue": _string,
    "boolValue": _bool,
    "intValue": _int,
    "doubleValue": _double,
    "arrayValue": _array,
    "kvlistValue": _kvlist,
    "bytesValue": _bytes,
    "stringValueStrindex": _profiling_field,
}
