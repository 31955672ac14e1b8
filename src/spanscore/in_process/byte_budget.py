"""The bytes of spans that wait between the agent's threads and the worker, estimated from a few of them."""

from __future__ import annotations

from collections.abc import Iterable
from operator import length_hint
from typing import TYPE_CHECKING, Final

from spanscore.otlp.kept_size import EVENT_SIZE, SPAN_SIZE, VALUE_SIZE, attributes_size, names_size
from spanscore.sdk.span_conversion import copy_of

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import ReadWriteLogRecord
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import Link

_LARGE: Final = 16 * 1024
"""A span of more bytes has each of the spans measured that come after it,"""
_WARY: Final = 1_000
"""up to so many."""
_UNMEASURED: Final = 256
"""The most spans that are handed over between two measured ones, if none of these was large,"""
_SURPRISE: Final = 256 * 1024
"""or fewer, so that sudden spans of so many bytes still fit."""
_NESTED: Final = frozenset({tuple, list, dict})


class ByteBudget:
    """The room for items that wait, in bytes.

    Measuring a span takes longer than handing it over. If all are small, only some are measured, each in place of the
    next ones. Its random id decides how many, so that patterns of an agent's spans do not repeat the same choice. There
    is no lock: the worker takes all waiting items and resets the budget, so that no error lasts.

    Args:
        max_bytes: the most bytes that may wait. If large spans come among small ones, more is accepted before the first
            of them is measured: on average half as much again if each has 256 KiB, in proportion if they are larger.
    """

    __slots__ = ("_bytes", "_max_bytes", "_unmeasured", "_wary")

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes: Final = max_bytes
        self._unmeasured: Final = max(1, min(_UNMEASURED, max_bytes // _SURPRISE))
        self._wary = 0
        self._bytes = 0

    @property
    def is_scarce(self) -> bool:
        """Whether a quarter of the room is used."""
        return self._bytes * 4 > self._max_bytes

    def take(self, size: int) -> bool:
        """Take room for something, and return whether there was any. Where nothing waits, there is."""
        if self._bytes and self._bytes + size > self._max_bytes:
            return False
        self._bytes += size
        return True

    def take_span(self, span: ReadableSpan) -> int:
        """Reserve room for a span and the unmeasured ones after it; return their number, 0 if there is no room."""
        size, spans = span_bytes(span), 1
        if size > _LARGE:
            self._wary = _WARY
        elif self._wary:
            self._wary -= 1
        else:
            spans += span.context.span_id % self._unmeasured
        return spans if self.take(size * spans) else 0

    def clear(self) -> None:
        """Reset: all waiting items are about to be taken."""
        self._bytes = 0


def span_bytes(span: ReadableSpan) -> int:
    """Return about how many bytes a span of the SDK takes; does not raise."""
    try:
        attributes, message = copy_of(span.attributes), span.status.description or ""
        characters = sum(map(length_hint, attributes.values()))
        if characters < _LARGE and not message:  # a tenth of the time, as if each character were a byte
            size = SPAN_SIZE + len(attributes) * VALUE_SIZE + characters
            attributes = {key: value for key, value in attributes.items() if type(value) in _NESTED}
        else:
            size = SPAN_SIZE + names_size(span.name, message, "")
        if attributes:
            size += attributes_size(attributes)
        if links := span.links:
            size += links_bytes(links)
        if events := span.events:
            size += sum(EVENT_SIZE + attributes_size(copy_of(event.attributes)) for event in events)
    except Exception:  # noqa: BLE001 - the worker refuses a span whose values are of types of the application's
        return SPAN_SIZE
    else:
        return size


def links_bytes(links: Iterable[Link]) -> int:
    """Return about how many bytes links of a span take; does not raise."""
    try:
        return sum(EVENT_SIZE + attributes_size(copy_of(link.attributes)) for link in links)
    except Exception:  # noqa: BLE001 - as above
        return EVENT_SIZE


def record_bytes(emitted: ReadWriteLogRecord) -> int:
    """Return about how many bytes a log record of the SDK takes; does not raise."""
    record = emitted.log_record
    try:
        return SPAN_SIZE + attributes_size({"body": record.body, **(record.attributes or {})})
    except Exception:  # noqa: BLE001 - as above
        return SPAN_SIZE
