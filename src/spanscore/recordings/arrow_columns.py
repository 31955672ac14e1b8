"""The columns of stored spans and log records: those of the Collector's ClickHouse exporter, in Arrow."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import DecodeError
from msgspec.json import Decoder

from spanscore.model import EMPTY, Attributes, AttributeValue
from spanscore.otlp.findings import Caveat, Findings, Refusal, SpanRefused, ValueLeftOut
from spanscore.otlp.ids import told_of_id
from spanscore.otlp.json_scalars import identifier
from spanscore.otlp.limits import ATTRIBUTES_PER_SPAN, VALUE_DEPTH, VALUE_LENGTH
from spanscore.recordings._recorded import WrongColumns

SPAN_COLUMNS: Final[Mapping[str, str]] = {
    "Timestamp": "start_time AS Timestamp",
    "TraceId": "trace_id AS TraceId",
    "SpanId": "span_id AS SpanId",
    "ParentSpanId": "parent_span_id AS ParentSpanId, which is '' for a root",
    "SpanName": "name AS SpanName",
    "SpanKind": "kind AS SpanKind, or 'Unspecified' AS SpanKind",
    "ResourceAttributes": "to_json(resource_attributes) AS ResourceAttributes, or '{}' AS ResourceAttributes",
    "ScopeName": "scope_name AS ScopeName, or '' AS ScopeName",
    "SpanAttributes": "to_json(attributes) AS SpanAttributes",
    "Duration": "end_ns - start_ns AS Duration, in nanoseconds",
    "StatusCode": "status_code AS StatusCode, or 'Unset' AS StatusCode",
    "StatusMessage": "status_message AS StatusMessage, or '' AS StatusMessage",
    "Events.Timestamp": "event_times AS Events_Timestamp, or an empty list of times",
    "Events.Name": "event_names AS Events_Name, or an empty list of text",
    "Events.Attributes": "event_attributes AS Events_Attributes, or an empty list of text",
}
"""The columns of spans, each with the part of a SELECT that makes it in a table whose columns have other names."""

LOG_COLUMNS: Final[Mapping[str, str]] = {
    "Timestamp": "time AS Timestamp",
    "TraceId": "trace_id AS TraceId",
    "SpanId": "span_id AS SpanId",
    "Body": "body AS Body",
    "ResourceAttributes": SPAN_COLUMNS["ResourceAttributes"],
    "ScopeName": SPAN_COLUMNS["ScopeName"],
    "LogAttributes": "to_json(attributes) AS LogAttributes",
}
"""The columns of log records. A column `EventName` is read where there is one."""

_EVENT_NAME: Final = "EventName"
_TIME_UNITS: Final = ("ns", "us")
_IN_1990_NS: Final = 631_152_000 * 10**9
_UNITS: Final = ((10**11, 10**9), (10**14, 10**6))
"""Up to which number a time of today is in seconds and in milliseconds, and the nanoseconds in one of these."""
_JSON: Final = Decoder()


def has_logs(schema: Any) -> bool:
    """Return whether a table has log records; if not, it has spans."""
    names = {*map(_folded, schema.names)}
    return "logattributes" in names and "spanattributes" not in names


def wanted_schema(schema: Any) -> Any:
    """Return the schema without columns that are neither read nor told of."""
    wanted = {*map(_folded, LOG_COLUMNS if has_logs(schema) else SPAN_COLUMNS)}
    return pa.schema([each for each in schema if _folded(each.name) in wanted or each.name == _EVENT_NAME])


def find_columns(schema: Any, wanted: Mapping[str, str]) -> Mapping[str, int]:
    """Return the index of each wanted column.

    Raises:
        WrongColumns: one is missing, or of a type that is not read.
    """
    names = {_name(name): index for index, name in enumerate(schema.names)}
    alike = {_folded(name): name for name in schema.names}
    wrong = [_missing(name, alike.get(_folded(name)), select) for name, select in wanted.items() if name not in names]
    if not wrong:
        wrong = [told for name in wanted if (told := _wrong_type(name, schema.field(names[name]).type)) is not None]
    if wrong:
        raise WrongColumns("\n  ".join(wrong if len(wrong) == 1 else (f"{len(wrong)} columns cannot be read:", *wrong)))
    return {name: names[name] for name in (*wanted, _EVENT_NAME) if name in names}


def _name(name: str) -> str:
    """Return the name of a column in ClickHouse: elsewhere a name has no point."""
    return name.replace("Events_", "Events.", 1) if name.startswith("Events_") else name


def _folded(name: str) -> str:
    return name.casefold().replace("_", "").replace(".", "")


def _missing(name: str, near: str | None, select: str) -> str:
    if near is None:
        return f"no column {name}: SELECT {select}"
    quoted = f'"{near}"' if "." in near else near
    return f"no column {name}; did you mean {near!r}? SELECT {quoted} AS {name.replace('.', '_')}"


def _wrong_type(name: str, kind: Any) -> str | None:
    """Return what is wrong with the type of a column; None if it can be read."""
    kind = _plain_type(kind)
    if name.startswith("Events."):
        if not _is_list(kind):
            return f"column {name} is {kind}, and must be a list"
        kind = _plain_type(kind.value_type)
        if pa.types.is_null(kind):
            return None
    if name.endswith("Attributes"):
        is_map = pa.types.is_map(kind) and all(map(_is_text, map(_plain_type, (kind.key_type, kind.item_type))))
        told = "Map(String, String) or JSON as text, as to_json makes it"
        return None if is_map or _is_text(kind) else f"column {name} is {kind}, and must be {told}"
    if name.endswith("Timestamp"):
        is_time = pa.types.is_integer(kind) or (pa.types.is_timestamp(kind) and kind.unit in _TIME_UNITS)
        told = "a time in nanoseconds or microseconds, or an integer of nanoseconds"
        return None if is_time else f"column {name} is {kind}, and must be {told}{_as_nanoseconds(name, kind)}"
    if name == "Duration":
        is_whole = pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0)  # Spark's UInt64
        return None if is_whole else f"column {name} is {kind}, and must be an integer of nanoseconds"
    is_known = _is_text(kind) or (name in {"SpanKind", "StatusCode"} and pa.types.is_integer(kind))
    return None if is_known else f"column {name} is {kind}, and must be text"


def _as_nanoseconds(name: str, kind: Any) -> str:
    """Return the part of a SELECT that makes nanoseconds of another unit, in DuckDB; nothing for other types."""
    if not pa.types.is_timestamp(kind) or name != "Timestamp":
        return ""
    in_utc = "Timestamp AT TIME ZONE 'UTC'" if kind.tz else "Timestamp"  # else in the zone of the session
    return f": SELECT CAST({in_utc} AS TIMESTAMP_NS) AS Timestamp"


def check_unit(array: Any) -> None:
    """Refuse integers that are times in another unit: most of them would be before 1990.

    Raises:
        WrongColumns: they are.
    """
    if not pa.types.is_integer(array.type):
        return
    told = array.filter(pc.greater(array, 0))
    early = told.filter(pc.less(told, _IN_1990_NS))
    if 2 * len(early) > len(told):
        example = early[0].as_py()
        factor = next((each for most, each in _UNITS if example < most), 1_000)
        select = f"SELECT CAST(Timestamp AS BIGINT) * {factor} AS Timestamp"
        message = f"Timestamp {example} is before 1990: it must be nanoseconds; {select}"
        raise WrongColumns(message)


def _is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _is_text(kind: Any) -> bool:
    types = pa.types
    tests = (types.is_string, types.is_large_string, types.is_string_view)
    in_bytes = (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)
    return any(test(kind) for test in (*tests, *in_bytes))


def _plain_type(kind: Any) -> Any:
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def plain(array: Any) -> Any:
    """Return an array without an encoding of its own around its values."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def times(array: Any) -> list[int]:
    """Return times in nanoseconds; 0 where there is none."""
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("ns", array.type.tz)).cast(pa.int64())
    found = [each or 0 for each in array.to_pylist()]
    return [*map(int, found)] if pa.types.is_decimal(array.type) else found


