"""Invalid ids of traces and spans, and the messages about them."""

from __future__ import annotations

from typing import Final

from spanscore.messages.printable import printable
from spanscore.otlp.findings import NO_TRACE_ID, Caveat, Findings, Refusal, SpanRefused

_ID_SHOWN: Final = 40
_TRACE_ID_LENGTH: Final = 16
_SPAN_ID_LENGTH: Final = 8
_NO_SPAN_ID: Final = bytes(_SPAN_ID_LENGTH)


def check_ids(trace_id: bytes, span_id: bytes, parent_span_id: bytes, findings: Findings) -> bytes:
    """Return the parent's id, empty for a root, or refuse the span."""
    if len(trace_id) != _TRACE_ID_LENGTH or trace_id == NO_TRACE_ID:
        raise SpanRefused(Refusal.INVALID_TRACE_ID, told_of_id("trace_id", trace_id, _TRACE_ID_LENGTH))
    if len(span_id) != _SPAN_ID_LENGTH or span_id == _NO_SPAN_ID:
        raise SpanRefused(Refusal.INVALID_SPAN_ID, told_of_id("span_id", span_id, _SPAN_ID_LENGTH))
    if not parent_span_id:
        return b""
    if len(parent_span_id) != _SPAN_ID_LENGTH:
        told = told_of_id("parent_span_id", parent_span_id, _SPAN_ID_LENGTH)
        raise SpanRefused(Refusal.INVALID_PARENT_SPAN_ID, told)
    if parent_span_id == _NO_SPAN_ID:
        findings.caveats[Caveat.ZERO_PARENT_SPAN_ID] += 1
        return b""
    return parent_span_id


def check_link_ids(trace_id: bytes, span_id: bytes) -> None:
    """Refuse a span whose link leads to something that is no id; scoring reads no more of links."""
    if len(trace_id) not in {0, _TRACE_ID_LENGTH}:
        raise SpanRefused(Refusal.INVALID_LINK, told_of_id("trace_id of a link", trace_id, _TRACE_ID_LENGTH))
    if len(span_id) not in {0, _SPAN_ID_LENGTH}:
        raise SpanRefused(Refusal.INVALID_LINK, told_of_id("span_id of a link", span_id, _SPAN_ID_LENGTH))


def told_of_id(name: str, raw: object, length: int) -> str:
    """Return a message about an invalid id, given as bytes or a JSON value; `length` is the right number of bytes."""
    match raw:
        case bytes():
            text = raw[:_ID_SHOWN].hex()
        case str() | int() | float():
            text = str(raw)
        case _:  # a list or an object may be large, and nest too deeply to be written
            text = "" if raw is None else "[...]" if isinstance(raw, list) else "{...}"
    shown = f"{name} '{printable(text, _ID_SHOWN)}'"
    if len(text) == 2 * length and not text.strip("0"):
        return f"{shown} is all zeros"
    return f"{shown} is not {length} bytes (in JSON {2 * length} hex digits)"
