"""OTLP/JSON as arguments of protobuf's constructors, so that it is judged like a message that came in protobuf.

This adds only the rules of JSON: the meaning of its values, and the errors of values whose type a field does not
allow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from google.protobuf.message_factory import GetMessageClass
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from spanscore.otlp.findings import Caveat, Findings, Refusal, SpanRefused
from spanscore.otlp.json_scalars import is_repeated, scalar_reader
from spanscore.otlp.limits import ATTRIBUTES_PER_SPAN, EVENTS_PER_SPAN, LINKS_PER_SPAN, VALUE_DEPTH, VALUES_PER_SPAN
from spanscore.otlp.strict_json import NULL, opened
from spanscore.trajectories.wanted import WantedAttributes

_JUDGED: Final[Mapping[str, Sequence[str]]] = {
    "Resource": ("attributes",),
    "InstrumentationScope": ("name",),
    "Span": (
        *("traceId", "spanId", "parentSpanId", "links", "flags", "attributes", "events", "status", "name"),
        *("startTimeUnixNano", "endTimeUnixNano", "kind", "droppedAttributesCount"),
    ),
    "Link": ("traceId", "spanId"),
    "Event": ("name", "timeUnixNano", "attributes"),
}
"""The fields that are judged, in this order; of a message that is not here, all. Others may have wrong values."""
_MOST: Final[Mapping[str, int]] = {
    "attributes": ATTRIBUTES_PER_SPAN,
    "events": EVENTS_PER_SPAN,
    "links": LINKS_PER_SPAN,
    "values": VALUES_PER_SPAN,
}
"""The most items of a list that are judged. Empty messages replace the others, which are only counted."""
_PAIR: Final = frozenset({"key", "value"})
_HOLDERS: Final = {"ArrayValue": "arrayValue", "KeyValueList": "kvlistValue"}

_AROUND: Final = 3
"""Messages around a span."""
_MOST_NESTED: Final = 98
"""Protobuf's parsers refuse messages nested deeper than 100. A value may have two more in it."""


class JsonField(NamedTuple):
    """A field of a message."""

    name: str
    json_name: str
    is_list: bool
    inside: Any
    """The type of the messages in it; None if it has scalars."""
    scalar: Any
    """Reads a scalar of it; None if it has messages."""
    wrong: str
    """The error of a value that is no list, or no message."""
    is_of_span: bool
    """Whether it has the attributes of a span."""


class _MessageType(NamedTuple):
    """The fields of a message that are read."""

    fields: Mapping[str, JsonField]
    """By their names in JSON, in the order in which they are read."""
    exclusive: Sequence[Sequence[str]]
    """Of each of these only one may be there."""

    def check(self, raw: Mapping[str, Any]) -> None:
        """Refuse an object that has several of them."""
        for names in self.exclusive:
            found = sorted(name for name in names if raw.get(name) is not None and raw[name] != NULL)
            if len(found) > 1:
                raise SpanRefused(Refusal.INVALID_VALUE, f"{' and '.join(found)} exclude each other")


