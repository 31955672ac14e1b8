"""The queue between an agent's threads and the worker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext, TraceFlags

from deadline import DEADLINE_S
from spanscore.collect.settings import TraceSettings
from spanscore.collect.table import TraceTable
from spanscore.in_process.drops import Drops
from spanscore.in_process.runtime import QUEUE_BYTES, Runtime
from spanscore.model import Trace, Trajectory
from spanscore.otlp.slices import Steps
from spanscore.scoring.engine import Engine
from spanscore.scoring.pipeline import Pipeline, Scoring
from spanscore.trajectories.reader import DialectReader

RESOURCE = Resource.create()  # takes longer than the rest of a span


class Blocking(Pipeline):
    """A pipeline that hangs until it is let go."""

    def __init__(self) -> None:
        super().__init__((), DialectReader(()))
        self.entered = threading.Event()
        self.released = threading.Event()
        self.spans = 0

    def begin(self, trace: Trace, wanted: Callable[[Trajectory], bool] | None = None) -> Steps[Scoring]:
        """Hang."""
        self.entered.set()
        self.released.wait(DEADLINE_S)
        self.spans += len(trace.spans)
        yield from ()
        return Scoring(trace, (), self)


def context(trace: int, number: int, flags: int = TraceFlags.SAMPLED) -> SpanContext:
    """Return ids of a span."""
    return SpanContext(trace, number, is_remote=False, trace_flags=TraceFlags(flags))


def root(trace: int, flags: int = TraceFlags.SAMPLED) -> ReadableSpan:
    """Return a span without a parent."""
    return ReadableSpan("run", context(trace, 1, flags), resource=RESOURCE, start_time=1, end_time=2)


def child(trace: int, number: int) -> ReadableSpan:
    """Return a span below the root."""
    return ReadableSpan("step", context(trace, number), context(trace, 1), resource=RESOURCE, start_time=1, end_time=2)


def runtime_with(pipeline: Pipeline, capacity: int = 100, max_bytes: int = QUEUE_BYTES) -> Runtime:
    """Return a runtime whose traces end with their root."""
    settings = TraceSettings(decision_delay_s=0.0)
    table = TraceTable(settings, lambda span: not span.parent_span_id)
    return Runtime(
        lambda dropped: Engine(table, pipeline, {}, lambda: 0.0, dropped=dropped),
        capacity=capacity,
        max_bytes=max_bytes,
    )


@pytest.fixture
def blocking() -> Iterator[Blocking]:
    """Return a pipeline that hangs, and let it go at the end."""
    pipeline = Blocking()
    yield pipeline
    pipeline.released.set()


def test_every_drop_is_counted(blocking: Blocking) -> None:
    """With the worker hung and the queue full, each further span is dropped and counted, on every thread."""
    runtime = runtime_with(blocking, capacity=10)
    runtime.ended(root(1))
    assert blocking.entered.wait(DEADLINE_S)
    assert [True] * 10 == [runtime.ended(child(2, number)) for number in range(2, 12)]

    def flood() -> None:
        for number in range(1000):
            runtime.ended(child(3, number))

    threads = [threading.Thread(target=flood) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    engine = runtime.engine
    assert engine is not None
    assert {"queue_full": 4000, "shut_down": 0} == dict(engine.tallies.dropped)
    blocking.released.set()
    assert runtime.close(DEADLINE_S)
    runtime.ended(root(4))
    assert {"queue_full": 4000, "shut_down": 1} == dict(engine.tallies.dropped)
    assert not runtime.flush(DEADLINE_S)  # at once: nobody is there any more
    assert (11, 11) == (engine.counts().received, blocking.spans)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, RecursionError])
@pytest.mark.parametrize("runs", [False, True])
def test_an_interrupted_start_leaves_one_thread(
    interruption: type[BaseException], monkeypatch: pytest.MonkeyPatch, *, runs: bool
) -> None:
    """A thread may run although its start was interrupted: the next span starts no other beside it."""
    started: list[threading.Thread] = []

    class Interrupted(threading.Thread):
        def start(self) -> None:
            is_interrupted = not started
            started.append(self)
            if runs or not is_interrupted:
                super().start()
            if is_interrupted:
                raise interruption

    monkeypatch.setattr(threading, "Thread", Interrupted)
    runtime = runtime_with(Pipeline((), DialectReader(())))
    with suppress(KeyboardInterrupt):
        runtime.ended(root(1))
    assert all(runtime.ended(root(number)) for number in range(2, 5))
    assert runtime.flush(DEADLINE_S)
    assert runtime.engine is not None
    # Ctrl-C goes to the agent, and its span is not taken; a RecursionError does not.
    assert (3 if interruption is KeyboardInterrupt else 4) == runtime.engine.counts().received
    for thread in started:
        if thread.ident not in {None, runtime.thread_id}:
            thread.join(DEADLINE_S)
    assert 1 == sum(thread.is_alive() for thread in started)
    assert runtime.close(DEADLINE_S)


def test_what_came_before_an_interrupted_start_is_scored_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if no other span comes that could start the worker."""

    class Interrupted(threading.Thread):
        def start(self) -> None:
            monkeypatch.undo()
            raise RecursionError

    monkeypatch.setattr(threading, "Thread", Interrupted)
    runtime = runtime_with(Pipeline((), DialectReader(())))
    assert runtime.ended(root(1))
    assert not runtime.has_begun
    assert runtime.close(DEADLINE_S)
    assert runtime.engine is not None
    assert 1 == runtime.engine.counts().received


