from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future

import pytest

from dialects.spans import built_in_reader
from receivers.intake.fast_loop import FastLoop
from receivers.otlp_requests import decoded_span
from serving import DEADLINE_S
from spanscore.collect.settings import TraceSettings
from spanscore.collect.table import TraceTable
from spanscore.contracts.instruments.instrument import Instrument
from spanscore.evaluators.tool_call_trajectory import ToolCallTrajectory
from spanscore.model import Outcome, Report, Score, Skipped, Span, Trace, Trajectory
from spanscore.otlp.slices import Steps
from spanscore.scoring.engine import Engine
from spanscore.scoring.evaluator_entry import EvaluatorEntry
from spanscore.scoring.live_engine import LiveEngine
from spanscore.scoring.owner import Measure
from spanscore.scoring.pipeline import Pipeline, Scoring


class Keeps(Pipeline):
    """A pipeline that keeps traces and scores nothing."""

    def __init__(self) -> None:
        super().__init__((), built_in_reader())
        self.traces: asyncio.Queue[Trace] = asyncio.Queue()

    def begin(self, trace: Trace, wanted: Callable[[Trajectory], bool] | None = None) -> Steps[Scoring]:
        """Keep a trace."""
        self.traces.put_nowait(trace)
        yield from ()
        return Scoring(trace, (), self)


def live(pipeline: Pipeline, measure: Measure, **settings: float) -> LiveEngine:
    """Return a live engine that closes traces without a root."""
    table = TraceTable(TraceSettings(**settings), lambda _: False)  # type: ignore[arg-type]
    return LiveEngine(Engine(table, pipeline, {}, time.monotonic, measure=measure))


def test_a_fault_does_not_stop_the_clock(caplog: pytest.LogCaptureFixture) -> None:
    """When something goes wrong over a trace that is due, that is logged, and those after it are scored in time."""
    faults = [RuntimeError()]

    def measure(instrument: Instrument, value: float) -> None:
        if faults:
            raise faults.pop()

    async def scenario() -> list[int]:
        pipeline = Keeps()
        engine = live(pipeline, measure, trace_timeout_s=0.01)
        scored = []
        async with asyncio.timeout(DEADLINE_S):
            for number in (1, 2):
                engine.take([decoded_span(number)], [100])
                scored.append((await pipeline.traces.get()).trace_id[-1])
        engine.stop()
        return scored

    assert [1, 2] == asyncio.run(scenario())
    assert ["traces that were due could not be scored"] == caplog.messages


class Emitted:
    """An emitter that tells of each report."""

    def __init__(self) -> None:
        self.reports: asyncio.Queue[Report] = asyncio.Queue()

    def emit(self, report: Report) -> None:
        """Keep a report."""
        self.reports.put_nowait(report)

    def flush(self, timeout_s: float) -> bool:
        """Do nothing."""
        return True

    close = flush


def live_with(table: TraceTable, pipeline: Pipeline, *emitters: Emitted) -> LiveEngine:
    """Return a live engine that learns of answers."""
    named = {str(number): emitter for number, emitter in enumerate(emitters)}
    return LiveEngine(Engine(table, pipeline, named, time.monotonic))


def test_an_evaluator_elsewhere_does_not_hold_up_the_loop() -> None:
    """Spans are taken while it is asked; its report goes out when it answers, without anything else happening."""
    answers: list[Future[Outcome]] = [Future(), Future()]
    left = iter(answers)
    evaluator = ToolCallTrajectory()
    entry = EvaluatorEntry(name="e", type="t", resolve=lambda _: evaluator, elsewhere=lambda *_: next(left))

    async def scenario() -> list[int]:
        emitter = Emitted()
        table = TraceTable(TraceSettings(decision_delay_s=0.0), lambda _: True)
        engine = live_with(table, Pipeline([entry], built_in_reader()), emitter)
        engine.take([decoded_span(1)], [100])
        engine.take([decoded_span(2)], [100])
        assert emitter.reports.empty()
        for answer in reversed(answers):
            threading.Thread(target=answer.set_result, args=(Score(1.0, passed=True),)).start()
        async with asyncio.timeout(DEADLINE_S):
            scored = [(await emitter.reports.get()).trajectory.trace_id[-1] for _ in answers]
        engine.stop()
        return scored

    assert [1, 2] == asyncio.run(scenario())