class JsonFields:
    """Reads parsed OTLP/JSON.

    Args:
        findings: of the request whose messages are judged; None where they are written, with all of their fields.
        wanted: the attributes of a span whose values are read; None for all.
    """

    def __init__(self, findings: Findings | None) -> None:
        self.kinds: Final = _JUDGED_KINDS if findings is not None else _ALL_KINDS
        """The fields that are read, by type of message."""
        self.wanted: WantedAttributes | None = None
        """The attributes of the next span whose values are read; None for all."""
        self._findings: Final = findings
        # What is judged may have so many values in each other, and what is written so many messages.
        self.around, self._step, self._deepest = (_AROUND, 1, _MOST_NESTED) if findings is None else (0, 0, VALUE_DEPTH)

    def object(self, raw: Mapping[str, Any], message_type: Any, depth: int) -> dict[str, Any]:
        """Return the arguments of protobuf's constructor for a message that is nested `depth` deep.

        Raises:
            SpanRefused: it is not such a message.
        """
        kind = self.kinds[message_type]
        kind.check(raw)
        return {
            field.name: self.read(field, value, depth)
            for json_name, field in kind.fields.items()
            if (value := raw.get(json_name)) is not None
        }

    def read(self, field: JsonField, value: Any, depth: int) -> Any:
        """Return the argument for one field of a message; as `object`."""
        if not field.is_list:
            return field.scalar(value) if field.scalar is not None else self._inside(field, value, depth)
        if value.__class__ is not list:
            raise SpanRefused(Refusal.INVALID_VALUE, field.wrong)
        most, empty = self.bounds(field, len(value))
        items = value if most == len(value) else value[:most]
        if field.is_of_span and self.wanted is not None:
            items = [self.wanted_part(item) for item in items]
        if field.scalar is not None:
            return [field.scalar(item) for item in items]
        return [self._inside(field, item, depth) for item in items] + [{}] * empty

    def below(self, field: JsonField, depth: int) -> int:
        """Return how deep the messages in a field are."""
        return depth + (1 if field.inside is AnyValue else self._step)

    def bounds(self, field: JsonField, count: int) -> tuple[int, int]:
        """Return how many items of a list to read, and how many empty ones replace the rest for counting."""
        most = _MOST.get(field.json_name)
        if self._findings is None or most is None or count <= most:
            return count, 0
        return (0, most + 1) if most == VALUES_PER_SPAN else (most, count - most)

    def wanted_part(self, pair: Any) -> Any:
        """Return an attribute of a span, without its value if the value is not wanted."""
        if self.wanted is None or pair.__class__ is not dict:
            return pair
        key = opened(pair.get("key"))
        is_key = key is None or isinstance(key, str)
        return {"key": key} if is_key and self.wanted[key or ""] is None else pair

    def is_too_deep(self, depth: int) -> bool:
        """Return whether an empty value takes the place of one that is so deep."""
        if depth <= self._deepest:
            return False
        if self._findings is None:
            raise SpanRefused(Refusal.TOO_DEEP, "cannot be written as protobuf: its values nest too deeply")
        self._findings.caveats[Caveat.DEPTH_LIMIT] += 1
        return True

    def _inside(self, field: JsonField, raw: Any, depth: int) -> dict[str, Any]:
        depth = self.below(field, depth)
        if field.inside is KeyValue:
            return self._pair(raw, depth)
        if field.inside is AnyValue:
            try:
                return {} if raw is None else self._value(raw, depth)
            except SpanRefused as refused:
                raise placed(refused, field.name) if field.name == "body" else refused from None
        if raw.__class__ is not dict:
            raise SpanRefused(Refusal.INVALID_VALUE, field.wrong)
        return self.object(raw, field.inside, depth)

    def _pair(self, raw: Any, depth: int) -> dict[str, Any]:
        if raw.__class__ is not dict:
            raise SpanRefused(Refusal.INVALID_VALUE, "an attribute must be an object with key and value")
        key = raw.get("key")
        is_usual = key.__class__ is str and raw.keys() <= _PAIR
        pair = {"key": key} if is_usual else self.object(raw | {"value": None}, KeyValue, depth)
        if (value := raw.get("value")) is not None:
            try:
                pair["value"] = self._value(value, depth + 1)
            except SpanRefused as refused:
                raise placed(refused, f"attribute {(key or '')[:100]!r}") from None
        return pair

    def _value(self, raw: Any, depth: int) -> dict[str, Any]:
        # In few calls, so that values may nest as deeply as they are allowed to.
        if raw.__class__ is not dict:
            raise SpanRefused(Refusal.INVALID_VALUE, 'the value must be an object such as {"stringValue": ...}')
        if self.is_too_deep(depth):
            return {}
        if len(raw) > 1:
            self.kinds[AnyValue].check(raw)
        elif (text := raw.get("stringValue")).__class__ is str:  # most values are text
            return {"string_value": text}
        for name, value in raw.items():
            field = None if value is None else self.kinds[AnyValue].fields.get(name)
            if field is not None:
                read = self._values(field, value, depth) if field.scalar is None else field.scalar(value)
                return {field.name: read}
        return {}

    def _values(self, field: JsonField, value: Any, depth: int) -> dict[str, Any]:
        items = value.get("values") if value.__class__ is dict else value
        if items is None:
            return {}
        if items.__class__ is not list or items is value:
            raise SpanRefused(Refusal.INVALID_VALUE, field.wrong)
        if self._findings is not None and len(items) > VALUES_PER_SPAN:
            return {"values": [{}] * (VALUES_PER_SPAN + 1)}  # to be counted
        if field.name == "kvlist_value":
            return {"values": [self._pair(item, depth + 2 * self._step) for item in items]}
        return {"values": [{} if item is None else self._value(item, depth + self._step + 1) for item in items]}


_OF_THE_WHOLE: Final = frozenset({Refusal.MALFORMED, Refusal.TOO_DEEP})
"""Reasons that are told of the whole span or record."""


def placed(refused: SpanRefused, place: str) -> SpanRefused:
    """Return a refusal with the place of the wrong value added to its message."""
    return refused if refused.reason in _OF_THE_WHOLE else SpanRefused(refused.reason, f"{place}: {refused}")


class _MessageTypes(dict[Any, _MessageType]):
    """The kinds of types of messages.

    Args:
        judged: the names of the fields that are read, by the names of messages; of other messages all are.
    """

    def __init__(self, judged: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        self._judged: Final = judged

    def __missing__(self, message_type: Any) -> _MessageType:
        message = message_type.DESCRIPTOR
        fields = {field.json_name: _field(field) for field in message.fields}
        read = self._judged.get(message.name, fields)
        groups = [[each.json_name for each in group.fields] for group in message.oneofs]
        self[message_type] = _MessageType(
            {name: fields[name] for name in read}, [each for each in groups if len(each) > 1]
        )
        return self[message_type]


_JUDGED_KINDS: Final = _MessageTypes(_JUDGED)
_ALL_KINDS: Final = _MessageTypes({})


def _field(field: Any) -> JsonField:
    is_list = is_repeated(field)
    inside = field.message_type and GetMessageClass(field.message_type)
    wrong = f"{field.json_name} must be {'an array' if is_list else 'an object'}"
    if is_list and inside and inside is not KeyValue:
        wrong = f"{wrong} of objects"
    for message in (field.message_type, field.containing_type):
        if message and message.name in _HOLDERS:
            wrong = f"{_HOLDERS[message.name]} must be an object with an array of values"
    is_of_span = inside is KeyValue and field.containing_type.name == "Span"
    scalar = None if inside else scalar_reader(field)
    return JsonField(field.name, field.json_name, is_list, inside, scalar, wrong, is_of_span)
