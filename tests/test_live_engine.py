from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

import pytest

from receivers.otlp_requests import decoded_span
from serving import DEADLINE_S
from spanscore.collect.settings import TraceSettings
from spanscore.collect.table import TraceTable
from spanscore.engine import Engine
from spanscore.model import Report, Trace
from spanscore.pipeline import Pipeline
from spanscore.read.reader import DialectReader
from spanscore.service.live_engine import LiveEngine


class FailsOnce(Pipeline):
    """A pipeline with a fault, on the first trace."""

    def __init__(self) -> None:
        super().__init__((), DialectReader(()))
        self.traces: asyncio.Queue[Trace] = asyncio.Queue()
        self.faults = 1

    def run(self, trace: Trace) -> tuple[Report, ...]:
        """Keep a trace."""
        self.traces.put_nowait(trace)
        if self.faults:
            self.faults -= 1
            raise RuntimeError
        return ()


def live(pipeline: Pipeline, **settings: float) -> LiveEngine:
    """Return a live engine that closes traces without a root."""
    table = TraceTable(TraceSettings(**settings), lambda _: False)  # type: ignore[arg-type]
    return LiveEngine(Engine(table, pipeline, {}, time.monotonic))


def test_a_fault_does_not_stop_the_clock(caplog: pytest.LogCaptureFixture) -> None:
    """When a trace that is due cannot be scored, that is logged, and the traces after it are scored in time."""

    async def scenario() -> list[int]:
        pipeline = FailsOnce()
        engine = live(pipeline, trace_timeout_s=0.01)
        scored = []
        async with asyncio.timeout(DEADLINE_S):
            for number in (1, 2):
                engine.take([decoded_span(number)], 100)
                scored.append((await pipeline.traces.get()).trace_id[-1])
        engine.stop()
        return scored

    assert [1, 2] == asyncio.run(scenario())
    assert ["traces that were due could not be scored"] == caplog.messages


def test_spans_share_the_size_of_their_request() -> None:
    """A request's bytes count for its spans in equal parts, and for no span less than it takes in memory."""

    async def held(sizes: Iterable[tuple[int, int]]) -> list[int]:
        found = []
        for spans, size in sizes:
            engine = live(FailsOnce())
            engine.take([decoded_span(1, number) for number in range(1, spans + 1)], size)
            found.append(engine.engine.counts().held_bytes)
            engine.stop()
        return found

    assert [10_000, 10_000, 1024] == asyncio.run(held([(1, 10_000), (4, 10_000), (2, 10)]))
