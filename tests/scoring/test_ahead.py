"""Traces that are scored before they are due: they give the same reports, at the same time, as those scored later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deadline import DEADLINE_S
from dialects.spans import built_in_reader
from spanscore.collect.settings import TraceSettings
from spanscore.collect.table import TraceTable
from spanscore.contracts import Markers, ModelReading, Precedence, Reading
from spanscore.evaluators.tool_call_trajectory import ToolCallTrajectory
from spanscore.model import Outcome, Report, Score, Span, Trace, Trajectory
from spanscore.otlp.slices import Steps
from spanscore.scoring import ahead
from spanscore.scoring.ahead import Ahead
from spanscore.scoring.engine import Engine
from spanscore.scoring.live_engine import LiveEngine
from spanscore.scoring.owner import Measure
from spanscore.scoring.pipeline import EvaluatorEntry, Pipeline, Scoring
from spanscore.trajectories.reader import DialectReader
from traces import agent, tool

_EVALUATOR = ToolCallTrajectory()


class Broken:
    """A dialect that fails on spans of that name."""

    precedence = Precedence.FRAMEWORK
    markers = Markers(span_names=("broken",))
    reads: frozenset[str] = frozenset()

    def read(self, span: Span) -> Reading | None:
        """Fail."""
        return 1 / 0  # type: ignore[return-value]

    def read_model(self, span: Span) -> ModelReading | None:
        """Read nothing."""
        return None


class Counting(Pipeline):
    """A pipeline that notes the traces that it scores, and takes some time for each."""

    def __init__(
        self, pass_time: Callable[[], None] = lambda: None, reader: DialectReader | None = None, **entry: object
    ) -> None:
        entries = [EvaluatorEntry(name="e", type="t", resolve=lambda _: _EVALUATOR, **entry)]  # type: ignore[arg-type]
        super().__init__(entries, reader or built_in_reader())
        self.seen: list[str] = []
        self.finished = 0
        self._pass_time = pass_time

    def begin(self, trace: Trace, wanted: Callable[[Trajectory], bool] | None = None) -> Steps[Scoring]:
        """Score a trace."""
        self._pass_time()
        self.seen.append(f"trace {trace.trace_id[-1]} of {len(trace.spans)}")
        scoring = yield from super().begin(trace, wanted)
        self.finished += 1
        return scoring


class Clocked:
    """An engine with a clock that is moved, and the reports that it emits."""

    def __init__(
        self,
        *,
        scores_ahead: bool = True,
        pipeline: Counting | None = None,
        is_root: Callable[[Span], bool] = lambda span: not span.parent_span_id,
        measure: Measure | None = None,
    ) -> None:
        self.now = 0.0
        self.emitted: list[tuple[float, Report]] = []
        self.pipeline = Counting() if pipeline is None else pipeline
        table = TraceTable(TraceSettings(), is_root)
        self.engine = Engine(table, self.pipeline, {"kept": self}, lambda: self.now, measure=measure)
        self.queue = self.engine.queue
        if scores_ahead:
            self.queue.ahead = Ahead(table, lambda: self.now, self.engine.faults)

    def take(self, *spans: Span) -> None:
        """Take spans that arrive now."""
        self.engine.take(spans, [100] * len(spans))

    def at(self, now: float) -> None:
        """Do what is due, and all that can be done ahead."""
        self.now = now
        while not self.engine.work(now):
            pass
        while self.queue.ahead is not None and self.queue.ahead.next_due() <= now:
            self.queue.ahead.step(self.pipeline)

    def emit(self, report: Report) -> None:
        """Keep a report."""
        self.emitted.append((self.now, report))

    def flush(self, timeout_s: float) -> bool:
        """Do nothing."""
        return True

    close = flush


def root(trace: int = 1, number: int = 1) -> Span:
    """Return the root of a trace."""
    return agent(number)._replace(trace_id=trace.to_bytes(16, "big"), parent_span_id=b"")


def call(trace: int = 1, number: int = 2) -> Span:
    """Return the span of a tool call."""
    return tool(number, f"tool_{number}")._replace(trace_id=trace.to_bytes(16, "big"), parent_span_id=root().span_id)


def test_a_trace_is_scored_ahead_and_emitted_when_it_is_due() -> None:
    """Nothing is scored twice, and no report is early."""
    clocked = Clocked()
    clocked.take(call(), root())
    clocked.at(1.4)
    assert [] == clocked.pipeline.seen
    clocked.at(1.5)
    assert (["trace 1 of 2"], []) == (clocked.pipeline.seen, clocked.emitted)
    clocked.at(2.0)
    assert (["trace 1 of 2"], [2.0]) == (clocked.pipeline.seen, [at for at, _ in clocked.emitted])


def test_a_trace_that_grows_after_it_was_scored_is_scored_again() -> None:
    """The report has the late span; a trace whose spans still come is not scored ahead."""
    clocked = Clocked()
    clocked.take(root(1), root(2))
    clocked.at(1.0)
    clocked.take(call(2))
    clocked.at(1.5)
    clocked.take(call(1))
    clocked.at(3.75)
    assert ["trace 1 of 1", "trace 2 of 2", "trace 1 of 2"] == clocked.pipeline.seen
    assert [2, 1] == [report.trajectory.trace_id[-1] for _, report in clocked.emitted]
    assert [1, 1] == [len(report.trajectory.calls) for _, report in clocked.emitted]


def test_a_failure_of_a_dialect_is_counted_though_what_was_scored_ahead_is_thrown_away() -> None:
    """A span of another trace, which was asked whether it is a root, failed before."""
    pipeline = Counting(reader=DialectReader([Broken()]))
    clocked = Clocked(pipeline=pipeline, is_root=lambda span: not (span.parent_span_id or pipeline.reader.read(span)))
    clocked.take(root(1))
    clocked.at(1.0)
    clocked.take(call(7)._replace(name="broken", parent_span_id=b""))
    clocked.at(1.5)
    clocked.take(root(1, 5))
    clocked.at(200.0)

    assert {("Broken", "ZeroDivisionError"): 2} == clocked.engine.tallies.dialect_errors


def test_an_error_while_a_trace_is_emitted_leaves_nothing_behind() -> None:
    """Its spans take no room from others."""

    def measure(*_: object) -> None:
        raise ZeroDivisionError

    clocked = Clocked(scores_ahead=False, measure=measure)
    clocked.take(root())
    with pytest.raises(ZeroDivisionError):
        clocked.at(2.0)

    assert (0, {}) == (clocked.queue.backlog, clocked.queue.waiting)


def test_a_trace_with_several_roots_is_scored_once() -> None:
    """As long as no other span comes."""
    clocked = Clocked()
    clocked.take(root(1, 3), root(1))
    clocked.at(1.5)
    clocked.at(2.0)
    assert ["trace 1 of 2"] == clocked.pipeline.seen


def test_after_a_reload_traces_are_scored_by_the_new_configuration() -> None:
    """Also those that were scored ahead by the one before it."""
    clocked, later = Clocked(), Counting()
    clocked.take(root())
    clocked.at(1.5)
    clocked.engine.reload(later, lambda span: not span.parent_span_id)
    clocked.at(2.0)
    assert ["trace 1 of 1"] == later.seen


def test_evaluators_in_other_processes_are_not_asked_ahead() -> None:
    """Else a late span would have them asked twice."""
    answer: Future[Outcome] = Future()
    answer.set_result(Score(1.0, passed=True))
    clocked = Clocked(pipeline=Counting(elsewhere=lambda *_: answer))
    clocked.take(root())
    clocked.at(1.9)
    assert [] == clocked.pipeline.seen
    clocked.at(2.0)
    assert (["trace 1 of 1"], 1) == (clocked.pipeline.seen, len(clocked.emitted))


def test_a_fault_ahead_is_counted_once(caplog: pytest.LogCaptureFixture) -> None:
    """The trace is tried again when it is due, and others are scored."""

    class Faulty(Counting):
        def begin(self, trace: Trace, wanted: Callable[[Trajectory], bool] | None = None) -> Steps[Scoring]:
            if trace.trace_id[-1] == 1:
                raise SystemExit
            return (yield from super().begin(trace, wanted))

    clocked = Clocked(pipeline=Faulty())
    clocked.take(root(1), root(2))
    clocked.at(1.5)
    clocked.at(2.0)
    assert {("", "SystemExit"): 1} == clocked.engine.tallies.evaluation_errors
    assert [2] == [report.trajectory.trace_id[-1] for _, report in clocked.emitted]
    assert 1 == len(caplog.messages)


def test_failures_of_dialects_ahead_are_counted_once() -> None:
    """Also if a late span has the trace scored again, and if no scores that were made ahead are used."""
    for late in ((), (call(),)):
        clocked = Clocked(pipeline=Counting(reader=DialectReader([Broken()])))
        clocked.take(root()._replace(name="broken"))
        clocked.at(1.5)
        assert {} == clocked.engine.tallies.dialect_errors
        clocked.take(*late)
        clocked.at(4.0)
        assert [1 + bool(late), 1] == [len(clocked.pipeline.seen), len(clocked.emitted)]
        assert {("Broken", "ZeroDivisionError"): 1} == clocked.engine.tallies.dialect_errors


def test_what_is_scored_ahead_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Further traces are scored when they are due. Traces that go to another process leave their room to others."""
    monkeypatch.setattr(ahead, "_MOST_SPANS", 2)
    clocked = Clocked()
    clocked.take(*map(root, (1, 2, 3)))
    clocked.at(1.5)
    assert ["trace 1 of 1", "trace 2 of 1"] == clocked.pipeline.seen
    clocked.engine.table.give_up([root(1).trace_id])
    clocked.engine.let_go([root(1).trace_id])
    clocked.take(root(4))
    clocked.at(2.0)
    clocked.at(3.2)
    assert ["trace 3 of 1", "trace 4 of 1"] == clocked.pipeline.seen[2:]
    clocked.at(4.0)
    assert 3 == len(clocked.emitted)
    assert 4 == len(clocked.pipeline.seen)


