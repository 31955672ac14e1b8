"""OTLP/JSON as protobuf messages, large ones in steps.

What is large is taken apart a level at a time, and each of its parts is put into the message by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from google.protobuf.descriptor import Descriptor
from msgspec import Raw, Struct
from msgspec.json import Decoder
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from spanscore.otlp.findings import Findings, Refusal, SpanRefused
from spanscore.otlp.json_scalars import identifier
from spanscore.otlp.json_to_protobuf import JsonField, JsonFields, placed
from spanscore.otlp.judging import is_root
from spanscore.otlp.slices import Steps
from spanscore.otlp.strict_json import AT_ONCE, NULL, is_small, kind_of_json, members_decoder, opened, parse_part
from spanscore.trajectories.wanted import WantedAttributes

_NOUNS: Final = {"Span": "a span", "LogRecord": "a log record", "Metric": "a metric"}
_TOGETHER: Final = 1_024
"""Bytes, or empty items, of a list that are read in one step."""


def members(raw: Any, message_type: Any) -> Any:
    """Return an object with unparsed fields. Parsed values, and values that are no object, are returned unchanged."""
    return opened(raw, _members_of(message_type.DESCRIPTOR))


def ids_of(raw: Any, message_type: Any) -> tuple[bytes, bytes]:
    """Return the trace id and the span id of a span or log record, as far as they can be read."""
    fields = members(raw, message_type)
    ids = [fields.get(key) if isinstance(fields, dict) else None for key in ("traceId", "spanId")]
    trace_id, span_id = [identifier(opened(each)) or b"" for each in ids]
    return trace_id, span_id


class JsonMessages:
    """Makes protobuf messages of OTLP/JSON.

    Args:
        findings: of the request whose messages are judged; None where they are written, with all of their fields.
        wanted: the attributes whose values are read, for spans with a parent in their process; None for all.
        at_once: the most bytes that are parsed in one step.
    """

    def __init__(
        self, findings: Findings | None = None, wanted: WantedAttributes | None = None, at_once: int = AT_ONCE
    ) -> None:
        self._wanted: Final = wanted
        self._at_once: Final = at_once
        self._fields: Final = JsonFields(findings)

    def around(self, fields: Mapping[str, Any], key: str, message_type: Any) -> Steps[Any]:
        """Return the resource or scope among the fields of a message; None if there is none.

        Raises:
            As `making`.
        """
        raw = fields.get(key)
        if raw is None or raw == NULL:
            return None
        try:
            return (yield from self.making(raw, message_type))
        except SpanRefused as refused:
            raise SpanRefused(refused.reason, f"{key}: {refused}") from None

    def making(self, raw: Any, message_type: Any) -> Steps[Any]:
        """Return a message, in steps of which each reads a few values.

        Args:
            raw: the message as it is written, or parsed; the latter is read in one step.
            message_type: its type.

        Raises:
            SpanRefused: it is none.
            MalformedRequest: it nests too deeply.
        """
        yield
        fields = self._fields
        is_parsed = isinstance(raw, Raw) and is_small(raw, self._at_once)
        raw = parse_part(bytes(raw)) if is_parsed else members(raw, message_type)
        if not isinstance(raw, dict):
            noun = _NOUNS.get(message_type.DESCRIPTOR.name)
            if noun is None:
                raise SpanRefused(Refusal.INVALID_VALUE, "must be an object")
            raise SpanRefused(Refusal.MALFORMED, f"{noun} must be an object, not {kind_of_json(raw)}")
        if message_type is SpanMessage and self._wanted is not None:
            fields.wanted = None if self._is_root(raw) else self._wanted
        if not _is_opened(raw):
            return message_type(**fields.object(raw, message_type, fields.around))
        message = message_type()
        yield from self._filling(message, raw, fields.around)
        return message

    def _is_root(self, raw: Mapping[str, Any]) -> bool:
        read = self._fields.kinds[SpanMessage].fields
        values = [(name, opened(raw.get(name))) for name in ("parentSpanId", "flags")]
        parent, flags = [None if value is None else read[name].scalar(value) for name, value in values]
        return is_root(parent or b"", flags or 0)

    def _filling(self, message: Any, raw: Mapping[str, Any], depth: int) -> Steps[None]:
        """Fill a message, which is so deep in others, from an object that is opened or parsed."""
        message_type = type(message)
        if message_type is AnyValue and self._fields.is_too_deep(depth):
            return
        if not _is_opened(raw):
            _fill(message, self._fields.object(raw, message_type, depth))
            return
        kind = self._fields.kinds[message_type]
        kind.check(raw)
        for json_name, field in kind.fields.items():
            value = raw.get(json_name)
            if value is None or value == NULL:
                continue
            try:
                yield from self._filling_field(message, field, value, depth)
            except SpanRefused as refused:
                if message_type is not KeyValue or json_name != "value":
                    raise
                raise placed(refused, f"attribute {message.key[:100]!r}") from None

    def _filling_field(self, message: Any, field: JsonField, value: Raw, depth: int) -> Steps[None]:
        yield
        if is_small(value, self._at_once):
            self._set(message, field, parse_part(bytes(value)), depth)
            return
        items = opened(value)
        if field.is_list != isinstance(items, list) or not (field.is_list or field.inside):
            self._set(message, field, items, depth)  # which refuses it
        elif field.is_list:
            yield from self._filling_list(message, field, items, depth)
        else:
            into = getattr(message, field.name)
            into.SetInParent()
            try:
                yield from self._filling(into, members(value, field.inside), self._fields.below(field, depth))
            except SpanRefused as refused:
                raise placed(refused, field.name) if field.name == "body" else refused from None

    def _filling_list(self, message: Any, field: JsonField, items: list[Raw], depth: int) -> Steps[None]:
        into = getattr(message, field.name)
        most, empty = self._fields.bounds(field, len(items))
        del items[most:]
        for together in self._together(items):
            yield
            if len(together) > 1 or field.inside is None or is_small(together[0], self._at_once):
                self._set(message, field, parse_part(b"[" + b",".join(together) + b"]"), depth)
            elif isinstance(item := members(together[0], field.inside), dict):
                item = self._fields.wanted_part(item) if field.is_of_span else item
                yield from self._filling(into.add(), item, self._fields.below(field, depth))
            else:
                self._set(message, field, [item], depth)  # which refuses it
        for number in range(empty):
            if not number % _TOGETHER:
                yield
            into.add()

    def _together(self, items: Sequence[Raw]) -> Iterator[Sequence[Raw]]:
        """Yield the items of a list: a large one by itself, and others in groups of a few."""
        group: list[Raw] = []
        size = 0
        for item in items:
            is_large = not is_small(item, self._at_once)
            if group and (is_large or size + len(item) > _TOGETHER):
                yield group
                group, size = [], 0
            if is_large:
                yield [item]
            else:
                group.append(item)
                size += len(item)
        if group:
            yield group

    def _set(self, message: Any, field: JsonField, value: Any, depth: int) -> None:
        _fill(message, {field.name: self._fields.read(field, value, depth)})


def _is_opened(raw: Mapping[str, Any]) -> bool:
    return any(isinstance(value, Raw) for value in raw.values())


def _fill(message: Any, fields: Mapping[str, Any]) -> None:
    """Set fields of a message. Protobuf's own ways to merge messages read values only some 30 deep."""
    for name, value in fields.items():
        if isinstance(value, dict):
            inside = getattr(message, name)
            inside.SetInParent()
            _fill(inside, value)
        elif not isinstance(value, list):
            setattr(message, name, value)
        elif value and isinstance(value[0], dict):
            add = getattr(message, name).add
            for each in value:
                add(**each)
        else:
            getattr(message, name).extend(value)


@cache
def _members_of(message: Descriptor) -> Decoder[Struct]:
    return members_decoder(field.json_name for field in message.fields)
