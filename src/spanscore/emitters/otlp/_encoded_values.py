"""Our attributes, scope and resource in protobuf."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

from spanscore.messages.printable import encodable
from spanscore.otlp.raw_requests import Envelope
from spanscore.otlp.wire import behind_length, encoded_tag, length_delimited
from spanscore.sdk.identity import SCOPE, resource, scope_version

_PAIRS_REMEMBERED: Final = 2_048
_LONGEST_REMEMBERED: Final = 128


def own_envelope() -> Envelope:
    """Return the messages around our own data of each signal: our resource, and our scope."""
    scope = ScopeSpans(scope=InstrumentationScope(name=SCOPE, version=scope_version()))
    ours = [pair(key, str(value)) for key, value in resource().attributes.items()]
    sender = ResourceSpans(resource=Resource(attributes=ours))
    return Envelope(request=b"", resource=sender.SerializeToString(), scope=scope.SerializeToString())


def pair(key: str, value: str | bool | float) -> KeyValue:  # noqa: FBT001 - one of the kinds of value
    """Return an attribute as OTLP has it."""
    return KeyValue(key=key, value=any_value(value))


def any_value(value: str | bool | float) -> AnyValue:  # noqa: FBT001 - as above
    """Return a value as OTLP has it."""
    match value:
        case str():
            return AnyValue(string_value=encodable(value))
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)


def encoded_pairs(number: int, pairs: Mapping[str, str | bool | float]) -> bytes:
    """Return attributes in protobuf, as the repeated field `number` of the message that has them."""
    return repeated(number, encoded_each(pairs))


def encoded_each(pairs: Mapping[str, str | bool | float]) -> list[bytes]:
    """Return each attribute in protobuf behind its length, as `repeated` takes it."""
    return [
        (_encoded if isinstance(value, str) and len(value) > _LONGEST_REMEMBERED else _remembered)(key, value)
        for key, value in pairs.items()
    ]


def repeated(number: int, messages: Sequence[bytes]) -> bytes:
    """Return messages, each behind its length, as the repeated field of that number."""
    tag = encoded_tag(number)
    return tag + tag.join(messages) if messages else b""


def _encoded(key: str, value: str | bool | float) -> bytes:  # noqa: FBT001 - as above
    if isinstance(value, str):  # in a third of the time that a message takes
        return encoded_text_pair(key, value)
    return behind_length(pair(key, value).SerializeToString())


def encoded_text_pair(key: str, text: str) -> bytes:
    """Return an attribute with a text that UTF-8 can encode, as `encoded_each` does."""
    return behind_length(_encoded_key(key) + encoded_text(KeyValue.VALUE_FIELD_NUMBER, text))


@lru_cache(_PAIRS_REMEMBERED)
def _encoded_key(key: str) -> bytes:
    return length_delimited(KeyValue.KEY_FIELD_NUMBER, key.encode())


_remembered: Final = lru_cache(_PAIRS_REMEMBERED, typed=True)(_encoded)  # most are those of the event before


def encoded_text(number: int, text: str) -> bytes:
    """Return a text that UTF-8 can encode, in protobuf: as the field `number`, an `AnyValue`, of its message."""
    return length_delimited(number, length_delimited(AnyValue.STRING_VALUE_FIELD_NUMBER, text.encode()))