@pytest.mark.parametrize("goes", [False, True])
def test_a_trace_that_is_half_scored_when_it_is_closed_or_goes_leaves_nothing(goes: bool) -> None:  # noqa: FBT001
    """It is scored at its turn, if it is still here, and not once more afterwards."""
    clocked = Clocked()
    clocked.take(call(), root())
    clocked.now = 1.5
    assert clocked.queue.ahead is not None
    clocked.queue.ahead.step(clocked.pipeline)
    if goes:
        clocked.engine.table.give_up([root().trace_id])
        clocked.engine.let_go([root().trace_id])
    clocked.at(2.0)
    assert 2.0 < clocked.queue.ahead.next_due()
    assert ([] if goes else [2.0]) == [at for at, _ in clocked.emitted]
    clocked.at(5.0)
    assert (0 if goes else 1) == clocked.pipeline.finished


_SPANS = st.sampled_from([root(1), root(1, 3), call(1), call(1, 4), root(2), call(2)])
_ARRIVALS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.3, 0.5, 1.5, 2.0, 2.1]), st.lists(_SPANS, max_size=3)), max_size=8
)


@given(_ARRIVALS)
def test_reports_are_the_same_whether_scored_ahead_or_not(arrivals: list[tuple[float, list[Span]]]) -> None:
    """Whenever spans come, of whichever traces."""
    both = Clocked(), Clocked(scores_ahead=False)
    for clocked in both:
        now = 0.0
        for later, spans in [*arrivals, (30.0, [])]:
            for moment in (now + later / 2, now + later):
                clocked.at(moment)
            now += later
            clocked.take(*spans)
        clocked.at(now + 60.0)
    one, other = ([(at, report.revision, report.evaluations) for at, report in each.emitted] for each in both)
    assert one == other


def test_the_loop_scores_ahead_only_while_nothing_else_runs() -> None:
    """While each turn of the loop takes time, nothing is scored ahead; soon after that it is."""
    now = 0.0
    pipeline = Counting()

    async def scenario() -> list[int]:
        nonlocal now
        table = TraceTable(TraceSettings(), lambda span: not span.parent_span_id)
        live = LiveEngine(Engine(table, pipeline, {}, lambda: now), lambda: now)
        live.take([root()], [100])
        now = 1.5
        live.wake()
        seen = []
        for _ in range(5):
            now += 0.001
            await asyncio.sleep(0)
        seen.append(len(pipeline.seen))
        async with asyncio.timeout(DEADLINE_S):
            while not pipeline.seen:  # noqa: ASYNC110 - nothing but the loop's turns is waited for
                await asyncio.sleep(0)
        seen.append(len(pipeline.seen))
        live.stop()
        return seen

    assert [0, 1] == asyncio.run(scenario())
