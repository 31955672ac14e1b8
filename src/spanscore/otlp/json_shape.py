"""The way from a request in OTLP/JSON to its spans, log records or metrics, and what is wrong where it leads to none.

A field with an unknown name is ignored, so that a request with a wrong name on that way holds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import DecodeError, Raw
from msgspec.json import Decoder

from spanscore.otlp.findings import MalformedRequest
from spanscore.otlp.slices import Steps, at_once
from spanscore.otlp.strict_json import parse
from spanscore.wording.printable import printable

SPANS: Final = "resourceSpans"
LOGS: Final = "resourceLogs"
METRICS: Final = "resourceMetrics"

_LEVELS: Final[Mapping[str, Sequence[Sequence[str]]]] = {
    SPANS: (("scopeSpans", "resource", "schemaUrl"), ("spans", "scope", "schemaUrl")),
    LOGS: (("scopeLogs", "resource", "schemaUrl"), ("logRecords", "scope", "schemaUrl")),
    METRICS: (("scopeMetrics", "resource", "schemaUrl"), ("metrics", "scope", "schemaUrl")),
}
"""By where a request begins: for each level inside of it the list that leads on, and what else may be there."""

_KEYS_SHOWN: Final = 5
_KEY_SHOWN: Final = 40
_CHECKED_AT_ONCE: Final = 1_024

_OBJECT: Final = Decoder(dict[str, Raw])
_OBJECTS: Final = Decoder(list[Raw] | None)


def check_way(request: Mapping[str, Any], key: str) -> None:
    """Check a parsed request in which nothing was found.

    Args:
        request: the request, of which the lists on the way are lists of objects.
        key: where it begins: `SPANS`, `LOGS` or `METRICS`.

    Raises:
        MalformedRequest: it has fields, but none that leads on.
    """
    at_once(_checking(request, key))


def check_inside(request: Mapping[str, Any], key: str) -> None:
    """Check a parsed request as `check_way` does, but for its own fields.

    Raises:
        MalformedRequest: a part of it has fields, but none that leads on.
    """
    at_once(_checking_inside(request.get(key), _LEVELS[key], key))


def checking_body(body: bytes | str, key: str) -> Steps[None]:
    """Do what `check_way` does with a valid request that is not parsed, in steps.

    Raises:
        MalformedRequest: as `check_way`.
    """
    try:
        yield from _checking(_OBJECT.decode(body), key)
    except DecodeError:  # it has lone surrogates
        check_way(parse(body), key)


def shown(keys: Iterable[str]) -> str:
    """Return the first few of some keys, for messages."""
    return ", ".join(repr(printable(key, _KEY_SHOWN)) for key, _ in zip(keys, range(_KEYS_SHOWN), strict=False))


def _checking(request: Mapping[str, Any], key: str) -> Steps[None]:
    if request and key not in request:
        message = f"the request has no {key!r}, but {shown(request)}"
        raise MalformedRequest(message)
    yield from _checking_inside(request.get(key), _LEVELS[key], key)


def _checking_inside(raw: Any, levels: Sequence[Sequence[str]], where: str) -> Steps[None]:
    if not levels:
        return
    (leads_on, *others), *deeper = levels
    for index, each in enumerate((_OBJECTS.decode(raw) if isinstance(raw, Raw) else raw) or ()):
        if not index % _CHECKED_AT_ONCE:
            yield
        fields = _OBJECT.decode(each) if isinstance(each, Raw) else each
        place = f"{where}[{index}]"
        if leads_on in fields:
            yield from _checking_inside(fields[leads_on], deeper, f"{place}.{leads_on}")
        elif unknown := [name for name in fields if name not in others]:
            message = f"{place} has no {leads_on!r}, but {shown(unknown)}"
            raise MalformedRequest(message)
