"""Values of Arrow's arrays, in whatever encoding a store has them."""

from __future__ import annotations

import re
from binascii import unhexlify
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate, pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from spanscore.otlp.json_scalars import identifier

_PAIR: Final = 2
_INT64: Final = 8
NO_TIME: Final = -(2**63)
"""Stands for a time that must be there and is null."""
_TIMES_IN_TEXT: Final = (pa.int64(), pa.timestamp("ns"), pa.timestamp("ns", "UTC"))


def is_list(kind: Any) -> bool:
    """Return whether a type is a list in any layout."""
    types = pa.types
    tests = (types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_list_view, types.is_large_list_view)
    return any(test(kind) for test in tests)


def is_text(kind: Any) -> bool:
    """Return whether a type is text, or bytes that may be text."""
    types = pa.types
    tests = (types.is_string, types.is_large_string, types.is_string_view)
    in_bytes = (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)
    return any(test(kind) for test in (*tests, *in_bytes))


def is_pairs(kind: Any) -> bool:
    """Return whether a type is a map of text, or a list of pairs of text, as Parquet has a map without its name."""
    if pa.types.is_map(kind):
        return all(is_text(plain_type(each)) for each in (kind.key_type, kind.item_type))
    if not is_list(kind) or not pa.types.is_struct(kind.value_type) or kind.value_type.num_fields != _PAIR:
        return False
    return all(is_text(plain_type(each.type)) for each in kind.value_type)


def plain_type(kind: Any) -> Any:
    """Return a type without an encoding of its own around its values."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def plain(array: Any) -> Any:
    """Return an array without an encoding of its own around its values."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def times(array: Any, missing: int = 0) -> list[int]:
    """Return times or durations in nanoseconds; `missing` where there is none.

    Raises:
        pyarrow.ArrowInvalid: one is out of range, or is text and no time.
    """
    array = plain(array)
    if is_text(array.type):
        array = _times_in_text(array.cast(pa.string()))
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("ns", array.type.tz)).cast(pa.int64())
    elif pa.types.is_duration(array.type):
        array = array.cast(pa.duration("ns")).cast(pa.int64())
    found = array.to_pylist()
    if array.null_count:
        found = [missing if each is None else each for each in found]
    return [*map(int, found)] if pa.types.is_decimal(array.type) else found


def _times_in_text(array: Any) -> Any:
    """Return times that are numbers in text, or as ISO 8601 has them: in UTC, or with a zone each."""
    for kind in _TIMES_IN_TEXT:
        with suppress(pa.ArrowInvalid):
            return array.cast(kind)
    message = "no times"
    raise pa.ArrowInvalid(message)


def texts(array: Any) -> list[str]:
    """Return texts; empty where there is none.

    Raises:
        UnicodeDecodeError, pyarrow.ArrowInvalid: one is not UTF-8.
    """
    array = utf8(array)
    return array.to_pylist() if not array.null_count else [each or "" for each in array.to_pylist()]


def utf8(array: Any) -> Any:
    """Return an array of texts without an encoding of its own."""
    array = plain(array)
    is_utf8 = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    return array if is_utf8 else array.cast(pa.string())


def repeated_texts(array: Any) -> list[str]:
    """Return texts as `texts` does; equal ones are one object."""
    known, places = encoded(array)
    return [*map(known.__getitem__, places.to_pylist())]


def encoded(array: Any) -> tuple[list[str], Any]:
    """Return the texts that differ, and for each row the place of its text among them."""
    found = utf8(array).dictionary_encode(null_encoding="encode")
    return texts(found.dictionary), found.indices


def numbers(array: Any, names: Sequence[str]) -> list[Any]:
    """Return the numbers of an enumeration, which is stored as numbers or as names; an unknown name as text.

    Args:
        array: the column.
        names: the names in lower case, that of 0 first; emitters write them with a prefix, too: `SPAN_KIND_CLIENT`.
    """
    array = plain(array)
    if pa.types.is_integer(array.type):
        return [each or 0 for each in array.to_pylist()]
    known: dict[str, int] = {"": 0}
    for number, name in enumerate(names):
        known |= {name: number, str(number): number}
    found, places = encoded(array)
    read = [known.get(re.split("[._]", text.lower())[-1], text) for text in found]
    return [*map(read.__getitem__, places.to_pylist())]


def ids(array: Any, length: int, *lengths: int) -> tuple[list[Any], bool]:
    """Return ids as bytes, empty where there is none; and whether all are such ids, of these lengths and not zero.

    An id that is neither bytes nor hexadecimal is text.
    """
    array = plain(array)
    raw = array.to_pylist()
    allowed = {length, *lengths}
    if pa.types.is_string(array.type):
        digits = pc.unique(pc.binary_length(array)).to_pylist()
        with suppress(ValueError, TypeError):
            read = [*map(unhexlify, raw)]
            return read, {each // 2 for each in digits} <= allowed and bytes(length) not in read
    found = [_id(each, length) for each in raw]
    are_ids = all(isinstance(each, bytes) and len(each) in allowed for each in found)
    return found, are_ids and bytes(length) not in found


def _id(raw: Any, length: int) -> bytes | str:
    if not raw:
        return b""
    if isinstance(raw, bytes):
        if len(raw) == length:
            return raw
        raw = raw.rstrip(b"\0")  # as a FixedString that is empty
    found = identifier(raw)
    return str(raw) if found is None else found


def lists(array: Any) -> tuple[list[int], Any]:
    """Return where the items of each row begin and end in all items, and all items."""
    array = plain(array)
    if pa.types.is_null(array.type):
        array = array.cast(pa.list_(pa.null()))
    if not hasattr(array, "offsets") or hasattr(array, "sizes"):  # rows have one length, or lie anywhere
        lengths = pc.list_value_length(array).fill_null(0).to_pylist()
        return [0, *accumulate(lengths)], array.flatten()
    offsets = array.offsets.to_pylist()
    first, last = offsets[0], offsets[-1]
    return [each - first for each in offsets] if first else offsets, array.values.slice(first, last - first)


def different(array: Any) -> tuple[list[int], Any]:
    """Return for each row of attributes its place among the rows that differ, and these rows."""
    array = plain(array)
    if not is_pairs(array.type):
        encoded = utf8(array).dictionary_encode(null_encoding="encode")
        return encoded.indices.to_pylist(), encoded.dictionary
    ends, pairs = lists(array)
    keys, values = (utf8(pairs.field(place)).dictionary_encode(null_encoding="encode") for place in range(_PAIR))
    codes = pc.add(pc.multiply(keys.indices.cast(pa.int64()), len(values.dictionary)), values.indices)
    numbers = codes.buffers()[1].to_pybytes() if len(codes) else b""
    rows: dict[bytes, int] = {}
    places = [rows.setdefault(numbers[first * _INT64 : last * _INT64], len(rows)) for first, last in pairwise(ends)]
    found = dict(zip(reversed(places), range(len(places) - 1, -1, -1), strict=True))
    return places, array.take(pa.array([found[place] for place in range(len(rows))], pa.int64()))
