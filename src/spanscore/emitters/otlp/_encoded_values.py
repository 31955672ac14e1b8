"""Our attributes, scope and resource in protobuf."""

from __future__ import annotations

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

from spanscore.messages.printable import encodable
from spanscore.otlp.raw_requests import Envelope
from spanscore.sdk.identity import SCOPE, resource, scope_version


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
