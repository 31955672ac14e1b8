"""The values of OTLP/protobuf spans, events and resources: reads attributes, and measures their memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from sys import getsizeof
from typing import Final

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from spanscore.model import EMPTY, Attributes, AttributeValue, SpanEvent
from spanscore.otlp.findings import Caveat, Findings, ValueLeftOut
from spanscore.otlp.kept_size import ASCII_SIZE, EVENT_SIZE, SHORT_CHARS, VALUE_SIZE, text_memory, text_size
from spanscore.otlp.limits import ATTRIBUTES_PER_SPAN, EVENTS_PER_SPAN, VALUE_LENGTH
from spanscore.otlp.resources import MOST_KNOWN, USUAL_SIZE, shared
from spanscore.trajectories.wanted import WantedAttributes

_MOST_REPEATED: Final = 8_192


class _Once(dict[str, str]):
    """Keeps one object of each short text that comes again and again, such as the names of spans, tools and operations.

    Not `sys.intern`: some releases of Python never release interned text, and senders can make names up.
    """

    def __missing__(self, text: str) -> str:
        if len(text) <= SHORT_CHARS and text.isascii():  # others grow once somebody has encoded them
            if len(self) >= _MOST_REPEATED:
                self.clear()
            self[text] = text
        return text


once: Final = _Once()


_resources: Final[dict[bytes, tuple[Attributes, int]]] = {}
"""Usual resources as they were sent, with the number of their values: senders repeat theirs in every request."""


def read_resource(message: Resource, findings: Findings) -> Attributes:
    """Read the attributes of a resource."""
    if not message.attributes or not findings.begin():  # in the latter case its spans are refused
        return EMPTY
    sent = message.SerializeToString()
    if (known := _resources.get(sent)) is not None:
        attributes, values = known
        findings.values += values
        return attributes
    values = findings.values
    attributes = shared(read_attributes(message.attributes, findings), findings.size)
    if findings.size <= USUAL_SIZE and len(sent) <= USUAL_SIZE and not findings.caveats:
        if len(_resources) >= MOST_KNOWN:
            _resources.clear()
        _resources[sent] = attributes, findings.values - values
    return attributes


def read_events(messages: Sequence[SpanMessage.Event], findings: Findings) -> tuple[SpanEvent, ...]:
    """Read the events of a span."""
    if len(messages) > EVENTS_PER_SPAN:
        findings.caveats[Caveat.EVENT_LIMIT] += len(messages) - EVENTS_PER_SPAN
        messages = messages[:EVENTS_PER_SPAN]
    return tuple([_event(message, findings) for message in messages])


def _event(message: SpanMessage.Event, findings: Findings) -> SpanEvent:
    name = message.name
    findings.size += EVENT_SIZE + text_size(name)
    return SpanEvent(name, message.time_unix_nano, read_attributes(message.attributes, findings))


def read_attributes(
    pairs: Sequence[KeyValue], findings: Findings, wanted: WantedAttributes | None = None
) -> Attributes:
    """Read a list of attributes, or only the wanted ones; of two equal keys the last wins."""
    count = len(pairs)
    values = findings.values + count
    if count > ATTRIBUTES_PER_SPAN or values > findings.most_values:
        pairs = findings.first(pairs)
    else:
        findings.values = values
    keys = once if wanted is None else wanted
    read: dict[str, AttributeValue] = {}
    size = 0
    for pair in pairs[:]:  # a list: the iterator of a message's field takes longer
        key = keys[pair.key]
        if key is None:
            continue
        value = pair.value
        text = value.string_value  # most values are text, and asking which member is set takes longer
        if text and (length := len(text)) <= VALUE_LENGTH:
            if not text.isascii():
                size += getsizeof(text)
                text = findings.long_text(text)
            elif length <= SHORT_CHARS:
                size += length
                text = once[text]
            else:
                size += ASCII_SIZE + length
                text = findings.long_text(text)
            read[key or _absent_key(pair, findings)] = text
            continue
        if number := value.int_value:  # the next most; 0 is the default
            read[key or _absent_key(pair, findings)] = number
            continue
        before = findings.size
        try:
            read[key or _absent_key(pair, findings)] = _value(value, findings)
        except ValueLeftOut as left_out:
            findings.size = before
            findings.leave_out_attributes(1, left_out.caveat)
    if not read:
        return EMPTY
    findings.size += size + len(read) * VALUE_SIZE + text_memory("".join(read))
    return read


def _absent_key(pair: KeyValue, findings: Findings) -> str:
    if getattr(pair, "key_strindex", 0):  # not in the messages of older releases of opentelemetry-proto
        findings.caveats[Caveat.PROFILING_FIELD] += 1
    return ""


def _value(value: AnyValue, findings: Findings) -> AttributeValue:
    # No check of the depth: the parser refuses what nests deeper than some 30 to 50 values.
    if (text := value.string_value) and len(text) <= VALUE_LENGTH:  # as above
        findings.size += text_size(text)
        return text
    member = value.WhichOneof("value")
    if member == "array_value":
        items = value.array_value.values
        findings.count_values(len(items))
        return [_value(item, findings) for item in items]
    if member == "kvlist_value":
        pairs = value.kvlist_value.values
        findings.count_values(len(pairs))
        mapping = {pair.key or _absent_key(pair, findings): _value(pair.value, findings) for pair in pairs}
        findings.size += text_memory("".join(mapping))
        return mapping
    if member == "string_value_strindex":
        findings.caveats[Caveat.PROFILING_FIELD] += 1
        return None
    scalar: str | bytes | float | None = getattr(value, member) if member else None
    if isinstance(scalar, (str, bytes)):
        if len(scalar) > VALUE_LENGTH:
            raise ValueLeftOut(Caveat.ATTRIBUTE_LIMIT)
        findings.size += text_size(scalar) if isinstance(scalar, str) else getsizeof(scalar)
    elif scalar != scalar:  # noqa: PLR0124 - only nan is so
        return math.nan  # one object: a span that is sent again must equal itself
    return scalar