class Slow(Pipeline):
    """A pipeline that takes 4 ms for a trace, on a clock of its own, and notes which it was."""

    def __init__(self, seen: list[str]) -> None:
        super().__init__((), built_in_reader())
        self.now = 0.0
        self._seen = seen

    def begin(self, trace: Trace, wanted: Callable[[Trajectory], bool] | None = None) -> Steps[Scoring]:
        """Note a trace."""
        self.now += 0.004
        self._seen.append(f"trace {trace.trace_id[-1]} of {len(trace.spans)}")
        yield from ()
        return Scoring(trace, (), self)


def timed(table: TraceTable, pipeline: Slow) -> LiveEngine:
    """Return a live engine with the clock of the pipeline."""
    return LiveEngine(Engine(table, pipeline, {}, lambda: pipeline.now), lambda: pipeline.now)


def test_others_have_their_turn_while_many_traces_are_due() -> None:
    """Scoring stops after some 5 ms until the rest of the loop has run; spans that come then are not late."""
    seen: list[str] = []
    pipeline = Slow(seen)
    table = TraceTable(TraceSettings(trace_timeout_s=1.0), lambda _: False)

    async def scenario() -> None:
        live = timed(table, pipeline)
        live.take([decoded_span(number) for number in range(1, 6)], [100] * 5)
        pipeline.now = 1.0
        live.wake()
        seen.append("turn")
        live.take([decoded_span(5, 2)], [100])
        while table.counts().open_traces > 1:
            await asyncio.sleep(0)
            seen.append("turn")
        live.stop()

    asyncio.run(scenario())
    one, two, three, four = (f"trace {number} of 1" for number in range(1, 5))
    assert [one, two, "turn", three, four, "turn"] == seen
    counts = table.counts()
    assert (6, 4, 2, {}) == (counts.received, counts.in_closed, counts.live, dict(counts.late))


@pytest.mark.parametrize("first", ["take", "take_whole", "wake"])
def test_after_a_stall_unread_requests_are_taken_before_a_trace_is_closed(first: str) -> None:
    """Whatever is looked at first: the clock, or a request that waited in a socket. Then all wait anew."""
    seen: list[str] = []
    pipeline = Slow(seen)
    table = TraceTable(TraceSettings(trace_timeout_s=1.0, max_trace_age_s=2.0), lambda _: False)

    async def scenario() -> None:
        live = timed(table, pipeline)
        live.take([decoded_span(1)], [100])
        pipeline.now = 5.0
        if first == "wake":
            live.wake()
        else:
            getattr(live, first)([decoded_span(2)], [100])
        live.take([decoded_span(1, 2)], [100])
        assert 6.0 == table.next_due()
        pipeline.now = 6.0
        live.wake()
        live.stop()

    asyncio.run(scenario())
    assert ["trace 1 of 2"] == seen[:1]


def test_a_flood_that_closes_others_does_not_hold_up_the_loop() -> None:
    """Traces that had to close because of new ones are scored in slices too, and a request in between adds none."""
    seen: list[str] = []
    pipeline = Slow(seen)
    table = TraceTable(TraceSettings(num_traces=1), lambda _: False)

    async def scenario() -> None:
        live = timed(table, pipeline)
        live.take([decoded_span(number) for number in range(1, 5)], [100] * 4)
        seen.append("turn")
        live.take([decoded_span(5)], [100])
        while live.engine.queue.backlog:
            await asyncio.sleep(0)
            seen.append("turn")
        live.stop()

    asyncio.run(scenario())
    one, two, three, four = (f"trace {number} of 1" for number in range(1, 5))
    assert [one, two, "turn", three, four, "turn", "turn"] == seen  # the last report goes out after a slice is over


