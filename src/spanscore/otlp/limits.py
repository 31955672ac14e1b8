"""The limits of decoding, the same in both encodings."""

from __future__ import annotations

from typing import Final

SPANS_PER_REQUEST: Final = 65_536
"""A span takes two bytes on the wire but hundreds in memory: a small request must not become gigabytes of spans."""
ATTRIBUTES_PER_SPAN: Final = 1_024
"""Eight times the limit of the SDKs. The rest is left out, and the span says how many attributes it misses."""
EVENTS_PER_SPAN: Final = 128
"""The limit of the SDKs."""
LINKS_PER_SPAN: Final = 1_024
"""Eight times the limit of the SDKs. Scoring reads no links; only the first ones are validated."""
VALUES_PER_SPAN: Final = 16_384
"""Attributes, items of arrays and entries of mappings, including those of events and of nested arrays.

One value may be two bytes on the wire, and takes a microsecond: one span is read in some 20 ms, during which all
other requests wait. It is enough for conversations of a thousand messages, or a handful of embeddings.
"""
VALUES_PER_REQUEST: Final = 1_048_576
"""One for 64 bytes of the largest request. The spans after them are refused, so that the response reports them.

The largest batch that the Collector makes by itself, of 8,192 spans, may have 128 values in each span.
"""
VALUE_LENGTH: Final = 1024 * 1024
"""Longer strings and bytes are left out, not cut: half an argument would be scored as a wrong argument."""
VALUE_DEPTH: Final = 64
"""The nesting of attribute values that OpenTelemetry asks for; in JSON, deeper values are replaced by an empty one.

In protobuf the parser itself refuses spans with values that nest deeper than some 30 to 50.
"""