def test_a_close_while_the_first_span_comes_starts_nothing(blocking: Blocking, monkeypatch: pytest.MonkeyPatch) -> None:
    """The span is dropped and counted, as those that come later."""
    runtime = runtime_with(blocking)

    class ClosedMeanwhile:
        def acquire(self, *, blocking: bool) -> bool:
            return runtime.close(DEADLINE_S)

        def release(self) -> None:
            pass

    monkeypatch.setattr(runtime, "_starting", ClosedMeanwhile())
    assert not runtime.ended(root(1))
    assert not runtime.has_begun
    assert runtime.engine is not None
    assert {"queue_full": 0, "shut_down": 1} == dict(runtime.engine.tallies.dropped)


def test_what_is_not_sampled_is_neither_taken_nor_a_drop(blocking: Blocking) -> None:
    """A span that is recorded and not sampled is nobody's loss; nor is a running one, which is not received yet."""
    blocking.released.set()
    runtime = runtime_with(blocking)
    runtime.ended(root(1, TraceFlags.DEFAULT))
    runtime.started(context(2, 1, TraceFlags.DEFAULT))
    runtime.close(DEADLINE_S)
    runtime.ended(root(1, TraceFlags.DEFAULT))
    runtime.started(context(3, 1))
    engine = runtime.engine
    assert engine is not None

    assert (0, 0) == (engine.counts().received, engine.counts().open_traces)
    assert {"queue_full": 0, "shut_down": 0} == dict(engine.tallies.dropped)


def test_a_root_that_waits_for_a_running_span_is_scored_with_it() -> None:
    """A span that has begun and not ended keeps its trace open; one that has ended at once does not."""
    scored: list[tuple[int, int]] = []
    settings = TraceSettings(decision_delay_s=0.0)
    pipeline = Pipeline((), DialectReader(()))
    table = TraceTable(settings, lambda span: not span.parent_span_id)
    runtime = Runtime(
        lambda dropped: Engine(table, pipeline, {}, lambda: 0.0, dropped=dropped),
        lambda trace, reports: scored.append((trace[-1], len(reports))),
    )
    for number in (2, 3):
        runtime.started(context(1, number))
    runtime.ended(child(1, 2))
    runtime.ended(root(1))
    assert runtime.flush(DEADLINE_S)
    assert [] == scored
    runtime.ended(child(1, 3))
    assert runtime.flush(DEADLINE_S)

    assert [(1, 1)] == scored
    assert runtime.close(DEADLINE_S)


def test_the_hosts_threads_wait_for_nothing(blocking: Blocking, caplog: pytest.LogCaptureFixture) -> None:
    """With the worker hung, flush and close take their timeout, and say that it was not enough."""
    runtime = runtime_with(blocking)
    runtime.ended(root(1))
    assert blocking.entered.wait(DEADLINE_S)

    assert (False, False) == (runtime.flush(0.01), runtime.close(0.01))
    assert ["spanscore: the timeout ended before all scores were sent"] == caplog.messages


@given(st.lists(st.sampled_from(["a", "b", "look"])))
def test_drops_are_exact_however_often_they_are_looked_at(steps: list[str]) -> None:
    """Looking changes nothing."""
    drops = Drops(["a", "b"])
    for step in steps:
        if step == "look":
            dict(drops)
        else:
            drops.add(step)

    assert {"a": steps.count("a"), "b": steps.count("b")} == dict(drops)


class Keeping(Blocking):
    """One that keeps how many refused spans the traces have, and how many of these were dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: dict[int, tuple[int, int]] = {}

    def begin(self, trace: Trace, wanted: Callable[[Trajectory], bool] | None = None) -> Steps[Scoring]:
        """Keep it, and hang."""
        self.refused[trace.trace_id[-1]] = trace.refused, trace.dropped
        return (yield from super().begin(trace, wanted))


def test_a_run_knows_that_spans_of_it_were_dropped(caplog: pytest.LogCaptureFixture) -> None:
    """Its trace is not all, though what is left of it looks as if it were; nor is one with a span that is none.

    The log has one line about all that were dropped.
    """
    pipeline = Keeping()
    runtime = runtime_with(pipeline, capacity=4)
    runtime.ended(root(1))
    assert pipeline.entered.wait(DEADLINE_S)
    queued = [child(2, 2), root(3), ReadableSpan("step", context(4, 2), context(4, 1), start_time="soon"), root(4)]  # type: ignore[arg-type]
    assert [True] * 4 == [runtime.ended(each) for each in queued]
    assert not runtime.ended(child(2, 3))
    assert not runtime.ended(child(3, 3))
    pipeline.released.set()
    assert runtime.flush(DEADLINE_S)
    runtime.ended(root(2))
    assert runtime.close(DEADLINE_S)

    assert {1: (0, 0), 2: (1, 1), 3: (1, 1)} == {trace: each for trace, each in pipeline.refused.items() if trace < 4}
    (message,) = [message for message in caplog.messages if "dropped" in message]
    assert "the queue is full: 2; their runs are not complete" in message
    assert runtime.engine is not None
    assert {"queue_full": 2, "shut_down": 0} == dict(runtime.engine.tallies.dropped)
