"""The engine: what goes wrong stays where it is, and reports come in the order of their traces."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

import pytest

from deadline import DEADLINE_S
from dialects.spans import built_in_dialects, built_in_reader, exception
from spanscore.collect.settings import TraceSettings
from spanscore.collect.table import TraceTable
from spanscore.contracts import Markers, ModelReading, Precedence, Reading
from spanscore.contracts.instruments.tallies import Tallies
from spanscore.messages.faults import Faults
from spanscore.model import (
    Evaluation,
    Failed,
    Outcome,
    Report,
    Score,
    Skipped,
    Span,
    Trace,
    Trajectory,
    Unit,
    refused_span,
)
from spanscore.model.outcomes import MendedBy
from spanscore.otlp.slices import Steps
from spanscore.scoring.emission import Emission
from spanscore.scoring.engine import Engine
from spanscore.scoring.evaluator_entry import EvaluatorEntry
from spanscore.scoring.owner import Owner
from spanscore.scoring.pipeline import Pipeline, Scoring
from spanscore.trajectories.reader import DialectReader
from traces import agent, model, tool

PASS = Score(1.0, passed=True)


class Here:
    """An evaluator that is never asked here."""

    expectation = None

    def evaluate(self, trajectory: object) -> Outcome:
        """Fail."""
        raise AssertionError


class Kept:
    """An emitter that keeps reports."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.reports: list[Report] = []
        self.error = error

    def emit(self, report: Report) -> None:
        """Keep it, or raise."""
        if self.error is not None:
            raise self.error
        self.reports.append(report)

    def flush(self, timeout_s: float) -> bool:
        """Do nothing, or raise."""
        if self.error is not None:
            raise self.error
        return True

    close = flush


class Unreadable(Pipeline):
    """A pipeline with a fault in traces with an even number."""

    def __init__(self, error: BaseException) -> None:
        super().__init__((), built_in_reader())
        self.error = error

    def begin(self, trace: Trace, wanted: Callable[[Trajectory], bool] | None = None) -> Steps[Scoring]:
        """Raise, or score."""
        if trace.trace_id[-1] % 2 == 0:
            raise self.error
        return (yield from super().begin(trace, wanted))


def trace_of(number: int) -> Span:
    """Return the only span of a trace."""
    return agent(1)._replace(trace_id=number.to_bytes(16, "big"), parent_span_id=b"")


class Told:
    """Learns what an engine does, and notes how much an emitter has by then."""

    def __init__(self, kept: Kept) -> None:
        self.at_answers: list[list[int]] = []
        self.traces: list[tuple[int, int]] = []
        self._kept = kept

    def answered(self) -> None:
        """Note which traces have reports."""
        self.at_answers.append(numbers(self._kept.reports))

    def scored(self, trace_id: bytes) -> None:
        """Note the trace, and how many reports there are."""
        self.traces.append((trace_id[-1], len(self._kept.reports)))


def engine_with(pipeline: Pipeline, told: Told | None = None, **emitters: Kept) -> Engine:
    """Return an engine whose traces end with their root."""
    table = TraceTable(TraceSettings(decision_delay_s=0.0), lambda each: not each.parent_span_id)
    engine = Engine(table, pipeline, emitters, lambda: 1.0)
    if told is not None:
        engine.queue.owner = Owner(answered=told.answered, scored=told.scored)
    return engine


def elsewhere(*answers: Future[Outcome]) -> Pipeline:
    """Return a pipeline with one evaluator, whose answers come from elsewhere, one for each trace."""
    left = iter(answers)
    entry = EvaluatorEntry(
        name="slow", type="test", version="2", resolve=lambda _: Here(), elsewhere=lambda *_: next(left)
    )
    return Pipeline([entry], built_in_reader())


def numbers(reports: list[Report]) -> list[int]:
    """Return which traces the reports are about."""
    return [report.trajectory.trace_id[-1] for report in reports]