def test_others_have_their_turn_between_the_evaluations_of_a_trace() -> None:
    """However long each takes, as of a trace with many or large calls."""
    seen: list[str] = []
    pipeline = Slow(seen)

    def entry(name: str) -> EvaluatorEntry:
        def resolve(_: Trajectory) -> Skipped:
            pipeline.now += 1.0
            seen.append(name)
            return Skipped("slow")

        return EvaluatorEntry(name=name, type="t", resolve=resolve)

    table = TraceTable(TraceSettings(decision_delay_s=0.0), lambda _: True)
    slow = Pipeline([entry("one"), entry("two"), entry("three")], built_in_reader())

    async def scenario() -> None:
        live = LiveEngine(Engine(table, slow, {}, lambda: pipeline.now), lambda: pipeline.now)
        live.take([decoded_span(1)], [100])
        while live.engine.queue.backlog:
            seen.append("turn")
            await asyncio.sleep(0)
        live.stop()

    asyncio.run(scenario())
    assert ["one", "turn", "two", "turn", "three", "turn"] == seen


def test_large_requests_have_no_room_while_much_waits() -> None:
    """With more spans than one request may have, taken or not, small requests are still let in until it is too much."""
    table = TraceTable(TraceSettings(num_traces=1, span_limit=70_000, max_trace_bytes=2**30), lambda _: False)
    largest = 65_536

    async def scenario() -> list[tuple[bool, bool, bool]]:
        pipeline = Slow([])
        live = timed(table, pipeline)

        def found() -> tuple[bool, bool, bool]:
            return live.has_room(largest), live.has_room(512), live.has_room(1)

        live.rest()
        seen = [found()]
        for trace in (1, 2, 3):
            live.take([decoded_span(trace, number) for number in range(1, largest)], [1] * (largest - 1))
            seen.append(found())
        live.take([decoded_span(4)], [1])
        live.take([decoded_span(5)] * 2, [1] * 2)
        seen.append(found())
        live.wake()
        while live.engine.queue.backlog:  # noqa: ASYNC110 - nothing but the loop's turns is waited for
            await asyncio.sleep(0)
        seen.append(found())
        live.stop()
        return seen

    before, one, two, three, full, after = asyncio.run(scenario())
    assert [(True, True, True)] * 3 == [before, one, after]
    assert [(False, True, True), (False, False, False), (False, False, False)] == [two, three, full]


def test_it_is_behind_while_too_much_waits_for_evaluators() -> None:
    """Traces that are held until an evaluator elsewhere has answered take as much memory as any."""
    table = TraceTable(TraceSettings(num_traces=1, span_limit=70_000, max_trace_bytes=2**30), lambda _: False)
    answer: Future[Outcome] = Future()
    evaluator = ToolCallTrajectory()
    entry = EvaluatorEntry(name="e", type="t", resolve=lambda _: evaluator, elsewhere=lambda *_: answer)

    async def scenario() -> list[bool]:
        live = live_with(table, Pipeline([entry], built_in_reader()))
        live.take_whole([decoded_span(1, number) for number in range(1, 65_537)], [1] * 65_536)
        live.take([decoded_span(2)], [100])
        found = [live.is_behind]
        answer.set_result(Score(1.0, passed=True))
        async with asyncio.timeout(DEADLINE_S):
            while live.engine.queue.backlog:  # noqa: ASYNC110 - nothing but the loop's turns is waited for
                await asyncio.sleep(0)
        found.append(live.is_behind)
        live.stop()
        return found

    assert [True, False] == asyncio.run(scenario())


class Ticking(TraceTable):
    """A table that takes 4 ms for a part of a request, and notes how much it was."""

    def __init__(self, pipeline: Slow, seen: list[str], **settings: float) -> None:
        super().__init__(TraceSettings(**settings), lambda _: False)  # type: ignore[arg-type]
        self._pipeline = pipeline
        self._seen = seen

    def add(
        self, spans: Collection[Span], now: float, sizes: Iterable[int] | None = None, *, close_due: bool = True
    ) -> list[Trace]:
        """Note the spans."""
        self._pipeline.now += 0.004
        self._seen.append(f"{len(spans)} spans")
        return super().add(spans, now, sizes, close_due=close_due)


