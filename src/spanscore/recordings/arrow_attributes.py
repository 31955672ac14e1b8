"""Attributes in a column of Arrow: maps, pairs of text, or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import DecodeError
from msgspec.json import Decoder

from spanscore.model import EMPTY, Attributes, AttributeValue
from spanscore.otlp.findings import Caveat, Findings, Refusal, SpanRefused, ValueLeftOut
from spanscore.otlp.limits import ATTRIBUTES_PER_SPAN, VALUE_DEPTH, VALUE_LENGTH
from spanscore.recordings.arrow_values import encoded, is_pairs, lists, plain, texts, utf8

_JSON: Final = Decoder()
_NONE: Final = pa.array([0], pa.int32())


def attributes_in(array: Any, name: str, wanted: Mapping[str, str | None] | None = None) -> PairsColumn | JsonColumn:
    """Return a column of attributes, of either type; `wanted[key]` is None for attributes that need not be read."""
    array = plain(array)
    return PairsColumn(array, wanted) if is_pairs(array.type) else JsonColumn(array, name)


class PairsColumn:
    """Attributes in a column of type `Map(String, String)`: all values are text."""

    def __init__(self, array: Any, wanted: Mapping[str, str | None] | None) -> None:
        ends, pairs = lists(array)
        names, places = encoded(pairs.field(0))
        values = utf8(pairs.field(1))
        self._counts: Final = [last - first for first, last in pairwise(ends)]
        if wanted is not None and max(self._counts, default=0) <= ATTRIBUTES_PER_SPAN:
            is_kept = pa.array([wanted[name] is not None for name in names], pa.bool_()).take(places)
            places, values = places.filter(is_kept), values.filter(is_kept)
            kept = pa.concat_arrays([_NONE, pc.cumulative_sum(is_kept.cast(pa.int32()))])
            ends = kept.take(pa.array(ends, pa.int32())).to_pylist()
        self._ends: Final = ends
        self._keys: Final = [*map(names.__getitem__, places.to_pylist())]
        self._values: Final = texts(values)
        self._is_long: Final = (pc.max(pc.binary_length(values)).as_py() or 0) > VALUE_LENGTH

    def read(self, row: int, findings: Findings) -> Attributes:
        """Return the attributes of a row."""
        first, last, count = self._ends[row], self._ends[row + 1], self._counts[row]
        if count > ATTRIBUTES_PER_SPAN or findings.values + count > findings.most_values:
            last = first + len(findings.first(range(count)))
        else:
            findings.values += count
        if first == last:
            return EMPTY
        read: Attributes = dict(zip(self._keys[first:last], self._values[first:last], strict=True))
        return _without_long(read, findings) if self._is_long else read


class JsonColumn:
    """Attributes in a column of JSON objects as text: values have their types."""

    def __init__(self, array: Any, name: str) -> None:
        self._texts: Final = texts(array)
        self._name: Final = name

    def read(self, row: int, findings: Findings) -> Attributes:
        """Return the attributes of a row."""
        text = self._texts[row]
        if not text:
            return EMPTY
        try:
            found = _JSON.decode(text)
            if isinstance(found, dict) and dict in map(type, found.values()) and not any("." in key for key in found):
                # A key may be in it twice: `a` beside `a.b` has a value, and is an object, too.
                found = dict(_by_path(json.loads(text, object_pairs_hook=tuple), ""))
        except (DecodeError, UnicodeEncodeError) as error:
            raise SpanRefused(Refusal.MALFORMED, f"{self._name} is no JSON") from error
        except RecursionError as error:
            raise SpanRefused(Refusal.TOO_DEEP, f"{self._name} is nested too deeply") from error
        if not isinstance(found, dict):
            raise SpanRefused(Refusal.MALFORMED, f"{self._name} is no JSON object")
        is_long = len(text) > VALUE_LENGTH
        read: dict[str, AttributeValue] = {}
        for key, value in findings.first([*found.items()]):
            if is_long or value.__class__ is list or value.__class__ is dict:
                try:
                    read[key] = _value(value, findings, VALUE_DEPTH)
                except ValueLeftOut as left_out:
                    findings.leave_out_attributes(1, left_out.caveat)
            else:
                read[key] = value
        return read


def _by_path(found: Iterable[tuple[str, Any]], prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield attributes as they were before ClickHouse's type JSON, which takes `a.b` for a field of an object `a`."""
    for key, value in found:
        if isinstance(value, tuple) and value:
            yield from _by_path(value, f"{prefix}{key}.")
        else:
            yield prefix + key, _with_objects(value)


def _with_objects(value: Any) -> Any:
    """Return JSON whose objects are tuples of pairs with objects."""
    if isinstance(value, tuple):
        return {key: _with_objects(each) for key, each in value}
    return [*map(_with_objects, value)] if isinstance(value, list) else value


def _without_long(read: Attributes, findings: Findings) -> Attributes:
    kept = {key: value for key, value in read.items() if not isinstance(value, str) or len(value) <= VALUE_LENGTH}
    findings.leave_out_attributes(len(read) - len(kept), Caveat.ATTRIBUTE_LIMIT)
    return kept


def _value(value: Any, findings: Findings, deepest: int) -> AttributeValue:
    """Return a value of JSON within the limits of OTLP."""
    if isinstance(value, str):
        if len(value) > VALUE_LENGTH:
            raise ValueLeftOut(Caveat.ATTRIBUTE_LIMIT)
        return value
    if not isinstance(value, (list, dict)):
        return value  # type: ignore[no-any-return]  # a number, a boolean or null
    if not deepest:
        findings.caveats[Caveat.DEPTH_LIMIT] += 1
        return None
    findings.count_values(len(value))
    if isinstance(value, list):
        return [_value(each, findings, deepest - 1) for each in value]
    return {key: _value(each, findings, deepest - 1) for key, each in value.items()}