@pytest.mark.parametrize("error", [RuntimeError("it holds secrets"), RecursionError(), MemoryError(), SystemExit(1)])
def test_a_trace_that_cannot_be_read_costs_no_other(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    """The other traces of the same step are scored; the fault is counted every time, and logged once, without text."""
    kept = Kept()
    engine = engine_with(Unreadable(error), kept=kept)
    engine.add([trace_of(number) for number in range(1, 6)])
    told = type(error).__name__

    assert [1, 3, 5] == numbers(kept.reports)
    assert {("", told): 2} == dict(engine.tallies.evaluation_errors)
    (message,) = caplog.messages
    assert message.startswith(f"a trace could not be scored: {told} at test_engine.py:")
    assert message.endswith("; further ones are only counted")


@pytest.mark.parametrize("error", [OSError("full"), RecursionError(), SystemExit(1), GeneratorExit()])
def test_an_emitter_that_raises_stops_no_other(error: BaseException) -> None:
    """Whatever it raises is counted; the other emitters have the report, and are flushed and closed."""
    kept = Kept()
    engine = engine_with(Pipeline((), built_in_reader()), broken=Kept(error), kept=kept)
    engine.add([trace_of(1)])

    assert [1] == numbers(kept.reports)
    assert (False, False) == (engine.flush(1.0), engine.close(1.0))
    assert ("broken",) == engine.unfinished
    assert {("broken", type(error).__name__): 3} == dict(engine.tallies.export_failures)


class Timed(Kept):
    """An emitter that notes its timeout, and uses it up."""

    def __init__(self, clock: list[float]) -> None:
        super().__init__()
        self.clock = clock
        self.timeouts: list[float] = []

    def close(self, timeout_s: float) -> bool:
        """Use up the time."""
        self.timeouts.append(timeout_s)
        self.clock[0] += timeout_s
        return True


def test_a_slow_emitter_leaves_time_to_the_next() -> None:
    """An emitter that has sent everything, and needs a moment to notice, is not reported as one that lost data."""
    clock = [0.0]
    slow, last = Timed(clock), Timed(clock)
    emission = Emission({"slow": slow, "last": last}, Tallies({}), Faults(lambda: True))

    assert emission.finish("close", lambda: clock[0], 10.0)
    assert ([10.0], [0.2]) == (slow.timeouts, last.timeouts)


def test_the_users_interrupt_is_not_swallowed() -> None:
    """KeyboardInterrupt on the main thread ends the program; on another thread nobody but a plug-in can raise it."""
    engine = engine_with(Unreadable(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        engine.add([trace_of(2)])
    other = engine_with(Unreadable(KeyboardInterrupt()))
    thread = threading.Thread(target=lambda: other.add([trace_of(2)]))
    thread.start()
    thread.join()

    assert {("", "KeyboardInterrupt"): 1} == dict(other.tallies.evaluation_errors)


def test_reports_keep_the_order_of_their_traces() -> None:
    """Nobody waits for an answer; what is answered early goes out behind what was asked before it."""
    first, second, third = (Future[Outcome]() for _ in range(3))
    kept = Kept()
    told = Told(kept)
    engine = engine_with(elsewhere(first, second, third), told, kept=kept)
    assert () == engine.add([trace_of(1), trace_of(2), trace_of(3)])
    assert 3 == sum(engine.counts().closed.values())
    second.set_result(PASS)
    assert () == engine.queue.settle()
    first.set_result(PASS)
    assert [1, 2] == numbers(list(engine.queue.settle()))
    third.set_result(Failed("TimeLimit", "no answer within 1 s"))
    assert [3] == numbers(list(engine.expire()))
    assert [[], [], [1, 2]] == told.at_answers
    assert {("slow", "TimeLimit"): 1} == dict(engine.tallies.evaluation_errors)
    assert (Evaluation(name="slow", type="test", version="2", outcome=PASS),) == kept.reports[0].evaluations


def test_waiting_for_answers_ends_in_time() -> None:
    """What is not answered when emitters are closed has failed, and is reported all the same."""
    kept = Kept()
    engine = engine_with(elsewhere(Future(), Future()), kept=kept)
    engine.add([trace_of(1), trace_of(2)])

    assert () == engine.queue.settle_all(0.01)
    assert not engine.flush(0.01)
    assert not engine.close(0.01)
    outcome = Failed("Abandoned", "there was no time left to wait for the answer")
    assert [outcome, outcome] == [report.evaluations[0].outcome for report in kept.reports]


def test_all_answers_can_be_waited_for() -> None:
    """`settle_all` returns as soon as the last answer is here."""
    answers = [Future[Outcome]() for _ in range(2)]
    engine = engine_with(elsewhere(*answers), kept=Kept())
    engine.add([trace_of(1), trace_of(2)])
    thread = threading.Thread(target=lambda: [answer.set_result(PASS) for answer in reversed(answers)])
    thread.start()

    assert [1, 2] == numbers(list(engine.queue.settle_all(DEADLINE_S)))
    thread.join()


def test_a_trace_is_told_as_scored_after_its_reports() -> None:
    """Whoever keeps spans until they are scored learns it when the reports are out, also of a trace without any."""
    answer: Future[Outcome] = Future()
    kept = Kept()
    told = Told(kept)
    engine = engine_with(elsewhere(answer), told, kept=kept)
    engine.add([trace_of(1)])
    assert [] == told.traces
    answer.set_result(PASS)
    engine.queue.settle()
    unreadable = engine_with(Unreadable(ValueError()), told, kept=kept)
    unreadable.add([trace_of(2)])

    assert [(1, 1), (2, 1)] == told.traces


class Counting(Kept):
    """An emitter that must not be told twice."""

    at_most_once = True


def test_what_was_counted_before_a_restart_is_not_counted_again() -> None:
    """Emitters that count miss the trace, the others have its reports, and a revision is told to all."""
    counting, kept = Counting(), Kept()
    engine = engine_with(Pipeline((), built_in_reader()), counting=counting, kept=kept)
    engine.note_counted([trace_of(1).trace_id])
    engine.add([trace_of(1), trace_of(2)])

    assert ([2], [1, 2]) == (numbers(counting.reports), numbers(kept.reports))


def test_the_traces_of_others_are_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    """A trace that no dialect knows is counted once; emitters get nothing to say of it, whatever is configured."""
    entry = EvaluatorEntry(name="it", type="test", resolve=lambda _: Here())
    kept = Kept()
    engine = engine_with(Pipeline([entry], built_in_reader()), kept=kept)
    engine.add([trace_of(1)._replace(attributes={"http.request.method": "GET"})])

    (report,) = kept.reports
    assert (False, (), 1) == (report.trajectory.recognised, report.evaluations, engine.tallies.unrecognised)
    assert [] == caplog.messages


@pytest.mark.parametrize(
    ("settings", "limit"), [(TraceSettings(num_traces=2), "num_traces"), (TraceSettings(max_bytes=250), "max_bytes")]
)
def test_traces_that_give_way_are_told(settings: TraceSettings, limit: str, caplog: pytest.LogCaptureFixture) -> None:
    """Their runs are scored in part: the log names the limit, once for many."""
    table = TraceTable(settings, lambda _: False)
    engine = Engine(table, Pipeline((), built_in_reader()), {}, lambda: 1.0)
    for number in range(1, 6):
        engine.add([trace_of(number)], [100])
    engine.close(0.0)

    lines = [f"open traces closed and scored as incomplete, as traces.{limit} is reached: {count}" for count in (1, 2)]
    assert lines == caplog.messages


class Broken:
    """A dialect with a bug."""

    precedence = Precedence.CUSTOM
    markers = Markers(span_names=("invoke_agent",))
    reads = frozenset[str]()

    def read(self, span: Span) -> Reading | None:
        """Raise."""
        raise ZeroDivisionError

    def read_model(self, span: Span) -> ModelReading | None:
        """Read nothing."""
        return None


def test_a_dialect_that_raises_is_counted_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """Its traces are skipped, not passed; the log has one line however often it raises."""
    entry = EvaluatorEntry(name="it", type="test", resolve=lambda _: Here())
    kept = Kept()
    engine = engine_with(Pipeline([entry], DialectReader([Broken(), *built_in_dialects()])), kept=kept)
    engine.add([trace_of(1), trace_of(2)])

    assert {("Broken", "ZeroDivisionError"): 2} == dict(engine.tallies.dialect_errors)
    assert [True, True] == [isinstance(each.evaluations[0].outcome, Skipped) for each in kept.reports]
    (message,) = caplog.messages
    assert message.startswith("dialect 'Broken' failed on a span: ZeroDivisionError")


class Ticking:
    """A clock that each look moves on by a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        self.now += 1.0
        return self.now


def test_work_stops_in_time_and_goes_on_where_it_was() -> None:
    """Traces are scored one by one in the order in which they are due; what is not reached stays as it is."""
    kept = Kept()
    table = TraceTable(TraceSettings(decision_delay_s=0.0), lambda each: not each.parent_span_id)
    engine = Engine(table, Pipeline((), built_in_reader()), {"kept": kept}, Ticking())
    engine.take([trace_of(number) for number in (3, 1, 2)], [1, 1, 1])
    assert [] == kept.reports
    scored = []
    while not engine.work(until=0.0):  # it is late: one step, such as reading a span, at a time
        counts = engine.counts()
        assert counts.received == counts.in_closed + counts.live
        assert all(engine.is_open(bytes([0] * 15 + [number])) for number in {1, 2, 3} - set(numbers(kept.reports)))
        scored.append(numbers(kept.reports))

    assert [[]] * 3 + [[3]] * 4 + [[3, 1]] * 4 + [[3, 1, 2]] == scored
    assert (3, 0, 0) == (engine.counts().in_closed, engine.counts().live, engine.queue.backlog)
    assert not any(engine.is_open(bytes([0] * 15 + [number])) for number in (1, 2, 3))


def test_what_had_to_close_waits_for_its_turn() -> None:
    """Traces closed by a flood of others are counted as closed and scored by and by; the end scores what is left."""
    kept = Kept()
    table = TraceTable(TraceSettings(num_traces=1), lambda _: False)
    engine = Engine(table, Pipeline((), built_in_reader()), {"kept": kept}, Ticking())
    engine.take([trace_of(number) for number in range(1, 6)], [1] * 5)
    assert (4, 1, 4) == (engine.counts().in_closed, engine.counts().live, engine.queue.backlog)
    while not kept.reports:
        engine.work(until=0.0)

    assert ([1], 3, True) == (numbers(kept.reports), engine.queue.backlog, engine.is_open(trace_of(2).trace_id))
    assert [2, 3, 4] == numbers(list(engine.cut_short(until=1_000.0, only=())))
    assert [5] == numbers(list(engine.drain()))
    assert [1, 2, 3, 4, 5] == numbers(kept.reports)


def test_many_answers_at_once_are_reported_a_few_at_a_time() -> None:
    """Reports whose evaluations were answered together go out one after the other, as far as there is time."""
    answers = [Future[Outcome]() for _ in range(3)]
    kept = Kept()
    engine = engine_with(elsewhere(*answers), kept=kept)
    engine.add([trace_of(1), trace_of(2), trace_of(3)])
    for answer in answers:
        answer.set_result(PASS)
    reported = []
    while not engine.work(until=0.0):
        reported.append(numbers(kept.reports))

    assert [[1], [1, 2], [1, 2, 3]] == reported


class Calls:
    """An evaluator that fails a run with a call."""

    expectation = None

    def evaluate(self, trajectory: Trajectory) -> Outcome:
        """Look for a call."""
        return Score(float(not trajectory.calls), passed=not trajectory.calls)


def late_call(number: int) -> Span:
    """Return the span of a call of the trace `trace_of(1)`."""
    root = trace_of(1)
    return tool(number, "search")._replace(trace_id=root.trace_id, parent_span_id=root.span_id)


class Forbidden(Calls):
    """The same, and no further call could mend it."""

    def evaluate(self, trajectory: Trajectory) -> Outcome:
        """Look for a call."""
        return Score(0.0, passed=False, mended_by=MendedBy.NOTHING) if trajectory.calls else PASS


def late_engine(now: list[float], kept: Kept, evaluator: Calls | None = None, unit: Unit = Unit.TRACE) -> Engine:
    """Return an engine that has the time from a list, and scores whether there was a call."""
    table = TraceTable(TraceSettings(decision_delay_s=1), lambda span: not span.parent_span_id)
    asked = evaluator or Calls()
    pipeline = Pipeline([EvaluatorEntry(name="calls", type="t", resolve=lambda _: asked)], built_in_reader(), unit)
    return Engine(table, pipeline, {"kept": kept}, lambda: now[0])


def test_a_verdict_that_a_revision_changes_is_counted() -> None:
    """By what it was and what it became; one that stays is not."""
    now, kept = [0.0], Kept()
    engine = late_engine(now, kept)
    engine.add([trace_of(1)])
    for late in (late_call(2), late_call(3)):
        now[0] += 2
        engine.expire()
        engine.add([late])
    engine.drain()

    assert ["pass", "fail", "fail"] == [report.verdict for report in kept.reports]
    assert {("pass", "fail"): 1} == dict(engine.tallies.revised)


def test_a_run_that_pauses_and_goes_on_in_its_trace() -> None:
    """Its first report that is no pause is marked: metrics have not counted the run. It has changed no verdict."""
    now, kept = [0.0], Kept()
    engine = late_engine(now, kept)
    pause = (exception("langgraph.errors.GraphInterrupt", "()"),)
    for late in ([trace_of(1), late_call(2)._replace(events=pause)], [late_call(3), model(4)], [late_call(5)]):
        engine.add([span._replace(trace_id=trace_of(1).trace_id) for span in late])
        now[0] += 2
        engine.expire()

    assert [("none", False), ("fail", True), ("fail", False)] == [
        (report.verdict, report.paused_before) for report in kept.reports
    ]
    assert {} == dict(engine.tallies.revised)


def test_a_run_that_fails_before_its_pause_is_not_counted_again() -> None:
    """Metrics have counted the failure: the trace that goes on is a revision like any other."""
    now, kept = [0.0], Kept()
    engine = late_engine(now, kept, Forbidden())
    pause = (exception("langgraph.errors.GraphInterrupt", "()"),)
    for late in ([trace_of(1), late_call(2), late_call(3)._replace(events=pause)], [late_call(4), model(5)]):
        engine.add([span._replace(trace_id=trace_of(1).trace_id) for span in late])
        now[0] += 2
        engine.expire()

    assert [("fail", True, False), ("fail", False, False)] == [
        (report.verdict, report.trajectory.completeness.is_part, report.paused_before) for report in kept.reports
    ]


def test_a_run_that_comes_late_is_counted() -> None:
    """At its first revision, once. Beside it stands the run that earlier revisions had."""
    now, kept = [0.0], Kept()
    engine = late_engine(now, kept, unit=Unit.AGENT)
    root = trace_of(1)
    inner = agent(2, "helper")._replace(trace_id=root.trace_id, parent_span_id=root.span_id)
    for spans in ([root], [inner], [late_call(3)]):
        engine.add(spans)
        now[0] += 2
        engine.expire()

    found = [(each.revision, each.trajectory.agent, each.paused_before) for each in kept.reports]
    first, second = [(1, "planner", False), (1, "helper", True)], [(2, "planner", False), (2, "helper", False)]
    assert [(0, "planner", False), *first, *second] == found


def test_a_run_with_another_root_is_not_counted_again() -> None:
    """The calls of an agent whose own span comes late were counted without it."""
    now, kept = [0.0], Kept()
    engine = late_engine(now, kept, unit=Unit.AGENT)
    root = trace_of(1)._replace(name="GET", attributes={})
    inner = agent(2, "helper")._replace(trace_id=root.trace_id, parent_span_id=root.span_id)
    for spans in ([root, late_call(3)._replace(parent_span_id=inner.span_id)], [inner]):
        engine.add(spans)
        now[0] += 2
        engine.expire()

    found = [(each.revision, each.trajectory.agent, each.paused_before) for each in kept.reports]
    assert [(0, None, False), (1, "helper", False)] == found


def test_spans_that_come_too_late_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """Once in a while, and only those of agents: they are in no score."""
    now, kept = [0.0], Kept()
    engine = late_engine(now, kept)
    engine.add([trace_of(1)])
    engine.drain()
    now[0] = 90.0
    for number in range(2, 5):
        engine.add([late_call(number), late_call(number)._replace(name="GET", attributes={})])

    assert {"not_kept": 6} == {reason: count for reason, count in engine.counts().late.items() if count}
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith(
        "spans of agents that arrived after their trace was scored and removed from memory are in no score"
    )
    assert "traces.decision_delay" in message
    now[0] += 10
    engine.expire()
    assert 2 == len(caplog.records)


def test_a_trace_of_which_all_was_refused() -> None:
    """There is no report, and whoever keeps something of it learns that it is done with."""
    kept = Kept()
    told = Told(kept)
    engine = engine_with(Pipeline([], built_in_reader()), told, kept=kept)
    engine.add([refused_span(bytes(15) + b"\7", b"")])
    assert engine.is_open(bytes(15) + b"\7")
    engine.drain()

    assert ([], [7], 0) == (kept.reports, [each[0] for each in told.traces], engine.counts().received)
