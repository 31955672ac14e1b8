"""OTLP/JSON as protobuf, where that is beyond doubt: protobuf's own reading of JSON takes four times as long."""

from __future__ import annotations

from binascii import unhexlify
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NoReturn

from msgspec import DecodeError, Struct
from msgspec.structs import asdict, astuple
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from spanscore.otlp import json_messages as messages

_MOST_NESTED: Final = 16
"""Deeper values are rare, and protobuf's parsers refuse those that nest some 30 deep."""


def to_protobuf(body: bytes | str, accepted: int) -> bytes | None:
    """Return a request in protobuf, or None where it takes protobuf's own reading to say what it would be.

    Args:
        body: a request that was decoded.
        accepted: how many of its spans were accepted; unless it is all of them, the answer is None.
    """
    try:
        request = messages.REQUEST.decode(body)
        if _without_what_is_empty(request) != accepted:
            return None
        return ExportTraceServiceRequest(**_message(request)).SerializeToString()
    except (DecodeError, RecursionError, ValueError, _Unclear):
        return None


class _Unclear(Exception):  # noqa: N818 - ends the writing of one request, and is not an error of ours
    """Ends the writing of one request; never leaves this module."""


def _without_what_is_empty(request: messages.Request) -> int:
    """Leave out resources and scopes without spans, and return how many spans there are."""
    for outer in request.resource_spans or ():
        outer.scope_spans = [inner for inner in outer.scope_spans or () if inner.spans]
    request.resource_spans = [outer for outer in request.resource_spans or () if outer.scope_spans]
    return sum(len(inner.spans or ()) for outer in request.resource_spans for inner in outer.scope_spans or ())


def _message(raw: Any) -> dict[str, Any]:
    """Return what protobuf's constructors take for a message, where None is absent."""
    fields = asdict(raw)
    for name, written in _WRITTEN_OF[raw.__class__]:
        value = fields[name]
        if value is not None:
            fields[name] = written(value)
    return fields


def _list(raw: Sequence[Struct]) -> list[dict[str, Any]]:
    return [_message(item) for item in raw]


def _number(raw: str | int) -> int:
    if isinstance(raw, int):
        return raw
    if raw.isascii() and raw.removeprefix("-").isdigit():
        return int(raw)
    raise _Unclear


def _nothing(_raw: object) -> NoReturn:
    raise _Unclear


def _attributes(pairs: Iterable[messages.KeyValue], depth: int = 1) -> list[dict[str, Any]]:
    return [{"key": pair.key, "value": pair.value and _value(pair.value, depth)} for pair in pairs]


def _value(value: messages.AnyValue | None, depth: int) -> dict[str, Any]:
    if value is None or depth > _MOST_NESTED:
        raise _Unclear
    members = astuple(value)
    if members.count(None) < len(members) - 1:
        raise _Unclear
    if value.string_value is not None:
        return {"string_value": value.string_value}
    if value.int_value is not None:
        return {"int_value": _number(value.int_value)}
    if value.array_value is not None:
        return {"array_value": {"values": [_value(item, depth + 1) for item in value.array_value.values or ()]}}
    if value.kvlist_value is not None:
        return {"kvlist_value": {"values": _attributes(value.kvlist_value.values or (), depth + 1)}}
    return {"double_value": value.double_value, "bool_value": value.bool_value}


_WRITTEN: Final[dict[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("resource_spans", "scope_spans", "spans", "events", "links"), _list),
    **dict.fromkeys(("resource", "scope", "status"), _message),
    **dict.fromkeys(("trace_id", "span_id", "parent_span_id"), unhexlify),
    **dict.fromkeys(("start_time_unix_nano", "end_time_unix_nano", "time_unix_nano"), _number),
    "attributes": _attributes,
    "entity_refs": _nothing,
}
"""What does not stand in protobuf as it does in JSON, by the names of fields."""

_WRITTEN_OF: Final = {
    kind: [(name, _WRITTEN[name]) for name in kind.__struct_fields__ if name in _WRITTEN]
    for kind in messages.Message.__subclasses__()
}