def texts(array: Any) -> list[str]:
    """Return texts; empty where there is none.

    Raises:
        UnicodeDecodeError, pyarrow.ArrowInvalid: one is not UTF-8.
    """
    array = plain(array)
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        array = array.cast(pa.string())
    return array.to_pylist() if not array.null_count else [each or "" for each in array.to_pylist()]


def numbers(array: Any, by_name: Mapping[str, int]) -> list[Any]:
    """Return the numbers of an enumeration, which is stored as numbers or as names; an unknown name as text."""
    array = plain(array)
    if pa.types.is_integer(array.type):
        return [each or 0 for each in array.to_pylist()]
    known: dict[str, int | str] = {}
    found = texts(array)
    for text in set(found):
        known[text] = by_name.get(text.lower().rpartition("_")[2], text)
    return [known[text] for text in found]


def ids(array: Any, length: int) -> list[Any]:
    """Return ids as bytes, empty for none; an id is bytes or hexadecimal digits, and is text if it is neither."""
    return [_id(each, length) for each in plain(array).to_pylist()]


def _id(raw: Any, length: int) -> bytes | str:
    if not raw:
        return b""
    if isinstance(raw, bytes):
        if len(raw) == length:
            return raw
        raw = raw.rstrip(b"\0")  # as a FixedString that is empty
    found = identifier(raw)
    return str(raw) if found is None else found


