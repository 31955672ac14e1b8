"""Spans and log records that cannot be converted cost nothing but themselves: each is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from opentelemetry._logs import LogRecord
from opentelemetry.sdk._logs import ReadWriteLogRecord
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from deadline import DEADLINE_S
from in_process.test_runtime import Blocking, context, root, runtime_with
from spanscore import ScoringSpanExporter, ScoringSpanProcessor, config
from spanscore.in_process.runtime import Runtime
from spanscore.model import REFUSED
from spanscore.sdk.log_conversion import context_of, log_span

NAME = "gen_ai.client.inference.operation.details"


class Unmeasurable(str):
    """A text of the application's that fails when it is read."""

    __slots__ = ()

    def __len__(self) -> int:
        raise RuntimeError


def run(trace: Any, number: Any, name: Any = "run", **more: Any) -> ReadableSpan:
    """Return a root that has these ids, whatever they are."""
    ids = SpanContext(trace, number, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return ReadableSpan(name, ids, start_time=1, end_time=2, **more)


UNREADABLE: Mapping[str, tuple[ReadableSpan, str]] = {
    "trace id too long": (run(1 << 128, 1), "invalid_trace_id"),
    "no trace id": (run(0, 1), "invalid_trace_id"),
    "negative trace id": (run(-1, 1), "invalid_trace_id"),
    "span id too long": (run(9, 1 << 64), "invalid_span_id"),
    "no span id": (run(9, 0), "invalid_span_id"),
    "no name": (run(9, 1, None), "invalid_value"),
    "attribute": (run(9, 1, attributes={"gen_ai.tool.name": Unmeasurable("x")}), "invalid_value"),
}


@pytest.fixture(name="runtime")
def _runtime() -> Iterator[tuple[Runtime, Blocking]]:
    """A runtime whose worker is held up, so that it takes all that is handed over as one."""
    blocking = Blocking()
    runtime = runtime_with(blocking)
    runtime.ended(root(1))
    assert blocking.entered.wait(DEADLINE_S)
    yield runtime, blocking
    blocking.released.set()
    runtime.close(DEADLINE_S)


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_span_costs_no_other(case: str, runtime: tuple[Runtime, Blocking]) -> None:
    """All spans that are taken with it are scored."""
    span, reason = UNREADABLE[case]
    door, blocking = runtime
    door.started(span.context)
    for each in (root(2), span, root(3)):
        assert door.ended(each)
    blocking.released.set()
    assert door.close(DEADLINE_S)

    assert door.engine is not None
    assert {reason: 1} == dict(door.engine.tallies.refused)
    assert 3 == blocking.spans


def test_a_log_record_costs_no_other(runtime: tuple[Runtime, Blocking]) -> None:
    """Its body may have a text that fails when it is read. A stand-in marks its trace as incomplete."""
    door, blocking = runtime
    ids = context(2, 1)
    written = LogRecord(
        context=set_span_in_context(NonRecordingSpan(ids)), event_name=NAME, body={"n": Unmeasurable("x")}
    )
    record = ReadWriteLogRecord(written)
    door.logged(partial(log_span, record, (NAME,)), context_of(record.log_record), 1)
    door.ended(root(3))
    blocking.released.set()
    assert door.close(DEADLINE_S)

    assert door.engine is not None
    assert {"invalid_value": 1} == dict(door.engine.tallies.refused)
    assert 2 == door.engine.counts().received
    stand_in = log_span(record, (NAME,), Counter())
    assert stand_in is not None
    assert (ids.trace_id.to_bytes(16, "big"), REFUSED) == (stand_in[0].trace_id, stand_in[0].kind)


@pytest.mark.parametrize("case", UNREADABLE)
def test_an_export_has_them_all(case: str) -> None:
    """They reach the exporter behind, and the others of the batch are scored."""
    span, reason = UNREADABLE[case]
    behind = InMemorySpanExporter()
    exporter = ScoringSpanExporter(behind, config.loads("", "test", Path()))
    exporter.export([root(2), span, root(3)])
    engine = exporter._engine
    assert engine is not None
    refused, closed = dict(engine.tallies.refused), sum(engine.counts().closed.values())
    exporter.shutdown()

    assert ({reason: 1}, 2, 3) == (refused, closed, len(behind.get_finished_spans()))


@pytest.mark.parametrize("case", ["trace id too long", "no trace id", "span id too long", "no span id"])
def test_a_root_without_valid_ids_waits_for_no_scores(case: str) -> None:
    """The processor behind gets it at once."""
    behind = InMemorySpanExporter()
    settings = config.loads("traces: {trace_timeout: 10m}", "test", Path())
    processor = ScoringSpanProcessor(settings, wraps=SimpleSpanProcessor(behind))
    processor.on_end(UNREADABLE[case][0])
    found = len(behind.get_finished_spans())
    processor.shutdown()

    assert 1 == found


def test_links_of_a_root_that_waits_count() -> None:
    """A processor that wraps another one keeps roots until they are scored, with their links, whatever these hold."""
    settings = config.loads("traces: {decision_delay: 10m}", "test", Path())
    processor = ScoringSpanProcessor(settings, wraps=SimpleSpanProcessor(InMemorySpanExporter()))
    processor.on_end(run(2, 1, links=[Link(context(3, 1), {"text": "x" * 2**19})]))
    processor.on_end(run(3, 1, links=[Link(context(2, 1), {"text": Unmeasurable("x")})]))
    processor.force_flush()
    engine = processor._runtime.engine
    assert engine is not None
    counts = engine.counts()
    processor.shutdown()

    assert 2**19 < counts.held_bytes < 2**20
    assert 2 == counts.received
