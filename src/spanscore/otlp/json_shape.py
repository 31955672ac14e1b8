"""The path from a request in OTLP/JSON to its spans, log records or metrics, and the error of a request without any.

A field with an unknown name is ignored, so a request with a wrong name on that path contains nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from msgspec import Raw, Struct, ValidationError
from msgspec.json import Decoder

from spanscore.messages.printable import printable
from spanscore.otlp.findings import MalformedRequest, too_many_spans
from spanscore.otlp.slices import Steps
from spanscore.otlp.strict_json import NULL, is_small, kind_of_json, members_decoder, opened

SPANS: Final = "resourceSpans"
LOGS: Final = "resourceLogs"
METRICS: Final = "resourceMetrics"

_LEVELS: Final[Mapping[str, Sequence[Sequence[str]]]] = {
    SPANS: (("scopeSpans", "resource", "schemaUrl"), ("spans", "scope", "schemaUrl")),
    LOGS: (("scopeLogs", "resource", "schemaUrl"), ("logRecords", "scope", "schemaUrl")),
    METRICS: (("scopeMetrics", "resource", "schemaUrl"), ("metrics", "scope", "schemaUrl")),
}
"""By the first key of a request: for each level the key of the next list, and the other keys allowed there."""

_SIGNALS: Final[Mapping[str, tuple[str, str]]] = {
    "traces": (SPANS, "TraceService"),
    "logs": (LOGS, "LogsService"),
    "metrics": (METRICS, "MetricsService"),
}

_KEYS_SHOWN: Final = 5
_KEY_SHOWN: Final = 40
_CHECKED_AT_ONCE: Final = 1_024

_OBJECT: Final = Decoder(dict[str, Raw])


class ScopePart(NamedTuple):
    """A scope of a request, with spans, log records or metrics."""

    where: str
    fields: dict[str, Any]
    """The scope and its schema URL, as they are written or parsed."""
    name: str
    """Of the list of its items."""
    items: Sequence[Any]


class ResourcePart(NamedTuple):
    """A resource of a request that has such scopes."""

    where: str
    fields: dict[str, Any]
    scopes: Sequence[ScopePart]

    @property
    def items(self) -> int:
        """The number of items."""
        return sum(len(scope.items) for scope in self.scopes)


def taking_apart(request: Any, key: str, max_items: int | None = None) -> Steps[Sequence[ResourcePart]]:
    """Return the parts of a request that have items, in steps.

    Args:
        request: the request, as it is written or parsed.
        key: its first key: `SPANS`, `LOGS` or `METRICS`.
        max_items: refuse a request with more spans.

    Raises:
        MalformedRequest: it is none, or has too many spans.
    """
    outer, inner = _LEVELS[key]
    found = []
    count = 0
    for index, each in enumerate(_list_at(_object_at(request, (key,), "the request"), key, "")):
        if not index % _CHECKED_AT_ONCE:
            yield
        where = f"{key}[{index}]"
        resource = _object_at(each, outer, where)
        scopes = []
        for number, within in enumerate(_list_at(resource, outer[0], where)):
            if not number % _CHECKED_AT_ONCE:
                yield
            place = f"{where}.{outer[0]}[{number}]"
            fields = _object_at(within, inner, place)
            items = _list_at(fields, inner[0], place)
            count += len(items)
            if max_items is not None and count > max_items:
                raise too_many_spans(max_items)
            if items:
                scopes.append(ScopePart(place, fields, inner[0], items))
        if scopes:
            found.append(ResourcePart(where, resource, scopes))
    return found


def checking_way(request: Any, key: str) -> Steps[None]:
    """Check a request that was taken apart, as it is written or parsed.

    Raises:
        MalformedRequest: it, or a part of it, has fields, but none that leads on.
    """
    fields = opened(request, _decoder((key,)))
    if key not in fields and (unknown := _unknown(request, (key,))):
        others = (
            (signal, name) for signal, (name, _) in _SIGNALS.items() if name in opened(request, _decoder((name,)))
        )
        for signal, name in others:
            raise MalformedRequest(f"the request has no {key!r}, but {name!r}{gone_astray(signal)}")
        raise MalformedRequest(f"the request has no {key!r}, but {unknown}")
    yield from _checking(fields.get(key), _LEVELS[key], key)


def gone_astray(signal: str) -> str:
    """Return the end of a message about a request of this signal that was sent to the endpoint of another one."""
    _, service = _SIGNALS[signal]
    return f"; by default {signal} go to /v1/{signal} over HTTP, and to {service} over gRPC"


def shown(keys: Iterable[str]) -> str:
    """Return the first few of some keys, for messages."""
    return ", ".join(repr(printable(key, _KEY_SHOWN)) for key, _ in zip(keys, range(_KEYS_SHOWN), strict=False))


def _checking(raw: Any, levels: Sequence[Sequence[str]], where: str) -> Steps[None]:
    if not levels:
        return
    names, *deeper = levels
    for index, each in enumerate(opened(raw) or ()):
        if not index % _CHECKED_AT_ONCE:
            yield
        place = f"{where}[{index}]"
        fields = opened(each, _decoder(names))
        if names[0] in fields:
            yield from _checking(fields[names[0]], deeper, f"{place}.{names[0]}")
        elif unknown := _unknown(each, names):
            raise MalformedRequest(f"{place} has no {names[0]!r}, but {unknown}")


def _unknown(raw: Any, names: Sequence[str]) -> str:
    """Return the first other names of fields that are not null, for messages; of a large object none are listed."""
    if isinstance(raw, Raw) and not is_small(raw):  # millions of names would take seconds
        try:
            _decoder(names, is_strict=True).decode(raw)
        except ValidationError:
            return "fields with other names"
        return ""
    fields = _OBJECT.decode(raw) if isinstance(raw, Raw) else raw
    return shown(name for name, value in fields.items() if name not in names and value is not None and value != NULL)


def _object_at(raw: Any, names: Sequence[str], where: str) -> dict[str, Any]:
    fields = opened(raw, _decoder(names))
    if not isinstance(fields, dict):
        raise MalformedRequest(f"{where} must be an object, not {kind_of_json(fields)}")
    return fields


def _list_at(parent: dict[str, Any], key: str, where: str) -> list[Any]:
    raw = opened(parent.get(key))
    if raw is None:
        return []
    if not isinstance(raw, list):
        raise MalformedRequest(f"{where}{'.' if where else ''}{key} must be an array, not {kind_of_json(raw)}")
    return raw


@cache
def _decoder(names: Sequence[str], *, is_strict: bool = False) -> Decoder[Struct]:
    return members_decoder(names, is_strict=is_strict)
