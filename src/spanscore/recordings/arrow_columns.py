"""The columns of stored spans and log records: those of the Collector's ClickHouse exporter, in Arrow."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa

from spanscore.messages.printable import printable
from spanscore.recordings._recorded import WrongColumns
from spanscore.recordings.arrow_values import is_list, is_pairs, is_text, plain_type, times

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
    "Events.Timestamp": "event_times AS Events_Timestamp, or NULL AS Events_Timestamp",
    "Events.Name": "event_names AS Events_Name, or NULL AS Events_Name",
    "Events.Attributes": "event_attributes AS Events_Attributes, or NULL AS Events_Attributes",
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
_IN_1990_NS: Final = 631_152_000 * 10**9
_UNITS: Final = ((10**11, 10**9), (10**14, 10**6))
"""Up to which number a time of today is in seconds and in milliseconds, and the nanoseconds in one of these."""
_COLUMNS_SHOWN: Final = 1_000
"""Characters of the names of the columns that a table has instead."""


def has_logs(schema: Any) -> bool:
    """Return whether a table has log records; if not, it has spans."""
    names = {*map(_folded, schema.names)}
    return "logattributes" in names and "spanattributes" not in names


def find_columns(schema: Any, wanted: Mapping[str, str]) -> Mapping[str, str]:
    """Return the name that each wanted column has in a table.

    Raises:
        WrongColumns: one is missing, there twice, or of a type that is not read.
    """
    names = {_name(name): name for name in schema.names}
    counts = Counter(map(_name, schema.names))
    alike = {_folded(name): name for name in schema.names}
    wrong = [_missing(name, alike.get(_folded(name)), select) for name, select in wanted.items() if name not in names]
    wrong += [
        f"{counts[name]} columns {name}: SELECT one of them" for name in (*wanted, _EVENT_NAME) if counts[name] > 1
    ]
    far = sum(_folded(name) not in alike for name in wanted)
    if not wrong:
        wrong = [told for name in wanted if (told := _wrong_type(name, schema.field(names[name]).type)) is not None]
    if wrong:
        lines = wrong if len(wrong) == 1 else [f"{len(wrong)} columns cannot be read:", *wrong]
        if far > 1:
            lines.append(f"the table has the columns {printable(', '.join(schema.names), _COLUMNS_SHOWN)}")
        raise WrongColumns("\n  ".join(lines))
    return {name: names[name] for name in (*wanted, _EVENT_NAME) if name in names}


def _name(name: str) -> str:
    """Return the name of a column in ClickHouse: elsewhere a name has no point."""
    return re.sub("^Events[._]?(?=[A-Z])", "Events.", name)


def _folded(name: str) -> str:
    return name.casefold().replace("_", "").replace(".", "")


def _missing(name: str, near: str | None, select: str) -> str:
    if near is None:
        return f"no column {name}: SELECT {select}"
    quoted = f'"{near}"' if "." in near else near
    return f"no column {name}; did you mean {near!r}? SELECT {quoted} AS {name.replace('.', '_')}"


def _wrong_type(name: str, kind: Any) -> str | None:
    """Return what is wrong with the type of a column; None if it can be read, as a column that has only nulls."""
    types = pa.types
    kind = plain_type(kind)
    if name.startswith("Events.") and not types.is_null(kind):
        if not is_list(kind):
            return f"column {name} is {kind}, and must be a list"
        kind = plain_type(kind.value_type)
    if name.endswith("Attributes"):
        fits = is_text(kind) or is_pairs(kind)
        told = "Map(String, String) or JSON as text, as to_json makes it"
    elif name == "Duration" or name.endswith("Timestamp"):
        is_whole = types.is_integer(kind) or (types.is_decimal(kind) and kind.scale == 0)  # Spark's UInt64
        fits = is_whole or is_text(kind) or (types.is_duration if name == "Duration" else types.is_timestamp)(kind)
        told = "an integer of nanoseconds" if name == "Duration" else "a time, or an integer of nanoseconds"
    else:
        fits = is_text(kind) or (name in {"SpanKind", "StatusCode"} and types.is_integer(kind))
        told = "text"
    return None if fits or types.is_null(kind) else f"column {name} is {kind}, and must be {told}"


def check_unit(array: Any) -> None:
    """Refuse integers that are times in another unit: most of them would be before 1990.

    Raises:
        WrongColumns: they are.
    """
    if pa.types.is_timestamp(array.type):
        return
    told = []
    with suppress(pa.ArrowInvalid, UnicodeDecodeError):  # rows that cannot be read are refused one by one
        told = [each for each in times(array) if each > 0]
    early = [each for each in told if each < _IN_1990_NS]
    if 2 * len(early) > len(told):
        factor = next((each for most, each in _UNITS if early[0] < most), 1_000)
        select = f"SELECT CAST(Timestamp AS BIGINT) * {factor} AS Timestamp"
        raise WrongColumns(f"Timestamp {early[0]} is before 1990: it must be nanoseconds; {select}")
