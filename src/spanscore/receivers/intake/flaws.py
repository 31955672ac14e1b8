"""Flaws of requests that are accepted all the same: counted, logged once for each sender, and worded for the sender."""

from __future__ import annotations

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from spanscore.messages.plural import plural
from spanscore.messages.printable import printable
from spanscore.otlp.encoding import Encoding
from spanscore.otlp.field_numbers import RESOURCE, RESOURCE_SPANS
from spanscore.otlp.findings import Caveat, Decoded, Refusal, told_of_no_run
from spanscore.otlp.wire import WireError, contents, fields
from spanscore.receivers.intake.consumers import OtherSignal
from spanscore.receivers.intake.requests import Sender

_MESSAGE_CHARS: Final = 2_000
_EXAMPLE_CHARS: Final = 300
_ITEM: Final[Mapping[OtherSignal | None, str]] = {None: "span", "logs": "log record", "metrics": "data point"}

_SENDERS_LOGGED: Final = 100
"""For each kind of flaw; those of further ones are logged for debugging only."""
_SERVICES_SHOWN: Final = 3
_SERVICE_CHARS: Final = 100
_SEARCHED: Final = 2**16
"""Bytes in which service names are looked for: a millisecond or two at most."""
_IN_JSON: Final = re.compile(
    rb'"resource"\s*:\s*\{\s*"attributes"\s*:\s*\[\s*(?:\{[^{}]*\{[^{}]*\}[^{}]*\}\s*,\s*)*'
    rb'\{\s*"key"\s*:\s*"service\.name"\s*,\s*"value"\s*:\s*\{\s*"stringValue"\s*:\s*"((?:[^"\\]|\\.){1,125})"'
)
_IN_RESOURCE: Final = re.compile(rb"\n\x0cservice\.name\x12(.)\n([\x01-\x7d])", re.DOTALL)
"""The key, and the lengths of the value and of the text in it."""

_log = logging.getLogger(__name__)


class Flaws:
    """Counts refused spans, log records and data points, by reason."""

    def __init__(self, refused: Counter[str], refused_points: Counter[str]) -> None:
        self._refused: Final = refused
        self._refused_points: Final = refused_points
        self._logged: Final[defaultdict[tuple[OtherSignal | None, Refusal | Caveat], set[str]]] = defaultdict(set)

    def note(
        self, decoded: Decoded, signal: OtherSignal | None, body: bytes, encoding: Encoding, sender: Sender
    ) -> str:
        """Count the problems of a request and return a message; log it, as a warning if one is new to its sender."""
        counts = self._refused_points if signal == "metrics" else self._refused
        for refused in decoded.refused:
            if refused.spans:
                counts[refused.reason.value] += refused.spans
        message = _told(decoded, signal)
        services = _services(body, encoding)
        names = set(services[:_SERVICES_SHOWN] or [sender.address.rpartition(":")[0]])
        found: list[Refusal | Caveat] = [*(refused.reason for refused in decoded.refused), *decoded.caveats]
        level = logging.DEBUG
        for kind in found:
            logged = self._logged[signal, kind]
            if not names <= logged and len(logged) < _SENDERS_LOGGED:
                logged |= names
                level = logging.WARNING
        _log.log(level, "%s%s", message, _source(services, sender))
        return message


def _source(services: Sequence[str], sender: Sender) -> str:
    address, user_agent = map(printable, sender)
    shown = ", ".join(map(repr, services[:_SERVICES_SHOWN])) + (", ..." if len(services) > _SERVICES_SHOWN else "")
    of_services = f"; resources of the request: service.name {shown}" if services else ""
    return of_services + (f"; sent from {address}" if address else "") + (f" ({user_agent})" if user_agent else "")


def _services(body: bytes, encoding: Encoding) -> Sequence[str]:
    """Return the first few names of services in a request, if they are found soon."""
    names: dict[str, None] = {}
    for name in _in_json(body) if encoding is Encoding.JSON else _in_protobuf(body):
        names[printable(name.decode(errors="replace"), _SERVICE_CHARS)] = None
        if len(names) > _SERVICES_SHOWN:
            break
    return tuple(names)


def _in_json(body: bytes) -> Iterator[bytes]:
    return (found[1] for found in _IN_JSON.finditer(body, 0, _SEARCHED))


def _in_protobuf(body: bytes) -> Iterator[bytes]:
    with suppress(WireError):
        for _, number, *around in fields(body, (0, len(body))):
            if around[0] > _SEARCHED:
                return
            for resource in contents(body, (around[0], around[1]), RESOURCE) if number == RESOURCE_SPANS else ():
                found = _IN_RESOURCE.search(body, *resource)
                if found and found[1][0] == found[2][0] + 2 and found.end() + found[2][0] <= resource[1]:
                    yield body[found.end() : found.end() + found[2][0]]


def _told(decoded: Decoded, signal: OtherSignal | None) -> str:
    item = _ITEM[signal]
    odd = [f"{caveat} ({count})" for caveat, count in decoded.caveats.items() if caveat is not Caveat.NO_RUN]
    if not decoded.refused:
        told = [f"all {item}s accepted, but not as they were sent: {', '.join(odd)}"] if odd else []
        lost = decoded.caveats.get(Caveat.NO_RUN)
        return "; ".join([*told, f"{Caveat.NO_RUN}: {told_of_no_run(lost)}"] if lost else told)
    counts = [
        f"{refused.spans} for {refused.reason}" if refused.spans else refused.reason for refused in decoded.refused
    ]
    examples = [_shortened(refused.example, _EXAMPLE_CHARS) for refused in decoded.refused]
    reasons = "; ".join(f"{count} ({example})" for count, example in zip(counts, examples, strict=True))
    total = decoded.refused_spans + len(decoded.spans) + sum(decoded.unread_records.values())
    others = f"; of the others: {', '.join(odd)}" if odd else ""
    count = decoded.refused_spans
    # The points of other metrics were not counted.
    of_all = plural(count, item) if signal == "metrics" else f"{count} of {total} {item}s"
    return _shortened(f"{of_all} refused: {reasons}", _MESSAGE_CHARS) + others


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 3]}..."