def test_a_large_request_is_taken_in_slices() -> None:
    """Others have their turn meanwhile; what comes behind it waits, and nothing is scored before all of it is there."""
    seen: list[str] = []
    pipeline = Slow(seen)
    table = Ticking(pipeline, seen, trace_timeout_s=0.01)
    told: list[tuple[int, int, bool]] = []

    def taken(spans: Sequence[Span], sizes: Sequence[int], *, is_last: bool) -> None:
        told.append((len(spans), sum(sizes), is_last))

    async def scenario() -> None:
        live = timed(table, pipeline)
        live.take([decoded_span(1, number) for number in range(1, 1_301)], [2] * 1_300, taken)
        seen.append("turn")
        live.take([decoded_span(2)], [100], taken)
        while sum(table.counts().closed.values()) < 2:
            await asyncio.sleep(0)
            seen.append("turn")
        live.stop()

    asyncio.run(scenario())
    arriving = ["512 spans", "512 spans", "turn", "276 spans", "1 spans", "turn"]
    assert [*arriving, "trace 1 of 1300", "trace 2 of 1", "turn"] == seen
    assert [(512, 1_024, False), (512, 1_024, False), (276, 552, True), (1, 100, True)] == told


def test_what_has_arrived_is_taken_before_it_stops() -> None:
    """Another thread has the engine then, and scores everything: no span is left behind in a half taken request."""
    pipeline = Slow([])
    table = Ticking(pipeline, [], trace_timeout_s=60.0)

    async def scenario() -> None:
        live = timed(table, pipeline)
        for trace in (1, 2):
            live.take([decoded_span(trace, number) for number in range(1, 2_001)], [2] * 2_000)
        live.stop()

    asyncio.run(scenario())
    assert 4_000 == table.counts().live


def test_a_fault_in_a_part_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """Where the spans of one part cannot be taken, those of the others are, and the request is told as taken."""
    told: list[bool] = []

    class Failing(Ticking):
        def add(self, spans: Collection[Span], *args: float, **options: bool) -> list[Trace]:
            if spans and next(iter(spans)).span_id == (513).to_bytes(8, "big"):
                raise RuntimeError
            return super().add(spans, *args, **options)  # type: ignore[arg-type]

    pipeline = Slow([])
    table = Failing(pipeline, [], trace_timeout_s=60.0)

    async def scenario() -> None:
        live = timed(table, pipeline)
        spans = [decoded_span(1, number) for number in range(1, 1_301)]
        live.take(spans, [2] * 1_300, lambda _spans, _sizes, is_last: told.append(is_last))
        live.stop()

    asyncio.run(scenario())
    assert (788, [False, False, True]) == (table.counts().live, told)
    assert ["spans of a large request could not be taken"] == caplog.messages


def test_catching_up_lets_others_have_their_turn() -> None:
    """What was due at an earlier time is scored in slices; what was not due then is not."""
    seen: list[str] = []
    pipeline = Slow(seen)
    table = TraceTable(TraceSettings(trace_timeout_s=1.0), lambda _: False)

    async def others() -> None:
        for _ in range(2):
            seen.append("turn")
            await asyncio.sleep(0)

    async def scenario() -> None:
        pipeline.now = 10.0
        live = timed(table, pipeline)
        live.rest()
        await live.restore([decoded_span(number) for number in range(1, 5)], [100] * 4, 2.0, lambda *_: None)
        await live.restore([decoded_span(5)], [100], 2.5, lambda *_: None)
        running = asyncio.ensure_future(others())
        await live.catch_up(3.0)
        await running
        live.stop()

    asyncio.run(scenario())
    one, two, three, four = (f"trace {number} of 1" for number in range(1, 5))
    assert [one, two, "turn", three, four, "turn"] == seen


def test_a_timer_that_is_early_by_the_clock_is_set_again() -> None:
    """Where the clock is coarse, as on Windows, a timer may end before the time at which a trace is due."""
    seen: list[str] = []
    pipeline = Slow(seen)
    table = TraceTable(TraceSettings(trace_timeout_s=0.5), lambda _: False)

    async def scenario() -> None:
        live = timed(table, pipeline)
        live.take([decoded_span(1)], [100])
        await asyncio.sleep(0.7)
        pipeline.now = 0.6
        await asyncio.sleep(0.7)
        live.stop()

    with asyncio.Runner(loop_factory=FastLoop) as runner:
        runner.run(scenario())
    assert ["trace 1 of 1"] == seen
