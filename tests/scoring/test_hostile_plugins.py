"""Plug-ins inside an application's process that raise what nobody catches, or never come back."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext, TraceFlags

from deadline import DEADLINE_S
from receivers.otlp_requests import OF_AN_AGENT
from scoring.isolation.hostile import Sudden, Unprintable
from spanscore import config
from spanscore.contracts import Markers, ModelReading, Reading
from spanscore.in_process.processor import ScoringSpanProcessor
from spanscore.in_process.runtime import QUEUE_CAPACITY
from spanscore.model import Report, Span
from spanscore.scoring.engine import Engine

ERRORS = [ValueError, Unprintable, Sudden, SystemExit, GeneratorExit, KeyboardInterrupt, MemoryError, RecursionError]
TRACES = 12


class HostileDialect:
    """Knows the spans that are called hostile, and raises on them, or hangs until it is let go."""

    precedence = 0
    markers = Markers(span_names=("hostile",))
    reads = frozenset[str]()

    def __init__(self, error: type[BaseException] | None = None) -> None:
        self.error = error
        self.entered, self.released = threading.Event(), threading.Event()

    def read(self, span: Span) -> Reading | None:
        """Raise or hang."""
        if self.error is not None:
            raise self.error
        self.entered.set()
        assert self.released.wait(DEADLINE_S)
        return None

    def read_model(self, span: Span) -> ModelReading | None:
        """Raise or hang."""
        self.read(span)
        return None


class HostileEmitter:
    """Raises, or hangs until it is let go."""

    def __init__(self, error: type[BaseException] | None = None) -> None:
        self.error = error
        self.entered, self.released = threading.Event(), threading.Event()

    def emit(self, report: Report) -> None:
        """Raise or hang."""
        self.flush(0)

    def flush(self, timeout_s: float) -> bool:
        """Raise or hang."""
        if self.error is not None:
            raise self.error
        self.entered.set()
        return self.released.wait(DEADLINE_S)

    close = flush


def processor(directory: Path, root: str, *dialects: Any, **emitters: Any) -> ScoringSpanProcessor:
    """Return a processor that has these plug-ins too, before those that write to a file."""
    path = json.dumps(str(directory / "scores.jsonl"))
    text = f"annotate: none\nexporters: {{jsonl: {{path: {path}}}}}\ntraces: {{root: {root}, decision_delay: 0s}}"
    settings = config.loads(text, "test", directory)
    made = ScoringSpanProcessor(replace(settings, dialects=(*dialects, *settings.dialects)))
    engine = engine_of(made)
    others = dict(engine.emitters)
    engine.emitters.clear()
    engine.emitters.update(emitters | others)
    return made


def engine_of(made: ScoringSpanProcessor) -> Engine:
    """Return the engine, whose counts the application sees as metrics."""
    engine = made._runtime.engine
    assert engine is not None
    return engine


def trace(number: int, name: str = "invoke_agent") -> Sequence[ReadableSpan]:
    """Return the run of an agent that calls a tool; the root has this name."""
    flags = TraceFlags(TraceFlags.SAMPLED)
    root, tool = (SpanContext(number, place, is_remote=False, trace_flags=flags) for place in (1, 2))
    called = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
    return (
        ReadableSpan("execute_tool", tool, root, attributes=called, start_time=1, end_time=2),
        ReadableSpan(name, root, None, attributes=OF_AN_AGENT, start_time=1, end_time=2),
    )


def scored(directory: Path) -> Counter[str]:
    """Return how often each trace was scored, with its outcome."""
    reports = map(json.loads, (directory / "scores.jsonl").read_text().splitlines())
    return Counter(
        f"{int(each['trace_id'], 16)} {outcome['outcome']}" for each in reports for outcome in each["outcomes"].values()
    )


@pytest.mark.parametrize("root", ["remote_parent", "agent"])
@pytest.mark.parametrize("error", ERRORS)
def test_a_dialect_that_raises_costs_no_other_trace(tmp_path: Path, error: type[BaseException], root: str) -> None:
    """The application does not notice; the traces without such spans are scored, the others skipped and counted."""
    made = processor(tmp_path, root, HostileDialect(error))
    for number in range(1, TRACES + 1):
        for span in trace(number, "hostile" if number % 3 == 0 else "invoke_agent"):
            made.on_end(span)
    assert made.force_flush()
    engine = engine_of(made)
    made.shutdown()

    hostile = TRACES // 3
    assert Counter(f"{number} {'score' if number % 3 else 'skipped'}" for number in range(1, TRACES + 1)) == scored(
        tmp_path
    )
    assert {("HostileDialect", error.__name__)} == set(engine.tallies.dialect_errors)
    assert engine.tallies.dialect_errors.total() >= hostile
    assert (2 * TRACES, 2 * TRACES, 0) == (engine.counts().received, engine.counts().in_closed, engine.counts().live)


@pytest.mark.parametrize("error", ERRORS)
def test_an_emitter_that_raises_costs_no_other(tmp_path: Path, error: type[BaseException]) -> None:
    """The file has every score, each failure is counted, and a flush says that it was not done."""
    made = processor(tmp_path, "remote_parent", hostile=HostileEmitter(error))
    for number in range(1, TRACES + 1):
        for span in trace(number):
            made.on_end(span)
    engine = engine_of(made)

    assert not made.force_flush()
    made.shutdown()
    assert Counter(f"{number} score" for number in range(1, TRACES + 1)) == scored(tmp_path)
    assert {("hostile", error.__name__): TRACES + 2} == dict(engine.tallies.export_failures)


@pytest.mark.parametrize("kind", [HostileDialect, HostileEmitter])
def test_what_hangs_costs_what_finds_no_room_behind_it(tmp_path: Path, kind: type[Any]) -> None:
    """`on_end` comes back, also when the queue is full; what it drops is counted, what waited is scored in the end."""
    hanging = kind()
    is_dialect = kind is HostileDialect
    made = processor(tmp_path, "remote_parent", *[hanging] * is_dialect, **{} if is_dialect else {"hanging": hanging})
    for span in trace(1, "hostile"):
        made.on_end(span)
    assert hanging.entered.wait(DEADLINE_S)
    for number in range(2, 2 + TRACES):
        for span in trace(number):
            made.on_end(span)
    waiting = trace(1_000)[0]
    for _ in range(QUEUE_CAPACITY):
        made.on_end(waiting)
    engine = engine_of(made)

    dropped = {reason: count for reason, count in dict(engine.tallies.dropped).items() if count}
    assert {"queue_full": 2 * TRACES} == dropped
    assert not made.force_flush(50)
    hanging.released.set()
    assert made.force_flush(int(DEADLINE_S * 1000))
    made.shutdown()
    assert {str(number) for number in range(1, 2 + TRACES)} <= {each.partition(" ")[0] for each in scored(tmp_path)}
