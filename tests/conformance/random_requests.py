"""Random requests, thousands in a second: valid spans of every shape, with a bad id now and then."""

from __future__ import annotations

from random import Random
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

_TEXTS = ("", "a", "gen_ai.tool.name", "ü\n\0", "\N{GRINNING FACE}", '"\\', "x" * 50)
_INTS = (0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63))
_DOUBLES = (0.0, -0.0, 1.5, 1e300, 5e-324, float("inf"), float("-inf"), float("nan"))
_TIMES = (0, 1, 1544712660000000000, 2**63, 2**64 - 1)


def random_resource_spans(seed: int) -> ResourceSpans:
    """Return the spans of one resource; the same for the same seed."""
    random = Random(seed)
    return ResourceSpans(
        resource=Resource(attributes=_pairs(random)) if random.random() < 0.5 else None,
        schema_url=random.choice(_TEXTS),
        scope_spans=[_scope_spans(random) for _ in range(random.randint(0, 2))],
    )


def _scope_spans(random: Random) -> ScopeSpans:
    scope = InstrumentationScope(name=random.choice(_TEXTS), attributes=_pairs(random))
    spans = [_span(random) for _ in range(random.randint(0, 2))]
    return ScopeSpans(scope=scope if random.random() < 0.5 else None, spans=spans)


def _span(random: Random) -> Span:
    return Span(
        trace_id=_id(random, 16),
        span_id=_id(random, 8),
        parent_span_id=random.choice((b"", bytes(8), _id(random, 8))),
        trace_state=random.choice(_TEXTS),
        flags=random.getrandbits(32),
        name=random.choice(_TEXTS),
        kind=random.choice((0, 1, 5, 99)),  # type: ignore[arg-type]  # what a later OTLP knows
        start_time_unix_nano=random.choice(_TIMES),
        end_time_unix_nano=random.choice(_TIMES),
        attributes=_pairs(random),
        dropped_attributes_count=random.choice((0, 3)),
        events=[_event(random)] if random.random() < 0.3 else [],
        links=[Span.Link(trace_id=_id(random, 16), span_id=_id(random, 8))] if random.random() < 0.2 else [],
        status=Status(code=random.choice((0, 1, 2, 7)), message=random.choice(_TEXTS)),  # type: ignore[arg-type]
    )


def _event(random: Random) -> Span.Event:
    return Span.Event(time_unix_nano=random.choice(_TIMES), name=random.choice(_TEXTS), attributes=_pairs(random))


def _id(random: Random, length: int) -> bytes:
    return random.choice((bytes(length), b"12")) if random.random() < 0.03 else random.randbytes(length)


def _pairs(random: Random) -> list[KeyValue]:
    return [KeyValue(key=random.choice(_TEXTS), value=_value(random, 3)) for _ in range(random.randint(0, 3))]


def _value(random: Random, depth: int) -> AnyValue:
    shapes: list[Any] = [
        AnyValue,
        lambda: AnyValue(string_value=random.choice(_TEXTS)),
        lambda: AnyValue(bool_value=random.random() < 0.5),
        lambda: AnyValue(int_value=random.choice(_INTS)),
        lambda: AnyValue(double_value=random.choice(_DOUBLES)),
        lambda: AnyValue(bytes_value=random.randbytes(random.randint(0, 5))),
    ]
    if depth:
        shapes += [
            lambda: AnyValue(array_value=ArrayValue(values=[_value(random, depth - 1) for _ in range(2)])),
            lambda: AnyValue(kvlist_value=KeyValueList(values=[KeyValue(key="k", value=_value(random, depth - 1))])),
        ]
    value: AnyValue = random.choice(shapes)()
    return value