def wrong_id(refusal: Refusal, name: str, raw: str, length: int) -> SpanRefused:
    """Return the refusal of a span with an id that could not be read."""
    return SpanRefused(refusal, told_of_id(name, raw, length))


class AttributeColumn(Protocol):
    """A column of attributes."""

    def identity(self, row: int) -> Hashable:
        """Return a value that rows with equal attributes share."""
        ...

    def read(self, row: int, findings: Findings) -> Attributes:
        """Return the attributes of a row, within the limits of OTLP; refuses a row without any that can be read."""
        ...


def attributes(array: Any, name: str) -> AttributeColumn:
    """Return a column of attributes, of either type."""
    array = plain(array)
    return MapColumn(array) if pa.types.is_map(array.type) else JsonColumn(array, name)


class MapColumn:
    """Attributes in a column of type `Map(String, String)`: all values are text."""

    def __init__(self, array: Any) -> None:
        offsets = array.offsets.to_pylist()
        first, last = offsets[0], offsets[-1]
        keys = plain(array.keys.slice(first, last - first)).dictionary_encode()
        names = texts(keys.dictionary)
        values = plain(array.items.slice(first, last - first))
        self._offsets: Final = [each - first for each in offsets]
        self._keys: Final = [names[each] for each in keys.indices.to_pylist()]
        self._values: Final = texts(values)
        self._is_long: Final = (pc.max(pc.binary_length(values)).as_py() or 0) > VALUE_LENGTH

    def identity(self, row: int) -> Hashable:
        """Return the keys and the values."""
        place = slice(self._offsets[row], self._offsets[row + 1])
        return (*self._keys[place], *self._values[place])

    def read(self, row: int, findings: Findings) -> Attributes:
        """Return the attributes of a row."""
        first, last = self._offsets[row], self._offsets[row + 1]
        if first == last:
            return EMPTY
        keys = _counted(self._keys[first:last], findings)
        read: Attributes = dict(zip(keys, self._values[first:last], strict=False))  # of too many keys only the first
        if self._is_long:
            read = _without_long(read, findings)
        return read


class JsonColumn:
    """Attributes in a column of JSON objects as text: values have their types."""

    def __init__(self, array: Any, name: str) -> None:
        self._texts: Final = texts(array)
        self._name: Final = name

    def identity(self, row: int) -> Hashable:
        """Return the text."""
        return self._texts[row]

    def read(self, row: int, findings: Findings) -> Attributes:
        """Return the attributes of a row."""
        text = self._texts[row]
        if not text:
            return EMPTY
        try:
            found = _JSON.decode(text)
        except (DecodeError, UnicodeEncodeError) as error:
            raise SpanRefused(Refusal.MALFORMED, f"{self._name} is no JSON") from error
        except RecursionError as error:
            raise SpanRefused(Refusal.TOO_DEEP, f"{self._name} is nested too deeply") from error
        if not isinstance(found, dict):
            raise SpanRefused(Refusal.MALFORMED, f"{self._name} is no JSON object")
        keys = _counted(list(found), findings)
        read: dict[str, AttributeValue] = {}
        for key in keys:
            try:
                read[key] = _value(found[key], findings, VALUE_DEPTH)
            except ValueLeftOut as left_out:
                findings.leave_out_attributes(1, left_out.caveat)
        return read


def _counted(keys: Sequence[str], findings: Findings) -> Sequence[str]:
    """Count attributes before they are read, and return the first ones that the limits allow."""
    values = findings.values + len(keys)
    if len(keys) > ATTRIBUTES_PER_SPAN or values > findings.most_values:
        return findings.first(keys)
    findings.values = values
    return keys


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


def lists(array: Any, read: Callable[[Any], Any]) -> tuple[list[int], Any]:
    """Return where the items of each row begin and end in all items, and all items as `read` returns them."""
    offsets = array.offsets.to_pylist()
    first, last = offsets[0], offsets[-1]
    values = array.values.slice(first, last - first)
    return [each - first for each in offsets], read(values) if last > first else ()
