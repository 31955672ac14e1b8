"""That the bounds of the trace table hold for what spans really keep in memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from sys import getsizeof
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from receivers.otlp_requests import request_of, simple_span
from spanscore.collect.settings import TraceSettings
from spanscore.collect.table import TraceTable
from spanscore.model import Span, Trace
from spanscore.otlp.encoding import Encoding
from spanscore.receivers.intake.intake import Intake
from spanscore.scoring.engine import Engine
from spanscore.scoring.live_engine import LiveEngine
from spanscore.scoring.pipeline import Pipeline
from spanscore.trajectories.reader import DialectReader

MIB = 2**20
BOUND = 32 * MIB
REQUESTS = 10


def in_mib(number: int) -> list[KeyValue]:
    """Attributes of so many MiB, in protobuf and in memory: no two are the same, or one would be kept of them."""
    return [KeyValue(key=str(each), value=AnyValue(string_value=str(each) * MIB)) for each in range(number)]


def beside_duplicates(number: int) -> ExportTraceServiceRequest:
    """A span of 6 MiB among a thousand that are known already, or will be."""
    return request_of(simple_span(number, attributes=in_mib(6)), *[simple_span(1, 7)] * 1_000)


def behind_a_resource(number: int) -> ExportTraceServiceRequest:
    """A small span that alone keeps the 6 MiB of its resource, beside one that is known already."""
    request = request_of(simple_span(1, 7), simple_span(number, attributes=[]))
    request.resource_spans[0].resource.attributes.extend(in_mib(6))
    return request


class Keeps(TraceTable):
    """A table that tells which spans it has in memory: those it was given, except those it let go of."""

    def kept(self) -> Iterable[Span]:
        """Close all, and yield their spans."""
        traces: list[Trace] = self.drain()
        for trace in traces:
            yield from trace.spans


def take(requests: Iterable[ExportTraceServiceRequest]) -> tuple[int, int]:
    """Take requests; return what the table says that it holds, and what the texts in its open traces take."""
    bodies = [request.SerializeToString() for request in requests]

    async def scenario() -> tuple[int, int]:
        settings = TraceSettings(max_bytes=BOUND, max_trace_bytes=16 * MIB, late_spans="ignore")
        table = Keeps(settings, lambda _: False)
        live = LiveEngine(Engine(table, Pipeline((), DialectReader(())), {}, time.monotonic))
        intake = Intake(live.take)
        for body in bodies:
            intake.accept(await intake.decode(body, Encoding.PROTOBUF))
        live.stop()
        return table.counts().held_bytes, _texts(table.kept())

    return asyncio.run(scenario())


def test_large_spans_beside_duplicates() -> None:
    """Ten requests of 6 MiB, each with one large span that could hide behind a thousand, keep at most 32 MiB."""
    held, texts = take(beside_duplicates(number) for number in range(2, REQUESTS + 2))

    assert texts <= held <= BOUND
    assert 4 * 6 * MIB <= texts


def test_large_resources_of_small_spans() -> None:
    """A resource is charged to each trace that keeps it, whichever of its spans came first."""
    held, texts = take(behind_a_resource(number) for number in range(2, REQUESTS + 2))

    assert texts <= held <= BOUND


def _texts(spans: Iterable[Span]) -> int:
    """Return what the texts take that these spans keep, each once."""
    found: dict[int, Any] = {}
    for span in spans:
        for value in (*span.attributes.values(), *span.resource.values()):
            found[id(value)] = value
    return sum(map(getsizeof, found.values()))
